#include "mpi/partitioned/collective.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "client/api/word_wait.h"
#include "common/clock.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {

using collective::Binding;
using collective::CollectiveRun;
using collective::Problem;
using collective::RunFailure;
using collective::Schedule;

namespace {

// How often the host looks for partitions that kernels have readied beside it.
constexpr uint64_t kFlushEveryNs = 50'000;

// Returns true if one schedule serves both problems, which are of one collective.
bool HaveOneSchedule(const Problem& a, const Problem& b) {
  return a.block_bytes == b.block_bytes && a.has_blocks == b.has_blocks &&
         a.send_blocks == b.send_blocks && a.receive_blocks == b.receive_blocks;
}

Failure FailInactive() { return {MPI_ERR_REQUEST, "the request is not active: start it first"}; }

}  // namespace

Result<Ref<PartitionedCollective>> PartitionedCollective::Make(
    Comm& comm, const Units& units, bool readies, std::vector<UnitOfCollective> parts) {
  Channel& channel = Channel::Of(comm);
  uint32_t first_number = 0;
  FERRY_RETURN_FAILURE(channel.TakeUnitNumbers(NumbersFor(units), &first_number));
  Result<Block> block = TakeBlock(WordBytes(units), Contents::kWords);
  if (!block.ok()) {
    channel.GiveBackUnitNumbers(first_number, NumbersFor(units));
    return block.failure();
  }
  return MakeRef<PartitionedCollective>(comm, units, readies, std::move(parts), first_number,
                                        block.value());
}

PartitionedCollective::PartitionedCollective(Comm& comm, const Units& units, bool readies,
                                             std::vector<UnitOfCollective> parts,
                                             uint32_t first_number, const Block& block)
    : comm_(Ref<Comm>::Share(&comm)),
      channel_(Channel::Of(comm)),
      units_(units),
      readies_(readies),
      arrives_(parts.front().operation->delivers),
      holds_results_(parts.front().operation->holds_result),
      first_number_(first_number),
      block_(block),
      words_(block.data, units),
      arrived_(
          static_cast<uint64_t*>(static_cast<void*>(block.data + SenderBlockBytes(units.count()))),
          units),
      all_(units.count()) {
  std::vector<CollectiveOperation*> operations;
  for (uint32_t i = 0; i < units_.count(); ++i) {
    all_[i].part = std::move(parts[i]);
    operations.push_back(all_[i].part.operation.get());
    if (operations.back()->reduces) {
      operations.back()->reducer.Keep();
    }
  }
  if (all_[0].part.schedule == nullptr && all_[0].part.is_even &&
      NodeUnits::MayServe(comm, channel_, units_.count(), *operations[0])) {
    node_ = std::make_unique<NodeUnits>(&channel_, first_number_ + units_.count() + 1,
                                        std::move(operations));
    has_node_ = true;
  } else {
    MakeRuns();
  }
  barrier_ = channel_.Prepare(std::make_shared<const Schedule>(channel_.MakeSchedule({})));
  barrier_number_ = Channel::UnitNumber(first_number_, units_.count());
  under_way_.reserve(units_.count());
  just_ended_.reserve(units_.count());
}

void PartitionedCollective::MakeRuns() {
  std::shared_ptr<const Schedule> last;
  for (uint32_t i = 0; i < units_.count(); ++i) {
    Unit& unit = all_[i];
    const CollectiveOperation& operation = *unit.part.operation;
    if (unit.part.schedule != nullptr) {
      last = unit.part.schedule;
    } else if (i == 0 || !HaveOneSchedule(all_[i - 1].part.operation->problem, operation.problem)) {
      last = std::make_shared<const Schedule>(channel_.MakeSchedule(operation.problem));
    }
    unit.run = channel_.Prepare(last);
  }
}

// The library's thread may name the request a little longer than the program.
void PartitionedCollective::Unpublish(MPI_Request handle) {
  if (requests.Remove(handle) == this) {
    GiveBackNumbers();
    Release();
  }
}

// Unless there are messages of these numbers: the rank is poisoned.
void PartitionedCollective::GiveBackNumbers() {
  const std::lock_guard lock(mutex_);
  const bool are_done = barrier_->is_done() && !is_setting_up_ &&
                        std::all_of(all_.begin(), all_.end(), [](const Unit& unit) {
                          return unit.run == nullptr || unit.run->is_done();
                        });
  if (std::exchange(has_numbers_, false) && are_done) {
    channel_.GiveBackUnitNumbers(first_number_, NumbersFor(units_));
  }
}

