// How members of a board show each other memory that only streams reach. A member posts an offer,
// which says where its memory lies, in place of its first slice; so members whose own memory is the
// host's meet that where they would have taken data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coll/board/task.h"

namespace ferry::collective {

// The most members whose data one kernel takes.
inline constexpr int kMostMembersOfKernel = 8;

// How a collective has ended that one member carries out for all, which that member posts with its
// offer. Its offer comes last.
enum class Verdict : uint64_t {
  kNone,        // this offer is of no such collective
  kDone,        // all members have the result
  kOutOfReach,  // its device does not reach all memory
  kElsewhere,   // some member has offered no memory: by messages
  kByHost       // the same: in slices, for which members take their offers back
};

// A member's first slice: where its input and its output lie.
struct Offered {
  NodeAddress input = {};
  NodeAddress output = {};
  Verdict verdict = Verdict::kNone;
};
static_assert(sizeof(Offered) <= kBoardLineBytes);

// Slices count on from here where that member's device does not reach all memory.
inline constexpr uint32_t kAfterVerdict = 1;

class Offers {
 public:
  Offers(const BoardTask& task, Board::Slot slot) : task_(task), board_(task.board), slot_(slot) {}

 protected:
  enum class Met {
    kOffer,
    kData,     // the member has posted data in place of an offer
    kNothing,  // this has failed, or goes elsewhere
  };

  bool IsOfDevice(const void* memory) const { return board_.link().IsByStream(memory); }

  bool Offer(int reader = Board::kAll);
  Offered OfferOf(int member) const;
  // Waits for the member's first slice.
  Met Meet(int member);
  // Waits for the verdict of the member that carries the collective out for all. *met: its first
  // slice.
  Verdict AwaitVerdict(int member, Met* met);

  bool Demand(int member, ErrorCode error);
  // Notes the result of a copy like Demand, but memory that cannot be imported is no failure.
  // False: it cannot be imported, or the copy has failed.
  bool Note(int member, ErrorCode error) {
    return error != ErrorCode::kUnsupported && Demand(member, error);
  }

  // Post this line, and wait for the others': whether this member has reached all memory.
  bool Post(uint32_t line, bool reaches);
  bool AwaitAll(uint32_t line, bool* all_reach);

  const BoardTask& task_;
  Board& board_;
  const Board::Slot slot_;
  Offered own_;
};

}  // namespace ferry::collective
