// Common parts of the files of this folder that carry collectives out.
#pragma once

#include <algorithm>
#include <cstddef>

#include "coll/board/board.h"
#include "coll/problem.h"

namespace ferry::collective {

// One collective, as one member carries it out, in memory that CPUs can load from.
struct BoardTask {
  Board& board;
  const Problem& problem;
  const char* input;
  char* output;
  Reducer* reducer;
  DeviceData* on_device = nullptr;  // Binding's

  int self() const { return board.self(); }
  int size() const { return board.members(); }
  bool is_root() const { return self() == problem.root; }
  // This rank's own vector in a reduction, or its block in a gather or an allgather.
  const char* OwnInput() const {
    if (!problem.in_place || problem.collective == Collective::kScatter) {
      return input;
    }
    switch (problem.collective) {
      case Collective::kGather:
      case Collective::kAllgather:
        return output + OwnOffset();
      default:
        return output;
    }
  }
  size_t OwnOffset() const { return static_cast<size_t>(self()) * problem.block_bytes; }
  // Reduces `bytes` bytes of two operands into `to`. False: failed.
  bool Reduce(const void* left, const void* right, void* to, size_t bytes) const {
    const ErrorCode error = reducer->Reduce(left, right, to, bytes / problem.element_bytes);
    if (error != ErrorCode::kOk) [[unlikely]] {
      board.Fail({.code = error});
    }
    return error == ErrorCode::kOk;
  }
};

// Carries a collective out through lines and cells. False: failed (board.Fail has been told why).
bool RunInSlices(const BoardTask& task);
// Returns true if the slices of this problem, which has no blocks of their own sizes, fit cells.
bool FitsSlices(const Problem& problem);

// The slot in which a member posts the first slice of such a run.
Board::Slot SlotOfSlices(const Problem& problem);

// The result of a collective by streams, between device memory that CPUs do not reach.
enum class ByDevices {
  kNotForThem,  // nothing was done
  kOver,        // done; or failed, or to be done elsewhere (board)
  kByHost       // some rank cannot import another's memory: in slices, from here on
};
// Runs a collective for a member whose memory may be such. `slot`: where members post, or look,
// first. `in_slices`: members whose memory is the host's run it in slices.
ByDevices RunByDevices(const BoardTask& task, Board::Slot slot, bool in_slices);
// Runs it for a member that did other work, and has met another's offer.
ByDevices MeetDevices(const BoardTask& task, Board::Slot slot);
// RunByDevices for reductions.
ByDevices ReduceByDevices(const BoardTask& task, Board::Slot slot, bool in_slices);
// Waits for the data of a reduction's first slice, in place of which that member has posted an
// offer, and makes the member post them. Null: failed.
const std::byte* TakeInsteadOfOffer(const BoardTask& task, int member, Board::Slot slot);

// Runs a collective by copies between the ranks' own memory. kUnreachable: nothing was done, on any
// rank. kMetDevices: nothing was done here, for MeetDevices has to do it.
enum class DirectResult { kDone, kFailed, kUnreachable, kMetDevices };
DirectResult RunDirectly(const BoardTask& task);
// Returns true if RunDirectly can carry out this problem, which has no blocks of their own sizes.
bool FitsDirect(const Problem& problem);

}  // namespace ferry::collective
