// One member's view of a board (board_layout.h): posting, waiting for what other members post, and
// finding out that it will never come.
//
// The collectives on a communicator have numbers, which are alike on all its members. One
// collective at a time is under way: Begin, then any number of posts and waits, then End. Each post
// bears a stamp: the number of the collective and that of the slice. So a member may be some
// collectives behind or ahead of another: a slot is used again once its readers have said that they
// are past it.
//
// Failure. A member that waits finds out, after a while, that another one has died, has given up
// this collective, takes it for another one, or has ended it without posting the slice. Then it
// gives up, too, which others find out in turn: no member waits for ever, and the next collective
// starts afresh.
//
// Calling thread: one at a time. Reserve and Await block; after a failure they return null at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/board/board_layout.h"
#include "coll/board/node_link.h"
#include "coll/messenger.h"
#include "coll/problem.h"
#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/wait_policy.h"

namespace ferry::collective {

class Board {
 public:
  enum class Slot { kLine, kCell };
  static constexpr int kAll = -1;  // readers of a post

  // `layout` has room for the shape, and is zero before the first member comes. `crowded`: more
  // ranks than cores, so that a waiting member should let others run. All outlive the board.
  Board(BoardLayout* layout, const BoardShape& shape, NodeLink* link, int self, bool crowded);
  // Ends this member's use of the board. Returns true if it was the last member.
  bool Leave();

  int self() const { return self_; }
  int members() const { return members_; }
  NodeLink& link() { return *link_; }

