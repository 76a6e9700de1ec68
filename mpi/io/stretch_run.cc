#include "mpi/io/stretch_run.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "mpi/io/coverage.h"
#include "mpi/rma/waiting.h"
#include "shm/atomic.h"

namespace ferry::mpi {
namespace {

// Of working memory: it stays in a core's cache.
constexpr int64_t kPackedBytes = 128 << 10;

// Returns where byte 0 of the file would lie if `place` lay at `at`.
std::byte* Origin(std::byte* at, int64_t place) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(at) -
                                      static_cast<uintptr_t>(place));
}

Failure OtherPart() {
  return {MPI_ERR_INTERN, "a node has sent bytes of another part of the file"};
}

}  // namespace

StretchRun::StretchRun(const NodeBuffer& buffer, const NodePlan& plan, const PosixFile& file,
                       const Access& access, uint64_t first, const ExchangeOfCells& exchange)
    : buffer_(buffer),
      plan_(plan),
      file_(file),
      access_(access),
      first_(first),
      cells_(exchange.cells),
      exchange_(exchange.to_owners),
      answers_(exchange.answers),
      own_(buffer.words(buffer.self())),
      announced_(first),
      moved_(first),
      to_carry_(first + static_cast<uint64_t>(buffer.self())),
      to_take_(first),
      to_read_(first),
      to_wish_(first),
      position_(access.position),
      end_position_(access.position + access.bytes()) {}

// ---- The order of steps -------------------------------------------------------------------------

bool StretchRun::HaveAll(uint64_t RankWords::*word, uint64_t count) const {
  for (size_t i = 0; i < buffer_.ranks().size(); ++i) {
    // Pairs with Announce and Move: what they have written before is there.
    if (shm::LoadAcquire(buffer_.words(static_cast<int>(i)).*word) < count) {
      return false;
    }
  }
  return true;
}

int StretchRun::AggregatorOf(uint64_t number) const {
  return static_cast<int>((number - first_) % static_cast<uint64_t>(plan_.aggregators));
}

bool StretchRun::IsCarried(uint64_t number) const {
  // Pairs with Carry: publishes the stretch's bytes, or that its memory is free.
  return shm::LoadAcquire(buffer_.words(AggregatorOf(number)).carried) > number;
}

bool StretchRun::CanAnnounce() const {
  if (is_ended_) {
    return false;
  }
  // All ranks have said where they go on.
  if (cells_ == nullptr && announced_ > first_ && !HaveAll(&RankWords::announced, announced_)) {
    return false;
  }
  // The stretch's memory serves no other stretch any more.
  if (announced_ < first_ + kStretches) {
    return true;
  }
  const uint64_t before = announced_ - kStretches;
  return access_.is_write
             ? IsCarried(before)
             : HaveAll(&RankWords::moved, before + 1) && StretchAt(before).messages == 0;
}

bool StretchRun::CanMove() const {
  return moved_ < announced_ && (access_.is_write || IsCarried(moved_));
}

bool StretchRun::CanCarry() const {
  if (buffer_.self() >= plan_.aggregators || to_carry_ >= announced_) {
    return false;
  }
  if (IsReadingLeader()) {
    return IsOwned(StretchAt(to_carry_)) ? to_read_ > to_carry_ : answers_->Front() != nullptr;
  }
  if (!HaveAll(access_.is_write ? &RankWords::moved : &RankWords::announced, to_carry_ + 1)) {
    return false;
  }
  const Stretch& stretch = StretchAt(to_carry_);
  return IsOwned(stretch) ? stretch.messages == 0 : exchange_->RoomToSend() != nullptr;
}

// Messages come in the order of the stretches, whose memory they wait for.
bool StretchRun::CanTake() {
  if (!IsLeader()) {
    return false;
  }
  while (to_take_ < announced_ && StretchAt(to_take_).messages == 0) {
    ++to_take_;
  }
  if (to_take_ >= announced_ || exchange_->Front() == nullptr) {
    return false;
  }
  return access_.is_write || (to_read_ > to_take_ && answers_->RoomToSend() != nullptr);
}

bool StretchRun::CanReadAhead() {
  while (IsReadingLeader() && to_read_ < announced_ && !IsOwned(StretchAt(to_read_))) {
    ++to_read_;
  }
  return IsReadingLeader() && to_read_ < announced_;
}

