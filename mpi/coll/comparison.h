// Compares the calls of a collective that the ranks of a communicator make, before it is carried
// out (option mpi_check): each rank's record goes to all (collective/call_record.h), and where
// ranks have data of their own for each other, the lists of these, too. So all ranks find the same
// difference.
//
// Once begun, a channel carries a comparison on with its other operations. Calling thread: as the
// channel's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "coll/call_record.h"
#include "mpi/base/failure.h"
#include "mpi/coll/channel.h"

namespace ferry::mpi {

// A rank's description of its own call.
struct CallDescription {
  collective::CallRecord record;
  // If record.has_lists: the data that it sends to each rank, then those that it receives from
  // each.
  std::vector<collective::DataRecord> lists;
};

class Comparison {
 public:
  // `go_on` is called, under the channel's lock, when the calls have turned out to belong together.
  // The channel's other runs do not use `first_number` and the number after it.
  Comparison(Channel* channel, CallDescription own, uint32_t first_number,
             std::function<void()> go_on);

  bool is_done() const { return phase_ == Phase::kOver; }
  // Returns the failure of the call, once the comparison is done.
  const Failure& failure() const { return failure_; }

 private:
  friend class Channel;
  enum class Phase { kBegin, kCalls, kLists, kOver };
  static constexpr int kPhases = 2;  // with messages

  // Returns the run that the comparison waits for, once Step has begun it.
  collective::CollectiveRun* run() const { return taken_.run(); }

  // Goes on as far as it can. Returns true if it did anything. Called under the channel's lock.
  bool Step();
  void Gather(const void* own, size_t bytes, void* all);
  bool HasGathered();
  void End(Failure failure);

  Channel* const channel_;
  const CallDescription own_;
  const uint32_t first_number_;
  std::function<void()> go_on_;
  Phase phase_ = Phase::kBegin;
  Channel::Taken taken_;
  std::vector<collective::CallRecord> records_;
  std::vector<collective::DataRecord> lists_;
  Failure failure_;
};

}  // namespace ferry::mpi
