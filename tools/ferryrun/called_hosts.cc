#include "tools/ferryrun/called_hosts.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "client/bootstrap/meeting_stream.h"
#include "common/clock.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/call_command.h"
#include "tools/ferryrun/call_door.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/hosts.h"
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
constexpr char kMoreTime[] = " (--launch-timeout SECONDS waits for longer)";
constexpr size_t kMoreStrangers = 64;  // than hosts
constexpr size_t kPacketBytes = 1 << 16;

bool IsPast(uint64_t since_ns, uint64_t limit_ms, uint64_t now_ns) {
  return since_ns != 0 && now_ns >= since_ns + limit_ms * kNsPerMs;
}

std::string Seconds(uint64_t ms) { return std::to_string(ms / 1000) + " s"; }

// The commands and all their agents.
class CallLink {
 public:
  explicit CallLink(const CallPlan& plan);
  ~CallLink();
  Status Start(const CallPlan& plan);

  pid_t pid(size_t host) const { return StepOf(host).command->pid(); }
  pollfd WordsInterest(size_t host) const;
  pollfd RoomInterest(size_t host) const;
  void Write(size_t host, std::string_view bytes);
  void Advance(size_t host);
  std::string Take(size_t host) { return std::exchange(hosts_[host].received, {}); }
  // Hosts that end with a command do so together.
  bool HasEnded(size_t host) const {
    const CalledHost& one = hosts_[host];
    return one.has_ended && one.received.empty() && (!one.with_command || StepOf(host).is_over);
  }
  std::string HowEnded(size_t host);
  bool HaveEndedTogether(size_t one, size_t other) const {
    return &StepOf(one) == &StepOf(other) && hosts_[one].with_command && hosts_[other].with_command;
  }
  // The command's standard error, for the first of its hosts.
  UniqueFd TakeErrors(size_t host) {
    Step& step = StepOf(host);
    return step.first == host ? step.command->TakeErrors() : UniqueFd();
  }
  void Close(size_t host);

 private:
  struct CalledHost {
    std::string name;
    std::optional<MeetingStream> stream = {};  // once it has called
    std::string to_send = {};                  // before it has
    std::string received = {};
    uint64_t calls_ns = 0;  // when a caller there said that it calls; 0: not yet
    bool has_called = false;
    bool has_ended = false;
    bool with_command = false;
    std::string how_ended = {};  // empty: its connection has
  };
  // A command, and its hosts, which follow each other.
  struct Step {
    std::unique_ptr<CallCommand> command;
    size_t first = 0;
    size_t count = 0;
    bool is_over = false;  // it has ended, and all connections have, or they had time for it
  };
  Step& StepOf(size_t host) { return steps_[steps_.size() == 1 ? 0 : host]; }
  const Step& StepOf(size_t host) const { return steps_[steps_.size() == 1 ? 0 : host]; }
  size_t IndexOf(const std::string& name) const;
  size_t IndexOf(const CallHello& hello) const;
  static bool Awaits(const CalledHost& host) { return !host.stream && !host.has_ended; }
  // Returns true if all hosts of the step fulfil the condition.
  template <typename Condition>
  bool AllOf(const Step& step, Condition condition) const {
    const auto begin = hosts_.begin() + static_cast<ptrdiff_t>(step.first);
    return std::all_of(begin, begin + static_cast<ptrdiff_t>(step.count), condition);
  }
  bool HaveAllEnded(const Step& step) const {
    return AllOf(step, [](const CalledHost& host) { return host.has_ended; });
  }
  void Admit(const CallHello& hello, MeetingStream* stream);
  void Hear(size_t host);
  void OnLine(std::string_view line);
  void OnCommandEnd(Step* step);
  void OnTick();
  void LookAfterEnd(Step* step, uint64_t now_ns);
  void End(CalledHost* host, const std::string& how);
  void EndAwaited(const Step& step, const std::string& how);
  void FinishStartIfDone();
  void SetClock();
  void AwaitExits();
  std::string WayOut() const;
  std::string Remarks() const;

  std::vector<CalledHost> hosts_;
  std::unordered_map<std::string, size_t> index_;
  const uint64_t first_limit_ms_;
  const uint64_t next_limit_ms_;
  const bool may_be_each_;
  const bool is_step_of_slurm_;
  std::vector<Step> steps_;  // one, or one for each host
  EventSet events_;          // of the commands, the door and the clock
  CallDoor door_;
  UniqueFd tick_;
  bool has_clock_ = false;   // tick_ is in events_
  bool is_starting_ = true;  // some have still to call
  uint64_t began_ns_ = 0;
  uint64_t last_call_ns_ = 0;  // when the last agent came; 0: none has
  size_t called_ = 0;
  std::string unknown_;  // a host that has called, and is none of them
};

