#include "client/p2p/link_turns.h"

#include "shm/fence.h"

namespace ferry::client {
namespace {

constexpr uint64_t kBurstNs = 10'000;     // between two messages of a burst
constexpr uint32_t kMessagesAtOnce = 3;   // that begin it: they are all of most exchanges
constexpr uint64_t kGatherBytes = 65536;  // what waits at most
constexpr uint64_t kMessageBytes = 2048;  // counted for each message, beside its data

}  // namespace

bool LinkTurns::Gathers(uint32_t peer, uint64_t size_bytes, uint64_t now_ns) {
  if (peer != burst_peer_ || now_ns - burst_ns_ > kBurstNs) {
    burst_peer_ = peer;
    burst_messages_ = 0;
  }
  burst_ns_ = now_ns;
  gathered_bytes_ += kMessageBytes + size_bytes;
  if (++burst_messages_ <= kMessagesAtOnce || gathered_bytes_ > kGatherBytes) {
    awaits_turn_ = true;
    return false;
  }
  SetWork(true);
  shm::FullFence();  // the link thread sees that, or is seen to have been disarmed
  CountTurn();
  Arm();
  return true;
}

}  // namespace ferry::client
