#include "mpi/partitioned/node_units.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "coll/board/board_run.h"
#include "mpi/base/connection.h"
#include "mpi/coll/table.h"
#include "shm/atomic.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::kHostMemory;
using collective::Problem;
using collective::RunFailure;

// More buffers would take too much of the first rank's heap, and too long to exchange.
constexpr uint64_t kMostBuffers = uint64_t{1} << 16;
// How many looks it makes before it asks whether all ranks are alive.
constexpr uint32_t kLooksBetweenQuestions = 32;

// Blocks that other ranks still use, of requests that this one has freed.
class Retired {
 public:
  void Add(const Block& block, const uint64_t* left, int ranks) {
    const std::lock_guard lock(mutex_);
    all_.push_back({block, left, ranks});
  }
  void Sweep() {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](Entry& entry) {
      // Pairs with ~NodeUnits.
      const bool is_over = shm::LoadAcquire(*entry.left) == static_cast<uint64_t>(entry.ranks);
      if (is_over) {
        GiveBlock(&entry.block);
      }
      return is_over;
    });
  }

 private:
  struct Entry {
    Block block;
    const uint64_t* left;
    int ranks;
  };
  std::mutex mutex_;
  std::vector<Entry> all_;
};
// Not destroyed at exit: a program may leave without MPI_Finalize.
Retired& retired = *new Retired();

}  // namespace

bool NodeUnits::MayServe(const Comm& comm, Channel& channel, uint32_t units,
                         const CollectiveOperation& first) {
  if (comm.is_inter() || channel.size() < 2 ||
      uint64_t{units} * static_cast<uint64_t>(channel.size()) > kMostBuffers) {
    return false;
  }
  const int node = front_end->NodeOf(front_end->rank());
  for (int rank = 0; rank < channel.size(); ++rank) {
    if (front_end->NodeOf(static_cast<uint32_t>(channel.WorldRank(rank))) != node) {
      return false;
    }
  }
  return CollectiveTable().LeavesToBoard(ProblemOfAll(channel, first.problem));
}

Problem NodeUnits::ProblemOfAll(const Channel& channel, const Problem& problem) {
  Problem of_all;
  of_all.collective = problem.collective;
  of_all.rank = channel.self();
  of_all.size = channel.size();
  of_all.root = problem.root;
  of_all.block_bytes = UnitCopies::BlockBytesOf(problem);
  of_all.element_bytes = problem.element_bytes;
  of_all.commutative = problem.commutative;
  return of_all;
}

NodeUnits::NodeUnits(Channel* channel, uint32_t first_number,
                     std::vector<CollectiveOperation*> operations)
    : channel_(*channel),
      first_number_(first_number),
      operations_(operations),
      copies_(channel->self(), channel->size(), std::move(operations)) {}

NodeUnits::~NodeUnits() {
  if (meeting_ != nullptr && !meeting_->is_done()) {  // poisoned: a run without end names it
    (void)meeting_.release();
    (void)cards_.release();
    return;
  }
  if (meeting_ != nullptr) {
    channel_.GiveBack(std::move(meeting_));
  }
  if (state_ != State::kUsed || front_end == nullptr) {  // else libferry has freed all
    return;
  }
  // Pairs with Sweep, and with itself.
  const bool is_last = shm::FetchAdd(head().left, uint64_t{1}, std::memory_order_acq_rel) + 1 ==
                       static_cast<uint64_t>(size());
  if (block_.data == nullptr) {
    return;
  }
  if (is_last) {
    GiveBlock(&block_);
  } else {
    retired.Add(block_, &head().left, size());
  }
}

// ---- The block ----------------------------------------------------------------------------------

uint64_t NodeUnits::BlockBytes(uint32_t units, int size) {
  const auto ranks = static_cast<uint64_t>(size);
  return sizeof(Head) + ranks * sizeof(RankWords) +
         units * (sizeof(UnitWords) + ranks * sizeof(Buffers));
}

NodeUnits::RankWords& NodeUnits::RankAt(int rank) const {
  return static_cast<RankWords*>(static_cast<void*>(shared_ + sizeof(Head)))[rank];
}

NodeUnits::UnitWords& NodeUnits::UnitAt(uint32_t unit) const {
  return static_cast<UnitWords*>(static_cast<void*>(&RankAt(size())))[unit];
}

NodeUnits::Buffers& NodeUnits::BuffersOf(uint32_t unit, int rank) const {
  auto* const first = static_cast<Buffers*>(static_cast<void*>(&UnitAt(units())));
  return first[copies_.IndexOf(unit, rank)];
}

// ---- Setup --------------------------------------------------------------------------------------

