#include "client/mpi/partitioned/collective.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "client/mpi/base/connection.h"
#include "client/mpi/channel/helper.h"
#include "client/mpi/request/status.h"

namespace ferry::mpi {

using collective::Binding;
using collective::CollectiveRun;
using collective::Problem;
using collective::RunFailure;
using collective::Schedule;

namespace {

// Whether the schedule of one serves the other, of the same collective.
bool HaveOneSchedule(const Problem& a, const Problem& b) {
  return a.block_bytes == b.block_bytes && a.has_blocks == b.has_blocks &&
         a.send_blocks == b.send_blocks && a.receive_blocks == b.receive_blocks;
}

Failure FailInactive() { return {MPI_ERR_REQUEST, "the request is not active: start it first"}; }

}  // namespace

Result<Ref<PartitionedCollective>> PartitionedCollective::Make(
    Comm& comm, const Units& units, bool readies, std::vector<UnitOfCollective> parts) {
  uint32_t first_number = 0;
  FERRY_RETURN_FAILURE(Channel::Of(comm).TakeUnitNumbers(NumbersFor(units), &first_number));
  return MakeRef<PartitionedCollective>(comm, units, readies, std::move(parts), first_number);
}

PartitionedCollective::PartitionedCollective(Comm& comm, const Units& units, bool readies,
                                             std::vector<UnitOfCollective> parts,
                                             uint32_t first_number)
    : comm_(Ref<Comm>::Share(&comm)),
      channel_(Channel::Of(comm)),
      units_(units),
      readies_(readies),
      arrives_(parts.front().operation->delivers),
      first_number_(first_number),
      readiness_(units),
      all_(units.count()) {
  MakeRuns(std::move(parts));
}

void PartitionedCollective::MakeRuns(std::vector<UnitOfCollective> parts) {
  std::shared_ptr<const Schedule> last;
  for (uint32_t i = 0; i < units_.count(); ++i) {
    Unit& unit = all_[i];
    unit.part = std::move(parts[i]);
    CollectiveOperation& operation = *unit.part.operation;
    if (operation.reduces) {
      operation.reducer.Keep();
    }
    if (unit.part.schedule != nullptr) {
      last = unit.part.schedule;
    } else if (i == 0 || !HaveOneSchedule(all_[i - 1].part.operation->problem, operation.problem)) {
      last = std::make_shared<const Schedule>(channel_.MakeSchedule(operation.problem));
    }
    unit.run = channel_.Prepare(last);
    unit.number = Channel::UnitNumber(first_number_, i);
  }
  barrier_ = channel_.Prepare(std::make_shared<const Schedule>(channel_.MakeSchedule({})));
  barrier_number_ = Channel::UnitNumber(first_number_, units_.count());
  under_way_.reserve(units_.count());
  just_ended_.reserve(units_.count());
}

PartitionedCollective::~PartitionedCollective() {
  const auto give_back = [this](std::unique_ptr<CollectiveRun> run) {
    const bool is_done = run->is_done();
    if (is_done) {
      channel_.GiveBack(std::move(run));
    } else {  // poisoned: what never ends still names it
      (void)run.release();
    }
    return is_done;
  };
  bool are_done = true;
  for (Unit& unit : all_) {
    if (!give_back(std::move(unit.run))) {
      are_done = false;
      (void)unit.part.operation.release();
      (void)unit.part.reducer.release();
    }
  }
  if (give_back(std::move(barrier_)) && are_done) {
    channel_.GiveBackUnitNumbers(first_number_, NumbersFor(units_));
  }
}

// ---- Rounds -------------------------------------------------------------------------------------

Failure PartitionedCollective::Start() {
  if (is_active()) {
    return {MPI_ERR_REQUEST, "the persistent request is active; complete it first"};
  }
  {
    const std::lock_guard lock(mutex_);
    failure_ = {};
  }
  named().Forget();
  ended_units_.store(0, std::memory_order_relaxed);
  round_.store(round() + 1, std::memory_order_relaxed);
  is_active_.store(true, std::memory_order_relaxed);
  if (!readies_) {
    for (Unit& unit : all_) {
      Begin(&unit);
    }
    CarryOn();
  }
  return {};
}

Failure PartitionedCollective::Ready(int first, int last) {
  if (!readies_) {
    return {MPI_ERR_REQUEST, "this rank contributes nothing: it has no partitions to ready"};
  }
  if (!is_active()) {
    return FailInactive();
  }
  // From when it has begun a unit, another thread may see all done, and free the request.
  Ref<PartitionedCollective> keeps_this;
  const bool all_new = readiness_.Mark(round(), static_cast<uint32_t>(first),
                                       static_cast<uint32_t>(last), [&](uint32_t unit) {
                                         keeps_this = Ref<PartitionedCollective>::Share(this);
                                         Begin(&all_[unit]);
                                       });
  if (keeps_this) {
    CarryOn();
  }
  if (all_new) [[likely]] {
    return {};
  }
  const std::string which = first == last ? "partition " + std::to_string(first)
                                          : "one of the partitions " + std::to_string(first) +
                                                " to " + std::to_string(last);
  return {MPI_ERR_REQUEST, which + " was readied in this round already"};
}

// All partitions of the unit that this rank contributes are ready.
void PartitionedCollective::Begin(Unit* unit) {
  CollectiveOperation& operation = *unit->part.operation;
  Failure failure = operation.Fetch();
  // What this rank cannot do, the others are told of.
  const RunFailure before =
      failure.ok() ? RunFailure() : RunFailure{.code = ErrorCode::kOutOfMemory};
  Binding binding = operation.MakeBinding();
  if (unit->part.reducer != nullptr) {
    binding.reducer = unit->part.reducer.get();
  }
  channel_.StartUnit(unit->run.get(), binding, unit->number, before);
  const std::lock_guard lock(mutex_);
  Note(std::move(failure));
  under_way_.push_back(unit);
}

// After one or several have begun.
void PartitionedCollective::CarryOn() {
  bool any_ended = false;
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    any_ended = Look();
    is_busy = !under_way_.empty();
  }
  if (is_busy) {
    WatchChannel(*comm_, channel_);
  }
  if (any_ended && Threads::AreAllowed()) {
    front_end->WakeThreads();  // one may wait for just that
  }
}