  // ---- One collective --------------------------------------------------------------------------
  // Begins a collective. `number`: greater than that of any before. `signature`: alike on all
  // members.
  void Begin(uint64_t number, uint64_t signature) {
    begin_ = number << kSliceBits;
    signature_ = signature;
    failure_.code = ErrorCode::kOk;
    is_elsewhere_ = false;
    has_offer_ = false;
    first_slice_ = 0;
  }
  // Returns where to put slice `slice` for member `reader` (or kAll) before Post. Waits until the
  // readers of the earlier slice there are past it. Null: failed.
  std::byte* Reserve(uint32_t slice, Slot slot, int reader);
  // Returns true if Reserve would not wait.
  bool HasRoom(uint32_t slice, Slot slot);
  void Post(uint32_t slice, Slot slot) {
    PostHeader& header = HeaderOf(self_, SlotIndex(slice, slot), slot);
    // Pairs with AwaitData, whose stamp is there already.
    shm::StoreRelease(header.signature, signature_);
    // Pairs with Await.
    shm::StoreRelease(header.stamp, StampOf(slice));
    Ring();
  }
  // Says, in place of Post, that this slice, and all others, come another way.
  void PostElsewhere(uint32_t slice, Slot slot);
  // Returns true if this member, or one that it waited for, has called PostElsewhere. Then Await
  // returns null.
  bool is_elsewhere() const { return is_elsewhere_; }
  // Makes is_elsewhere true, so that this member leaves the collective without taking what others
  // have posted.
  void GoElsewhere() { is_elsewhere_ = true; }
  // Posts slice 0 as an offer of this member's memory, in place of data. Await returns null for an
  // offer.
  void PostOffer(Slot slot);
  // Lets this member post data as slice 0 in place of its offer. No member may read the offer any
  // more.
  void TakeBackOffer(Slot slot) { UseOf(0, slot) = {}; }
  // Waits until the member, which has posted an offer, has posted data in its place. As Await.
  const std::byte* AwaitData(int member, Slot slot);
  // Returns true if this member has posted that slice.
  bool HasPosted(uint32_t slice, Slot slot) { return UseOf(slice, slot).stamp == StampOf(slice); }
  // Returns true if a member that this one waited for has posted an offer.
  bool has_offer() const { return has_offer_; }
  // Returns the offer that the member has posted as slice 0.
  const std::byte* OfferOf(int member, Slot slot) const {
    return DataOf(HeaderOf(member, SlotIndex(0, slot), slot), slot);
  }
  // Counts slices anew from this one on: earlier ones are over, on all members that go on.
  void GoOnFrom(uint32_t slice) {
    first_slice_ += slice;
    has_offer_ = false;
  }
  // Remembers that members do not reach each other's offers in that collective.
  void SetApart(Collective collective) { apart_ |= 1U << static_cast<uint32_t>(collective); }
  bool IsApart(Collective collective) const {
    return (apart_ >> static_cast<uint32_t>(collective) & 1) != 0;
  }
  // Remembers that no member spreads the blocks of all members (NodeLink::Spread).
  void SetUnspread() { is_unspread_ = true; }
  bool IsUnspread() const { return is_unspread_; }
  // Waits for the data that the member posts as this slice, which stay until Consume or End. Null:
  // failed.
  const std::byte* Await(int member, uint32_t slice, Slot slot) {
    const uint64_t stamp = StampOf(slice);
    const PostHeader& header = HeaderOf(member, SlotIndex(slice, slot), slot);
    // Pairs with Post.
    for (uint32_t i = 0; shm::LoadAcquire(header.stamp) != stamp; ++i) {
      if (i >= spins_) {
        return AwaitSlowly(member, slice, slot);
      }
      shm::CpuPause();
    }
    return Take(member, header, slot);
  }
  // Says that this member needs the slices up to this one no more.
  void Consume(uint32_t slice) {
    // Pairs with HasConsumed.
    shm::StoreRelease(Place(self_).consumed, StampOf(slice));
    Ring();
  }
  // Gives up this collective.
  void Fail(const RunFailure& failure);
  bool has_failed() const { return failure_.code != ErrorCode::kOk; }
  // Called after a failure: gives up, then waits until each other member has posted this line, has
  // ended the collective, or has given up, too: then no member copies to this member's memory any
  // more.
  void Settle(uint32_t line);
  // Ends the collective. False: it failed.
  bool End() {
    if (has_failed()) [[unlikely]] {
      Tell(true);
    }
    // Pairs with HasConsumed and FindTrouble.
    shm::StoreRelease(Place(self_).consumed, begin_ | kLastSlice);
    Ring();
    return !has_failed();
  }
  const RunFailure& failure() const { return failure_; }
  // Returns true if the member has come to the collective that this one waits in.
  bool HasCome(int member) const;
  // Skips a collective that this member carries out in another way, or (Renounce) not at all:
  // members that wait for it here give up. `signature`: the collective that this member takes it
  // for; 0: it does not know.
  void Skip(uint64_t number) {
    Begin(number, 0);
    (void)End();
  }
  void Renounce(uint64_t number, uint64_t signature = 0);

 private:
  // The last post in a slot, and the member that it was for.
  struct Use {
    uint64_t stamp = 0;
    int reader = kAll;
  };

  // Bits of signatures that CallMark does not use.
  static constexpr uint64_t kElsewhere = uint64_t{1} << 63;
  static constexpr uint64_t kOffer = uint64_t{1} << 62;
  static constexpr uint32_t kSliceBits = 24;
  static constexpr uint64_t kLastSlice = (uint64_t{1} << kSliceBits) - 1;

