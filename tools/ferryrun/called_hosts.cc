#include "tools/ferryrun/called_hosts.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "client/bootstrap/meeting_stream.h"
#include "common/clock.h"
#include "common/process_handle.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/call_door.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

using client::MeetingStream;

constexpr uint64_t kNsPerMs = 1'000'000;
// From the line by which a caller says that it calls, or a first error of the command, on.
constexpr uint64_t kCallLimitMs = 10'000;
constexpr uint64_t kLastCallsMs = 1000;  // for connections to end by themselves after the command
constexpr uint64_t kLeaveMs = 3000;      // for the command to end after its agents
constexpr uint64_t kTickMs = 100;
constexpr size_t kMoreStrangers = 64;  // than hosts
constexpr size_t kMostWordsBytes = 1 << 16;
constexpr size_t kPacketBytes = 1 << 16;

// The command and all its agents.
class CallLink {
 public:
  explicit CallLink(const CallPlan& plan);
  ~CallLink();
  Status Start(const CallPlan& plan);

  pid_t pid() const { return command_->pid(); }
  pollfd WordsInterest(size_t host) const;
  pollfd RoomInterest(size_t host) const;
  void Write(size_t host, std::string_view bytes);
  void Advance(size_t host);
  std::string Take(size_t host) { return std::exchange(hosts_[host].received, {}); }
  // Hosts that end with the command do so together.
  bool HasEnded(size_t host) const {
    const CalledHost& one = hosts_[host];
    return one.has_ended && one.received.empty() && (!one.with_command || is_command_over_);
  }
  std::string HowEnded(size_t host);
  bool HaveEndedTogether(size_t one, size_t other) const {
    return hosts_[one].with_command && hosts_[other].with_command;
  }
  UniqueFd TakeErrors();
  void Close(size_t host);

 private:
  struct CalledHost {
    std::string name;
    std::optional<MeetingStream> stream = {};  // once it has called
    std::string to_send = {};                  // before it has
    std::string received = {};
    uint64_t calls_ns = 0;  // when a caller there said that it calls; 0: not yet
    bool has_ended = false;
    bool with_command = false;
    std::string how_ended = {};  // empty: its connection has
  };
  size_t IndexOf(const std::string& name) const;
  size_t IndexOf(const CallHello& hello) const;
  static bool Awaits(const CalledHost& host) { return !host.stream && !host.has_ended; }
  bool IsOver() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [](const CalledHost& host) { return host.has_ended; });
  }
  void Admit(const CallHello& hello, MeetingStream* stream);
  void Hear(CalledHost* host);
  bool HearCommand();
  void HearErrors();
  void OnLine(std::string_view line);
  void OnCommandEnd();
  void OnTick();
  void End(CalledHost* host, const std::string& how);
  void EndAwaited(const std::string& how);
  void FinishStartIfDone();
  void SetClock();
  std::string WayOut() const;
  std::string Remarks() const;

  std::vector<CalledHost> hosts_;
  std::unordered_map<std::string, size_t> index_;
  const uint64_t start_limit_ms_;
  std::unique_ptr<LauncherProcess> command_;
  EventSet events_;  // of the command, the door and the clock
  CallDoor door_;
  UniqueFd exit_;  // the command's process; not valid: the end of its output stands for its own
  UniqueFd tick_;
  bool has_clock_ = false;   // tick_ is in events_
  bool is_starting_ = true;  // some have still to call
  uint64_t began_ns_ = 0;
  uint64_t error_ns_ = 0;         // when the command wrote of an error; 0: it has not
  uint64_t command_ns_ = 0;       // when the command ended; 0: it runs
  bool is_command_over_ = false;  // and all connections, or they had time for it
  size_t called_ = 0;
  std::string output_;   // of the command: the line that has begun
  std::string errors_;   // what it has written to standard error until TakeErrors
  std::string unknown_;  // a host that has called, and is none of them
};

class CalledStream final : public HostStream {
 public:
  CalledStream(std::shared_ptr<CallLink> link, size_t host) : link_(std::move(link)), host_(host) {}
  ~CalledStream() override { link_->Close(host_); }

  pid_t pid() const override { return link_->pid(); }
  void Write(std::string_view bytes) override { link_->Write(host_, bytes); }
  pollfd WordsInterest() const override { return link_->WordsInterest(host_); }
  pollfd RoomInterest() const override { return link_->RoomInterest(host_); }
  void Advance() override { link_->Advance(host_); }
  std::string Take() override { return link_->Take(host_); }
  bool ended() const override { return link_->HasEnded(host_); }
  UniqueFd TakeErrors() override { return host_ == 0 ? link_->TakeErrors() : UniqueFd(); }
  std::string HowEnded() override { return link_->HowEnded(host_); }
  bool IsLostWith(const HostStream& other) const override {
    const auto* called = dynamic_cast<const CalledStream*>(&other);
    return called != nullptr && called->link_ == link_ &&
           link_->HaveEndedTogether(host_, called->host_);
  }

