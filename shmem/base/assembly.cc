#include "shmem/base/assembly.h"

#include <string>
#include <utility>

#include "coll/board/host_copies.h"
#include "shm/word_copy.h"
#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"

namespace ferry::shmem {
namespace {

using collective::Collective;
using collective::NodeAddress;
using collective::RunFailure;

// Regions of addresses in symmetric memory: first the static segments, then the heaps by their
// numbers. libferry's own numbers are remote smaller.
constexpr uint32_t kHeapRegions = UINT32_MAX - kMostSpaces;
constexpr uint32_t kStaticRegions = kHeapRegions - kMostStatics;

// Few cells, so that a team costs little: whatever is longer than a few of them is copied straight
// between the PEs.
constexpr uint32_t kCells = 8;
constexpr uint32_t kCellsOfMany = 2;
constexpr int kMany = 64;

// From so many bytes on PEs copy straight between their buffers: measured with two of them. It
// takes no system call, so less than between MPI's ranks.
constexpr size_t kDirectMinBytes = 2048;

collective::BoardShape ShapeOf(int members) {
  return {members, members > kMany ? kCellsOfMany : kCells};
}

collective::BoardLimits LimitsOf(int members) {
  collective::BoardLimits limits;
  // A single PE has no other to copy to.
  limits.direct_min_bytes.fill(members == 1 ? SIZE_MAX : kDirectMinBytes);
  return limits;
}

collective::BoardLayout* BoardAt(int pe, uint64_t offset) {
  return reinterpret_cast<collective::BoardLayout*>(job.region->base_of(pe) + offset);
}

// The place in member memory that NodeAddress names, or null if it is not symmetric.
std::byte* SymmetricAt(int pe, const NodeAddress& address) {
  if (address.region < kStaticRegions) {
    return nullptr;
  }
  const Segment& segment =
      address.region < kHeapRegions ? job.statics[address.region - kStaticRegions]
      : address.region == kHeapRegions
          ? job.heap
          : *job.spaces[address.region - kHeapRegions - 1].load(std::memory_order_acquire);
  return segment.base + address.address + segment.shifts[static_cast<size_t>(pe)];
}

// A message of another size than this PE expects. One that has failed sends nothing in place of its
// data (coll/runner.h), and that may be all that is wrong. One that brought more than
// this PE expects was cut.
[[noreturn]] void ExplainSize(const char* call, const std::string& who, const RunFailure& failure) {
  if (failure.received_bytes == 0) {
    GiveUp(call, ErrorCode::kCancelled,
           who +
               " has given this collective up, has passed no bytes, or is in another one of this "
               "team");
  }
  Fail(call, who + " has sent " +
                 (failure.received_bytes == failure.expected_bytes ? "more than " : "") +
                 std::to_string(failure.received_bytes) + " bytes where this one expects " +
                 std::to_string(failure.expected_bytes) +
                 ": it has passed another size, or is in another collective of this team");
}

// One collective at a time. Two threads that begin at the very same time are not noticed: that
// would cost every collective an atomic operation.
class OneAtATime {
 public:
  OneAtATime(const char* call, std::atomic<bool>* is_busy) : is_busy_(*is_busy) {
    if (is_busy_.load(std::memory_order_relaxed)) [[unlikely]] {
      Fail(call,
           "another collective of this team is under way, on a queue or in another thread: enqueue "
           "those of one team on one queue, and wait for them before the program makes the next");
    }
    is_busy_.store(true, std::memory_order_relaxed);
  }
  ~OneAtATime() { is_busy_.store(false, std::memory_order_relaxed); }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  std::atomic<bool>& is_busy_;
};

// Returns true if CPUs have to work on memory that they do not reach. Messages copy such memory
// themselves.
bool NeedsHostCopies(const collective::Binding& binding, bool are_all_local) {
  return (are_all_local || binding.reducer != nullptr) &&
         (MayBeByStream(binding.input) || MayBeByStream(binding.output)) &&
         (IsByStream(binding.input) || IsByStream(binding.output));
}

}  // namespace

// ---- The link -----------------------------------------------------------------------------------

AssemblyLink::AssemblyLink(std::vector<int> pes) : FrontLink(job.front_end, std::move(pes)) {}

ErrorCode AssemblyLink::StateOf(int member) { return shmem::StateOf(PeOf(member)); }

NodeAddress AssemblyLink::Locate(const void* pointer, size_t size_bytes) {
  const Segment* const segment = job.FindSegment(pointer, size_bytes);
  if (segment == nullptr || segment->is_by_stream) {
    return FrontLink::Locate(pointer, size_bytes);
  }
  const uint32_t region =
      segment->is_heap() ? kHeapRegions + static_cast<uint32_t>(segment->heap)
                         : kStaticRegions + static_cast<uint32_t>(segment - job.statics.data());
  return {region, 0, static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - segment->base)};
}