bool StretchRun::CanWish() {
  while (IsReadingLeader() && to_wish_ < announced_ && IsOwned(StretchAt(to_wish_))) {
    ++to_wish_;
  }
  return IsReadingLeader() && to_wish_ < announced_ &&
         HaveAll(&RankWords::announced, to_wish_ + 1) && exchange_->RoomToSend() != nullptr;
}

bool StretchRun::is_over() const {
  return is_ended_ && moved_ == end_ &&
         (buffer_.self() >= plan_.aggregators || to_carry_ >= end_) &&
         (!IsLeader() || (exchange_->IsOver() && (answers_ == nullptr || answers_->IsOver())));
}

bool StretchRun::Step() {
  if (CanAnnounce()) {
    Announce();
  } else if (CanWish()) {
    Wish();
  } else if (CanReadAhead()) {
    ReadAhead();
  } else if (!access_.is_write && CanTake()) {
    Answer();
  } else if (!access_.is_write && CanCarry()) {
    Carry();  // others wait for it
  } else if (CanMove()) {
    Move();
  } else if (access_.is_write && CanTake()) {  // of a read it may just have become true
    Take();
  } else if (CanCarry()) {
    Carry();
  } else {
    return false;
  }
  return true;
}

// On leaders alone.
template <typename Visit>
void StretchRun::ForEachExchange(Visit&& visit) {
  for (NodeExchange* const exchange : {exchange_, answers_}) {
    if (IsLeader() && exchange != nullptr) {
      visit(*exchange);
    }
  }
}

ErrorCode StretchRun::DeathAmongRanks() const {
  if (IsLeader()) {
    if (const ErrorCode end = exchange_->Look(); end != ErrorCode::kOk) {
      return end;
    }
  }
  return cells_ == nullptr ? buffer_.DeathAmongRanks() : buffer_.DeathAmongAll();
}

// Returns once there is a step to take, or the run is over.
Failure StretchRun::Await() {
  using client::WordWait;
  return AwaitWords(
      IsLeader() ? WordWait::From::kNetwork : WordWait::From::kNode,
      [this] { return CanStep() || is_over() || !FailureOfExchange().ok(); },
      [this] { return DeathAmongRanks(); });
}

// False: the run ends before its end, since a rank is gone, or cut off. The others hear of it
// before this rank waits for anything more.
bool StretchRun::GoesOn(Failure gone) {
  if (IsLeader()) {
    StartSends();
    (void)front_end->peers->Poll();
    gone = gone.ok() ? FailureOfExchange() : gone;
  }
  if (gone.ok()) {
    return true;
  }
  gone_ = std::move(gone);
  is_ended_ = false;
  const ErrorCode why =
      gone_.error_class == MPI_ERR_PROC_ABORTED ? ErrorCode::kPeerDied : ErrorCode::kLinkDown;
  buffer_.Leave(why);
  if (IsLeader()) {
    exchange_->Leave(why);
  }
  ForEachExchange([](NodeExchange& exchange) { exchange.GiveUp(); });
  return false;
}

Failure StretchRun::Run() {
  BeginExchange();
  while (!is_over() && GoesOn(Step() ? Failure() : Await())) {
  }
  return Finish();
}

IoWork::State StretchRun::Work() {
  if (!std::exchange(has_begun_, true)) {
    BeginExchange();
  }
  if (is_over()) {
    return State::kOver;
  }
  Failure gone;
  bool has_stepped = Step();
  if (!has_stepped) {
    const ErrorCode own = front_end->poison();
    const ErrorCode death = own != ErrorCode::kOk ? own : DeathAmongRanks();
    // Another look: a word counts that a rank stored before it died.
    has_stepped = death != ErrorCode::kOk && Step();
    gone = has_stepped || is_over() ? Failure() : FailureOf(death);
  }
  if (!GoesOn(std::move(gone)) || is_over()) {
    return State::kOver;
  }
  return has_stepped ? State::kGoesOn : State::kWaits;
}

Failure StretchRun::Finish() {
  if (!gone_.ok()) {
    return gone_;
  }
  (void)FailureOfExchange();  // of the last messages
  if (!failure_.ok()) {
    moved_bytes_ = 0;
  }
  return failure_;
}

