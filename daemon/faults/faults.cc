#include "daemon/faults/faults.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "common/log.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t Bits(std::initializer_list<FaultAction> actions) {
  uint32_t bits = 0;
  for (const FaultAction action : actions) {
    bits |= static_cast<uint32_t>(action);
  }
  return bits;
}

constexpr uint32_t kWork = Bits({FaultAction::kError, FaultAction::kKill, FaultAction::kStall});
constexpr uint32_t kRegister = Bits({FaultAction::kError, FaultAction::kKill});
constexpr uint32_t kSend = Bits({FaultAction::kKill, FaultAction::kStall, FaultAction::kLose});
constexpr uint32_t kReceive = Bits({FaultAction::kKill});
constexpr uint32_t kArm = Bits({FaultAction::kKill, FaultAction::kLose});

constexpr std::array kPoints = {
    FaultPointInfo{FaultPoint::kMemoryRegister, "memory.register", kRegister,
                   "memory is registered with the network: ranks' memory, or a staging block"},
    FaultPointInfo{FaultPoint::kStagingProvide, "staging.provide", kWork,
                   "a job gets its staging memory; stalled, it has no free blocks"},
    FaultPointInfo{FaultPoint::kStagingCopyIn, "staging.copy_in", kWork,
                   "a block was copied out of private or device memory, at the sender"},
    FaultPointInfo{FaultPoint::kStagingCopyOut, "staging.copy_out", kWork,
                   "a block was copied into private or device memory, at the receiver"},
    FaultPointInfo{FaultPoint::kRndvGetRead, "rndv_get.read", kWork,
                   "the receiver's daemon begins an RDMA read"},
    FaultPointInfo{FaultPoint::kSendRts, "send.rts", kSend, "an RTS leaves"},
    FaultPointInfo{FaultPoint::kSendRndvGet, "send.rndv_get", kSend,
                   "the rendezvous get of staged data leaves"},
    FaultPointInfo{FaultPoint::kSendBlockReady, "send.block_ready", kSend,
                   "the announcement of a staged block leaves"},
    FaultPointInfo{FaultPoint::kSendBlockDone, "send.block_done", kSend,
                   "a staged block's return leaves"},
    FaultPointInfo{FaultPoint::kSendResult, "send.result", kSend,
                   "the end of a transfer leaves for the sender's node"},
    FaultPointInfo{FaultPoint::kReceiveRts, "receive.rts", kReceive, "an RTS arrives"},
    FaultPointInfo{FaultPoint::kReceiveRndvGet, "receive.rndv_get", kReceive,
                   "the rendezvous get of staged data arrives"},
    FaultPointInfo{FaultPoint::kReceiveBlockReady, "receive.block_ready", kReceive,
                   "the announcement of a staged block arrives"},
    FaultPointInfo{FaultPoint::kReceiveBlockDone, "receive.block_done", kReceive,
                   "a staged block's return arrives"},
    FaultPointInfo{FaultPoint::kReceiveResult, "receive.result", kReceive,
                   "the end of a transfer arrives at the sender's node"},
    FaultPointInfo{FaultPoint::kPutWrite, "put.write", kWork,
                   "the sender's daemon begins an RDMA write into a receive that an RTR named"},
    FaultPointInfo{FaultPoint::kSendRtr, "send.rtr", kSend,
                   "an RTR leaves for the source of a receive"},
    FaultPointInfo{FaultPoint::kSendWithdraw, "send.withdraw", kSend,
                   "the request to give an RTR back leaves"},
    FaultPointInfo{FaultPoint::kSendWithdrawn, "send.withdrawn", kSend,
                   "an RTR that is given back leaves"},
    FaultPointInfo{FaultPoint::kSendPut, "send.put", kSend,
                   "a message leaves that is written into a receive that an RTR named"},
    FaultPointInfo{FaultPoint::kSendPutDone, "send.put_done", kSend,
                   "the end of such a write leaves for the receiver's node"},
    FaultPointInfo{FaultPoint::kReceiveRtr, "receive.rtr", kReceive, "an RTR arrives"},
    FaultPointInfo{FaultPoint::kReceiveWithdraw, "receive.withdraw", kReceive,
                   "the request to give an RTR back arrives"},
    FaultPointInfo{FaultPoint::kReceiveWithdrawn, "receive.withdrawn", kReceive,
                   "an RTR that was given back arrives"},
    FaultPointInfo{FaultPoint::kReceivePut, "receive.put", kReceive,
                   "a message arrives that is written into a receive that an RTR named"},
    FaultPointInfo{FaultPoint::kReceivePutDone, "receive.put_done", kReceive,
                   "the end of such a write arrives at the receiver's node"},
    FaultPointInfo{FaultPoint::kNicArm, "nic.arm", kArm,
                   "the NIC is given an operation to carry out later"},
    FaultPointInfo{FaultPoint::kSendOneSided, "send.one_sided", kSend,
                   "an operation in the memory of another node's rank leaves"},
    FaultPointInfo{FaultPoint::kSendOneSidedDone, "send.one_sided_done", kSend,
                   "the news of such operations, or what one has found, leaves"},
    FaultPointInfo{FaultPoint::kReceiveOneSided, "receive.one_sided", kReceive,
                   "an operation in the memory of a rank here arrives"},
    FaultPointInfo{FaultPoint::kReceiveOneSidedDone, "receive.one_sided_done", kReceive,
                   "the news of such operations arrives at their rank's node"},
};

struct ActionName {
  const char* name;
  FaultAction action;
  ErrorCode error;
};

