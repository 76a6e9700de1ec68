#include "tools/ferryrun/agent_call.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "client/bootstrap/meeting_stream.h"
#include "common/clock.h"
#include "common/net_address.h"
#include "common/number_text.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {
namespace {

using client::MeetingStream;

constexpr std::string_view kCallVersion = "1";      // of ToText(CallPlace)
constexpr std::string_view kHelloWord = "agent 1";  // the number is the version
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kAnswerLimitMs = 8000;  // less than ferryrun's patience (called_hosts.cc)
constexpr uint64_t kLastWordsMs = 5000;    // for the agent's last words to a slow ferryrun
constexpr uint64_t kAgentExitMs = 10'000;  // after it has closed its output
constexpr size_t kBlockBytes = 1 << 16;
constexpr size_t kMostWaitingBytes = 1 << 18;  // for the agent; then ferryrun is not heard

// A line for ferryrun, through the command that has started this process.
void Say(std::string_view word, const std::string& text) {
  const std::string line = std::string(word) + text + "\n";
  (void)!write(STDOUT_FILENO, line.data(), line.size());
}

// ---- The call -----------------------------------------------------------------------------------

// A connection to one of ferryrun's addresses.
class Attempt {
 public:
  Attempt(const std::string& address, uint16_t port)
      : name_(daemon::HostPort{address, port}.Text()) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
      fault_ = "it is no address";
      return;
    }
    socket_.Reset(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
      fault_ = std::strerror(errno);
    }
    freeaddrinfo(found);
  }

  bool is_over() const { return !fault_.empty(); }
  pollfd Interest() const {
    if (is_over()) {
      return {-1, 0, 0};
    }
    return stream_ ? pollfd{stream_->fd(), stream_->events(), 0}
                   : pollfd{socket_.get(), POLLOUT, 0};
  }
  // Goes on as far as it can. Returns true if ferryrun has said that it is welcome.
  bool Advance(const Secret& key, const std::string& hello) {
    if (!stream_ && !Greet(key, hello)) {
      return false;
    }
    const StatusOr<std::string> packet = stream_->Turn();
    if (packet.ok() && *packet == kWelcome) {
      return true;
    }
    if (packet.ok()) {
      fault_ = *packet;
    } else if (packet.status().code() != ErrorCode::kWouldBlock) {
      fault_ = packet.status().message();
    }
    return false;
  }
  std::string Describe() const { return name_ + ": " + (is_over() ? fault_ : "no answer"); }
  MeetingStream TakeStream() { return std::move(*stream_); }

 private:
  bool Greet(const Secret& key, const std::string& hello) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    const StatusOr<Secret> number = client::DrawNumber();
    if (error != 0 || !number.ok()) {
      fault_ = error != 0 ? std::strerror(error) : number.status().message();
      return false;
    }
    const int on = 1;  // the host at the other end may be lost without a word
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    stream_.emplace(std::move(socket_), MeetingStream::Side::kCaller, key, *number);
    stream_->Put(hello);
    return true;
  }

  const std::string name_;
  UniqueFd socket_;  // until it is connected
  std::optional<MeetingStream> stream_;
  std::string fault_;
};

// Tries all addresses at once: only so it finds out which of them lead to ferryrun from here.
StatusOr<MeetingStream> Call(const CallPlace& place, const std::string& hello,
                             SignalSource* signals) {
  const Secret key = client::KeyOfText(place.secret);
  const uint64_t end_ns = MonotonicNs() + kAnswerLimitMs * kNsPerMs;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const std::string& address : place.addresses) {
    attempts.push_back(std::make_unique<Attempt>(address, place.port));
  }
  while (true) {
    std::vector<pollfd> fds = {{signals->fd(), POLLIN, 0}};
    bool goes_on = false;
    for (const std::unique_ptr<Attempt>& attempt : attempts) {
      fds.push_back(attempt->Interest());
      goes_on |= !attempt->is_over();
    }
    const uint64_t now_ns = MonotonicNs();
    if (!goes_on || now_ns >= end_ns) {
      std::string why;
      for (const std::unique_ptr<Attempt>& attempt : attempts) {
        why += (why.empty() ? "" : ", ") + attempt->Describe();
      }
      return Status(ErrorCode::kNodeUnreachable, why);
    }
    poll(fds.data(), fds.size(), static_cast<int>((end_ns - now_ns) / kNsPerMs + 1));
    FERRY_RETURN_IF_ERROR(signals->CheckInterrupt());
    for (size_t i = 0; i < attempts.size(); ++i) {
      if (fds[i + 1].revents != 0 && attempts[i]->Advance(key, hello)) {
        return attempts[i]->TakeStream();
      }
    }
  }
}

