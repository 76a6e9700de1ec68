#include "tools/ferryrun/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "config/options.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/agent_tree.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/launchers.h"
#include "tools/ferryrun/output.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 14;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kStopMarginMs = 10'000;  // for agents to end, beside the grace
constexpr uint64_t kExitPatienceMs = 2000;  // for a launcher that has closed its output
constexpr int kLookMs = 50;                 // between looks at those

Status CorruptFrame() { return {ErrorCode::kCorrupt, "a frame that no ferryrun sends"}; }

// A process that this relay has started: an agent here, or a launcher that leads to an agent, or to
// a relay, on another host.
struct Branch {
  uint32_t first = 0;     // channel
  uint32_t count = 1;     // of channels; more than 1: a relay
  std::string name = {};  // for people: "ssh on host b"
  std::unique_ptr<LauncherProcess> process = nullptr;
  bool over = false;
  uint64_t ended_ns = 0;  // since when its output has ended
  // Members of an agent's branch.
  size_t room = kChannelWindowBytes;  // for its output on the way to ferryrun
  size_t input_bytes = 0;             // that ferryrun believes to be under way
  // Members of a relay's branch.
  FrameReader reader{/*greeting=*/true};
  std::vector<bool> has_ended = {};  // by channel

  bool leads_on() const { return count > 1; }
};

class Relay {
 public:
  explicit Relay(SignalSource signals) : signals_(std::move(signals)), out_(STDOUT_FILENO) {}

  int Run();

 private:
  void Poll();
  int PollTimeoutMs() const;
  void ReadOrders();
  Status OnOrder(const Frame& frame);
  Status OnAgentOrder(Branch* branch, const Frame& frame);
  Status OnAgentInput(Branch* branch, std::string_view bytes);
  void OnShared(const Frame& frame);
  void Start(const RelayTree& tree);
  void StartBranch(const RelayTree& tree, const HostGroup& group);
  Branch* BranchOf(uint32_t channel);
  void Advance(Branch* branch);
  void ReadAgent(Branch* branch);
  void ReadRelay(Branch* branch);
  void AnswerInput(Branch* branch);
  void EndIfOver(Branch* branch);
  void End(Branch* branch, const std::string& how);
  void OnSignals();
  void Close();
  void CloseBranch(Branch* branch);
  void Say(FrameKind kind, uint32_t channel, std::string_view payload) {
    if (!is_ferryrun_gone_) {
      AppendFrame(kind, channel, payload, out_.text());
    }
  }
  bool IsDone() const {
    return has_tree_ && std::all_of(branches_.begin(), branches_.end(),
                                    [](const Branch& branch) { return branch.over; });
  }

  SignalSource signals_;
  FrameReader reader_{/*greeting=*/false};
  OutputSink out_;
  bool has_tree_ = false;
  std::string own_host_;
  uint64_t grace_ms_ = 0;
  std::vector<Branch> branches_;     // by channel
  std::vector<std::string> shared_;  // by number
  bool is_ferryrun_gone_ = false;
  std::string why_closed_;    // if not because ferryrun has gone
  uint64_t deadline_ns_ = 0;  // by which all have to end; 0: all goes on
};

int Relay::Run() {
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  *out_.text() += Greeting();
  while (!IsDone() && (deadline_ns_ == 0 || (has_tree_ && MonotonicNs() < deadline_ns_))) {
    Poll();
  }
  while (!is_ferryrun_gone_ && !out_.empty() && out_.Flush() == 0) {
    pollfd room = {out_.fd(), POLLOUT, 0};
    if (poll(&room, 1, static_cast<int>(kStopMarginMs)) <= 0) {
      break;
    }
  }
  return IsDone() ? 0 : 1;
}

int Relay::PollTimeoutMs() const {
  const bool looks = std::any_of(branches_.begin(), branches_.end(), [](const Branch& branch) {
    return !branch.over && branch.ended_ns != 0;
  });
  if (looks) {
    return kLookMs;
  }
  const uint64_t now_ns = MonotonicNs();
  return deadline_ns_ == 0        ? -1
         : now_ns >= deadline_ns_ ? 0
                                  : static_cast<int>((deadline_ns_ - now_ns) / kNsPerMs + 1);
}