ErrorCode AssemblyLink::Read(int member, const NodeAddress& from, void* to, size_t size_bytes) {
  const int pe = PeOf(member);
  if (const std::byte* const symmetric = SymmetricAt(pe, from); symmetric != nullptr) {
    shm::CopyWords(to, symmetric, size_bytes);
    return ErrorCode::kOk;
  }
  return FrontLink::Read(member, from, to, size_bytes);
}

ErrorCode AssemblyLink::Write(int member, const NodeAddress& to, const void* from,
                              size_t size_bytes) {
  const int pe = PeOf(member);
  if (std::byte* const symmetric = SymmetricAt(pe, to); symmetric != nullptr) {
    shm::CopyWords(symmetric, from, size_bytes);
    return ErrorCode::kOk;
  }
  return FrontLink::Write(member, to, from, size_bytes);
}

void* AssemblyLink::TakeStaging(size_t size_bytes) { return shmem::TakeStaging(size_bytes, true); }

void AssemblyLink::GiveStaging(void* memory) { shmem::GiveStaging(memory); }

// ---- The assembly -------------------------------------------------------------------------------

size_t Assembly::BoardBytes(int members) { return ShapeOf(members).SizeBytes(); }

Assembly::Assembly(const std::vector<int>& pes, int self, const MeetingPlace& where)
    : link_(pes), where_(where), limits_(LimitsOf(static_cast<int>(pes.size()))) {
  sync_.collective = Collective::kBarrier;
  sync_.rank = self;
  sync_.size = static_cast<int>(pes.size());
  if (where.board_offset != 0) {
    board_.emplace(BoardAt(pes.front(), where.board_offset), ShapeOf(sync_.size), &link_, self,
                   job.front_end->IsCrowded());
  } else {
    messages_.emplace(where.context, pes, self);
  }
}

void Assembly::Run(const char* call, collective::Problem* problem,
                   const collective::Binding& binding) {
  const OneAtATime one_at_a_time(call, &is_busy_);
  problem->rank = self();
  problem->size = size();
  Note note(call, *this, *problem, runs_++);
  const client::CallScope scope(job.front_end->calls, &note);
  job.front_end->calls->ShowIfLong(&note, note.Bytes());
  const bool has_data = problem->collective != Collective::kBarrier;
  job.front_end->calls->Count(client::CallOf(call), has_data ? note.Bytes() : 0);
  if (NeedsHostCopies(binding, has_board())) [[unlikely]] {
    RunOnCopies(call, *problem, binding);
  } else {
    RunWhereItIs(call, *problem, binding);
  }
}

uint64_t Assembly::Note::Bytes() const {
  return problem.has_blocks ? collective::BytesOf(problem.receive_blocks) : problem.block_bytes;
}

void Assembly::Note::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const Note&>(note);
  const Assembly& assembly = call.assembly;
  description->name = client::CallOf(call.function);
  description->flags |= shm::kCallHasGroup;
  description->group = assembly.GroupNumber();
  if (collective::HasRoot(call.problem.collective)) {
    description->flags |= shm::kCallPeerIsRoot;
    description->peer_in_group = call.problem.root;
    description->peer = assembly.PeOf(call.problem.root);
  }
  if (call.problem.collective != Collective::kBarrier) {
    description->flags |= shm::kCallHasBytes;
    description->bytes = call.Bytes();
  }
}

// All PEs of the team return one number. OpenSHMEM's contexts have the upper bit set; a board
// counts by its place in the memory of the first PE.
uint32_t Assembly::GroupNumber() const {
  constexpr uint32_t kOfTeams = uint32_t{1} << 31;
  constexpr uint64_t kBoardAlignment = 128;
  const uint64_t board = where_.board_offset / kBoardAlignment * static_cast<uint64_t>(job.size) +
                         static_cast<uint64_t>(PeOf(0));
  return kOfTeams | (where_.board_offset != 0 ? static_cast<uint32_t>(board) : where_.context);
}

void Assembly::RunOnCopies(const char* call, const collective::Problem& problem,
                           const collective::Binding& binding) {
  collective::HostCopies copies(&link_, problem, binding);
  if (copies.error() != ErrorCode::kOk) {
    TellOfFailure(problem, copies.error());
    GiveUpCopy(call, copies.error());
  }
  RunWhereItIs(call, problem, copies.binding());
  if (const ErrorCode error = copies.Deliver(); error != ErrorCode::kOk) {
    GiveUpCopy(call, error);  // alone: the others have what they need
  }
}