void StretchRun::Note(Failure failure) {
  if (failure_.ok()) {
    failure_ = std::move(failure);
  }
}

// ---- The steps ----------------------------------------------------------------------------------

// Finds where the next stretch begins, at the latest. False: there is none.
bool StretchRun::FindNext(int64_t* begin) const {
  const bool is_first = announced_ == first_;
  if (cells_ != nullptr) {
    *begin = cells_->Next(is_first ? 0 : StretchAt(announced_ - 1).begin + plan_.stretch_bytes);
    return *begin != kNowhere;
  }
  *begin = is_first ? plan_.low : kNowhere;
  bool has_failed = false;
  for (size_t i = 0; i < buffer_.ranks().size() && !is_first; ++i) {
    const StretchEntry& entry =
        buffer_.words(static_cast<int>(i)).entries[(announced_ - 1) % kKeptStretches];
    *begin = std::min(*begin, entry.next);
    has_failed = has_failed || entry.error_class != MPI_SUCCESS;
  }
  return *begin != kNowhere && !has_failed;
}

void StretchRun::Announce() {
  int64_t begin = 0;
  if (!FindNext(&begin)) {
    is_ended_ = true;
    end_ = announced_;
    return;
  }
  Stretch& stretch = StretchAt(announced_);
  stretch = {};
  stretch.begin = begin / kStretchAlignment * kStretchAlignment;
  stretch.messages = IsLeader() && IsOwned(stretch) ? cells_->IncomingCount(stretch.begin) : 0;
  stretch.from = position_;
  const int64_t behind = stretch.begin + std::min(plan_.stretch_bytes, kNowhere - stretch.begin);
  stretch.to = FirstPositionAt(*access_.view, behind, position_, end_position_);
  position_ = stretch.to;
  StretchEntry entry;
  if (stretch.from < stretch.to) {
    entry.low = access_.view->PlaceOf(stretch.from);
    entry.high = access_.view->PlaceOf(stretch.to - 1) + 1;
  }
  entry.next = stretch.to < end_position_ ? access_.view->PlaceOf(stretch.to) : kNowhere;
  entry.error_class = failure_.error_class;
  own_.entries[announced_ % kKeptStretches] = entry;
  if (cells_ != nullptr && !access_.is_write && !IsOwned(stretch)) {
    Mark(stretch, announced_);
  }
  shm::StoreRelease(own_.announced, ++announced_);  // Pairs with HaveAll.
}

void StretchRun::Move() {
  const Stretch& stretch = StretchAt(moved_);
  if (access_.is_write) {
    FillStretch(stretch, moved_);
  } else {
    EmptyStretch(stretch, moved_,
                 buffer_.words(AggregatorOf(moved_)).ends[moved_ % kKeptStretches]);
  }
  shm::StoreRelease(own_.moved, ++moved_);  // Pairs with HaveAll.
}

// Returns between which places the bytes of the node's ranks lie in a stretch.
NodeSpan StretchRun::SpanOf(uint64_t number) const {
  NodeSpan span;
  for (size_t i = 0; i < buffer_.ranks().size(); ++i) {
    const StretchEntry& entry = buffer_.words(static_cast<int>(i)).entries[number % kKeptStretches];
    span.low = std::min(span.low, entry.low);
    span.high = std::max(span.high, entry.high);
  }
  return span;
}

void StretchRun::Carry() {
  Stretch& stretch = StretchAt(to_carry_);
  if (access_.is_write) {
    const auto [low, high] = SpanOf(to_carry_);
    if (IsOwned(stretch)) {
      WriteOut(to_carry_, std::min(low, stretch.low), std::max(high, stretch.high));
    } else {
      SendAway(to_carry_, low, high);
    }
  } else {
    if (!IsLeader()) {
      const auto [low, high] = SpanOf(to_carry_);
      stretch.end = ReadIn(to_carry_, low, high);
    } else if (!IsOwned(stretch)) {
      TakeAnswer();
    }
    own_.ends[to_carry_ % kKeptStretches] = stretch.end;
  }
  shm::StoreRelease(own_.carried, to_carry_ + 1);  // Pairs with IsCarried.
  to_carry_ += static_cast<uint64_t>(plan_.aggregators);
}