void Relay::Poll() {
  // New words of agents and relays wait while earlier ones do.
  const bool full = out_.IsFull();
  std::vector<pollfd> fds = {{is_ferryrun_gone_ ? -1 : STDIN_FILENO, POLLIN, 0},
                             {signals_.fd(), POLLIN, 0},
                             {out_.empty() ? -1 : out_.fd(), POLLOUT, 0}};
  const size_t first_branch = fds.size();
  for (const Branch& branch : branches_) {
    const bool runs = !branch.over;
    const bool may_speak = runs && !full && branch.room > 0;
    fds.push_back(may_speak ? branch.process->WordsInterest() : pollfd{-1, 0, 0});
    fds.push_back({runs && !full ? branch.process->errors_fd() : -1, POLLIN, 0});
    fds.push_back(runs ? branch.process->RoomInterest() : pollfd{-1, 0, 0});
  }
  const int ready = poll(fds.data(), fds.size(), PollTimeoutMs());
  for (size_t i = 0; ready > 0 && first_branch + 3 * i < fds.size(); ++i) {
    const pollfd* own = &fds[first_branch + 3 * i];
    if (own[0].revents != 0 || own[1].revents != 0 || own[2].revents != 0) {
      Advance(&branches_[i]);
    }
  }
  for (Branch& branch : branches_) {
    EndIfOver(&branch);
  }
  if (ready > 0 && fds[1].revents != 0) {
    OnSignals();
  }
  if (ready > 0 && fds[0].revents != 0) {
    ReadOrders();
  }
  if (!is_ferryrun_gone_ && out_.Flush() != 0) {
    is_ferryrun_gone_ = true;
    Close();
  }
}

// ---- Ferryrun -----------------------------------------------------------------------------------

void Relay::ReadOrders() {
  char bytes[kBlockBytes];
  const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    is_ferryrun_gone_ = true;
    out_.text()->clear();
    Close();
    return;
  }
  reader_.Feed({bytes, static_cast<size_t>(std::max<ssize_t>(size, 0))});
  Status status;
  bool has_frame = true;
  while (status.ok() && has_frame) {
    const StatusOr<std::optional<Frame>> frame = reader_.Next();
    has_frame = frame.ok() && frame->has_value();
    status = has_frame ? OnOrder(**frame) : frame.status();
  }
  if (!status.ok()) {
    why_closed_ = "a relay got " + status.message();
    std::fprintf(stderr, "ferryrun: %s\n", why_closed_.c_str());
    is_ferryrun_gone_ = true;  // the one that speaks like that is not listened to
    Close();
  }
}

Status Relay::OnOrder(const Frame& frame) {
  if (frame.kind == FrameKind::kTree) {
    const StatusOr<RelayTree> tree = ReadTree(frame.payload);
    FERRY_RETURN_IF_ERROR(tree.status());
    if (has_tree_) {
      return CorruptFrame();
    }
    Start(*tree);
    return {};
  }
  if (frame.kind == FrameKind::kShared) {
    if (!has_tree_ || frame.rank != shared_.size()) {
      return CorruptFrame();
    }
    OnShared(frame);
    return {};
  }
  Branch* const branch = BranchOf(frame.rank);
  const bool is_of_channel =
      frame.kind == FrameKind::kChannelInput || frame.kind == FrameKind::kChannelShared ||
      frame.kind == FrameKind::kChannelClose || frame.kind == FrameKind::kChannelRoom;
  if (branch == nullptr || !is_of_channel || frame.payload.size() > kChannelWindowBytes) {
    return CorruptFrame();
  }
  if (branch->over) {
    return {};  // ferryrun does not know it yet
  }
  if (!branch->leads_on()) {
    return OnAgentOrder(branch, frame);
  }
  std::string copy;
  AppendFrame(frame.kind, frame.rank, frame.payload, &copy);
  branch->process->Write(copy);
  return {};
}

void Relay::OnShared(const Frame& frame) {
  shared_.push_back(frame.payload);
  std::string copy;
  AppendFrame(frame.kind, frame.rank, frame.payload, &copy);
  for (Branch& branch : branches_) {
    if (!branch.over && branch.leads_on()) {
      branch.process->Write(copy);
    }
  }
}

