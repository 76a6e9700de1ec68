// Collectives of device memory that only streams reach: the streams of the ranks copy between it.
//
// A copy costs its start, so what counts is how many follow each other. Of a broadcast it is one:
// each rank reads the root's memory. Of a short allgather it is one, too: a kernel of the first
// rank stores the blocks of all in the output of each. Of a longer one it is two: each rank writes
// its block into the first one's output, and reads the whole from there; through host memory it
// would be two, too, but over the link to the host, and blocks of each rank from each other rank
// would be as many as there are ranks.
//
// Reductions are in device_reductions.cc.
#include <array>
#include <span>

#include "coll/board/board_run.h"
#include "coll/board/offers.h"
#include "coll/board/task.h"

namespace ferry::collective {
namespace {

// Lines after the first slice: this member's part has been written, the whole has been read.
constexpr uint32_t kWritten = 1;
constexpr uint32_t kRead = 2;
constexpr uint32_t kNextSlice = 3;

// Beyond this size, ranks had better read from each other than all from one, whose device would
// serve all.
constexpr size_t kMostGathered = size_t{4} << 20;

// The most that one member's kernel stores for all: about as much as its device moves in the time
// that the start of another copy takes, and no more members than the kernel takes.
constexpr size_t kMostSpread = size_t{1} << 20;

class Devices : private Offers {
 public:
  using Offers::Offers;

  ByDevices Bcast() {
    if (!task_.is_root()) {
      const std::byte* const data = board_.Await(task_.problem.root, 0, slot_);
      return data != nullptr ? ByDevices::kNotForThem : ReadFromRoot();
    }
    if (!CanOffer(task_.output, task_.output, task_.problem.block_bytes)) {
      return ByDevices::kNotForThem;
    }
    bool all_reach = true;
    if (!Offer() || !AwaitAll(kRead, &all_reach)) {
      return GiveUp();
    }
    return all_reach ? ByDevices::kOver : LeaveToHost();
  }

  // Once the root has offered its memory, or there is nothing to take for another reason.
  ByDevices ReadFromRoot() {
    if (!board_.has_offer()) {
      return ByDevices::kOver;
    }
    const int root = task_.problem.root;
    const bool reaches = Note(root, board_.link().Read(root, OfferOf(root).output, task_.output,
                                                       task_.problem.block_bytes));
    if (!Post(kRead, reaches)) {
      return ByDevices::kOver;
    }
    return reaches ? ByDevices::kOver : GoOnByHost();
  }

  ByDevices Allgather() {
    const size_t all_bytes = OutputBytes(task_.problem);
    if (all_bytes > kMostGathered || !CanOffer(task_.OwnInput(), task_.output, all_bytes) ||
        !IsOfDevice(task_.OwnInput())) {
      return ByDevices::kNotForThem;
    }
    const bool may_spread = !board_.IsUnspread() && task_.size() <= kMostMembersOfKernel &&
                            all_bytes * static_cast<size_t>(task_.size()) <= kMostSpread;
    if (may_spread && SpreadByFirst()) {
      return ByDevices::kOver;
    }
    return Gather(all_bytes);
  }

 private:
  static constexpr int kFirst = 0;

  // ---- By one kernel ---------------------------------------------------------------------------

  // The first member waits for the offers of all others, and offers when it is done, so that the
  // others wait once. True: the collective is over. False, on all members: the first member's
  // kernels do not reach all memory.
  bool SpreadByFirst() {
    const Verdict verdict = task_.self() == kFirst ? SpreadFromHere() : AwaitSpread();
    if (verdict == Verdict::kElsewhere) {
      board_.GoElsewhere();
    }
    if (board_.has_failed()) {
      board_.Settle(kWritten);  // no member posts that: until all have ended
      return true;
    }
    if (verdict != Verdict::kOutOfReach) {
      return true;
    }
    board_.SetUnspread();
    board_.GoOnFrom(kAfterVerdict);
    own_.verdict = Verdict::kNone;
    return false;
  }

  Verdict SpreadFromHere() {
    own_.verdict = MeetOffers() ? SpreadAll() : Verdict::kElsewhere;
    (void)Offer();  // no member sees it if this has failed
    return own_.verdict;
  }

  Verdict SpreadAll() {
    std::array<NodeAddress, kMostMembersOfKernel> blocks;
    std::array<NodeAddress, kMostMembersOfKernel> places;
    const auto count = static_cast<size_t>(task_.size());
    for (size_t i = 0; i < count; ++i) {
      const Offered offered = OfferOf(static_cast<int>(i));
      if (offered.input.region == 0) {
        return Verdict::kOutOfReach;  // only its own rank's streams reach it
      }
      blocks[i] = offered.input;
      places[i] = offered.output;
    }
    const ErrorCode error = board_.link().Spread({blocks.data(), count}, {places.data(), count},
                                                 task_.problem.block_bytes);
    return Note(kFirst, error) ? Verdict::kDone : Verdict::kOutOfReach;
  }

