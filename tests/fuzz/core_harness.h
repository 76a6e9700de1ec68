// The daemon's data plane without a network: a job of ranks 0 and 1 here and rank 2 on another
// node, whose packets the fuzzer makes. One thread, but for the copy worker, which has nothing to
// copy: private memory is out of reach.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/session_view.h"
#include "internode/core/progress_core.h"
#include "shm/segment.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::fuzz {

inline constexpr uint32_t kRequests = 16;
inline constexpr uint32_t kFarRank = 2;
inline constexpr uint64_t kJobKey = 77;
inline constexpr uint64_t kReceiveKey = 99;

// Accumulation::packed(), or nearly.
inline uint32_t AnyAccumulation(FuzzInput& input) {
  const uint32_t index = input.Below(4) == 0 ? input.Below(20) : 0x7f;
  return input.Below(15) | input.Below(20) << 8 | index << 16;
}

class CoreHarness {
 public:
  CoreHarness();
  ~CoreHarness();

  // Lets everything move that can, and reads what the ranks receive.
  void Turn();
  // Once all is over: nothing of the ranks is left in the core, however they ended.
  void RemoveAll();

  void PushCommand(const shm::Descriptor& descriptor);  // rank 0's
  void Receive(std::vector<std::byte> packet);
  shm::TransferLayout* transfer(uint32_t index) { return views_[0].inbox.transfer(index); }
  shm::SessionLayout& session(uint32_t rank) { return *views_[rank].layout; }
  // The region 1 of rank 0.
  std::byte* heap() { return heaps_[0]->base(); }
  static constexpr uint64_t kHeapBytes = 64 << 10;
  void RingDaemon();  // as rank 0 does
  // The keys of RTSs that came into rank 0's inbox.
  uint64_t LastOffer() const { return last_offer_; }
  void EndFarRank();

  const std::set<uint32_t>& ended() const { return ended_; }
  bool job_failed() const { return job_failed_; }

 private:
  class Network;

  void Attach(uint32_t rank);
  void Drain(uint32_t rank);

  Network* network_ = nullptr;  // the core's
  std::unique_ptr<progress::ProgressCore> core_;
  std::vector<engine::SessionView> views_;
  std::vector<std::shared_ptr<progress::ServedSegments>> sessions_;
  std::vector<std::shared_ptr<shm::Mapping>> heaps_;
  std::set<uint32_t> ended_;
  bool job_failed_ = false;
  uint64_t last_offer_ = 0;
  uint64_t now_ns_ = 1;
};

// Takes steps while there is input, and ends all. Aborts if `is_fair` does not hold, or if
// something never ends.
void RunSteps(FuzzInput input, void (*step)(FuzzInput&, CoreHarness&),
              bool (*is_fair)(const CoreHarness&));

}  // namespace ferry::fuzz