constexpr std::array kActions = {
    ActionName{"kill", FaultAction::kKill, ErrorCode::kOk},
    ActionName{"stall", FaultAction::kStall, ErrorCode::kWouldBlock},
    ActionName{"lose", FaultAction::kLose, ErrorCode::kNodeUnreachable},
    ActionName{"SYSTEM", FaultAction::kError, ErrorCode::kSystem},
    ActionName{"MEMORY", FaultAction::kError, ErrorCode::kOutOfMemory},
    ActionName{"LIMIT", FaultAction::kError, ErrorCode::kLimitExceeded},
    ActionName{"TIMEOUT", FaultAction::kError, ErrorCode::kTimeout},
    ActionName{"BUFFER", FaultAction::kError, ErrorCode::kInvalidBuffer},
    ActionName{"PERMISSION", FaultAction::kError, ErrorCode::kPermissionDenied},
    ActionName{"PEER_DIED", FaultAction::kError, ErrorCode::kPeerDied},
    ActionName{"NODE_UNREACHABLE", FaultAction::kError, ErrorCode::kNodeUnreachable},
    ActionName{"INTERNAL", FaultAction::kError, ErrorCode::kInternal},
};

template <typename Table>
std::string NamesOf(const Table& table, uint32_t actions = ~0U) {
  std::string names;
  for (const auto& row : table) {
    if constexpr (requires { row.action; }) {
      if ((actions & static_cast<uint32_t>(row.action)) == 0) {
        continue;
      }
    }
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

template <typename Table>
auto Find(const Table& table, const std::string& name) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& row) { return name == row.name; });
}

Status Wrong(const std::string& rule, const std::string& why) {
  return {ErrorCode::kConfiguration, "option faults: \"" + rule + "\": " + why};
}

}  // namespace

std::span<const FaultPointInfo> FaultPoints() { return kPoints; }

const char* FaultName(FaultPoint point) { return kPoints[static_cast<size_t>(point)].name; }

StatusOr<std::unique_ptr<Faults>> Faults::Parse(const std::string& text) {
  auto faults = std::make_unique<Faults>();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    StatusOr<std::unique_ptr<Rule>> rule = ParseRule(text.substr(at, end - at));
    FERRY_RETURN_IF_ERROR(rule.status());
    faults->rules_.push_back(std::move(*rule));
    at = end + 1;
  }
  return faults;
}

StatusOr<std::unique_ptr<Faults::Rule>> Faults::ParseRule(const std::string& text) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) {
    return Wrong(text, "a rule is POINT:N:ACTION, such as staging.copy_in:3:SYSTEM");
  }
  const auto point = Find(kPoints, text.substr(0, first));
  if (point == kPoints.end()) {
    return Wrong(text, "there is no such point; there are " + NamesOf(kPoints));
  }
  auto rule = std::make_unique<Rule>();
  rule->point = point->point;
  const char* const number_end = text.data() + second;
  const auto [stop, error] = std::from_chars(text.data() + first + 1, number_end, rule->at);
  if (error != std::errc() || stop != number_end || rule->at == 0) {
    return Wrong(text, "the number between the colons says which passing it is: 1 or more");
  }
  const auto action = Find(kActions, text.substr(second + 1));
  if (action == kActions.end() || (point->actions & static_cast<uint32_t>(action->action)) == 0) {
    return Wrong(text, std::string(point->name) + " can have " + NamesOf(kActions, point->actions));
  }
  rule->action = action->action;
  rule->error = action->error;
  rule->action_name = action->name;
  return rule;
}

ErrorCode Faults::Trigger(Rule& rule) {
  spdlog::warn("fault at {}, passing {}: {}", FaultName(rule.point), rule.at, rule.action_name);
  if (rule.action == FaultAction::kKill) {
    spdlog::default_logger()->flush();
    raise(SIGKILL);
  }
  rule.state = rule.action == FaultAction::kStall ? State::kStalls : State::kDone;
  return rule.error;
}

ErrorCode Faults::Pass(FaultPoint point) {
  ErrorCode outcome = ErrorCode::kOk;
  for (const auto& rule : rules_) {
    if (rule->point == point && ++rule->passed == rule->at && outcome == ErrorCode::kOk) {
      outcome = Trigger(*rule);
    }
  }
  return outcome;
}

bool Faults::IsDue(FaultPoint point, uint64_t passings) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rule) {
    return rule->point == point && rule->passed < rule->at && rule->at <= rule->passed + passings;
  });
}

bool Faults::stalling() const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [](const auto& rule) { return rule->state == State::kStalls; });
}

bool Faults::IsStalling(FaultPoint point) const {
  return std::any_of(rules_.begin(), rules_.end(), [point](const auto& rule) {
    return rule->point == point && rule->state == State::kStalls;
  });
}

void Faults::Release() {
  for (const auto& rule : rules_) {
    State stalls = State::kStalls;
    rule->state.compare_exchange_strong(stalls, State::kDone);
  }
  released_.store(true, std::memory_order_release);  // Pairs with Resume.
}

void Faults::Resume() {
  if (!released_.exchange(false, std::memory_order_acquire)) {  // Pairs with Release.
    return;
  }
  for (const auto& resume : std::exchange(held_, {})) {
    resume();
  }
}

std::vector<FaultReport> Faults::Report() const {
  std::vector<FaultReport> reports;
  for (const auto& rule : rules_) {
    const State state = rule->state;
    reports.push_back({FaultName(rule->point), rule->at, rule->action_name, rule->passed,
                       state == State::kWaits    ? "waits"
                       : state == State::kStalls ? "stalls"
                                                 : "done"});
  }
  return reports;
}

}  // namespace ferry::daemon