// ---- Between nodes ------------------------------------------------------------------------------

void StretchRun::SendAway(uint64_t number, int64_t low, int64_t high) {
  const int64_t begin = StretchAt(number).begin;
  if (!cells_->HasBytes(cells_->self(), begin)) {
    return;
  }
  std::byte* const message = exchange_->RoomToSend();
  const int64_t bytes = PackCell({begin, low, high, 0}, plan_.stretch_bytes, plan_.grain_shift,
                                 buffer_.marks(number), buffer_.bytes(number), message);
  exchange_->Send(cells_->OwnerOf(begin), bytes);
}

void StretchRun::Take() {
  const NodeExchange::Arrived& arrived = *exchange_->Front();
  Stretch& stretch = StretchAt(to_take_);
  CellHeader header;
  if (!arrived.failure.ok()) {
    Note(arrived.failure);
  } else if (!UnpackCell(arrived.message, arrived.bytes, stretch.begin, plan_.stretch_bytes,
                         plan_.grain_shift, buffer_.marks(to_take_), buffer_.bytes(to_take_),
                         &header)) {
    Note(OtherPart());
  } else {
    stretch.low = std::min(stretch.low, header.low);
    stretch.high = std::max(stretch.high, header.high);
  }
  --stretch.messages;
  exchange_->Pop();
}

void StretchRun::BeginExchange() {
  ForEachExchange([this](NodeExchange& exchange) { exchange.Begin(*cells_); });
}

// Messages that could not start before: other nodes wait for them, whatever this one waits for.
void StretchRun::StartSends() {
  ForEachExchange([](NodeExchange& exchange) { exchange.StartSends(); });
}

// Returns why nothing is to be had of other nodes any more.
Failure StretchRun::FailureOfExchange() {
  ErrorCode end = ErrorCode::kOk;
  ForEachExchange([&](NodeExchange& exchange) {
    Note(exchange.TakeLoss());
    end = end == ErrorCode::kOk ? exchange.end() : end;
  });
  return FailureOf(end);
}

// ---- Reads between nodes ------------------------------------------------------------------------

void StretchRun::Mark(const Stretch& stretch, uint64_t number) {
  if (stretch.from == stretch.to) {
    return;
  }
  Coverage coverage(buffer_.marks(number), plan_.grain_shift);
  access_.view->ForEachPiece(
      stretch.from, stretch.to - stretch.from,
      [&](int64_t place, int64_t length) { coverage.Mark(place - stretch.begin, length); });
}

void StretchRun::Wish() {
  const auto [low, high] = SpanOf(to_wish_);
  const int64_t begin = StretchAt(to_wish_).begin;
  const int64_t bytes = PackCell({begin, low, high, 0}, plan_.stretch_bytes, plan_.grain_shift,
                                 buffer_.marks(to_wish_), nullptr, exchange_->RoomToSend());
  exchange_->Send(cells_->OwnerOf(begin), bytes);
  ++to_wish_;
}

// Other nodes' wishes are not known yet: what lies between theirs is read with them.
void StretchRun::ReadAhead() {
  Stretch& stretch = StretchAt(to_read_);
  const auto [low, high] = cells_->SpanIn(stretch.begin);
  stretch.end = ReadIn(to_read_, low, high);
  ++to_read_;
}

void StretchRun::Answer() {
  const NodeExchange::Arrived& arrived = *exchange_->Front();
  Stretch& stretch = StretchAt(to_take_);
  std::byte* const answer = answers_->RoomToSend();
  int64_t bytes = 0;
  if (!arrived.failure.ok()) {
    Note(arrived.failure);
  } else {
    bytes = AnswerWish(arrived.message, arrived.bytes, stretch.begin, plan_.stretch_bytes,
                       plan_.grain_shift, stretch.end, buffer_.bytes(to_take_), answer);
    Note(bytes == 0 ? OtherPart() : Failure());
  }
  answers_->Send(arrived.what.node, bytes, bytes == 0 ? failure_ : Failure());
  --stretch.messages;
  exchange_->Pop();
}

