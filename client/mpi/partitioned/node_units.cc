#include "client/mpi/partitioned/node_units.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "client/collective/board/board_run.h"
#include "client/mpi/base/connection.h"
#include "client/mpi/channel/table.h"
#include "shm/atomic.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::kHostMemory;
using collective::Problem;
using collective::RunFailure;

// So that operands stay in the second-level cache, and ranks that look find a share.
constexpr uint64_t kChunkBytes = uint64_t{32} << 10;
// More take too much of the first rank's heap, and too long to be told.
constexpr uint64_t kMostBuffers = uint64_t{1} << 16;
// It looks so often before it asks whether all ranks live.
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
      const bool is_over =
          std::atomic_ref<const uint64_t>(*entry.left).load(std::memory_order_acquire) ==
          static_cast<uint64_t>(entry.ranks);
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

// What the rank contributes, and where its result goes.
std::byte* ContributionIn(const CollectiveOperation& operation) {
  const bool is_in_output =
      operation.problem.in_place || operation.problem.collective == Collective::kBcast;
  return static_cast<std::byte*>((is_in_output ? operation.output : operation.input).base());
}
std::byte* ResultIn(const CollectiveOperation& operation) {
  return static_cast<std::byte*>(operation.output.base());
}

}  // namespace

bool NodeUnits::MayServe(const Comm& comm, Channel& channel, uint32_t units,
                         const CollectiveOperation& first) {
  const Problem& problem = first.problem;
  const bool is_one = problem.collective == Collective::kBcast ||
                      problem.collective == Collective::kReduce ||
                      problem.collective == Collective::kAllreduce;
  if (!is_one || comm.is_inter() || channel.size() < 2 ||
      uint64_t{units} * static_cast<uint64_t>(channel.size()) > kMostBuffers) {
    return false;
  }
  const int node = front_end->NodeOf(front_end->rank());
  for (int rank = 0; rank < channel.size(); ++rank) {
    if (front_end->NodeOf(static_cast<uint32_t>(channel.WorldRank(rank))) != node) {
      return false;
    }
  }
  Problem whole = problem;
  whole.rank = channel.self();
  whole.size = channel.size();
  return CollectiveTable().LeavesToBoard(whole);
}

NodeUnits::NodeUnits(Channel* channel, uint32_t first_number,
                     std::vector<CollectiveOperation*> operations)
    : channel_(*channel), first_number_(first_number), operations_(std::move(operations)) {}

NodeUnits::~NodeUnits() {
  if (meeting_ != nullptr && !meeting_->is_done()) {  // poisoned: what never ends still names it
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
  return first[size_t{unit} * static_cast<size_t>(size()) + static_cast<size_t>(rank)];
}

bool NodeUnits::Contributes(int rank) const {
  return problem(0).collective != Collective::kBcast || rank == problem(0).root;
}

bool NodeUnits::GetsResult(int rank) const {
  switch (problem(0).collective) {
    case Collective::kBcast:
      return rank != problem(0).root;
    case Collective::kReduce:
      return rank == problem(0).root;
    default:
      return true;
  }
}

// ---- Setup --------------------------------------------------------------------------------------

std::vector<NodeUnits::Buffers> NodeUnits::Locate(Card* card) const {
  std::vector<Buffers> all(units());
  card->is_ready = 1;
  const auto locate = [&](const std::byte* data, size_t bytes) {
    const shm::Location where = bytes == 0 ? shm::Location{} : front_end->Locate(data, bytes);
    card->is_ready = where.flags == 0 ? card->is_ready : 0;
    card->has_private = bytes != 0 && where.region == 0 ? 1 : card->has_private;
    return where;
  };
  for (uint32_t unit = 0; unit < units(); ++unit) {
    const CollectiveOperation& operation = *operations_[unit];
    card->is_ready = operation.device == kHostMemory ? card->is_ready : 0;
    const size_t bytes = operation.problem.block_bytes;
    if (Contributes(self())) {
      all[unit].contribution = locate(ContributionIn(operation), bytes);
    }
    if (GetsResult(self())) {
      all[unit].result = locate(ResultIn(operation), bytes);
    }
  }
  return all;
}

// Ranks whose calls do not belong together leave it to messages to find that out.
uint64_t NodeUnits::Mark() const {
  uint64_t mark = units();
  for (uint32_t unit = 0; unit < units(); ++unit) {
    mark = mark * 31 + collective::SignatureOf(problem(unit));
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
        front_end->MapPeer(static_cast<uint32_t>(channel_.WorldRank(0)), cards_->all[0].block,
                           BlockBytes(units(), size()));
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
        !front_end->IsPrivateMemoryReachable(static_cast<uint32_t>(channel_.WorldRank(rank)))) {
      return false;
    }
  }
  return true;
}