bool PartitionedCollective::Looking::is_done() const {
  const auto done = std::stable_partition(under_way->begin(), under_way->end(),
                                          [](const Unit* unit) { return !unit->run->is_done(); });
  ended->insert(ended->end(), done, under_way->end());
  under_way->erase(done, under_way->end());
  return !ended->empty();
}

// Does what can be done without waiting. Returns whether a unit has ended. Under the lock.
bool PartitionedCollective::Look() {
  if (under_way_.empty() || !channel_.Advance(Looking{&under_way_, &just_ended_})) {
    return false;
  }
  for (Unit* const unit : just_ended_) {
    RunFailure failure = unit->run->failure();
    channel_.BlameTheDead(&failure);
    Note(unit->part.operation->Finish(failure));
    // Pairs with HasEndedIn.
    unit->rounds.store(round(), std::memory_order_release);
    ended_units_.fetch_add(1, std::memory_order_release);
  }
  just_ended_.clear();
  return true;
}

void PartitionedCollective::Note(Failure failure) {
  if (failure_.ok()) {
    failure_ = std::move(failure);
  }
}

Failure PartitionedCollective::HasArrived(int partition, bool* has_arrived) {
  if (!arrives_) {
    return {MPI_ERR_REQUEST, "this rank gets no result: none of its partitions arrive"};
  }
  const Unit& unit = all_[units_.UnitOf(static_cast<uint32_t>(partition))];
  const auto is_there = [&] {
    return !is_active() || HasEndedIn(unit) || front_end->poison() != ErrorCode::kOk;
  };
  if (!is_there()) {
    (void)front_end->Poll();
    std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread looks
    const bool any_ended = lock.owns_lock() && Look();
    if (any_ended && Threads::AreAllowed()) {
      front_end->WakeThreads();
    }
  }
  *has_arrived = is_there();
  return {};
}

// ---- Completion ---------------------------------------------------------------------------------

bool PartitionedCollective::IsDone() {
  const auto is_done = [this] {
    // Pairs with Look.
    return !is_active() || ended_units_.load(std::memory_order_acquire) == units_.count();
  };
  if (is_done()) {
    return true;
  }
  const std::lock_guard lock(mutex_);
  (void)Look();
  return is_done();
}

void PartitionedCollective::AwaitUntil(bool (*done)(void*), void* argument) {
  const Ref<Comm> keeps_channel = Ref<Comm>::Share(comm_.get());
  const Channel::Waiting waiting(&channel_);
  Request::AwaitUntil(done, argument);
}

Failure PartitionedCollective::End(MPI_Status* status) {
  SetEmptyStatus(status);
  if (!is_active()) {
    return {};
  }
  is_active_.store(false, std::memory_order_relaxed);
  if (ended_units_.load(std::memory_order_acquire) != units_.count()) {
    return FailureOf(front_end->poison());  // the rest never ends
  }
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

Failure PartitionedCollective::Prepare() {
  if (!is_active()) {
    return FailInactive();
  }
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(prepared_round_, round()) != round()) {
      channel_.StartPersistent(barrier_.get(), {}, barrier_number_);
    }
  }
  AwaitUntil(
      [](void* argument) {
        const auto* const self = static_cast<PartitionedCollective*>(argument);
        return self->channel_.Advance(*self->barrier_);
      },
      this);
  if (!channel_.Advance(*barrier_)) {
    return FailureOf(front_end->poison());
  }
  RunFailure failure = barrier_->failure();
  channel_.BlameTheDead(&failure);
  return failure.code == ErrorCode::kOk ? Failure() : DescribeFailedRun(failure);
}

}  // namespace ferry::mpi