 private:
  const std::shared_ptr<CallLink> link_;
  const size_t host_;
};

CallLink::CallLink(const CallPlan& plan) : start_limit_ms_(plan.start_limit_ms) {
  for (const std::string& name : plan.hosts) {
    index_.emplace(name, hosts_.size());
    hosts_.push_back({.name = name});
  }
}

Status CallLink::Start(const CallPlan& plan) {
  FERRY_RETURN_IF_ERROR(door_.Open(plan.network));
  StatusOr<std::unique_ptr<LauncherProcess>> command = LauncherProcess::Start(
      plan.command, {std::string(kCallVariable) + "=" + ToText(door_.place())});
  FERRY_RETURN_IF_ERROR(command.status());
  command_ = std::move(*command);
  began_ns_ = MonotonicNs();
  StatusOr<UniqueFd> exit = OpenProcessHandle(command_->pid());
  FERRY_RETURN_IF_ERROR(exit.status());
  exit_ = std::move(*exit);
  tick_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec each{{0, kTickMs * kNsPerMs}, {0, kTickMs * kNsPerMs}};
  if (!tick_.valid() || timerfd_settime(tick_.get(), 0, &each, nullptr) != 0) {
    return StatusFromErrno(errno, "timerfd");
  }
  SetClock();
  door_.Serve(
      &events_, hosts_.size() + kMoreStrangers,
      [this](const CallHello& hello, MeetingStream* stream) { Admit(hello, stream); },
      [this] {
        EndAwaited("ferryrun has no descriptor left for its agents: raise `ulimit -n`");
        FinishStartIfDone();
      });
  events_.Add(command_->WordsInterest().fd, EPOLLIN, [this](uint32_t) { HearCommand(); });
  events_.Add(command_->errors_fd(), EPOLLIN, [this](uint32_t) { HearErrors(); });
  if (exit_.valid()) {
    events_.Add(exit_.get(), EPOLLIN, [this](uint32_t) { OnCommandEnd(); });
  }
  return {};
}

// The agents end when their connections do, and the command with them. A command that has agents
// which never called is told to end: that of Slurm kills them then.
CallLink::~CallLink() {
  const bool have_all_called = called_ == hosts_.size();
  hosts_.clear();
  door_.Shut();
  if (command_ == nullptr) {
    return;
  }
  const auto await_exit = [this] {
    const uint64_t end_ns = MonotonicNs() + kLeaveMs * kNsPerMs;
    while (!command_->HasExited() && MonotonicNs() < end_ns) {
      AwaitChild();
    }
    return command_->HasExited();
  };
  if (!have_all_called || !await_exit()) {
    kill(command_->pid(), SIGTERM);
    await_exit();
  }
}

// ---- Streams ------------------------------------------------------------------------------------

pollfd CallLink::WordsInterest(size_t host) const {
  const CalledHost& one = hosts_[host];
  if (HasEnded(host)) {
    return {-1, 0, 0};
  }
  return {one.stream && !one.has_ended ? one.stream->fd() : events_.fd(), POLLIN, 0};
}

// A stream that has nothing to send looks whether the command goes on.
pollfd CallLink::RoomInterest(size_t host) const {
  const CalledHost& one = hosts_[host];
  if (one.has_ended || !one.stream) {
    return {-1, 0, 0};
  }
  return one.stream->has_output() ? pollfd{one.stream->fd(), POLLOUT, 0}
                                  : pollfd{events_.fd(), POLLIN, 0};
}

void CallLink::Write(size_t host, std::string_view bytes) {
  CalledHost& one = hosts_[host];
  if (!one.stream) {
    one.to_send += bytes;
    return;
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPacketBytes))) {
    one.stream->Put(bytes.substr(0, kPacketBytes));
  }
  one.stream->Flush();
}

void CallLink::Advance(size_t host) {
  events_.Dispatch();
  Hear(&hosts_[host]);
}

void CallLink::Hear(CalledHost* host) {
  while (host->stream && !host->has_ended) {
    const StatusOr<std::string> packet = host->stream->Turn();
    if (packet.ok()) {
      host->received += *packet;
    } else if (packet.status().code() == ErrorCode::kWouldBlock) {
      return;
    } else {
      host->has_ended = true;
      host->with_command = command_ns_ != 0;
      is_command_over_ |= host->with_command && IsOver();
    }
  }
}