bool NodeUnits::OpenPeer(uint32_t unit, int rank) {
  const auto peer = static_cast<uint32_t>(channel_.WorldRank(rank));
  const size_t bytes = problem(unit).block_bytes;
  const Buffers& buffers = BuffersOf(unit, rank);
  const size_t at = (size_t{unit} * static_cast<size_t>(size()) + static_cast<size_t>(rank)) * 2;
  return (!Contributes(rank) || memory_[at].data.Open(peer, buffers.contribution, bytes).ok()) &&
         (!GetsResult(rank) || memory_[at + 1].data.Open(peer, buffers.result, bytes).ok());
}

void NodeUnits::Settle(bool is_used) {
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
  memory_.resize(size_t{units()} * static_cast<size_t>(size()) * 2);
  is_open_.assign(units(), true);
  uint64_t room_bytes = 0;
  for (uint32_t unit = 0; unit < units(); ++unit) {
    room_bytes =
        std::max(room_bytes, std::min<uint64_t>(ChunkBytes(unit), problem(unit).block_bytes));
    for (int rank = 0; rank < size(); ++rank) {
      const size_t at =
          (size_t{unit} * static_cast<size_t>(size()) + static_cast<size_t>(rank)) * 2;
      if (rank == self()) {
        memory_[at].own = ContributionIn(*operations_[unit]);
        memory_[at + 1].own = ResultIn(*operations_[unit]);
      } else if (!OpenPeer(unit, rank)) {
        is_open_[unit] = false;
      }
    }
  }
  for (auto& room : rooms_) {
    room = std::make_unique_for_overwrite<std::byte[]>(room_bytes);
  }
}

bool NodeUnits::Step() {
  if (state_ == State::kUsed || state_ == State::kUnused) {
    return true;
  }
  if (!channel_.Advance(*meeting_)) {
    return false;
  }
  if (!DoAgree()) {
    Settle(false);
  } else if (state_ == State::kReports) {
    Settle(true);
  } else {
    cards_->own.is_ready = Enter() ? 1 : 0;
    state_ = State::kReports;
    Meet(1);
    return Step();
  }
  return true;
}

// ---- Rounds -------------------------------------------------------------------------------------

uint64_t NodeUnits::ChunkBytes(uint32_t unit) const {
  const uint64_t element = std::max<uint64_t>(problem(unit).element_bytes, 1);
  return std::max<uint64_t>(kChunkBytes / element, 1) * element;
}

uint64_t NodeUnits::Chunks(uint32_t unit) const {
  const uint64_t bytes = ChunkBytes(unit);
  return std::max<uint64_t>((problem(unit).block_bytes + bytes - 1) / bytes, 1);
}

void NodeUnits::Begin(uint32_t unit, uint64_t round, bool can) {
  UnitWords& words = UnitAt(unit);
  if (!can || !is_open_[unit]) [[unlikely]] {
    shm::StoreRelease(words.failed, round);
  }
  // Pairs with Advance of all ranks: publishes what this one contributes.
  const uint64_t readied = shm::FetchAdd(words.readied, uint64_t{1}, std::memory_order_acq_rel) + 1;
  if (readied == round * static_cast<uint64_t>(size())) {
    const uint64_t chunks = Chunks(unit);
    Tell(static_cast<int>(std::min<uint64_t>(chunks, static_cast<uint64_t>(size())) - 1));
  }
}

bool NodeUnits::Advance(uint32_t unit, uint64_t round, RunFailure* failure) {
  UnitWords& words = UnitAt(unit);
  const uint64_t chunks = Chunks(unit);
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
    return IsLeftBehind(unit, round, failure);
  }
  if (shm::LoadRelaxed(words.failed) == round && failure->code == ErrorCode::kOk) [[unlikely]] {
    *failure = {.code = ErrorCode::kCancelled};
  }
  return true;
}

// So many of the ranks behind this one may rest; as the last one of all, another thread of this
// one.
void NodeUnits::Tell(int ranks) const {
  for (int i = 1; i <= ranks; ++i) {
    front_end->TellOfChange(static_cast<uint32_t>(channel_.WorldRank((self() + i) % size())));
  }
}