PartitionedCollective::~PartitionedCollective() {
  GiveBackNumbers();
  const auto give_back = [this](std::unique_ptr<CollectiveRun> run) {
    if (run != nullptr && !run->is_done()) {  // poisoned: a run that never ends still names it
      (void)run.release();
      return false;
    }
    channel_.GiveBack(std::move(run));
    return true;
  };
  (void)give_back(std::move(barrier_));
  // Poisoned, ranks of the node may use its memory yet.
  const bool is_left = node_ != nullptr && round() != 0 && !HasEnded();
  for (Unit& unit : all_) {
    if (!give_back(std::move(unit.run)) || is_left) {
      (void)unit.part.operation.release();
      (void)unit.part.reducer.release();
    }
  }
  if (front_end != nullptr) {  // else libferry has freed all
    GiveBlock(&block_);
  }
}

// ---- Rounds -------------------------------------------------------------------------------------

Failure PartitionedCollective::Start() {
  if (is_active()) {
    return {MPI_ERR_REQUEST, "the persistent request is active; complete it first"};
  }
  const std::shared_ptr<Prequest> kernels = is_watched() ? prequest() : nullptr;
  if (kernels != nullptr) {
    if (kernels->HasNoted()) {
      return kernels->TakeNoted();
    }
    FERRY_RETURN_FAILURE(kernels->Begin(round() + 1));
  }
  named().Forget();
  bool begins_setup = false;
  {
    const std::lock_guard lock(mutex_);
    begins_setup = node_ != nullptr && node_->is_new();
    if (begins_setup) {
      is_setting_up_ = true;
      node_->BeginSetup();
    }
    BeginRoundLocked();
  }
  for (uint32_t unit = 0; !readies_ && unit < units_.count(); ++unit) {
    Failure failure = all_[unit].part.operation->Fetch();
    const std::lock_guard lock(mutex_);
    AddLocked(unit, std::move(failure));
  }
  if (!readies_ || begins_setup) {
    CarryOn();
  }
  if (begins_setup || kernels != nullptr) {
    LookAfterKernels();
  }
  return {};
}

void PartitionedCollective::BeginRoundLocked() {
  if (has_failed_.exchange(false, std::memory_order_relaxed)) {
    for (uint32_t unit = 0; unit < units_.count(); ++unit) {
      arrived_.Fill(unit, round());  // as if all had gone well
    }
  }
  failure_ = {};
  begun_units_ = 0;
  held_.clear();
  ended_units_.store(0, std::memory_order_relaxed);
  round_.store(round() + 1, std::memory_order_relaxed);
  is_active_.store(true, std::memory_order_relaxed);
}

