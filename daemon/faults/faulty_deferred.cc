#include "daemon/faults/faulty_deferred.h"

#include <utility>

namespace ferry::daemon {

bool FaultyDeferred::Loses(const transport::DeferredTrigger& trigger, uint64_t context) {
  const bool loses = faults_.Pass(FaultPoint::kNicArm) != ErrorCode::kOk;
  if (loses) {
    lost_.push_back({trigger.counter, context});
  }
  return loses;
}

ErrorCode FaultyDeferred::ArmWrite(const transport::DeferredWrite& write) {
  return Loses(write.trigger, write.context) ? ErrorCode::kOk : real_.ArmWrite(write);
}

ErrorCode FaultyDeferred::ArmIncrement(const transport::DeferredIncrement& increment) {
  return Loses(increment.trigger, increment.context) ? ErrorCode::kOk
                                                     : real_.ArmIncrement(increment);
}

void FaultyDeferred::CloseCounter(transport::NicCounter counter) {
  std::erase_if(lost_, [&](const Lost& lost) {
    if (lost.trigger == counter) {
      cancelled_.push_back(lost.context);
    }
    return lost.trigger == counter;
  });
  real_.CloseCounter(counter);
}

int FaultyDeferred::Poll(transport::DeferredSink& sink, uint64_t now_ns) {
  int ends = real_.Poll(sink, now_ns);
  for (const uint64_t context : std::exchange(cancelled_, {})) {
    sink.OnDeferredEnd(context, ErrorCode::kCancelled);
    ++ends;
  }
  return ends;
}

}  // namespace ferry::daemon