// Whether a rank has died, and none that lives is at work in this one's memory: they see that the
// unit has failed before they begin.
bool NodeUnits::IsLeftBehind(uint32_t unit, uint64_t round, RunFailure* failure) {
  for (int rank = 0; dead_ < 0 && looks_ % kLooksBetweenQuestions == 0 && rank < size(); ++rank) {
    if (front_end->PeerState(static_cast<uint32_t>(channel_.WorldRank(rank))) != ErrorCode::kOk) {
      dead_ = rank;
    }
  }
  ++looks_;
  if (dead_ < 0) [[likely]] {
    return false;
  }
  // Pairs with CarryOut.
  (void)shm::Exchange(UnitAt(unit).failed, round, std::memory_order_seq_cst);
  for (int rank = 0; rank < size(); ++rank) {
    if (shm::Load(RankAt(rank).works, std::memory_order_seq_cst) != 0 &&
        front_end->PeerState(static_cast<uint32_t>(channel_.WorldRank(rank))) == ErrorCode::kOk) {
      return false;
    }
  }
  *failure = {.code = front_end->PeerState(static_cast<uint32_t>(channel_.WorldRank(dead_))),
              .peer = dead_};
  return true;
}

// ---- Chunks -------------------------------------------------------------------------------------

void NodeUnits::CarryOut(uint32_t unit, uint64_t chunk, uint64_t round, RunFailure* failure) {
  uint64_t& failed = UnitAt(unit).failed;
  uint64_t& works = RankAt(self()).works;
  // Pairs with IsLeftBehind: of this thread and one that gives up, one sees the other.
  (void)shm::Exchange(works, uint64_t{1}, std::memory_order_seq_cst);
  if (shm::Load(failed, std::memory_order_seq_cst) != round) {
    const uint64_t at = chunk * ChunkBytes(unit);
    const Part part{unit, at, std::min(ChunkBytes(unit), problem(unit).block_bytes - at)};
    int peer = -1;
    if (const ErrorCode error = part.bytes == 0 ? ErrorCode::kOk : Move(part, &peer);
        error != ErrorCode::kOk) [[unlikely]] {
      *failure = {.code = error, .peer = peer};
      shm::StoreRelease(failed, round);
    }
  }
  shm::StoreRelease(works, 0);
}

// Where it lies: copied into `room`, if this process does not reach it.
ErrorCode NodeUnits::Find(const Part& part, const Memory& memory, std::byte* room,
                          const std::byte** found) {
  const std::byte* const begin = memory.own != nullptr ? memory.own : memory.data.mapped();
  if (begin != nullptr) {
    *found = begin + part.at;
    return ErrorCode::kOk;
  }
  *found = room;
  return memory.data.CopyFrom(part.at, room, part.bytes, false);
}

// Where the result of a reduction had best be made: where it belongs, at one rank, as far as this
// process reaches it. A contribution may lie there, of which the last step is the last use.
std::byte* NodeUnits::TargetOf(const Part& part) const {
  if (GetsResult(self())) {
    return ResultOf(part.unit, self()).own + part.at;
  }
  std::byte* const there = ResultOf(part.unit, problem(part.unit).root).data.mapped();
  return there != nullptr ? there + part.at : rooms_[0].get();
}

// Combines the contributions in the order of ranks. *result: where that lies.
ErrorCode NodeUnits::Combine(const Part& part, const std::byte** result, int* peer) {
  CollectiveOperation& operation = *operations_[part.unit];
  const size_t count = part.bytes / operation.problem.element_bytes;
  for (int rank = 0; rank < size(); ++rank) {
    *peer = rank;
    const std::byte* operand = nullptr;
    if (const ErrorCode error =
            Find(part, ContributionOf(part.unit, rank), rooms_[rank == 0 ? 0 : 1].get(), &operand);
        error != ErrorCode::kOk) {
      return error;
    }
    if (rank == 0) {
      *result = operand;
      continue;
    }
    std::byte* const to = rank + 1 == size() ? TargetOf(part) : rooms_[0].get();
    if (const ErrorCode error = operation.reducer.Reduce(*result, operand, to, count);
        error != ErrorCode::kOk) {
      return error;
    }
    *result = to;
  }
  return ErrorCode::kOk;
}

// *peer: with whose memory it has failed.
ErrorCode NodeUnits::Move(const Part& part, int* peer) {
  const std::byte* result = nullptr;
  const Problem& whole = problem(part.unit);
  *peer = whole.root;
  const ErrorCode error =
      whole.collective == Collective::kBcast
          ? Find(part, ContributionOf(part.unit, whole.root), rooms_[0].get(), &result)
          : Combine(part, &result, peer);
  if (error != ErrorCode::kOk) {
    return error;
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (!GetsResult(rank)) {
      continue;
    }
    const Memory& to = ResultOf(part.unit, rank);
    std::byte* const mapped = to.own != nullptr ? to.own : to.data.mapped();
    if (mapped != nullptr) {
      if (mapped + part.at != result) {
        std::memcpy(mapped + part.at, result, part.bytes);
      }
      continue;
    }
    *peer = rank;
    if (const ErrorCode failed = to.data.CopyTo(part.at, result, part.bytes, false);
        failed != ErrorCode::kOk) {
      return failed;
    }
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::mpi