void Assembly::GiveUpCopy(const char* call, ErrorCode error) const {
  const Status& failure = link_.copy_failure();
  GiveUp(call, error,
         failure.code() == error
             ? "the device could not copy: " + failure.ToString()
             : "no host memory for copies of what CPUs do not reach: use fewer bytes at a time");
}

void Assembly::RunWhereItIs(const char* call, const collective::Problem& problem,
                            const collective::Binding& binding) {
  RunFailure failure;
  collective::BoardResult result = collective::BoardResult::kDone;
  if (board_.has_value()) [[likely]] {
    result = collective::RunOnBoard(&*board_, ++number_, problem, binding, limits_, &failure);
  } else {
    failure = messages_->Run(problem, binding);
  }
  if (failure.code != ErrorCode::kOk) [[unlikely]] {
    Explain(call, failure);
  }
  if (result != collective::BoardResult::kDone) [[unlikely]] {
    Fail(call, "this needs more room than the board of a team has: use fewer bytes at a time");
  }
}

void Assembly::Renounce(const char* call, collective::Problem* problem, ErrorCode why) {
  const OneAtATime one_at_a_time(call, &is_busy_);
  problem->rank = self();
  problem->size = size();
  TellOfFailure(*problem, why);
}

void Assembly::TellOfFailure(const collective::Problem& problem, ErrorCode why) {
  if (board_.has_value()) {
    board_->Renounce(++number_, collective::SignatureOf(problem));
  } else {
    (void)messages_->Run(problem, {}, {.code = why});
  }
}

void Assembly::Sync(const char* call) { Run(call, &sync_, {}); }

collective::Problem Assembly::GatherOf(size_t size_bytes) {
  collective::Problem problem;
  problem.collective = Collective::kAllgather;
  problem.block_bytes = size_bytes;
  return problem;
}

void Assembly::Gather(const char* call, const void* own, size_t size_bytes, void* all) {
  collective::Problem problem = GatherOf(size_bytes);
  Run(call, &problem, {.input = own, .output = all});
}

// A PE that has died or, if none has, one that has left; -1: then what others say is for no better
// reason.
int Assembly::FindEnded() const {
  int gone = -1;
  for (int member = 0; member < size(); ++member) {
    const int pe = PeOf(member);
    const ErrorCode state = pe == job.self ? ErrorCode::kOk : shmem::StateOf(pe);
    if (state != ErrorCode::kOk && state != ErrorCode::kNotFound) {
      return pe;
    }
    gone = state == ErrorCode::kNotFound ? pe : gone;
  }
  return gone;
}

// Gives up if a PE has left or died: then another one has given up because of that.
void Assembly::GiveUpForEnded(const char* call) const {
  int gone = -1;
  AwaitNews([&] { return (gone = FindEnded()) >= 0; });
  if (gone >= 0) {
    const ErrorCode state = shmem::StateOf(gone);
    GiveUp(call, state, StateText(gone, state));
  }
}

void Assembly::Explain(const char* call, const RunFailure& failure) const {
  if (failure.peer < 0) {
    GiveUp(call, failure.code,
           failure.text != nullptr ? *failure.text
                                   : job.front_end->peers->Explain(failure.code).ToString());
  }
  const int pe = PeOf(failure.peer);
  const std::string who = "PE " + std::to_string(pe);
  if (failure.mismatch == RunFailure::Mismatch::kSize || failure.code == ErrorCode::kCancelled) {
    GiveUpForEnded(call);
  }
  switch (failure.mismatch) {
    case RunFailure::Mismatch::kCollective:
      Fail(call, who + " is in another collective of this team (" +
                     collective::CollectiveName(static_cast<Collective>(failure.other - 1)) +
                     "): all of its PEs must call them in one order");
    case RunFailure::Mismatch::kRoot:
      Fail(call, who + " has passed the root " + std::to_string(failure.other) +
                     ": all PEs of the team must pass the same");
    case RunFailure::Mismatch::kSize:
      if (messages_.has_value()) {
        ExplainSize(call, who, failure);
      }
      Fail(call, who + " has passed another size (" + std::to_string(failure.received_bytes) +
                     " bytes, here " + std::to_string(failure.expected_bytes) +
                     "): all PEs of the team must pass the same");
    case RunFailure::Mismatch::kNone:
      break;
  }
  if (failure.code == ErrorCode::kCancelled) {
    GiveUp(call, failure.code, who + " has given this collective up");
  }
  GiveUp(call, failure.code, StateText(pe, failure.code, failure.text.get()));
}

}  // namespace ferry::shmem