std::string CallLink::HowEnded(size_t host) {
  const CalledHost& one = hosts_[host];
  std::string how = !one.how_ended.empty() ? one.how_ended
                    : one.with_command     ? command_->HowEnded()
                                           : "the connection to its agent has ended";
  HearErrors();
  const std::string written = Trimmed(errors_);
  return written.empty() ? how : how + "; " + command_->name() + " wrote:\n  " + written;
}

// Tells at once of those that have come so far.
UniqueFd CallLink::TakeErrors() {
  HearErrors();
  if (const std::string written = Trimmed(std::exchange(errors_, {})); !written.empty()) {
    std::fprintf(stderr, "%s\n", written.c_str());
  }
  if (command_->errors_fd() >= 0) {
    events_.Remove(command_->errors_fd());
  }
  return command_->TakeErrors();
}

void CallLink::Close(size_t host) {
  CalledHost& one = hosts_[host];
  one.stream.reset();
  one.to_send.clear();
  one.received.clear();
  one.has_ended = true;
}

void CallLink::End(CalledHost* host, const std::string& how) {
  host->has_ended = true;
  host->how_ended = how;
}

void CallLink::EndAwaited(const std::string& how) {
  for (CalledHost& host : hosts_) {
    if (Awaits(host)) {
      End(&host, how);
    }
  }
}

// ---- Callers ------------------------------------------------------------------------------------

size_t CallLink::IndexOf(const std::string& name) const {
  if (const auto found = index_.find(name); found != index_.end()) {
    return found->second;
  }
  const auto same = std::find_if(hosts_.begin(), hosts_.end(), [&name](const CalledHost& host) {
    return AreSameHost(host.name, name);
  });
  return static_cast<size_t>(same - hosts_.begin());
}

// hosts_.size(): it is none of them.
size_t CallLink::IndexOf(const CallHello& hello) const {
  size_t index = hosts_.size();
  for (const std::string& name : hello.names) {
    index = index == hosts_.size() ? IndexOf(name) : index;
  }
  return index;
}

void CallLink::Admit(const CallHello& hello, MeetingStream* stream) {
  const size_t index = IndexOf(hello);
  if (index == hosts_.size() || !Awaits(hosts_[index])) {
    const std::string& name = hello.names.front();
    unknown_ = index == hosts_.size() ? name : unknown_;
    stream->Put(index == hosts_.size() ? "host " + name + " is none of this job's"
                                       : "ferryrun waits for no agent of host " + name);
    stream->Flush();
    return;
  }
  CalledHost& host = hosts_[index];
  host.stream.emplace(std::move(*stream));
  host.stream->Put(kWelcome);
  Write(index, std::exchange(host.to_send, {}));
  ++called_;
  if (hello.tasks != 0 && called_ >= hello.tasks) {
    EndAwaited(command_->name() + " has started agents on " + std::to_string(hello.tasks) + " of " +
               std::to_string(hosts_.size()) + " hosts only, and none there" + Remarks());
  }
  FinishStartIfDone();
}

// ---- The command --------------------------------------------------------------------------------

// Returns true if it had something to say.
bool CallLink::HearCommand() {
  const int fd = command_->WordsInterest().fd;
  command_->Receive(kMostWordsBytes);
  const std::string words = command_->Take();
  output_ += words;
  size_t begin = 0;
  for (size_t end = output_.find('\n'); end != output_.npos; end = output_.find('\n', begin)) {
    OnLine(std::string_view(output_).substr(begin, end - begin));
    begin = end + 1;
  }
  output_.erase(0, begin);
  if (output_.size() > kMostWordsBytes) {
    output_.clear();
  }
  if (fd >= 0 && command_->ended()) {
    events_.Remove(fd);
    if (!exit_.valid()) {
      OnCommandEnd();
    }
  }
  FinishStartIfDone();
  return !words.empty();
}

// A label may come before the word.
void CallLink::OnLine(std::string_view line) {
  if (const size_t at = line.find(kCallsWord); at != line.npos) {
    const size_t index = IndexOf(std::string(line.substr(at + kCallsWord.size())));
    if (index < hosts_.size()) {
      hosts_[index].calls_ns = MonotonicNs();
    }
    return;
  }
  const size_t at = line.find(kCannotCallWord);
  if (at == line.npos) {
    return;
  }
  line.remove_prefix(at + kCannotCallWord.size());
  const size_t colon = std::min(line.find(": "), line.size());
  const size_t index = IndexOf(std::string(line.substr(0, colon)));
  if (index < hosts_.size() && Awaits(hosts_[index])) {
    line.remove_prefix(std::min(colon + 2, line.size()));
    End(&hosts_[index],
        "its agent cannot call this ferryrun: " + std::string(line) + WayOut() + Remarks());
  }
}

