// Reports of what the requests of a rank's rings wait for, as the progress thread knows it, for
// `ferryctl why`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "shm/layout/descriptor.h"
#include "shm/layout/device_ring_layout.h"

namespace ferry::daemon {

// A request that has no answer, or that is not over; of several of a kind that wait for the same,
// the oldest.
struct RingWait {
  enum class Step : uint8_t {
    kCounter,    // a counter has not come so far
    kStart,      // the message of the matched request that it has started is not complete
    kHeld,       // an operation in a rank's memory that has not begun
    kUnderWay,   // one that has
    kUnwritten,  // a thread has the slot of the next request and has not written it; others have
                 // written those behind it
  };
  Step step = Step::kUnderWay;
  shm::RingKind kind = shm::RingKind::kNone;
  bool is_signalled = false;  // a put with a signal
  uint64_t number = 0;        // as ferry_device_ring_post has returned it
  uint64_t since_ns = 0;      // as MonotonicNs: when it was taken out of the ring
  uint32_t count = 1;         // of requests that wait for the same
  // The rank whose memory an operation is about, and the operation's bytes.
  uint32_t peer = 0;
  uint64_t size_bytes = 0;
  const char* wants = nullptr;  // why it is held, as the end of a sentence
  // Of kCounter and kStart: the counter, of a matched request PairLayout::done.
  shm::Location counter{};
  uint64_t value = 0;
  uint64_t threshold = 0;
};

// Puts requests that wait for the same together, of up to 64 things; those that wait for further
// ones are left out.
class RingWaits {
 public:
  void Add(const RingWait& wait);
  // Returns the oldest first.
  std::vector<RingWait> Sorted() const;

 private:
  // With the peer, and region and offset of the counter.
  using Key = std::tuple<RingWait::Step, shm::RingKind, uint32_t, uint32_t, uint64_t>;
  std::map<Key, RingWait> waits_;
};

struct RingReport {
  uint32_t place = 0;  // among the rank's rings
  uint32_t slots = 0;
  bool is_partial = false;      // more requests than were looked at have no answer
  bool is_full = false;         // no request is taken out, and every slot has one
  bool is_closing = false;      // the rank waits for the end of the ring
  std::vector<RingWait> waits;  // the oldest first
};

// A data plane that serves rings. Any thread but the progress thread; see DataPlane.
class RingInspector {
 public:
  // Returns a report on each ring of the rank; nothing if the rank is not served here.
  virtual std::vector<RingReport> InspectRings(const std::string& job_id, uint32_t rank) const = 0;

 protected:
  ~RingInspector() = default;
};

}  // namespace ferry::daemon
