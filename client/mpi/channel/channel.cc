#include "client/mpi/channel/channel.h"

#include <algorithm>
#include <utility>

#include "client/mpi/channel/table.h"
#include "client/mpi/collective/algorithm.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// Idle schedules that a communicator keeps, and the largest scratch memory that one may hold.
constexpr size_t kKeptRuns = 32;
constexpr size_t kKeptScratchBytes = size_t{1} << 20;

// Numbers of persistent operations lie in the upper half, where others do not come.
constexpr uint32_t kNumbers = 1U << 17;

uint64_t Mix(uint64_t sum, uint64_t word) {
  sum ^= word;
  sum *= 0x9e3779b97f4a7c15;
  return sum ^ (sum >> 29);
}

uint64_t KeyOf(const Problem& problem) {
  uint64_t key = static_cast<uint64_t>(problem.collective) | uint64_t{problem.in_place} << 8 |
                 uint64_t{problem.has_blocks} << 9 | uint64_t{problem.commutative} << 10 |
                 static_cast<uint64_t>(problem.root) << 32;
  key = Mix(Mix(Mix(0, key), problem.block_bytes), problem.element_bytes);
  for (const std::vector<Block>* blocks : {&problem.send_blocks, &problem.receive_blocks}) {
    for (const Block& block : *blocks) {
      key = Mix(Mix(key, block.offset_bytes), block.size_bytes);
    }
  }
  return key;
}

// What the communicator does not settle. Neighbours do: a communicator has one topology.
bool IsSame(const Problem& a, const Problem& b) {
  return a.collective == b.collective && a.root == b.root && a.in_place == b.in_place &&
         a.block_bytes == b.block_bytes && a.has_blocks == b.has_blocks &&
         a.element_bytes == b.element_bytes && a.commutative == b.commutative &&
         a.send_blocks == b.send_blocks && a.receive_blocks == b.receive_blocks;
}

}  // namespace

Channel& Channel::Of(Comm& comm) {
  Comm::Extension* extension = comm.extension();
  if (extension == nullptr) [[unlikely]] {
    extension = comm.Extend(std::make_unique<Channel>(comm));
  }
  return static_cast<Channel&>(*extension);
}

Channel::Channel(const Comm& comm) : messenger_(comm), runner_(&messenger_) {
  for (int peer = 0; peer < messenger_.size(); ++peer) {
    node_of_.push_back(front_end->NodeOf(static_cast<uint32_t>(messenger_.WorldRank(peer))));
  }
}

Channel::~Channel() { kept_.clear(); }

std::unique_lock<std::mutex> Channel::Lock() {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (Process::AreThreadsAllowed()) {
    lock.lock();
  }
  return lock;
}

// ---- Schedules ----------------------------------------------------------------------------------

std::unique_ptr<CollectiveRun> Channel::TakeLocked(const Problem& problem) {
  const uint64_t key = KeyOf(problem);
  for (size_t i = kept_.size(); i-- > 0;) {
    if (kept_[i].key == key && IsSame(kept_[i].problem, problem)) {
      std::unique_ptr<CollectiveRun> run = std::move(kept_[i].run);
      kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(i));
      return run;
    }
  }
  Problem whole = problem;
  whole.rank = self();
  whole.size = size();
  whole.node_of = node_of_;
  const Choice choice = CollectiveTable().Choose(whole);
  whole.segment_bytes = choice.segment_bytes;
  return runner_.Prepare(std::make_shared<const Schedule>(MakeSchedule(*choice.algorithm, whole)));
}

void Channel::GiveBackLocked(const Problem& problem, std::unique_ptr<CollectiveRun> run) {
  if (run->schedule().scratch_bytes > kKeptScratchBytes) {
    return;
  }
  if (kept_.size() == kKeptRuns) {
    kept_.erase(kept_.begin());
  }
  kept_.push_back({KeyOf(problem), problem, std::move(run)});
}

std::unique_ptr<CollectiveRun> Channel::Take(const Problem& problem) {
  const auto lock = Lock();
  return TakeLocked(problem);
}

void Channel::GiveBack(const Problem& problem, std::unique_ptr<CollectiveRun> run) {
  const auto lock = Lock();
  GiveBackLocked(problem, std::move(run));
}

void Channel::Drop(std::unique_ptr<CollectiveRun> run) {
  const auto lock = Lock();
  run.reset();
}

// ---- Running ------------------------------------------------------------------------------------

void Channel::Start(CollectiveRun* run, const Binding& binding) {
  const auto lock = Lock();
  runner_.Start(run, binding, next_number_++ % kNumbers);
  AdvanceLocked();
}

uint32_t Channel::NextPersistentNumber() {
  const auto lock = Lock();
  return kNumbers + next_persistent_++ % kNumbers;
}

void Channel::StartPersistent(CollectiveRun* run, const Binding& binding, uint32_t number) {
  const auto lock = Lock();
  runner_.Start(run, binding, number);
  AdvanceLocked();
}

// Until nothing more happens: what a step has begun may be over at once, and nobody would say so.
void Channel::AdvanceLocked() {
  while (runner_.Advance()) {
  }
}

bool Channel::Advance(const CollectiveRun& run) {
  const auto lock = Lock();
  if (!run.is_done()) {
    AdvanceLocked();
  }
  return run.is_done();
}

Channel::Progress Channel::AdvanceAll() {
  const auto lock = Lock();
  const uint64_t ended = runner_.ended_runs();
  AdvanceLocked();
  return {.is_busy = runner_.is_busy(), .has_ended = runner_.ended_runs() != ended};
}

RunFailure Channel::Run(const Problem& problem, const Binding& binding) {
  struct Waiting {
    Channel* channel;
    std::unique_ptr<CollectiveRun> run;
  } waiting{this, nullptr};
  {
    const auto lock = Lock();
    waiting.run = TakeLocked(problem);
    runner_.Start(waiting.run.get(), binding, next_number_++ % kNumbers);
  }
  front_end->WaitFor(
      [](void* argument) {
        const auto* self = static_cast<Waiting*>(argument);
        return self->channel->Advance(*self->run);
      },
      &waiting);
  const auto lock = Lock();
  // Poisoned, the link gives up: so do all messages, at once.
  AdvanceLocked();
  const RunFailure failure = waiting.run->failure();
  if (waiting.run->is_done()) {
    GiveBackLocked(problem, std::move(waiting.run));
  } else {
    (void)waiting.run.release();  // messages that never end still name it
  }
  return failure;
}

}  // namespace ferry::mpi