void CallLink::HearErrors() {
  const int fd = command_->errors_fd();
  std::string text = command_->ReadErrors(kMostWordsBytes);
  for (; !text.empty(); text = command_->ReadErrors(kMostWordsBytes)) {
    errors_ += text.substr(0, kMostWordsBytes - std::min(errors_.size(), kMostWordsBytes));
  }
  if (error_ns_ == 0 && errors_.find("error:") != errors_.npos) {
    error_ns_ = MonotonicNs();
  }
  if (fd >= 0 && command_->errors_fd() < 0) {
    events_.Remove(fd);
  }
}

// Its own processes may hold its streams for longer.
void CallLink::OnCommandEnd() {
  events_.Remove(exit_.get());
  while (HearCommand()) {
  }
  command_ns_ = MonotonicNs();
  for (CalledHost& host : hosts_) {
    host.with_command |= Awaits(host);
  }
  EndAwaited(command_->HowEnded() + Remarks());
  is_command_over_ = IsOver();
  FinishStartIfDone();
  SetClock();
}

// It ticks while there is something to wait for.
void CallLink::SetClock() {
  const bool is_wanted = is_starting_ || (command_ns_ != 0 && !is_command_over_);
  if (is_wanted && !has_clock_) {
    events_.Add(tick_.get(), EPOLLIN, [this](uint32_t) { OnTick(); });
  } else if (!is_wanted && has_clock_) {
    events_.Remove(tick_.get());
  }
  has_clock_ = is_wanted;
}

void CallLink::OnTick() {
  uint64_t ticks = 0;
  (void)!read(tick_.get(), &ticks, sizeof(ticks));
  const uint64_t now_ns = MonotonicNs();
  const auto is_past = [now_ns](uint64_t since_ns, uint64_t limit_ms) {
    return since_ns != 0 && now_ns >= since_ns + limit_ms * kNsPerMs;
  };
  door_.DropSilent(now_ns);
  const std::string& name = command_->name();
  const std::string limit = std::to_string(kCallLimitMs / 1000) + " s";
  for (CalledHost& host : hosts_) {
    if (!Awaits(host)) {
      continue;
    }
    if (is_past(host.calls_ns, kCallLimitMs)) {
      End(&host, "its agent has not reached this ferryrun, at " + door_.where() + ", within " +
                     limit + WayOut() + Remarks());
    } else if (host.calls_ns == 0 && is_past(error_ns_, kCallLimitMs)) {
      End(&host, name + " told of an error, and its agent has not called within " + limit +
                     " after that" + Remarks());
    } else if (is_past(began_ns_, start_limit_ms_)) {
      End(&host, name + " has not started its agent within " +
                     std::to_string(start_limit_ms_ / 1000) + " s" + Remarks());
    }
  }
  if (is_past(command_ns_, kLastCallsMs)) {
    for (CalledHost& host : hosts_) {
      Hear(&host);
      host.with_command |= !host.has_ended;
      host.has_ended = true;
    }
    is_command_over_ = true;
  }
  FinishStartIfDone();
  SetClock();
}

void CallLink::FinishStartIfDone() {
  if (!is_starting_ || std::any_of(hosts_.begin(), hosts_.end(), Awaits)) {
    return;
  }
  is_starting_ = false;
  door_.Shut();
  SetClock();
}

// The way out where no agent can call.
std::string CallLink::WayOut() const {
  return " (--network names another interface; with --launch-radix 0 there is one " +
         command_->name() + " for each host, whose agents need not call)";
}

// Facts that may have to do with it that an agent has not come.
std::string CallLink::Remarks() const {
  return door_.Remarks() + (unknown_.empty() ? ""
                                             : "; an agent of host " + unknown_ +
                                                   " has called, which is none of the job's");
}

}  // namespace

StatusOr<std::vector<std::unique_ptr<HostStream>>> StartCallers(const CallPlan& plan) {
  const auto link = std::make_shared<CallLink>(plan);
  if (const Status started = link->Start(plan); !started.ok()) {
    return Status(started.code(), "hosts " + plan.hosts.front() + " to " + plan.hosts.back() +
                                      ": " + started.message());
  }
  std::vector<std::unique_ptr<HostStream>> streams;
  for (size_t host = 0; host < plan.hosts.size(); ++host) {
    streams.push_back(std::make_unique<CalledStream>(link, host));
  }
  return streams;
}

}  // namespace ferry::tools