NodeUnits::OwnRow NodeUnits::RowOf(void* base, const std::function<size_t(int)>& offset) const {
  OwnRow row{static_cast<std::byte*>(base) + offset(0), offset(1) - offset(0), true};
  for (int i = 1; i < size(); ++i) {
    row.is_even =
        row.is_even && offset(i) >= offset(i - 1) && offset(i) - offset(i - 1) == row.stride_bytes;
  }
  return row;
}

NodeUnits::OwnRow NodeUnits::ContributionIn(const CollectiveOperation& operation) const {
  const Problem& problem = operation.problem;
  auto* const input = static_cast<std::byte*>(operation.input.base());
  auto* const output = static_cast<std::byte*>(operation.output.base());
  switch (problem.collective) {
    case Collective::kBcast:
      return {.first = output, .is_there = self() == problem.root};
    case Collective::kAllgather:
    case Collective::kGather:
      return {
          .first = problem.in_place ? output + problem.ReceiveBlock(self()).offset_bytes : input,
          .is_there = true};
    case Collective::kScatter:
      if (self() != problem.root) {
        return {};
      }
      [[fallthrough]];
    case Collective::kAlltoall: {
      OwnRow row = RowOf(input, [&](int rank) { return problem.SendBlock(rank).offset_bytes; });
      row.is_even =
          row.is_even && (problem.collective == Collective::kScatter || !problem.in_place);
      return row;
    }
    case Collective::kReduceScatter: {
      OwnRow row = RowOf(input, [&](int rank) { return problem.ReceiveBlock(rank).offset_bytes; });
      row.is_even = row.is_even && !problem.in_place;
      return row;
    }
    default:
      return {.first = problem.in_place ? output : input, .is_there = true};
  }
}

NodeUnits::OwnRow NodeUnits::ResultIn(const CollectiveOperation& operation) const {
  const Problem& problem = operation.problem;
  auto* const output = static_cast<std::byte*>(operation.output.base());
  const bool is_root = self() == problem.root;
  switch (problem.collective) {
    case Collective::kBcast:
      return {.first = output, .is_there = !is_root};
    case Collective::kReduce:
      return {.first = output, .is_there = is_root};
    case Collective::kScatter:
      return {.first = output, .is_there = !is_root || !problem.in_place};
    case Collective::kGather:
      if (!is_root) {
        return {};
      }
      [[fallthrough]];
    case Collective::kAllgather:
    case Collective::kAlltoall:
      return RowOf(output, [&](int rank) { return problem.ReceiveBlock(rank).offset_bytes; });
    default:
      return {.first = output, .is_there = true};
  }
}

std::vector<NodeUnits::Buffers> NodeUnits::Locate(Card* card) const {
  std::vector<Buffers> all(units());
  card->is_ready = 1;
  for (uint32_t unit = 0; unit < units(); ++unit) {
    const auto locate = [&](const OwnRow& own) -> Row {
      const uint64_t bytes =
          own.is_there && own.is_even ? copies_.SpanOf(own.stride_bytes, unit) : 0;
      const shm::Location where =
          bytes == 0 ? shm::Location{} : front_end->one_sided->LocateHere(own.first, bytes);
      card->is_ready = where.flags == 0 && own.is_even ? card->is_ready : 0;
      card->has_private = bytes != 0 && where.region == 0 ? 1 : card->has_private;
      return {where, own.stride_bytes, own.is_there ? uint64_t{1} : 0};
    };
    card->is_ready = operations_[unit]->device == kHostMemory ? card->is_ready : 0;
    all[unit] = {locate(ContributionIn(*operations_[unit])), locate(ResultIn(*operations_[unit]))};
  }
  return all;
}

// Ranks whose calls do not belong together leave it to messages to find that out.
uint64_t NodeUnits::Mark() const {
  uint64_t mark = units();
  for (uint32_t unit = 0; unit < units(); ++unit) {
    mark = mark * 31 + collective::SignatureOf(ProblemOfAll(channel_, problem(unit)));
    mark = mark * 31 + problem(unit).element_bytes;
  }
  return mark;
}

void NodeUnits::BeginSetup() {
  own_buffers_ = Locate(&cards_->own);
  cards_->own.mark = Mark();
  if (self() == 0) {
    retired.Sweep();
    if (Result<Block> block = TakeBlock(BlockBytes(units(), size()), Contents::kWords);
        block.ok()) {
      block_ = block.value();
      cards_->own.block = block_.where;
    } else {
      cards_->own.is_ready = 0;
    }
  }
  Problem problem;
  problem.collective = Collective::kAllgather;
  problem.block_bytes = sizeof(Card);
  meeting_ = channel_.Prepare(
      std::make_shared<const collective::Schedule>(channel_.MakeSchedule(problem)));
  state_ = State::kMeets;
  Meet(0);
}