void StretchRun::TakeAnswer() {
  const NodeExchange::Arrived& arrived = *answers_->Front();
  Stretch& stretch = StretchAt(to_carry_);
  CellHeader header;
  stretch.end = stretch.begin;
  if (!arrived.failure.ok()) {
    Note(arrived.failure);
  } else if (!UnpackCell(arrived.message, arrived.bytes, stretch.begin, plan_.stretch_bytes,
                         plan_.grain_shift, nullptr, buffer_.bytes(to_carry_), &header)) {
    Note(OtherPart());
  } else {
    stretch.end = header.high;
  }
  answers_->Pop();
}

// ---- Between the program's memory and a stretch -------------------------------------------------

// Moves the bytes of positions [from, to) between the program's memory and the stretch's.
Failure StretchRun::MovePacked(const Stretch& stretch, std::byte* bytes, int64_t from, int64_t to) {
  const View& view = *access_.view;
  const Payload& payload = access_.payload;
  const Datatype& filetype = view.filetype();
  std::byte* const tiles = Origin(bytes, stretch.begin - view.displacement());
  const bool is_direct = payload.is_dense() && !payload.IsByStream();
  if (!is_direct && packed_ == nullptr) {
    packed_.reset(new (std::nothrow) std::byte[kPackedBytes]);
    if (packed_ == nullptr) {
      return {MPI_ERR_NO_MEM, "no memory for a buffer of " + std::to_string(kPackedBytes) +
                                  " bytes between the file and the data"};
    }
  }
  while (from < to) {
    const int64_t offset = from - access_.position;
    const int64_t length = is_direct ? to - from : std::min(to - from, kPackedBytes);
    std::byte* const packed =
        is_direct ? static_cast<std::byte*>(payload.data()) + offset : packed_.get();
    const int64_t count = (from + length - 1) / filetype.size_bytes() + 1;
    if (access_.is_write) {
      if (!is_direct) {
        FERRY_RETURN_FAILURE(payload.CopyOut(packed, offset, length));
      }
      filetype.Unpack(tiles, count, from, length, packed);
    } else {
      filetype.Pack(tiles, count, from, length, packed);
      if (!is_direct) {
        FERRY_RETURN_FAILURE(payload.CopyIn(packed, offset, length));
      }
    }
    from += length;
  }
  return {};
}

void StretchRun::FillStretch(const Stretch& stretch, uint64_t number) {
  if (stretch.from == stretch.to || !failure_.ok()) {
    return;
  }
  Failure moved = MovePacked(stretch, buffer_.bytes(number), stretch.from, stretch.to);
  if (!moved.ok()) {
    Note(std::move(moved));
    return;
  }
  Mark(stretch, number);
  moved_bytes_ += stretch.to - stretch.from;
}

void StretchRun::EmptyStretch(const Stretch& stretch, uint64_t number, int64_t end) {
  if (stretch.from == stretch.to || !failure_.ok() || is_short_) {
    return;
  }
  const int64_t to = FirstPositionAt(*access_.view, end, stretch.from, stretch.to);
  is_short_ = to < stretch.to;
  Failure moved = MovePacked(stretch, buffer_.bytes(number), stretch.from, to);
  if (!moved.ok()) {
    Note(std::move(moved));
    return;
  }
  moved_bytes_ += to - stretch.from;
}

// ---- Between a stretch and the file -------------------------------------------------------------

void StretchRun::WriteOut(uint64_t number, int64_t low, int64_t high) {
  if (low >= high) {
    return;
  }
  const int64_t begin = StretchAt(number).begin;
  const std::byte* const bytes = buffer_.bytes(number);
  Coverage coverage(buffer_.marks(number), plan_.grain_shift);
  coverage.Take(low - begin, high - begin, [&](int64_t at, int64_t length) {
    if (failure_.ok()) {
      int64_t written = 0;
      Note(file_.WriteAt(begin + at, bytes + at, length, &written));
    }
  });
}

// Returns where the bytes end that are there now.
int64_t StretchRun::ReadIn(uint64_t number, int64_t low, int64_t high) {
  int64_t got = 0;
  if (low < high && failure_.ok()) {
    Note(file_.ReadAt(low, buffer_.bytes(number) + (low - StretchAt(number).begin), high - low,
                      &got));
  }
  return low < high ? low + got : high;
}

}  // namespace ferry::mpi
