// Rings: the daemon's side of the rings by which threads of GPUs ask it for operations
// (docs/device_ring.md, shm/layout/device_ring_layout.h).
//
// A rank announces a ring in its session and rings its doorbell, once; from then on the ring is
// looked at in each turn. A request is answered at once, or, if it waits for a counter or an
// operation, once that has come, in any order. Everything in a ring was written by the rank, or by
// whatever runs on its GPU: a request names its rank's own memory and requests, or it is refused,
// counted, and answered with an error if it says where.
//
// A GPU cannot ring a doorbell. So while a ring was used within the last 200 us the daemon does not
// sleep; after that it looks again after an eighth of the time for which nothing has come, but at
// least 50 us and at most 1 ms; of a ring that has rested for longer than a second, a thousandth of
// that time, and at most 10 ms.
//
// Calling thread: the progress thread. Does not block; a call takes a bounded number of requests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/error_code.h"
#include "daemon/device_rings/ring_operations.h"
#include "daemon/device_rings/ring_report.h"
#include "daemon/triggered/pairs.h"
#include "internode/delivery/directory.h"
#include "internode/rma/ring_calls.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/ring_consumer.h"

namespace ferry::daemon {

class Rings {
 public:
  // Both references outlive this. Operations in other ranks' memory that cannot leave for
  // `timeout_ns` fail.
  Rings(Pairs& pairs, progress::RingCalls& one_sided, uint64_t timeout_ns);
  ~Rings();

  // Opens and closes rings after the rank has rung its doorbell. Reads only one word if the rank
  // has changed none. Returns how much was done.
  uint32_t Look(progress::ServedRank& rank, uint64_t now_ns);
  // Takes requests, and answers those that have waited and can now be answered. A turn calls it
  // several times, since a request waits for the next call. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);

  // Closes the rings in a region, before the region goes.
  void CloseIn(const progress::ServedRank& rank, const progress::ServedRegion& region);
  // Closes the rings of a rank that goes, or whose requests are ignored from now on.
  void CloseOf(const progress::ServedRank& rank, ErrorCode error);

  // Returns a report on each ring of the rank. A look that finds a slot unwritten reports it from
  // the next look on, if it still is.
  std::vector<RingReport> Inspect(const progress::ServedRank& rank, uint64_t now_ns);

  bool empty() const { return rings_.empty(); }
  // Returns true if a request may come at any moment, so that a sleep would not pay.
  bool is_hot(uint64_t now_ns) const;
  // When to call Advance again, whatever happens; UINT64_MAX: no rank has a ring.
  uint64_t NextNs(uint64_t now_ns) const;

 private:
  // A request that is answered later: once the counter has reached the threshold.
  struct Waiting {
    shm::Location counter;
    uint64_t threshold;
    bool answers_threshold;    // else the counter's value by then
    shm::Location completion;  // region 0: no answer is wanted
    uint64_t ticket;
    uint32_t kind;
    uint64_t since_ns = 0;
  };
  struct Ring {
    struct Place {
      const progress::ClaimableRegion& memory;
      uint64_t offset;
      uint32_t capacity;
    };
    Ring(const Rings& rings, uint64_t its_number, progress::ServedRank& its_rank,
         shm::RingWords& its_words, const Place& place);

    const uint64_t number;  // of all rings
    progress::ServedRank* const rank;
    shm::RingWords* const words;
    const progress::ClaimableRegion memory;  // keeps it mapped
    const shm::MpscSlot* const slots;
    const uint32_t capacity;
    shm::RingConsumer consumer;
    uint32_t life = 0;
    uint32_t closes_to = 0;     // the life that ends it, once its requests are done; 0: none
    uint32_t closing_left = 0;  // so many requests may still come first
    uint64_t used_ns = 0;
    uint64_t errors = 0;
    uint64_t errors_counted = 0;  // of these, in the rank's statistics
    bool has_counted = false;     // in this turn
    std::vector<Waiting> waiting;
    size_t next_waiting = 0;  // to be looked at
    RingOperations operations;
    uint64_t operations_bytes = 0;  // of those taken in this turn
    uint32_t operations_taken = 0;
    uint64_t shown_over = 0;
    // The first request that a look has found unwritten, though there were others behind it.
    uint64_t unwritten = UINT64_MAX;
    uint64_t unwritten_since_ns = 0;

    bool IsWritten(uint64_t ticket) const;
  };
  struct Outcome {
    ErrorCode error = ErrorCode::kOk;
    uint64_t value = 0;
    bool is_later = false;
  };

  Ring* Find(const shm::RingWords& words);
  void Open(progress::ServedRank& rank, shm::RingWords& words, uint32_t life, uint64_t now_ns);
  void End(Ring& ring, uint64_t now_ns);
  void Close(Ring& ring, ErrorCode error);
  void Erase(const Ring& ring);
  uint32_t Take(Ring& ring);
  void Carry(Ring& ring, const shm::RingRequest& request, uint64_t ticket);
  void Operate(Ring& ring, const shm::RingRequest& request, uint64_t ticket);
  Outcome Execute(Ring& ring, const shm::RingRequest& request, uint64_t ticket);
  Outcome AddToCounter(Ring& ring, const shm::RingRequest& request);
  Outcome AwaitCounter(Ring& ring, const shm::RingRequest& request, uint64_t ticket);
  Outcome Start(Ring& ring, const shm::RingRequest& request, uint64_t ticket);
  Outcome Wait(Ring& ring, Waiting waiting) const;
  static uint32_t Answer(Ring& ring, size_t most);
  void OnOperationEnd(const progress::RingToken& token, ErrorCode error, uint64_t value);
  static void Show(Ring& ring);
  static void ReportWaiting(const Ring& ring, RingWaits* waits);
  static void ReportUnwritten(Ring& ring, uint64_t now_ns, RingWaits* waits);
  // Writes the answer of a request to `answer`; null: none is wanted.
  static void Finish(Ring& ring, shm::RingCompletion* answer, uint64_t ticket, uint32_t kind,
                     const Outcome& outcome);
  // Writes the answer of a request that was answered later; region 0: none is wanted.
  static void Finish(Ring& ring, const shm::Location& completion, uint64_t ticket, uint32_t kind,
                     const Outcome& outcome);

  Pairs& pairs_;
  progress::RingCalls& one_sided_;
  const uint64_t timeout_ns_;
  uint64_t now_ns_ = 0;
  uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::map<const progress::ServedRank*, uint64_t> changes_seen_;  // SessionLayout::rings_changed
};

}  // namespace ferry::daemon
