#include "mpi/partitioned/prequest.h"

#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/partitioned/prequest_builder.h"
#include "shm/atomic.h"
#include "shm/layout/device_ring_layout.h"

namespace ferry::mpi {

Result<std::shared_ptr<Prequest>> Prequest::Make(const PrequestPlan& plan,
                                                 const PrequestWishes& wishes, int device) {
  std::shared_ptr<Prequest> made(new Prequest(plan, device));
  FERRY_RETURN_FAILURE(PrequestBuilder(made->plan_, device, &made->parts_).Build(wishes));
  const uint32_t counted = plan.is_send && plan.units.per_unit != 1 ? plan.units.count() : 0;
  made->flushed_.resize(counted);
  made->looked_.resize(made->parts_.memory.is_by_stream ? counted : 0);
  return made;
}

Prequest::~Prequest() {
  if (front_end == nullptr) {  // libferry has freed all
    return;
  }
  GiveDeviceBlock(&parts_.memory);
  if (Failure ignored; parts_.state.data == nullptr || AreAsked(round_, &ignored)) {
    GiveBlock(&parts_.state);
  }  // else ferryd may write there yet: the round has failed
}

Failure Prequest::Begin(uint64_t round) {
  const bool host_readied = plan_.is_send && host_readied_.load(std::memory_order_relaxed);
  if (plan_.arrived != nullptr) {
    shm::StoreRelaxed(state().error, 0);
  }
  if (host_readied) {
    // Kernels have not counted partitions that the host has readied.
    const std::vector<uint64_t> all = CountersAt(plan_, round);
    FERRY_RETURN_FAILURE(
        StoreOnDevice(parts_.memory, counters(), all.data(), all.size() * sizeof(uint64_t)));
  }
  FERRY_RETURN_FAILURE(StoreOnDevice(parts_.memory, &address()->round, &round, sizeof(round)));
  round_ = round;
  if (host_readied) {  // only now: a start that has failed is tried again
    host_readied_.store(false, std::memory_order_relaxed);
  }
  is_active_.store(true, std::memory_order_release);
  return {};
}

void Prequest::EndWaits(ErrorCode error) {
  // Pairs with ferry_partitioned_look.
  shm::StoreRelease(state().error, static_cast<uint64_t>(error));
}

// A kernel that sees too late that the thread's wait is over leaves its unit to the library's
// thread, which looks after all sends to other nodes.
void Prequest::SetAttended(uint64_t round) {
  if (parts_.leaves_to_waiting) {
    shm::StoreRelaxed(state().attended, round);  // ferry_partitioned_way
  }
}

// ---- Mistakes of kernels ------------------------------------------------------------------------

bool Prequest::HasNoted() const { return plan_.is_send && shm::LoadRelaxed(state().noted) != 0; }

Failure Prequest::TakeNoted() {
  // Pairs with ferry_partitioned_note.
  const uint64_t noted = shm::Exchange(state().noted, 0, std::memory_order_acquire);
  const auto code = static_cast<int>(noted >> 32);
  const auto partition = static_cast<int32_t>(noted & UINT32_MAX);
  const std::string name = "partition " + std::to_string(partition);
  const char* const what = plan_.is_collective ? "collective" : "send";
  switch (code) {
    case 0:
      return {};
    case MPIX_DEVICE_ERR_ARGUMENT:
      return {MPI_ERR_REQUEST, "a kernel has readied " + name + " of a " + what + " of " +
                                   std::to_string(plan_.partitions)};
    case MPIX_DEVICE_ERR_REQUEST:
      return {MPI_ERR_REQUEST, "a kernel has readied " + name +
                                   " more than once in a round, or before the " + what +
                                   " was started"};
    default: {
      Failure failure = FailureOf(static_cast<ErrorCode>(code));
      failure.text = "a kernel could not ask ferryd to move the unit of " + name + ": " +
                     std::move(failure.text);
      return failure;
    }
  }
}

// ---- Units that stay incomplete -----------------------------------------------------------------

// False: the counters could not be copied; the next look tries again.
bool Prequest::LookAtCounters() {
  return !parts_.memory.is_by_stream ||
         front_end->memory->Copy(looked_.data(), counters(), looked_.size() * sizeof(uint64_t))
             .ok();
}

// Reads a unit's counter. A claim of an earlier look comes before that.
uint64_t Prequest::CounterOf(uint32_t unit) const {
  return parts_.memory.is_by_stream ? looked_[unit]
                                    : shm::Load(counters()[unit], std::memory_order_seq_cst);
}

// Returns true if the kernel leaves the unit, which the host has claimed, to the host. `counter`
// was read after the claim.
bool Prequest::IsOwn(uint32_t index, uint64_t round, uint64_t counter, Flushed* known) const {
  known->is_own = known->is_own ||
                  BitsIn(counter, round, plan_.units.FullOf(index)) != plan_.units.FullOf(index) ||
                  shm::LoadAcquire(unit(index).left) == round;  // Pairs with the kernel's store.
  return known->is_own;
}

// Notes a program's error: a kernel has readied partitions that the host had readied.
void Prequest::NoteAgain(uint32_t unit, uint64_t bits) {
  const uint64_t partition =
      uint64_t{unit} * plan_.units.per_unit + static_cast<uint32_t>(std::countr_zero(bits));
  shm::StoreRelaxed(state().noted, uint64_t{MPIX_DEVICE_ERR_REQUEST} << 32 | partition);
}

void Prequest::Flush(uint64_t round, uint32_t first) {
  if (plan_.units.per_unit == 1 || !LookAtCounters()) {  // a unit is ready, or not
    return;
  }
  for (uint32_t unit = first; unit < plan_.units.count(); ++unit) {
    FlushUnit(unit, round);
  }
}

void Prequest::FlushUnit(uint32_t index, uint64_t round) {
  const uint64_t full = plan_.units.FullOf(index);
  const uint64_t counter = CounterOf(index);
  Flushed& known = flushed_[index];
  if (known.round != round) {
    known = {.round = round, .counter = counter};
    return;
  }
  ferry_partitioned_unit& its = unit(index);
  if (shm::LoadRelaxed(its.claimed) != round) {
    const uint64_t bits = BitsIn(counter, round, full);
    const bool has_changed = std::exchange(known.counter, counter) != counter;
    if (!has_changed && bits != 0 && bits != full) {  // else a kernel is about it, or none was
      // Pairs with ferry_partitioned_is_claimed, together with the next look at the counter.
      (void)shm::Exchange(its.claimed, round, std::memory_order_seq_cst);
    }
    return;
  }
  if (!IsOwn(index, round, counter, &known)) {
    return;
  }
  if (const uint64_t bits = BitsIn(counter, round, full) & ~known.marked; bits != 0) {
    known.marked |= bits;
    if (const uint64_t again = plan_.words.Mark(index, bits, round).again; again != 0) {
      NoteAgain(index, again);
    }
  }
}

// ---- What ferryd was asked for ------------------------------------------------------------------

// Returns ferryd's answer for a unit that kernels have asked for; nullopt: it is under way.
std::optional<ErrorCode> Prequest::AnswerOf(const ferry_partitioned_unit& its) {
  // Pairs with the daemon's answer.
  const uint64_t done = shm::LoadAcquire(its.completion.done);
  const uint64_t number = shm::LoadRelaxed(its.number);
  if (((done >> shm::kRingStatusBits) ^ number) << shm::kRingStatusBits != 0) {
    return std::nullopt;
  }
  return static_cast<ErrorCode>(done & ((1 << shm::kRingStatusBits) - 1));
}

bool Prequest::IsAsked(const ferry_partitioned_unit& its, uint64_t round) {
  return shm::LoadAcquire(its.asked) == round;  // Pairs with ferry_partitioned_ask.
}

bool Prequest::AreAsked(uint64_t round, Failure* failure) {
  if (parts_.way != FERRY_PARTITIONED_BY_DAEMON) {
    return true;
  }
  if (asked_round_ != round) {
    asked_round_ = round;
    asked_units_ = 0;
  }
  for (; asked_units_ < plan_.units.count(); ++asked_units_) {
    const ferry_partitioned_unit& its = unit(asked_units_);
    if (!IsAsked(its, round)) {
      continue;  // the host has moved it
    }
    const std::optional<ErrorCode> answer = AnswerOf(its);
    if (!answer) {
      return false;
    }
    if (*answer != ErrorCode::kOk && failure->ok()) {
      *failure = FailureOf(*answer);
    }
  }
  return true;
}

Failure Prequest::FindRefused(uint64_t round) const {
  const uint32_t count = parts_.way == FERRY_PARTITIONED_BY_DAEMON ? plan_.units.count() : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ferry_partitioned_unit& its = unit(i);
    if (!IsAsked(its, round)) {
      continue;
    }
    if (const std::optional<ErrorCode> answer = AnswerOf(its);
        answer.value_or(ErrorCode::kOk) != ErrorCode::kOk) {
      return FailureOf(*answer);
    }
  }
  return {};
}

}  // namespace ferry::mpi