  Verdict AwaitSpread() {
    Met met = Met::kNothing;
    const Verdict verdict = Offer() ? AwaitVerdict(kFirst, &met) : Verdict::kNone;
    if (met == Met::kData) {
      board_.GoElsewhere();
    }
    return verdict;
  }

  // ---- By two copies ---------------------------------------------------------------------------

  ByDevices Gather(size_t all_bytes) {
    if (!Offer() || !MeetOffers()) {
      return board_.is_elsewhere() ? ByDevices::kOver : GiveUp();
    }
    const NodeAddress gathered = OfferOf(kFirst).output;
    const bool reaches = Contribute(gathered);
    bool all_reach = reaches;
    if (!Post(kWritten, reaches) || !AwaitAll(kWritten, &all_reach)) {
      return GiveUp();
    }
    if (!all_reach) {
      return LeaveToHost();
    }
    const bool is_first = task_.self() == kFirst;
    if ((!is_first &&
         !Demand(kFirst, board_.link().Read(kFirst, gathered, task_.output, all_bytes))) ||
        !Post(kRead, true) || (is_first && !AwaitAll(kRead, &all_reach))) {
      return GiveUp();
    }
    return ByDevices::kOver;
  }

  // ---- Parts of both ---------------------------------------------------------------------------

  // Returns true if other members may import the output, as far as is known.
  bool CanOffer(const void* input, const void* output, size_t output_bytes) {
    if (board_.IsApart(task_.problem.collective) || !IsOfDevice(output)) {
      return false;
    }
    own_.output = board_.link().Locate(output, output_bytes);
    own_.input =
        input == output ? own_.output : board_.link().Locate(input, task_.problem.block_bytes);
    return own_.output.region != 0;
  }

  // Waits until that member has offered its memory. If it has offered none, all go elsewhere.
  bool MeetOffer(int member) {
    const Met met = Meet(member);
    if (met == Met::kData) {
      board_.GoElsewhere();
    }
    return met == Met::kOffer;
  }

  // Waits for the offers of all other members. So each member sees it if another has offered no
  // memory, or an offer that it cannot take.
  bool MeetOffers() {
    for (int i = 0; i < task_.size(); ++i) {
      if (i != task_.self() && !MeetOffer(i)) {
        return false;
      }
    }
    return true;
  }

  // Copies this member's block to its place at the first member. False: that place cannot be
  // reached.
  bool Contribute(const NodeAddress& gathered) {
    const size_t bytes = task_.problem.block_bytes;
    if (task_.self() != kFirst) {
      return Note(kFirst, board_.link().Write(kFirst, gathered.At(task_.OwnOffset()),
                                              task_.OwnInput(), bytes));
    }
    return task_.problem.in_place ||
           Demand(kFirst, board_.link().Copy(task_.output + task_.OwnOffset(), task_.input, bytes));
  }

  // Others may be reading this member's memory, or writing to it.
  ByDevices GiveUp() {
    if (board_.has_failed()) {
      board_.Settle(kRead);
    }
    return ByDevices::kOver;
  }

  ByDevices LeaveToHost() {
    board_.SetApart(task_.problem.collective);
    return GoOnByHost();
  }
  ByDevices GoOnByHost() {
    board_.GoOnFrom(kNextSlice);
    return ByDevices::kByHost;
  }
};

}  // namespace

ByDevices RunByDevices(const BoardTask& task, Board::Slot slot, bool in_slices) {
  switch (task.problem.collective) {
    case Collective::kBcast:
      return task.board.link().IsByStream(task.output) ? Devices(task, slot).Bcast()
                                                       : ByDevices::kNotForThem;
    case Collective::kAllgather:
      return Devices(task, slot).Allgather();
    case Collective::kReduce:
    case Collective::kAllreduce:
      return task.on_device != nullptr ? ReduceByDevices(task, slot, in_slices)
                                       : ByDevices::kNotForThem;
    default:
      return ByDevices::kNotForThem;
  }
}

ByDevices MeetDevices(const BoardTask& task, Board::Slot slot) {
  if (task.problem.collective == Collective::kBcast) {
    return Devices(task, slot).ReadFromRoot();
  }
  task.board.GoElsewhere();
  return ByDevices::kOver;
}

}  // namespace ferry::collective