Status Relay::OnAgentOrder(Branch* branch, const Frame& frame) {
  if (frame.kind == FrameKind::kChannelInput) {
    const bool has_room = branch->input_bytes <= kChannelWindowBytes &&
                          frame.payload.size() <= kChannelWindowBytes - branch->input_bytes;
    return has_room ? OnAgentInput(branch, frame.payload) : CorruptFrame();
  }
  if (frame.kind == FrameKind::kChannelShared) {
    // These may be more than the window has left.
    const auto number = static_cast<uint32_t>(ReadNumber(frame));
    const bool has_room = branch->input_bytes < kChannelWindowBytes;
    return has_room && number < shared_.size() ? OnAgentInput(branch, shared_[number])
                                               : CorruptFrame();
  }
  if (frame.kind == FrameKind::kChannelClose) {
    CloseBranch(branch);
  } else {
    const auto more = static_cast<uint32_t>(ReadNumber(frame));
    if (more > kChannelWindowBytes - branch->room) {
      return CorruptFrame();
    }
    branch->room += more;
  }
  return {};
}

Status Relay::OnAgentInput(Branch* branch, std::string_view bytes) {
  branch->input_bytes += bytes.size();
  branch->process->Write(bytes);
  AnswerInput(branch);
  return {};
}

// Tells ferryrun of input that has gone on to the agent.
void Relay::AnswerInput(Branch* branch) {
  const size_t gone = branch->input_bytes - branch->process->waiting_bytes();
  if (gone >= kChannelWindowBytes / 4) {
    branch->input_bytes -= gone;
    Say(FrameKind::kChannelRoom, branch->first, NumberPayload(static_cast<int32_t>(gone)));
  }
}

void Relay::OnSignals() {
  while (const std::optional<int> signal = signals_.Next()) {
    if (IsEnding(*signal)) {
      if (why_closed_.empty()) {
        why_closed_ =
            "a relay on host " + own_host_ + " was told to end by SIG" + sigabbrev_np(*signal);
      }
      Close();
    }
  }
}

// Ends all that has been started. Agents and relays on other hosts see that their launcher has
// gone; the agent here has to be waited for.
void Relay::Close() {
  if (deadline_ns_ == 0) {
    deadline_ns_ = MonotonicNs() + (grace_ms_ + kStopMarginMs) * kNsPerMs;
  }
  for (Branch& branch : branches_) {
    CloseBranch(&branch);
  }
}

void Relay::CloseBranch(Branch* branch) {
  if (branch->over) {
    return;
  }
  if (branch != &branches_.front()) {
    return End(branch, why_closed_);
  }
  branch->process->CloseInput();
  branch->room = is_ferryrun_gone_ ? kChannelWindowBytes : branch->room;  // ferryrun gives no more
}

// ---- Agents and relays --------------------------------------------------------------------------

void Relay::Start(const RelayTree& tree) {
  has_tree_ = true;
  own_host_ = tree.hosts.front();
  grace_ms_ = tree.grace_ms;
  branches_.push_back({.first = tree.first_channel, .name = "the agent on host " + own_host_});
  StatusOr<std::unique_ptr<LauncherProcess>> agent = LauncherProcess::StartAgent();
  if (agent.ok()) {
    branches_.back().process = std::move(*agent);
  } else {
    End(&branches_.back(), agent.status().message());
  }
  for (const HostGroup& group : SplitHosts(1, tree.hosts.size() - 1, tree.radix)) {
    StartBranch(tree, group);
  }
}

void Relay::StartBranch(const RelayTree& tree, const HostGroup& group) {
  config::Options options;
  options.launcher = tree.launcher;
  options.rsh = tree.rsh;
  const std::string& host = tree.hosts[group.first];
  Branch branch{.first = tree.first_channel + static_cast<uint32_t>(group.first),
                .count = static_cast<uint32_t>(group.count)};
  const StatusOr<std::vector<std::string>> command =
      LauncherCommand(options, host, tree.program, {branch.leads_on() ? kRelayFlag : kAgentFlag});
  StatusOr<std::unique_ptr<LauncherProcess>> process =
      command.ok() ? LauncherProcess::Start(*command) : command.status();
  branch.has_ended.resize(branch.count);
  if (!process.ok()) {
    branches_.push_back(std::move(branch));
    End(&branches_.back(), process.status().message() + " on host " + own_host_);
    return;
  }
  branch.name =
      (*process)->name() + (branch.leads_on() ? " to host " + host : "") + " on host " + own_host_;
  branch.process = std::move(*process);
  if (branch.leads_on()) {
    const auto first = tree.hosts.begin() + static_cast<ptrdiff_t>(group.first);
    RelayTree below = tree;
    below.first_channel = branch.first;
    below.hosts = {first, first + branch.count};
    std::string frame;
    AppendFrame(FrameKind::kTree, 0, ToText(below), &frame);
    branch.process->Write(frame);
  }
  branches_.push_back(std::move(branch));
}