Failure PartitionedCollective::Ready(int first, int last) {
  if (!readies_) {
    return {MPI_ERR_REQUEST, "this rank contributes nothing: it has no partitions to ready"};
  }
  if (!is_active()) {
    return FailInactive();
  }
  // Once this call has begun a unit, another thread may see all units done, and free the request.
  // Where there are kernels, another thread may begin the unit.
  Ref<PartitionedCollective> keeps_this;
  if (prequest_ != nullptr) [[unlikely]] {
    keeps_this = Ref<PartitionedCollective>::Share(this);
    prequest_->NoteReadiedByHost();
  }
  const auto from = static_cast<uint32_t>(first);
  const auto to = static_cast<uint32_t>(last);
  const uint32_t last_unit = units_.UnitOf(to);
  const uint64_t this_round = round();
  bool all_new = true;
  bool any_full = false;
  for (uint32_t unit = units_.UnitOf(from); unit <= last_unit; ++unit) {
    const SenderWords::Marked marked = words_.Mark(unit, units_.BitsOf(unit, from, to), this_round);
    all_new = all_new && marked.again == 0;
    if (marked.is_full) {
      any_full = true;
      keeps_this = keeps_this ? keeps_this : Ref<PartitionedCollective>::Share(this);
      if (words_.Take(unit, this_round, true) != 0) {
        Failure failure = all_[unit].part.operation->Fetch();
        const std::lock_guard lock(mutex_);
        AddLocked(unit, std::move(failure));
      }
    }
  }
  if (any_full) {
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

// Adds a unit of which this rank has readied all its partitions. `failure`: the failure of fetching
// them, with which the unit is under way all the same.
void PartitionedCollective::AddLocked(uint32_t index, Failure failure) {
  Unit& unit = all_[index];
  unit.is_whole = failure.ok();
  unit.outcome = {};
  Note(std::move(failure), ErrorCode::kOutOfMemory);
  under_way_.push_back(&unit);
  if (!is_setting_up_) {
    StartLocked(index);
  }
}

void PartitionedCollective::StartLocked(uint32_t index) {
  Unit& unit = all_[index];
  if (node_ != nullptr) {
    node_->Begin(index, round(), unit.is_whole);
    return;
  }
  Binding binding = unit.part.operation->MakeBinding();
  if (unit.part.reducer != nullptr) {
    binding.reducer = unit.part.reducer.get();
  }
  // A failure of this rank is sent to the others. Once this rank has given up a round, late
  // messages of that round may come, and must not be taken for those of a later one.
  RunFailure before = given_up_;
  if (!unit.is_whole) {
    before = {.code = ErrorCode::kOutOfMemory};
  }
  channel_.StartUnit(unit.run.get(), binding, Channel::UnitNumber(first_number_, index), before);
}

// Called once it is known how units go.
void PartitionedCollective::SettleLocked() {
  if (!node_->is_used()) {
    node_ = nullptr;
    has_node_ = false;
    MakeRuns();
  }
  is_setting_up_ = false;
  has_set_up_ = true;
  for (const Unit* const unit : under_way_) {
    StartLocked(static_cast<uint32_t>(unit - all_.data()));
  }
}

// Called after one or several units have begun.
void PartitionedCollective::CarryOn() {
  bool any_ended = false;
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    any_ended = LookLocked();
    is_busy = node_ == nullptr && !under_way_.empty();
  }
  if (is_busy) {
    WatchChannel(*comm_, channel_);
  }
  if (any_ended && Threads::AreAllowed()) {
    front_end->peers->WakeThreads();  // one may wait for just that
  }
}

bool PartitionedCollective::Looking::is_done() const {
  const auto done = std::stable_partition(under_way->begin(), under_way->end(),
                                          [](const Unit* unit) { return !unit->run->is_done(); });
  ended->insert(ended->end(), done, under_way->end());
  under_way->erase(done, under_way->end());
  return !ended->empty();
}

// Begins the units that kernels have marked.
void PartitionedCollective::BeginMarkedLocked() {
  const uint64_t this_round = round();
  while (begun_units_ < units_.count() && words_.IsTaken(begun_units_, this_round)) {
    ++begun_units_;
  }
  if (begun_units_ == units_.count()) {
    return;
  }
  if (const uint64_t now_ns = prequest_->is_readied_by_host() ? MonotonicNs() : 0;
      now_ns > next_flush_ns_) {
    next_flush_ns_ = now_ns + kFlushEveryNs;
    prequest_->Flush(this_round, begun_units_);
  }
  for (uint32_t unit = begun_units_; unit < units_.count(); ++unit) {
    if (words_.Take(unit, this_round, true) != 0) {
      AddLocked(unit, all_[unit].part.operation->Fetch());
    }
  }
}

// Looks at the units under way. Returns true if some have ended, which go to just_ended_.
bool PartitionedCollective::EndLocked() {
  if (under_way_.empty() || is_setting_up_) {
    return false;
  }
  if (node_ == nullptr) {
    if (channel_.Advance(Looking{&under_way_, &just_ended_})) {
      return true;
    }
    // Ranks that have set up their memory give up without a message. One that has only left has
    // done its part.
    ErrorCode how = ErrorCode::kOk;
    const int dead = has_set_up_ ? channel_.FindEnded(&how) : -1;
    if (dead < 0 || how == ErrorCode::kNotFound) {
      return false;
    }
    given_up_ = {.code = how, .peer = dead};
    for (Unit* const unit : under_way_) {
      channel_.GiveUp(unit->run.get());
    }
    return channel_.Advance(Looking{&under_way_, &just_ended_});
  }
  std::erase_if(under_way_, [this](Unit* unit) {
    const bool is_over =
        node_->Advance(static_cast<uint32_t>(unit - all_.data()), round(), &unit->outcome);
    if (is_over) {
      just_ended_.push_back(unit);
    }
    return is_over;
  });
  return !just_ended_.empty();
}

// Keeps those that have ended well, unless they are the last: results lie where others read. Units
// with results to hold go by messages.
void PartitionedCollective::HoldLocked() {
  const auto well = std::stable_partition(
      just_ended_.begin(), just_ended_.end(),
      [](const Unit* unit) { return unit->run->failure().code != ErrorCode::kOk; });
  held_.insert(held_.end(), well, just_ended_.end());
  just_ended_.erase(well, just_ended_.end());
  if (ended_units_ + just_ended_.size() + held_.size() == units_.count()) {
    just_ended_.insert(just_ended_.end(), held_.begin(), held_.end());
    held_.clear();
  }
}

// Carries units on without waiting. Returns true if a unit has ended.
bool PartitionedCollective::LookLocked() {
  if (is_setting_up_ && node_->Step()) {
    SettleLocked();
  }
  if (prequest_ != nullptr && readies_ && is_active()) {
    BeginMarkedLocked();
  }
  if (!EndLocked()) {
    return false;
  }
  if (holds_results_) {
    HoldLocked();
  }
  for (Unit* const unit : just_ended_) {
    RunFailure failure = node_ != nullptr ? unit->outcome : unit->run->failure();
    channel_.BlameEndedRank(&failure);
    if (Failure result = unit->part.operation->Finish(failure); result.ok()) {
      arrived_.Fill(static_cast<uint32_t>(unit - all_.data()), round());
    } else {
      Note(std::move(result),
           failure.code != ErrorCode::kOk ? failure.code : ErrorCode::kOutOfMemory);
    }
    ended_units_.fetch_add(1, std::memory_order_release);  // Pairs with HasEnded.
  }
  just_ended_.clear();
  return true;
}

// The first failure of the round counts. `error`: for waits of kernels.
void PartitionedCollective::Note(Failure failure, ErrorCode error) {
  if (failure.ok() || has_failed_.load(std::memory_order_relaxed)) {
    return;
  }
  failure_ = std::move(failure);
  has_failed_.store(true, std::memory_order_release);
  if (prequest_ != nullptr) {
    prequest_->EndWaits(error);
  }
}

Failure PartitionedCollective::HasArrived(int partition, bool* has_arrived) {
  if (!arrives_) {
    return {MPI_ERR_REQUEST, "this rank gets no result: none of its partitions arrive"};
  }
  const uint32_t unit = units_.UnitOf(static_cast<uint32_t>(partition));
  const auto is_there = [&] {
    return !is_active() || arrived_.IsFull(unit, round()) ||
           has_failed_.load(std::memory_order_acquire) || front_end->poison() != ErrorCode::kOk;
  };
  if (!is_there()) {
    NoteLook();
    (void)front_end->peers->Poll();
    std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread looks
    const bool any_ended = lock.owns_lock() && LookLocked();
    if (any_ended && Threads::AreAllowed()) {
      front_end->peers->WakeThreads();
    }
  }
  *has_arrived = is_there();
  return {};
}

// ---- Completion ---------------------------------------------------------------------------------

bool PartitionedCollective::IsDone() {
  const auto is_done = [this] { return !is_active() || HasEnded(); };
  if (is_done()) {
    return true;
  }
  NoteLook();
  const std::lock_guard lock(mutex_);
  (void)LookLocked();
  return is_done() || front_end->poison() != ErrorCode::kOk;  // then the rest never ends
}

void PartitionedCollective::AwaitUntil(bool (*done)(void*), void* argument) {
  const Ref<Comm> keeps_channel = Ref<Comm>::Share(comm_.get());
  const Channel::Waiting waiting(&channel_);
  if (!is_watched()) {
    Request::AwaitUntil(done, argument);
    return;
  }
  using From = client::WordWait::From;
  client::WordWait wait(*front_end, has_node_ ? From::kNode : From::kNetwork);
  while (!done(argument) && front_end->poison() == ErrorCode::kOk) {
    if (!wait.Pause()) {
      wait.Rest();
    }
  }
}

Failure PartitionedCollective::End(MPI_Status* status) {
  SetEmptyStatus(status);
  if (!is_active()) {
    return {};
  }
  if (prequest_ != nullptr && prequest_->HasNoted()) {
    return prequest_->TakeNoted();  // and stays active
  }
  is_active_.store(false, std::memory_order_relaxed);
  if (prequest_ != nullptr) {
    prequest_->End();
  }
  if (!HasEnded()) {
    return FailureOf(front_end->poison());  // the rest never ends
  }
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

// ---- MPIX_Pbuf_prepare --------------------------------------------------------------------------

// The barrier of a call whose stream has gone serves for the next call: so ranks stay in step.
bool PartitionedCollective::IsPreparedLocked() {
  if (std::exchange(prepared_round_, round()) != round() &&
      !std::exchange(is_barrier_left_, false)) {
    channel_.StartPersistent(barrier_.get(), {}, barrier_number_);
  }
  return channel_.Advance(*barrier_);
}

Failure PartitionedCollective::PrepareUnless(const std::atomic<bool>* is_cancelled) {
  if (!is_active()) {
    return FailInactive();
  }
  const auto is_prepared = [](void* argument) {
    auto* const self = static_cast<PartitionedCollective*>(argument);
    const std::lock_guard lock(self->mutex_);
    return self->IsPreparedLocked();
  };
  CancellableWait wait{is_prepared, this, is_cancelled};
  AwaitUntil(CancellableWait::IsOver, &wait);
  if (!is_prepared(this)) {
    const std::lock_guard lock(mutex_);
    is_barrier_left_ = true;
    return FailureOf(front_end->poison());  // ok: the wait was cancelled
  }
  RunFailure failure;
  {
    const std::lock_guard lock(mutex_);
    is_barrier_left_ = false;  // it is this call's
    failure = barrier_->failure();
  }
  channel_.BlameEndedRank(&failure);
  return failure.code == ErrorCode::kOk ? Failure() : DescribeFailedRun(failure);
}

// ---- Kernels ------------------------------------------------------------------------------------

Failure PartitionedCollective::Describe(PrequestPlan* plan) {
  plan->is_send = readies_;
  plan->is_collective = true;
  plan->units = units_;
  plan->partitions = units_.partitions;
  plan->round = round();
  plan->words = words_;
  plan->arrived = arrives_ ? &arrived_.of(0) : nullptr;
  return {};
}

std::shared_ptr<Prequest> PartitionedCollective::prequest() {
  const std::lock_guard lock(mutex_);
  if (prequest_ != nullptr && prequest_->is_freed()) {
    prequest_ = nullptr;
    has_prequest_.store(false, std::memory_order_relaxed);
  }
  return prequest_;
}

void PartitionedCollective::set_prequest(std::shared_ptr<Prequest> prequest) {
  const std::lock_guard lock(mutex_);
  prequest_ = std::move(prequest);
  has_prequest_.store(true, std::memory_order_relaxed);
}

void PartitionedCollective::LookAfterKernels() {
  Watch(Ref<Object>::Share(this), this);
  Watch(Ref<Object>::Share(this), &messages_);
}

const void* PartitionedCollective::memory() const {
  const CollectiveOperation& operation = *all_[0].part.operation;
  return operation.input.base() != nullptr ? operation.input.base() : operation.output.base();
}

bool PartitionedCollective::IsBusy() {
  const bool is_poisoned = front_end->poison() != ErrorCode::kOk;
  return (is_setting_up_ && !is_poisoned) ||
         (has_prequest_ && is_active() && !HasEnded() && !(is_poisoned && has_failed_));
}

bool PartitionedCollective::WaitsForMessages() const {
  return front_end->poison() == ErrorCode::kOk &&
         (is_setting_up_ || (!has_node_ && is_active() && !HasEnded()));
}

Watched::Progress PartitionedCollective::AdvanceAll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return {.is_busy = true};  // another thread looks
  }
  const bool any_ended = LookLocked();
  if (const ErrorCode poison = front_end->poison();
      poison != ErrorCode::kOk && is_active() && !HasEnded()) {
    Note(FailureOf(poison), poison);
  }
  return {.is_busy = is_setting_up_ || !under_way_.empty(), .has_ended = any_ended};
}

}  // namespace ferry::mpi
