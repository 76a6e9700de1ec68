// Faults that a daemon has on purpose, so that tests can observe their consequences.
//
// The option `faults` names points in the daemon's paths, the passing of a point at which a fault
// happens, and the fault. While the option is empty, faults cost nothing: there is no Faults
// object, the transport is the real one (faulty_transport.h), and only cold paths test a pointer,
// which is null.
//
// Thread: Pass and Release by any; Hold and Resume by the progress thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::daemon {

// In the order of the table in faults.cc.
enum class FaultPoint : uint8_t {
  kMemoryRegister,
  kStagingProvide,
  kStagingCopyIn,
  kStagingCopyOut,
  kRndvGetRead,
  kSendRts,
  kSendRndvGet,
  kSendBlockReady,
  kSendBlockDone,
  kSendResult,
  kReceiveRts,
  kReceiveRndvGet,
  kReceiveBlockReady,
  kReceiveBlockDone,
  kReceiveResult,
  kPutWrite,
  kSendRtr,
  kSendWithdraw,
  kSendWithdrawn,
  kSendPut,
  kSendPutDone,
  kReceiveRtr,
  kReceiveWithdraw,
  kReceiveWithdrawn,
  kReceivePut,
  kReceivePutDone,
  kNicArm,
  kSendOneSided,
  kSendOneSidedDone,
  kReceiveOneSided,
  kReceiveOneSidedDone,
};

enum class FaultAction : uint8_t {
  kError = 1,  // it fails with an error
  kKill = 2,   // the daemon dies, as by kill -9
  kStall = 4,  // it stands still until Release
  kLose = 8,   // the packet is lost, and the connection with it; or the NIC's operation, alone
};

struct FaultPointInfo {
  FaultPoint point;
  const char* name;  // "staging.copy_in"
  uint32_t actions;  // those it can have
  const char* help;
};
std::span<const FaultPointInfo> FaultPoints();
const char* FaultName(FaultPoint point);

// A rule, and how often its point was passed.
struct FaultReport {
  std::string point;
  uint64_t at = 0;  // the passing that triggers it
  std::string action;
  uint64_t passed = 0;
  std::string state;  // "waits", "stalls" or "done"
};

class Faults {
 public:
  // Parses rules "POINT:N:ACTION", separated by commas: at its N-th passing (1: the first) of POINT
  // the daemon does ACTION: "kill", "stall", "lose", or fails with an error, named as in ferry.h
  // without FERRY_ERR_, such as "SYSTEM". kConfiguration: the message names the known points and
  // actions.
  static StatusOr<std::unique_ptr<Faults>> Parse(const std::string& text);

  // Called when the point is passed. Returns kOk: go on. kWouldBlock: stand still; other codes:
  // fail with it, or, where the point can lose, lose it. Does not return if the daemon is to die.
  ErrorCode Pass(FaultPoint point);
  // Returns true if a rule acts at one of the next `passings` passings, so that a caller who may
  // have to try again need not count them twice.
  bool IsDue(FaultPoint point, uint64_t passings) const;

  // Returns true if an operation stands still at some point.
  bool stalling() const;
  bool IsStalling(FaultPoint point) const;
  // Lets all operations that stand still go on, soon.
  void Release();

  // Calls `resume` from Resume after the next Release.
  void Hold(std::function<void()> resume) { held_.push_back(std::move(resume)); }
  void Resume();

  std::vector<FaultReport> Report() const;

 private:
  enum class State : uint8_t { kWaits, kStalls, kDone };
  struct Rule {
    FaultPoint point{};
    uint64_t at = 0;
    FaultAction action{};
    ErrorCode error{};
    std::string action_name;
    std::atomic<uint64_t> passed{0};
    std::atomic<State> state{State::kWaits};
  };
  static StatusOr<std::unique_ptr<Rule>> ParseRule(const std::string& text);
  static ErrorCode Trigger(Rule& rule);

  std::vector<std::unique_ptr<Rule>> rules_;
  std::atomic<bool> released_{false};
  std::vector<std::function<void()>> held_;
};

}  // namespace ferry::daemon