void NodeUnits::Meet(uint32_t number) {
  cards_->all.assign(static_cast<size_t>(size()), Card());
  collective::Binding binding;
  binding.input = &cards_->own;
  binding.output = cards_->all.data();
  channel_.StartPersistent(meeting_.get(), binding, Channel::UnitNumber(first_number_, number));
}

bool NodeUnits::DoAgree() const {
  return meeting_->failure().code == ErrorCode::kOk &&
         std::all_of(cards_->all.begin(), cards_->all.end(), [this](const Card& card) {
           return card.is_ready != 0 && card.mark == cards_->own.mark;
         });
}

// Finds the block and the others' private memory, and leaves this rank's addresses there.
bool NodeUnits::Enter() {
  if (self() == 0) {
    shared_ = block_.data;
  } else {
    StatusOr<std::shared_ptr<std::byte>> mapped =
        front_end->peers->MapPeer(static_cast<uint32_t>(channel_.WorldRank(0)),
                                  cards_->all[0].block, BlockBytes(units(), size()));
    if (!mapped.ok()) {
      return false;
    }
    mapped_ = *std::move(mapped);
    shared_ = mapped_.get();
  }
  for (uint32_t unit = 0; unit < units(); ++unit) {
    BuffersOf(unit, self()) = own_buffers_[unit];
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != self() && cards_->all[static_cast<size_t>(rank)].has_private != 0 &&
        !front_end->peers->IsPrivateMemoryReachable(
            static_cast<uint32_t>(channel_.WorldRank(rank)))) {
      return false;
    }
  }
  return true;
}

// `is_open`: this rank can do its part.
void NodeUnits::Settle(bool is_used, bool is_open) {
  state_ = is_used ? State::kUsed : State::kUnused;
  own_buffers_ = {};
  if (!is_used) {
    shared_ = nullptr;
    mapped_ = nullptr;
    if (meeting_->failure().code == ErrorCode::kOk) {  // else others may use it yet
      GiveBlock(&block_);
    }
    return;
  }
  copies_.Begin(&BuffersOf(0, 0));
  is_open_.assign(units(), is_open);
  for (uint32_t unit = 0; unit < units(); ++unit) {
    copies_.UseOwn(unit, ContributionIn(*operations_[unit]).first,
                   ResultIn(*operations_[unit]).first);
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != self() &&
          (!is_open ||
           !copies_.OpenPeer(unit, rank, static_cast<uint32_t>(channel_.WorldRank(rank))))) {
        is_open_[unit] = false;
      }
    }
  }
}

bool NodeUnits::Step() {
  if (state_ == State::kUsed || state_ == State::kUnused) {
    return true;
  }
  if (!channel_.Advance(*meeting_)) {
    if (!HasDied() || how_ == ErrorCode::kNotFound) {
      return false;
    }
    channel_.GiveUp(meeting_.get());
    if (!channel_.Advance(*meeting_)) {
      return false;
    }
  }
  const bool agree = DoAgree();
  if (state_ == State::kMeets) {
    cards_->own.is_ready = agree && Enter() ? 1 : 0;
    state_ = State::kReports;
    Meet(1);
    return Step();
  }
  // Where the last meeting has failed, other ranks may use the block: they see there that it has.
  const bool may_be_used = cards_->own.is_ready != 0 && meeting_->failure().code != ErrorCode::kOk;
  Settle(agree || may_be_used, agree);
  return true;
}

// ---- Rounds -------------------------------------------------------------------------------------

void NodeUnits::Begin(uint32_t unit, uint64_t round, bool can) {
  UnitWords& words = UnitAt(unit);
  if (!can || !is_open_[unit]) [[unlikely]] {
    Fail(unit, round);
  }
  // Pairs with Advance of all ranks: publishes this rank's contribution.
  const uint64_t readied = shm::FetchAdd(words.readied, uint64_t{1}, std::memory_order_acq_rel) + 1;
  if (readied == round * static_cast<uint64_t>(size())) {
    const uint64_t chunks = copies_.Chunks(unit);
    Tell(static_cast<int>(std::min<uint64_t>(chunks, static_cast<uint64_t>(size())) - 1));
  }
}