Branch* Relay::BranchOf(uint32_t channel) {
  const auto after =
      std::upper_bound(branches_.begin(), branches_.end(), channel,
                       [](uint32_t number, const Branch& branch) { return number < branch.first; });
  if (after == branches_.begin() || channel - (after - 1)->first >= (after - 1)->count) {
    return nullptr;
  }
  return &*(after - 1);
}

void Relay::Advance(Branch* branch) {
  if (branch->over) {
    return;
  }
  branch->process->Transmit();
  if (const std::string errors = branch->process->ReadErrors(kBlockBytes); !errors.empty()) {
    Say(FrameKind::kChannelErrors, branch->first, errors);
  }
  if (branch->leads_on()) {
    ReadRelay(branch);
  } else {
    AnswerInput(branch);
    ReadAgent(branch);
  }
}

void Relay::ReadAgent(Branch* branch) {
  branch->process->Receive(std::min(kBlockBytes, branch->room));
  if (const std::string words = branch->process->Take(); !words.empty()) {
    Say(FrameKind::kChannelOutput, branch->first, words);
    branch->room -= is_ferryrun_gone_ ? 0 : words.size();
  }
}

void Relay::ReadRelay(Branch* branch) {
  branch->process->Receive(kBlockBytes);
  branch->reader.Feed(branch->process->Take());
  while (!branch->over) {
    const StatusOr<std::optional<Frame>> frame = branch->reader.Next();
    if (frame.ok() && !frame->has_value()) {
      return;
    }
    const bool is_known = frame.ok() && ((*frame)->kind == FrameKind::kChannelOutput ||
                                         (*frame)->kind == FrameKind::kChannelErrors ||
                                         (*frame)->kind == FrameKind::kChannelEnd ||
                                         (*frame)->kind == FrameKind::kChannelRoom);
    if (!is_known || (*frame)->rank - branch->first >= branch->count ||
        (*frame)->payload.size() > kChannelWindowBytes ||
        branch->has_ended[(*frame)->rank - branch->first]) {
      End(branch, branch->name + " brings no relay's words" +
                      (frame.ok() ? "" : ": " + frame.status().message()));
      return;
    }
    if ((*frame)->kind == FrameKind::kChannelEnd) {
      branch->has_ended[(*frame)->rank - branch->first] = true;
    }
    Say((*frame)->kind, (*frame)->rank, (*frame)->payload);
  }
}

void Relay::EndIfOver(Branch* branch) {
  if (branch->over || !branch->process->ended()) {
    return;
  }
  const uint64_t now_ns = MonotonicNs();
  if (branch->ended_ns == 0) {
    branch->ended_ns = now_ns;
  }
  if (!branch->process->HasExited() && now_ns < branch->ended_ns + kExitPatienceMs * kNsPerMs) {
    return;
  }
  std::string errors = branch->process->ReadErrors(kBlockBytes);
  while (!errors.empty()) {
    Say(FrameKind::kChannelErrors, branch->first, errors);
    errors = branch->process->ReadErrors(kBlockBytes);
  }
  std::string how = branch->process->HasExited() ? branch->process->HowEnded(branch->name)
                                                 : branch->name + " has closed its output";
  if (branch->leads_on() && !branch->reader.has_greeting()) {
    const std::string written = Trimmed(branch->reader.preamble());
    how += written.empty() ? "" : "; it wrote:\n  " + written;
  }
  End(branch, why_closed_.empty() ? how : why_closed_);
}

void Relay::End(Branch* branch, const std::string& how) {
  branch->over = true;
  for (uint32_t i = 0; i < branch->count; ++i) {
    if (!branch->leads_on() || !branch->has_ended[i]) {
      Say(FrameKind::kChannelEnd, branch->first + i, how);
    }
  }
  branch->process.reset();
}

}  // namespace

int RunRelay() {
  StatusOr<SignalSource> signals = SignalSource::Create();
  return signals.ok() ? Relay(std::move(*signals)).Run() : 1;
}

}  // namespace ferry::tools