class CalledStream final : public HostStream {
 public:
  CalledStream(std::shared_ptr<CallLink> link, size_t host) : link_(std::move(link)), host_(host) {}
  ~CalledStream() override { link_->Close(host_); }

  pid_t pid() const override { return link_->pid(host_); }
  void Write(std::string_view bytes) override { link_->Write(host_, bytes); }
  pollfd WordsInterest() const override { return link_->WordsInterest(host_); }
  pollfd RoomInterest() const override { return link_->RoomInterest(host_); }
  void Advance() override { link_->Advance(host_); }
  std::string Take() override { return link_->Take(host_); }
  bool ended() const override { return link_->HasEnded(host_); }
  UniqueFd TakeErrors() override { return link_->TakeErrors(host_); }
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

CallLink::CallLink(const CallPlan& plan)
    : first_limit_ms_(plan.first_limit_ms),
      next_limit_ms_(plan.next_limit_ms),
      may_be_each_(plan.call.may_be_each),
      is_step_of_slurm_(plan.call.is_step_of_slurm) {
  for (const std::string& name : plan.hosts) {
    index_.emplace(name, hosts_.size());
    hosts_.push_back({.name = name});
  }
}

Status CallLink::Start(const CallPlan& plan) {
  FERRY_RETURN_IF_ERROR(door_.Open(plan.network, plan.call.secret_of_job));
  tick_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec each{{0, kTickMs * kNsPerMs}, {0, kTickMs * kNsPerMs}};
  if (!tick_.valid() || timerfd_settime(tick_.get(), 0, &each, nullptr) != 0) {
    return StatusFromErrno(errno, "timerfd");
  }
  const std::string place = ToText(door_.place());
  const bool in_words = !plan.call.secret_of_job.empty();
  const size_t each_has = plan.call.commands.size() == 1 ? hosts_.size() : 1;
  for (const std::vector<std::string>& command : plan.call.commands) {
    std::vector<std::string> words = command;
    std::vector<std::string> variables;
    if (in_words) {
      const std::vector<std::string_view> of_place = WordsOf(place);
      words.insert(words.end(), of_place.begin(), of_place.end());
    } else {
      variables.push_back(std::string(kCallVariable) + "=" + place);
    }
    StatusOr<std::unique_ptr<CallCommand>> started = CallCommand::Start(words, variables);
    FERRY_RETURN_IF_ERROR(started.status());
    steps_.push_back({.command = std::move(*started), .first = steps_.size(), .count = each_has});
  }
  began_ns_ = MonotonicNs();
  SetClock();
  door_.Serve(
      &events_, hosts_.size() + kMoreStrangers,
      [this](const CallHello& hello, MeetingStream* stream) { Admit(hello, stream); },
      [this] {
        for (const Step& step : steps_) {
          EndAwaited(step, "ferryrun has no descriptor left for its agents: raise `ulimit -n`");
        }
        FinishStartIfDone();
      });
  for (Step& step : steps_) {
    step.command->Serve(
        &events_, [this](std::string_view line) { OnLine(line); },
        [this, &step] { OnCommandEnd(&step); });
  }
  return {};
}

// The agents end when their connections do, and the commands with them. A command that has agents
// which never called is told to end: that of Slurm kills them then.
CallLink::~CallLink() {
  for (const Step& step : steps_) {
    if (!AllOf(step, [](const CalledHost& host) { return host.has_called; })) {
      step.command->Terminate();
    }
  }
  hosts_.clear();
  door_.Shut();
  AwaitExits();
  for (const Step& step : steps_) {
    if (!step.command->HasExited()) {
      step.command->Terminate();
    }
  }
  AwaitExits();
}

void CallLink::AwaitExits() {
  const uint64_t end_ns = MonotonicNs() + kLeaveMs * kNsPerMs;
  const auto has_exited = [](const Step& step) { return step.command->HasExited(); };
  while (!std::all_of(steps_.begin(), steps_.end(), has_exited) && MonotonicNs() < end_ns) {
    AwaitChild();
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
  Hear(host);
}

void CallLink::Hear(size_t host) {
  CalledHost& one = hosts_[host];
  while (one.stream && !one.has_ended) {
    const StatusOr<std::string> packet = one.stream->Turn();
    if (packet.ok()) {
      one.received += *packet;
    } else if (packet.status().code() == ErrorCode::kWouldBlock) {
      return;
    } else {
      Step& step = StepOf(host);
      one.has_ended = true;
      one.with_command = step.command->ended_ns() != 0;
      step.is_over |= one.with_command && HaveAllEnded(step);
    }
  }
}

std::string CallLink::HowEnded(size_t host) {
  const CalledHost& one = hosts_[host];
  CallCommand& command = *StepOf(host).command;
  const std::string how = !one.how_ended.empty() ? one.how_ended
                          : one.with_command     ? command.HowEnded()
                                                 : "the connection to its agent has ended";
  return how + command.Written();
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

void CallLink::EndAwaited(const Step& step, const std::string& how) {
  for (size_t host = step.first; host < step.first + step.count; ++host) {
    if (Awaits(hosts_[host])) {
      End(&hosts_[host], how);
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

// hosts_.size(): it is none of them. Slurm's name, which comes first, counts more than the host's
// own one only in Slurm's own step: elsewhere it may be inherited from a job around this one, and
// be the same for all.
size_t CallLink::IndexOf(const CallHello& hello) const {
  std::vector<std::string> names = hello.names;
  if (!is_step_of_slurm_) {
    std::reverse(names.begin(), names.end());
  }
  size_t index = hosts_.size();
  for (const std::string& name : names) {
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
  host.has_called = true;
  last_call_ns_ = MonotonicNs();
  ++called_;
  if (is_step_of_slurm_ && hello.tasks != 0 && called_ >= hello.tasks) {
    EndAwaited(steps_[0], steps_[0].command->name() + " has started agents on " +
                              std::to_string(hello.tasks) + " of " + std::to_string(hosts_.size()) +
                              " hosts only, and none there" + Remarks());
  }
  FinishStartIfDone();
}

// ---- The commands -------------------------------------------------------------------------------

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
    FinishStartIfDone();
  }
}

void CallLink::OnCommandEnd(Step* step) {
  for (size_t host = step->first; host < step->first + step->count; ++host) {
    hosts_[host].with_command |= Awaits(hosts_[host]);
  }
  EndAwaited(*step, step->command->HowEnded() + Remarks());
  step->is_over = HaveAllEnded(*step);
  FinishStartIfDone();
  SetClock();
}

// It ticks while there is something to wait for.
void CallLink::SetClock() {
  const bool is_wanted =
      is_starting_ || std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
        return step.command->ended_ns() != 0 && !step.is_over;
      });
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
  door_.DropSilent(now_ns);
  const std::string limit = Seconds(kCallLimitMs);
  for (size_t i = 0; i < hosts_.size(); ++i) {
    CalledHost& host = hosts_[i];
    if (!Awaits(host)) {
      continue;
    }
    const CallCommand& command = *StepOf(i).command;
    const std::string not_started = command.name() + " has not started its agent within ";
    if (IsPast(host.calls_ns, kCallLimitMs, now_ns)) {
      End(&host, "its agent has not reached this ferryrun, at " + door_.where() + ", within " +
                     limit + WayOut() + Remarks());
    } else if (host.calls_ns == 0 && IsPast(command.error_ns(), kCallLimitMs, now_ns)) {
      End(&host, command.name() + " told of an error, and its agent has not called within " +
                     limit + " after that" + Remarks());
    } else if (host.calls_ns == 0 && IsPast(last_call_ns_, next_limit_ms_, now_ns)) {
      End(&host, not_started + Seconds(next_limit_ms_) + " after the last that came" + kMoreTime +
                     Remarks());
    } else if (last_call_ns_ == 0 && IsPast(began_ns_, first_limit_ms_, now_ns)) {
      End(&host, not_started + Seconds(first_limit_ms_) + kMoreTime + Remarks());
    }
  }
  for (Step& step : steps_) {
    LookAfterEnd(&step, now_ns);
  }
  FinishStartIfDone();
  SetClock();
}

void CallLink::LookAfterEnd(Step* step, uint64_t now_ns) {
  if (step->is_over || !IsPast(step->command->ended_ns(), kLastCallsMs, now_ns)) {
    return;
  }
  for (size_t host = step->first; host < step->first + step->count; ++host) {
    Hear(host);
    hosts_[host].with_command |= !hosts_[host].has_ended;
    hosts_[host].has_ended = true;
  }
  step->is_over = true;
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
  return std::string(" (--network names another interface; ") +
         (may_be_each_ ? "with --launch-radix 0 there is one " + steps_[0].command->name() +
                             " for each host, whose agents need not call)"
                       : "with --launcher ssh no agent calls)");
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
