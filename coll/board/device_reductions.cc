// Reductions of device memory that only streams reach, by one kernel of one member's device: of the
// root's, or of the first one's where all get the result. It reduces the vectors of all members in
// their order, so that the result does not depend on who does it.
//
// Through host memory it would be a copy out of each device, the work of CPUs and, where all get
// the result, a copy into each. Each member decides for itself whether it offers its memory. If
// some do not, those that have done so take it back and post their data, as members whose memory is
// the host's do. In slices a rank that only gives a reduction its vector waits for no other, so it
// could not be told to go elsewhere.
#include <array>
#include <cstring>
#include <span>

#include "coll/board/board_run.h"
#include "coll/board/offers.h"
#include "coll/board/task.h"

namespace ferry::collective {
namespace {

// No member posts this line: whoever has failed waits until all others have ended.
constexpr uint32_t kNoLine = 1;

// The most bytes that the vectors of all members may have together where one kernel reduces them:
// beyond, members had better share the work. Without the kernel an allreduce also has to bring each
// member the result, so its kernel pays up to a larger size. Measured with eight members
// (docs/performance.md); faster devices might go further.
constexpr size_t kMostOfReduce = size_t{64} << 10;
constexpr size_t kMostOfAllreduce = size_t{512} << 10;

class DeviceReduction : private Offers {
 public:
  DeviceReduction(const BoardTask& task, Board::Slot slot, bool in_slices)
      : Offers(task, slot), data_(*task.on_device), in_slices_(in_slices) {}

  ByDevices Run() {
    if (!CanOffer()) {
      return ByDevices::kNotForThem;
    }
    const ByDevices by = task_.self() == Reducing() ? ReduceForAll() : LeaveToOther();
    if (board_.has_failed()) {
      board_.Settle(kNoLine);
      return ByDevices::kOver;
    }
    return by;
  }

 private:
  bool HasOneResult() const { return task_.problem.collective == Collective::kReduce; }
  // The member that reduces for all.
  int Reducing() const { return HasOneResult() ? task_.problem.root : 0; }
  bool GetsResult() const { return !HasOneResult() || task_.is_root(); }
  size_t Most() const { return HasOneResult() ? kMostOfReduce : kMostOfAllreduce; }

  // Returns true if others may import this member's memory, as far as is known.
  bool CanOffer() {
    const size_t bytes = task_.problem.block_bytes;
    const auto size = static_cast<size_t>(task_.size());
    if (task_.size() > kMostMembersOfKernel || bytes == 0 || bytes > Most() / size ||
        board_.IsApart(task_.problem.collective)) {
      return false;
    }
    own_.input = board_.link().Locate(data_.input, bytes);
    if (GetsResult()) {
      own_.output =
          data_.output == data_.input ? own_.input : board_.link().Locate(data_.output, bytes);
    }
    return own_.input.region != 0 && (!GetsResult() || own_.output.region != 0);
  }

  // ---- For all ---------------------------------------------------------------------------------

  ByDevices ReduceForAll() {
    const Met met = MeetOthers();
    if (met == Met::kNothing) {
      return ByDevices::kOver;
    }
    if (met == Met::kData) {
      return WithoutSome();
    }
    own_.verdict = ReduceHere();
    if (!Offer()) {
      return ByDevices::kOver;
    }
    return own_.verdict == Verdict::kDone ? ByDevices::kOver : LeaveToHost();
  }

  // Waits for all offers, or for one member that has offered nothing.
  Met MeetOthers() {
    for (int i = 0; i < task_.size(); ++i) {
      const Met met = i == task_.self() ? Met::kOffer : Meet(i);
      if (met != Met::kOffer) {
        return met;
      }
    }
    return Met::kOffer;
  }

  Verdict ReduceHere() {
    std::array<NodeAddress, kMostMembersOfKernel> vectors;
    std::array<MemberAddress, kMostMembersOfKernel> places;
    size_t place_count = 0;
    for (int i = 0; i < task_.size(); ++i) {
      const Offered offered = OfferOf(i);
      vectors[static_cast<size_t>(i)] = offered.input;
      if (!HasOneResult() || i == task_.self()) {
        places[place_count++] = {i, offered.output};
      }
    }
    const gpu::Reduction reduction{.count = task_.problem.block_bytes / task_.problem.element_bytes,
                                   .type = data_.type,
                                   .op = data_.op};
    const ErrorCode error =
        board_.link().Reduce({vectors.data(), static_cast<size_t>(task_.size())},
                             {places.data(), place_count}, task_.self(), reduction);
    return Note(task_.self(), error) ? Verdict::kDone : Verdict::kOutOfReach;
  }

  // Members that have offered memory see it in this member's first slice: that of an allreduce
  // holds data then, and that of a reduction's root would hold nothing.
  ByDevices WithoutSome() {
    if (in_slices_ && !HasOneResult()) {
      return ByDevices::kByHost;
    }
    own_.verdict = in_slices_ ? Verdict::kByHost : Verdict::kElsewhere;
    (void)Offer();  // no member sees it if this has failed
    return in_slices_ ? ByDevices::kByHost : GoElsewhere();
  }

  // ---- For the other members -------------------------------------------------------------------

  ByDevices LeaveToOther() {
    Met met = Met::kNothing;
    const bool has_offered = Offer(HasOneResult() && in_slices_ ? Reducing() : Board::kAll);
    switch (has_offered ? AwaitVerdict(Reducing(), &met) : Verdict::kNone) {
      case Verdict::kOutOfReach:
        return LeaveToHost();
      case Verdict::kByHost:
        return TakeBack();
      case Verdict::kElsewhere:
        return GoElsewhere();
      case Verdict::kNone:
        if (met == Met::kData) {
          return in_slices_ ? TakeBack() : GoElsewhere();
        }
        break;
      case Verdict::kDone:
        break;
    }
    return ByDevices::kOver;
  }

  ByDevices TakeBack() {
    board_.TakeBackOffer(slot_);
    return ByDevices::kByHost;
  }

  // ---- Parts of both ---------------------------------------------------------------------------

  ByDevices GoElsewhere() {
    board_.GoElsewhere();
    return ByDevices::kOver;
  }

  // All members have offered their memory, and do it no more.
  ByDevices LeaveToHost() {
    board_.SetApart(task_.problem.collective);
    board_.GoOnFrom(kAfterVerdict);
    return ByDevices::kByHost;
  }

  const DeviceData& data_;
  const bool in_slices_;
};

}  // namespace

ByDevices ReduceByDevices(const BoardTask& task, Board::Slot slot, bool in_slices) {
  return DeviceReduction(task, slot, in_slices).Run();
}

// The root of a reduction posts nothing in slices, and so has to say that it wants data.
const std::byte* TakeInsteadOfOffer(const BoardTask& task, int member, Board::Slot slot) {
  Board& board = task.board;
  if (!board.has_offer() || board.has_failed() || board.is_elsewhere()) {
    return nullptr;
  }
  if (task.problem.collective == Collective::kReduce && !board.HasPosted(0, slot)) {
    std::byte* const place = board.Reserve(0, slot, Board::kAll);
    if (place == nullptr) {
      return nullptr;
    }
    const Offered asks{.verdict = Verdict::kByHost};
    std::memcpy(place, &asks, sizeof(asks));
    board.PostOffer(slot);
  }
  return board.AwaitData(member, slot);
}

}  // namespace ferry::collective