bool NodeUnits::Advance(uint32_t unit, uint64_t round, RunFailure* failure) {
  UnitWords& words = UnitAt(unit);
  const uint64_t chunks = copies_.Chunks(unit);
  const uint64_t end = round * chunks;
  // Pairs with Begin.
  if (shm::LoadAcquire(words.readied) >= round * static_cast<uint64_t>(size())) {
    for (uint64_t next = shm::LoadRelaxed(words.claimed); next < end;) {
      if (shm::CompareExchange(words.claimed, next, next + 1, std::memory_order_acq_rel)) {
        CarryOut(unit, next - (end - chunks), round, failure);
        // Pairs with the look below: publishes the results.
        if (shm::FetchAdd(words.done, uint64_t{1}, std::memory_order_acq_rel) + 1 == end) {
          Tell(size());
        }
        next = shm::LoadRelaxed(words.claimed);
      }
    }
  }
  if (shm::LoadAcquire(words.done) < end) {
    if (!HasDied()) [[likely]] {
      return false;
    }
    // A rank that has gone on before it died has seen the end of the round.
    if (shm::LoadAcquire(words.done) < end) {
      return IsLeftBehind(unit, round, failure);
    }
  }
  // Pairs with Fail.
  if (shm::LoadAcquire(words.failed) >= round && failure->code == ErrorCode::kOk) [[unlikely]] {
    *failure = WhyOthersFailed();
  }
  return true;
}

// Wakes the next `ranks` ranks behind this one, which may rest; the last of all is this rank, whose
// other threads may rest.
void NodeUnits::Tell(int ranks) const {
  for (int i = 1; i <= ranks; ++i) {
    front_end->one_sided->TellOfChange(
        static_cast<uint32_t>(channel_.WorldRank((self() + i) % size())));
  }
}

// Marks the unit as failed in this round. A rank that is behind may see the mark of a later round:
// it fails, too, rather than take unmoved data for a result.
void NodeUnits::Fail(uint32_t unit, uint64_t round) const {
  uint64_t& failed = UnitAt(unit).failed;
  for (uint64_t seen = shm::Load(failed, std::memory_order_seq_cst);
       seen < round && !shm::CompareExchange(failed, seen, round, std::memory_order_seq_cst);) {
  }
}

// Notes a rank's death for ranks that do not know of it yet. Call it before Fail.
void NodeUnits::NoteDeath(int rank, ErrorCode how) const {
  shm::StoreRelease(head().dead,
                    static_cast<uint64_t>(rank + 1) << 32 | static_cast<uint32_t>(how));
}

RunFailure NodeUnits::WhyOthersFailed() const {
  const uint64_t dead = shm::LoadAcquire(head().dead);
  return dead == 0 ? RunFailure{.code = ErrorCode::kCancelled}
                   : RunFailure{.code = static_cast<ErrorCode>(static_cast<uint32_t>(dead)),
                                .peer = static_cast<int>(dead >> 32) - 1};
}

// Returns true if a rank is known to have died.
bool NodeUnits::HasDied() {
  if (dead_ < 0 && looks_++ % kLooksBetweenQuestions == 0) {
    dead_ = channel_.FindEnded(&how_);
  }
  return dead_ >= 0;
}

// Called after a rank has died. Returns true if no living rank is at work in this one's memory:
// they see that the unit has failed before they begin.
bool NodeUnits::IsLeftBehind(uint32_t unit, uint64_t round, RunFailure* failure) const {
  NoteDeath(dead_, how_);
  // Pairs with CarryOut.
  Fail(unit, round);
  for (int rank = 0; rank < size(); ++rank) {
    if (shm::Load(RankAt(rank).works, std::memory_order_seq_cst) != 0 &&
        front_end->peers->PeerState(static_cast<uint32_t>(channel_.WorldRank(rank))) ==
            ErrorCode::kOk) {
      return false;
    }
  }
  *failure = {.code = how_, .peer = dead_};
  return true;
}

void NodeUnits::CarryOut(uint32_t unit, uint64_t chunk, uint64_t round, RunFailure* failure) {
  uint64_t& works = RankAt(self()).works;
  // Pairs with IsLeftBehind: of this thread and one that gives up, one sees the other.
  (void)shm::Exchange(works, uint64_t{1}, std::memory_order_seq_cst);
  if (shm::Load(UnitAt(unit).failed, std::memory_order_seq_cst) < round) {
    int peer = -1;
    if (const ErrorCode error = copies_.Move(unit, chunk, &peer); error != ErrorCode::kOk)
        [[unlikely]] {
      *failure = {.code = error, .peer = peer};
      if (error == ErrorCode::kPeerDied) {  // its memory has gone before the news has come
        NoteDeath(peer, error);
      }
      Fail(unit, round);
    }
  }
  shm::StoreRelease(works, 0);
}

}  // namespace ferry::mpi