// ---- The streams --------------------------------------------------------------------------------

class Caller {
 public:
  Caller(SignalSource signals, MeetingStream stream, std::unique_ptr<LauncherProcess> agent)
      : signals_(std::move(signals)), stream_(std::move(stream)), agent_(std::move(agent)) {}

  int Run();

 private:
  void Poll();
  void HearFerryrun();
  void HearAgent();
  bool MayHearFerryrun() const {
    return !is_ferryrun_gone_ && agent_->waiting_bytes() < kMostWaitingBytes;
  }
  // The agent's words wait in its pipe while earlier ones do here.
  bool MayHearAgent() const { return is_ferryrun_gone_ || !stream_.has_output(); }

  SignalSource signals_;
  MeetingStream stream_;
  const std::unique_ptr<LauncherProcess> agent_;
  bool is_ferryrun_gone_ = false;
};

int Caller::Run() {
  while (!agent_->ended()) {
    Poll();
  }
  const uint64_t last_ns = MonotonicNs() + kLastWordsMs * kNsPerMs;
  while (!is_ferryrun_gone_ && stream_.has_output() && MonotonicNs() < last_ns) {
    pollfd room{stream_.fd(), POLLOUT, 0};
    poll(&room, 1, static_cast<int>(kLastWordsMs));
    stream_.Flush();
  }
  ProcessEnd end;
  const uint64_t exit_ns = MonotonicNs() + kAgentExitMs * kNsPerMs;
  while (!HasEnded(agent_->pid(), &end) && MonotonicNs() < exit_ns) {
    AwaitChild();
  }
  return ShellCode(end);
}

void Caller::Poll() {
  const auto events =
      static_cast<short>((MayHearFerryrun() ? POLLIN : 0) | (stream_.has_output() ? POLLOUT : 0));
  const bool waits_for_ferryrun = !is_ferryrun_gone_ && events != 0;
  pollfd fds[] = {{signals_.fd(), POLLIN, 0},
                  {waits_for_ferryrun ? stream_.fd() : -1, events, 0},
                  MayHearAgent() ? agent_->WordsInterest() : pollfd{-1, 0, 0},
                  agent_->RoomInterest()};
  poll(fds, std::size(fds), -1);
  while (const std::optional<int> signal = signals_.Next()) {
    if (IsEnding(*signal)) {
      agent_->CloseInput();  // it ends what it has started, and then itself
    }
  }
  agent_->Transmit();
  HearFerryrun();
  HearAgent();
}

// Also if the socket is not ready: packets may have come together with one that was taken.
void Caller::HearFerryrun() {
  while (MayHearFerryrun()) {
    const StatusOr<std::string> packet = stream_.Turn();
    if (packet.ok()) {
      agent_->Write(*packet);
    } else if (packet.status().code() == ErrorCode::kWouldBlock) {
      return;
    } else {
      is_ferryrun_gone_ = true;
      agent_->CloseInput();
    }
  }
}

void Caller::HearAgent() {
  if (!MayHearAgent()) {
    return;
  }
  agent_->Receive(kBlockBytes);
  const std::string words = agent_->Take();
  if (!is_ferryrun_gone_ && !words.empty()) {
    stream_.Put(words);
    stream_.Flush();
  }
}

}  // namespace

// ---- Texts --------------------------------------------------------------------------------------

std::string ToText(const CallPlace& place) {
  std::string text =
      std::string(kCallVersion) + " " + std::to_string(place.port) + " " + place.secret;
  for (const std::string& address : place.addresses) {
    text += " " + address;
  }
  return text;
}

