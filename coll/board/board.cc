#include "coll/board/board.h"

namespace ferry::collective {
namespace {

// How often a waiting member looks, before it lets others run, and then before it sleeps.
constexpr uint32_t kSpins = 400;
constexpr uint32_t kFewSpins = 4;  // where ranks share cores, or the thread has something to do
constexpr uint32_t kYields = 64;
constexpr uint32_t kLooksAwake = 16;  // where no thread sleeps that would have to be woken

constexpr uint32_t kSizeBits = 40;
constexpr uint64_t kSizeMask = (uint64_t{1} << kSizeBits) - 1;

}  // namespace

uint64_t CallMark::Word() const {
  return uint64_t{collective} << 56 | uint64_t{root} << kSizeBits | (size_bytes & kSizeMask);
}

CallMark CallMark::Of(uint64_t word) {
  return {static_cast<uint8_t>(word >> 56), static_cast<uint16_t>(word >> kSizeBits),
          word & kSizeMask};
}

Board::Board(BoardLayout* layout, const BoardShape& shape, NodeLink* link, int self, bool crowded)
    : layout_(layout),
      places_(reinterpret_cast<std::byte*>(layout + 1)),
      place_bytes_(shape.PlaceBytes()),
      cell_mask_(shape.cells - 1),
      link_(link),
      self_(self),
      members_(shape.members),
      spins_(crowded || link->HasPauses() ? kFewSpins : kSpins),
      is_crowded_(crowded),
      has_pauses_(link->HasPauses()),
      seen_(static_cast<size_t>(shape.members)),
      cell_uses_(shape.cells) {}

bool Board::Leave() {
  // Pairs with itself: the last one sees what all others did before.
  return shm::FetchAdd(layout_->left, 1U, std::memory_order_acq_rel) + 1 ==
         static_cast<uint32_t>(members_);
}

// ---- One collective -----------------------------------------------------------------------------

void Board::Renounce(uint64_t number, uint64_t signature) {
  Begin(number, signature);
  Fail({.code = ErrorCode::kCancelled});
  (void)End();
}

void Board::Fail(const RunFailure& failure) {
  if (!has_failed()) {
    failure_ = failure;
    if (failure.mismatch == RunFailure::Mismatch::kNone && failure.text == nullptr) {
      failure_.text = link_->TextOf(failure.code);
    }
  }
}

// ---- Posting ------------------------------------------------------------------------------------

bool Board::HasConsumed(int member, uint64_t stamp) {
  uint64_t& seen = seen_[static_cast<size_t>(member)];
  if (!IsPast(seen, stamp)) {
    // Pairs with Consume and End.
    seen = shm::LoadAcquire(Place(member).consumed);
  }
  return IsPast(seen, stamp);
}

bool Board::HasRoom(uint32_t slice, Slot slot) {
  const Use& use = UseOf(slice, slot);
  if (use.stamp == 0) {
    return true;
  }
  if (use.reader != kAll) {
    return HasConsumed(use.reader, use.stamp);
  }
  for (int member = 0; member < members_; ++member) {
    if (member != self_ && !HasConsumed(member, use.stamp)) {
      return false;
    }
  }
  return true;
}

std::byte* Board::Reserve(uint32_t slice, Slot slot, int reader) {
  if (has_failed()) [[unlikely]] {
    return nullptr;
  }
  Use& use = UseOf(slice, slot);
  if (!HasRoom(slice, slot)) {
    const int first = use.reader == kAll ? 0 : use.reader;
    const int end = use.reader == kAll ? members_ : use.reader + 1;
    for (int member = first; member < end; ++member) {
      if (member != self_ && !AwaitConsumed(member, use.stamp)) {
        return nullptr;
      }
    }
  }
  use = {StampOf(slice), reader};
  return DataOf(HeaderOf(self_, SlotIndex(slice, slot), slot), slot);
}

// Wakes the members that may be asleep, and no others: a rank has not mapped those that it has
// never woken.
void Board::WakeOthers() {
  for (int member = 0; member < members_; ++member) {
    if (member != self_ && shm::LoadRelaxed(Place(member).asleep) != 0) {
      link_->Wake(member);
    }
  }
}

// ---- Waiting ------------------------------------------------------------------------------------

void Board::PostElsewhere(uint32_t slice, Slot slot) {
  is_elsewhere_ = true;
  signature_ |= kElsewhere;
  Post(slice, slot);
  signature_ &= ~kElsewhere;
}

void Board::PostOffer(Slot slot) {
  signature_ |= kOffer;
  Post(0, slot);
  signature_ &= ~kOffer;
}

void Board::Refuse(int member, uint64_t signature) {
  if (signature == (signature_ | kElsewhere)) {
    is_elsewhere_ = true;
  } else if (signature == (signature_ | kOffer)) {
    has_offer_ = true;
  } else if (signature != signature_) {
    Fail(Mismatch(member, signature));
  }
}

const std::byte* Board::AwaitSlowly(int member, uint32_t slice, Slot slot) {
  const PostHeader& header = HeaderOf(member, SlotIndex(slice, slot), slot);
  const uint64_t stamp = StampOf(slice);
  // Pairs with Post.
  const auto is_there = [&] { return shm::LoadAcquire(header.stamp) == stamp; };
  return WaitUntil(member, is_there) ? Take(member, header, slot) : nullptr;
}

const std::byte* Board::AwaitData(int member, Slot slot) {
  const PostHeader& header = HeaderOf(member, SlotIndex(0, slot), slot);
  // Pairs with Post.
  const auto is_there = [&] { return shm::LoadAcquire(header.signature) != (signature_ | kOffer); };
  has_offer_ = false;
  return WaitUntil(member, is_there) ? Take(member, header, slot) : nullptr;
}

bool Board::AwaitConsumed(int member, uint64_t stamp) {
  for (uint32_t i = 0; i < spins_; ++i) {
    if (HasConsumed(member, stamp)) {
      return true;
    }
    shm::CpuPause();
  }
  return WaitUntil(member, [&] { return HasConsumed(member, stamp); });
}

// Looks again for a while before the member lets others wake it: returns true once `reached()` is
// true.
template <typename Reached>
bool Board::LookPatiently(const Reached& reached) {
  if (!has_pauses_) {
    for (uint32_t i = 0; i < kYields; ++i) {
      if (reached()) {
        return true;
      }
      (void)shm::YieldToOthers();
    }
    return reached();
  }
  // No thread needs to be woken yet.
  for (uint32_t i = 0; i < kLooksAwake && !reached() && link_->IsAwake(); ++i) {
    link_->WaitFor([](void* look) { return (*static_cast<const Reached*>(look))(); },
                   const_cast<Reached*>(&reached));
  }
  for (uint32_t i = 0; i < kSpins && !is_crowded_ && link_->MaySpin(); ++i) {
    if (reached()) {
      return true;
    }
    shm::CpuPause();
  }
  return reached();
}

// Waits until reached(), which `member` is to bring about. False: failed.
template <typename Reached>
bool Board::WaitUntil(int member, const Reached& reached) {
  if (has_failed()) {
    return false;
  }
  if (LookPatiently(reached)) {
    return true;
  }
  struct Waiting {
    Board* board;
    int member;
    const Reached* reached;
    RunFailure trouble;
  } waiting{this, member, &reached, {}};
  const auto look = [](void* argument) {
    auto* const self = static_cast<Waiting*>(argument);
    // Checks in this order, so that nothing that a member did before it ended is overlooked.
    return (*self->reached)() ||
           (self->board->FindTrouble(self->member, &self->trouble) && !(*self->reached)());
  };
  Tell(false);
  link_->NoteAwaited(member);
  SleepUntil(look, &waiting);
  link_->NoteAwaited(-1);
  if (reached()) {
    return true;
  }
  Fail(waiting.trouble);
  return false;
}

void Board::SleepUntil(bool (*look)(void*), void* argument) {
  // This comes first: a member that finds this one counted finds that it is asleep.
  shm::StoreRelaxed(Place(self_).asleep, 1);
  // Pairs with Ring. The fence is for the look, whose loads only acquire.
  shm::FetchAdd(layout_->sleepers, 1U, std::memory_order_seq_cst);
  shm::FullFence();
  while (!look(argument)) {
    link_->WaitFor(look, argument);
  }
  shm::FetchAdd(layout_->sleepers, ~uint32_t{0}, std::memory_order_seq_cst);
  shm::StoreRelaxed(Place(self_).asleep, 0);
}

void Board::Settle(uint32_t line) {
  struct Waiting {
    Board* board;
    int member;
    uint32_t line;
  } waiting{this, 0, line};
  const auto look = [](void* argument) {
    const auto* const self = static_cast<Waiting*>(argument);
    const Board& board = *self->board;
    const PostHeader& header =
        board.HeaderOf(self->member, board.SlotIndex(self->line, Slot::kLine), Slot::kLine);
    RunFailure ignored;
    // Pairs with Post.
    return shm::LoadAcquire(header.stamp) == board.StampOf(self->line) ||
           board.FindTrouble(self->member, &ignored);
  };
  Tell(true);
  for (; waiting.member < members_; ++waiting.member) {
    if (waiting.member != self_) {
      SleepUntil(look, &waiting);
    }
  }
}

bool Board::HasCome(int member) const {
  const MemberLayout& place = Place(member);
  // Pairs with End and Tell.
  if (IsPast(shm::LoadAcquire(place.consumed), begin_) ||
      IsPast(shm::LoadAcquire(place.entered[0].stamp), begin_) ||
      IsPast(shm::LoadAcquire(place.entered[1].stamp), begin_)) {
    return true;
  }
  const auto is_of_this = [&](const PostHeader& header) {
    return IsPast(shm::LoadAcquire(header.stamp), begin_);  // pairs with Post
  };
  for (size_t i = 0; i < kBoardLines; ++i) {
    if (is_of_this(place.lines[i].header)) {
      return true;
    }
  }
  for (size_t i = 0; i <= cell_mask_; ++i) {
    if (is_of_this(Cell(member, i).header)) {
      return true;
    }
  }
  return false;
}

// Returns true if the other member will never post what this one waits for.
bool Board::FindTrouble(int member, RunFailure* failure) const {
  if (const ErrorCode state = link_->StateOf(member); state != ErrorCode::kOk) {
    *failure = {.code = state, .peer = member};
    return true;
  }
  const MemberLayout& place = Place(member);
  // Pairs with End.
  const bool has_ended = IsPast(shm::LoadAcquire(place.consumed), begin_ | kLastSlice);
  // Pairs with Tell; twice, for the two words to belong together.
  const EnteredLayout& entered = EnteredBy(member);
  const uint64_t stamp = shm::LoadAcquire(entered.stamp);
  const uint64_t signature = shm::LoadAcquire(entered.signature);
  const bool is_known =
      (stamp & ~uint64_t{1}) == begin_ && shm::LoadAcquire(entered.stamp) == stamp;
  if (is_known && signature != signature_ && signature != 0) {
    *failure = Mismatch(member, signature);
  } else if (has_ended || (is_known && (stamp & 1) != 0)) {
    *failure = {.code = ErrorCode::kCancelled, .peer = member};
  } else {
    return false;
  }
  return true;
}

RunFailure Board::Mismatch(int member, uint64_t signature) const {
  const CallMark theirs = CallMark::Of(signature & ~(kElsewhere | kOffer));
  const CallMark ours = CallMark::Of(signature_);
  RunFailure failure{.code = ErrorCode::kTruncated, .peer = member};
  if (theirs.collective != ours.collective) {
    failure.mismatch = RunFailure::Mismatch::kCollective;
    failure.other = theirs.collective;
  } else if (theirs.root != ours.root) {
    failure.mismatch = RunFailure::Mismatch::kRoot;
    failure.other = theirs.root;
  } else {
    failure.mismatch = RunFailure::Mismatch::kSize;
    failure.expected_bytes = ours.size_bytes;
    failure.received_bytes = theirs.size_bytes;
  }
  return failure;
}

// Says which collective this member is in.
void Board::Tell(bool has_given_up) {
  EnteredLayout& entered = EnteredBy(self_);
  // 0 is no collective's stamp, so a member that reads half of the old and half of the new notices.
  shm::StoreRelease(entered.stamp, 0);
  shm::StoreRelease(entered.signature, signature_);
  // Pairs with FindTrouble.
  shm::StoreRelease(entered.stamp, begin_ | (has_given_up ? 1 : 0));
  Ring();
}

}  // namespace ferry::collective