  static bool IsPast(uint64_t stamp, uint64_t other) {
    return static_cast<int64_t>(stamp - other) >= 0;  // stamps may wrap
  }
  MemberLayout& Place(int member) const {
    return *reinterpret_cast<MemberLayout*>(places_ + static_cast<size_t>(member) * place_bytes_);
  }
  uint64_t StampOf(uint32_t slice) const { return begin_ | (first_slice_ + slice); }
  // The place where that member tells that it is in this collective.
  EnteredLayout& EnteredBy(int member) const {
    return Place(member).entered[(begin_ >> kSliceBits) & 1];
  }
  CellLayout& Cell(int member, size_t index) const {
    return reinterpret_cast<CellLayout*>(&Place(member) + 1)[index];
  }
  size_t SlotIndex(uint32_t slice, Slot slot) const {
    const uint64_t number = (begin_ >> kSliceBits) + first_slice_ + slice;
    return number & (slot == Slot::kLine ? kBoardLines - 1 : cell_mask_);
  }
  PostHeader& HeaderOf(int member, size_t index, Slot slot) const {
    return slot == Slot::kLine ? Place(member).lines[index].header : Cell(member, index).header;
  }
  static std::byte* DataOf(const PostHeader& header, Slot slot) {
    auto* const bytes = reinterpret_cast<std::byte*>(const_cast<PostHeader*>(&header));
    return bytes + (slot == Slot::kLine ? offsetof(LineLayout, data) : offsetof(CellLayout, data));
  }
  Use& UseOf(uint32_t slice, Slot slot) {
    const size_t index = SlotIndex(slice, slot);
    return slot == Slot::kLine ? line_uses_[index] : cell_uses_[index];
  }
  const std::byte* Take(int member, const PostHeader& header, Slot slot) {
    // Pairs with Post, where data have replaced an offer.
    const uint64_t signature = shm::LoadAcquire(header.signature);
    if (signature != signature_ || has_failed()) [[unlikely]] {
      Refuse(member, signature);
      return nullptr;
    }
    // A member that has come to this collective needs nothing of the one before.
    uint64_t& seen = seen_[static_cast<size_t>(member)];
    seen = IsPast(seen, begin_ - 1) ? seen : begin_ - 1;
    return DataOf(header, slot);
  }
  void Refuse(int member, uint64_t signature);
  const std::byte* AwaitSlowly(int member, uint32_t slice, Slot slot);
  bool HasConsumed(int member, uint64_t stamp);
  bool AwaitConsumed(int member, uint64_t stamp);
  template <typename Reached>
  bool WaitUntil(int member, const Reached& reached);
  template <typename Reached>
  bool LookPatiently(const Reached& reached);
  void SleepUntil(bool (*look)(void*), void* argument);
  bool FindTrouble(int member, RunFailure* failure) const;
  RunFailure Mismatch(int member, uint64_t signature) const;
  void Tell(bool has_given_up);
  // Wakes the members that sleep. Asymmetric Dekker, as in shm/wake.h: a sleeper counts itself in,
  // then come libferry's heavy fence and its last look. With pauses it may count itself in behind
  // that fence, so there the poster and the sleeper take the full order.
  void Ring() {
    if (has_pauses_) {
      shm::FetchAdd(Place(self_).consumed, uint64_t{0}, std::memory_order_seq_cst);
    } else if (shm::IsLightFenceEnabled()) [[likely]] {
      shm::LightFence();
    } else {
      shm::FetchAdd(layout_->sleepers, 0U, std::memory_order_seq_cst);
    }
    // Pairs with SleepUntil.
    if (shm::Load(layout_->sleepers, std::memory_order_seq_cst) != 0) [[unlikely]] {
      WakeOthers();
    }
  }
  void WakeOthers();

  BoardLayout* const layout_;
  std::byte* const places_;
  const size_t place_bytes_;
  const uint64_t cell_mask_;  // the number of cells is a power of two
  NodeLink* const link_;
  const int self_;
  const int members_;
  const uint32_t spins_;
  const bool is_crowded_;
  const bool has_pauses_;
  std::vector<uint64_t> seen_;  // by member: a stamp that it has consumed, perhaps long ago
  std::array<Use, kBoardLines> line_uses_;
  std::vector<Use> cell_uses_;

  uint64_t begin_ = 0;  // the stamp of slice 0
  uint64_t signature_ = 0;
  bool is_elsewhere_ = false;
  bool has_offer_ = false;
  uint32_t first_slice_ = 0;
  uint32_t apart_ = 0;  // bits by Collective
  bool is_unspread_ = false;
  RunFailure failure_;
};

// Tells collectives apart: by their kind (below 64), root and bytes.
struct CallMark {
  uint8_t collective = 0;
  uint16_t root = 0;
  uint64_t size_bytes = 0;

  uint64_t Word() const;
  static CallMark Of(uint64_t word);
};

}  // namespace ferry::collective