StatusOr<CallPlace> ReadCallPlace(std::string_view text) {
  const std::vector<std::string_view> words = WordsOf(text);
  const auto port = words.size() > 3 ? NumberIn<uint16_t>(words[1]) : std::nullopt;
  if (port.value_or(0) == 0 || words[0] != kCallVersion) {
    return Status(ErrorCode::kCorrupt,
                  std::string(kCallVariable) + " is not what a ferryrun of this release writes");
  }
  return CallPlace{.port = *port,
                   .secret = std::string(words[2]),
                   .addresses = {words.begin() + 3, words.end()}};
}

std::string ToText(const CallHello& hello) {
  std::string words;
  client::AddField(kHelloWord, &words);
  client::AddField(std::to_string(hello.tasks), &words);
  for (const std::string& name : hello.names) {
    client::AddField(name, &words);
  }
  return words;
}

std::optional<CallHello> ReadCallHello(std::string_view words) {
  const auto word = client::TakeField(&words);
  const auto tasks = word == kHelloWord ? client::TakeField(&words) : std::nullopt;
  const auto number = tasks ? NumberIn<uint32_t>(*tasks) : std::nullopt;
  if (!number) {
    return std::nullopt;
  }
  CallHello hello{.names = {}, .tasks = *number};
  while (!words.empty()) {
    const auto name = client::TakeField(&words);
    if (!name || !IsHostName(*name)) {
      return std::nullopt;
    }
    hello.names.emplace_back(*name);
  }
  return hello.names.empty() ? std::nullopt : std::optional(std::move(hello));
}

// ---- The process --------------------------------------------------------------------------------

namespace {

CallHello OwnHello() {
  const char* const* environment = config::ProcessEnvironment();
  CallHello hello{.names = {}, .tasks = 0};
  if (const auto name = config::FindVariable(environment, "SLURMD_NODENAME")) {
    hello.names.emplace_back(*name);
  }
  if (const auto tasks = config::FindVariable(environment, "SLURM_STEP_NUM_TASKS")) {
    hello.tasks = NumberIn<uint32_t>(*tasks).value_or(0);
  }
  hello.names.push_back(config::HostName());
  return hello;
}

// Where to call, with the whole secret.
StatusOr<CallPlace> FindPlace(const std::vector<std::string>& words) {
  const char* const* environment = config::ProcessEnvironment();
  if (words.empty()) {
    return ReadCallPlace(config::FindVariable(environment, kCallVariable).value_or(""));
  }
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  StatusOr<CallPlace> place = ReadCallPlace(text);
  FERRY_RETURN_IF_ERROR(place.status());
  const auto of_job = config::FindVariable(environment, kPbsSecret);
  if (!of_job) {
    return Status(ErrorCode::kPermissionDenied,
                  std::string("here is no ") + kPbsSecret + ", so this is no process of the job");
  }
  place->secret = BothSecrets(place->secret, std::string(*of_job));
  return place;
}

}  // namespace

std::string BothSecrets(const std::string& of_run, const std::string& of_job) {
  return of_job.empty() ? of_run : of_run + "+" + of_job;
}

int RunCaller(const std::vector<std::string>& words) {
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return 1;
  }
  const bool is_heard = words.empty();
  const CallHello hello = OwnHello();
  const std::string& host = hello.names.front();
  const StatusOr<CallPlace> place = FindPlace(words);
  unsetenv(kCallVariable);  // no rank needs it
  if (is_heard) {
    Say(kCallsWord, host);
  }
  StatusOr<MeetingStream> stream =
      place.ok() ? Call(*place, ToText(hello), &*signals) : place.status();
  StatusOr<std::unique_ptr<LauncherProcess>> agent =
      stream.ok() ? LauncherProcess::StartAgent() : stream.status();
  if (!agent.ok() && is_heard) {
    Say(kCannotCallWord, host + ": " + agent.status().message());
  } else if (!agent.ok()) {
    std::fprintf(stderr, "ferryrun on host %s cannot call the one that has started it: %s\n",
                 host.c_str(), agent.status().message().c_str());
  }
  if (!agent.ok()) {
    return 1;
  }
  return Caller(std::move(*signals), std::move(*stream), std::move(*agent)).Run();
}

}  // namespace ferry::tools
