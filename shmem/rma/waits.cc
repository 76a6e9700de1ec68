// Waiting for memory to change (OpenSHMEM 1.5, section 9.10). See operations.h.
#include <string>

#include "shm/atomic.h"
#include "shm/vain_looks.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/operations.h"
#include "shmem/base/patience.h"
#include "shmem/rma/reach.h"

namespace ferry::shmem {
namespace {

template <typename T>
bool Holds(T found, int comparison, T value) {
  switch (comparison) {
    case kEq:
      return found == value;
    case kNe:
      return found != value;
    case kGt:
      return found > value;
    case kGe:
      return found >= value;
    case kLt:
      return found < value;
    default:
      return found <= value;
  }
}

void CheckComparison(const char* call, int comparison) {
  if (comparison < kEq || comparison > kLe) {
    Fail(call, "the comparison " + std::to_string(comparison) + " is none of SHMEM_CMP_*");
  }
}

template <typename T>
bool HoldsAt(const WaitCall<T>& wait, size_t i) {
  // Pairs with whatever release brought the value about: what came before it is visible, too.
  return Holds(shm::LoadAcquire(wait.variables[i]), wait.comparison,
               wait.values[wait.values_are_many ? i : 0]);
}

template <typename T>
bool IsMasked(const WaitCall<T>& wait, size_t i) {
  return wait.status != nullptr && wait.status[i] != 0;
}

template <typename T>
void Check(const char* call, const WaitCall<T>& wait) {
  CheckRunning(call);
  CheckComparison(call, wait.comparison);
  CheckWords(call, "the variables' address", wait.variables, wait.count * sizeof(T));
}

// Where this thread's next look for any one of `count` begins. Each variable that holds must be
// found by one of many calls (OpenSHMEM 1.5, section 9.10), so it is another place each time. The
// places are multiples of the golden ratio, whose fractions lie evenly, and so do those of every
// second or third of them: a program may watch several arrays in turn.
size_t NextStart(size_t count) {
  thread_local uint64_t turn = 0;
  const uint64_t start = (turn >> 32) * count >> 32;
  turn += 0x9e3779b97f4a7c15;
  return start;
}

// Looks once for one that holds, from `start` on and then before it. SIZE_MAX: none does.
// `is_empty`: everything is masked, so there is nothing to wait for.
template <typename T>
size_t LookForAny(const WaitCall<T>& wait, size_t start, bool* is_empty) {
  *is_empty = true;
  size_t i = start;
  for (size_t looks = 0; looks < wait.count; ++looks) {
    if (!IsMasked(wait, i)) {
      *is_empty = false;
      if (HoldsAt(wait, i)) {
        return i;
      }
    }
    i = i + 1 == wait.count ? 0 : i + 1;
  }
  return SIZE_MAX;
}

// Looks once at all, and counts those that hold. `is_empty`: as above.
template <typename T>
size_t LookAtAll(WaitFor what, const WaitCall<T>& wait, bool* is_empty) {
  size_t held = 0;
  *is_empty = true;
  for (size_t i = 0; i < wait.count; ++i) {
    if (IsMasked(wait, i)) {
      continue;
    }
    *is_empty = false;
    if (HoldsAt(wait, i)) {
      if (wait.indices != nullptr && what == WaitFor::kSome) {
        wait.indices[held] = i;
      }
      held++;
    } else if (what == WaitFor::kAll) {
      return 0;
    }
  }
  return what == WaitFor::kAll ? 1 : held;
}

// Waits for each in turn: once it has held, it need not hold any more when the last one does.
template <typename T>
void AwaitEach(const char* call, const WaitCall<T>& wait) {
  for (size_t i = 0; i < wait.count; ++i) {
    if (!IsMasked(wait, i)) {
      Await(
          call, [&] { return HoldsAt(wait, i); }, &wait.variables[i]);
    }
  }
}

}  // namespace

template <typename T>
size_t Test(const char* call, WaitFor what, const WaitCall<T>& wait) {
  Check(call, wait);
  const size_t nothing = what == WaitFor::kAny ? SIZE_MAX : 0;
  bool is_empty = false;
  const size_t found = what == WaitFor::kAny ? LookForAny(wait, NextStart(wait.count), &is_empty)
                                             : LookAtAll(what, wait, &is_empty);
  if (found == nothing) {
    shm::NoteVainLook();
  }
  return found;
}

template <typename T>
size_t WaitUntil(const char* call, WaitFor what, const WaitCall<T>& wait) {
  Check(call, wait);
  if (what == WaitFor::kAll) {
    AwaitEach(call, wait);
    return 1;
  }
  const bool is_any = what == WaitFor::kAny;
  const size_t nothing = is_any ? SIZE_MAX : 0;
  const size_t start = is_any ? NextStart(wait.count) : 0;
  size_t found = nothing;
  const auto look = [&] {
    bool is_empty = false;
    found = is_any ? LookForAny(wait, start, &is_empty) : LookAtAll(what, wait, &is_empty);
    return is_empty || found != nothing;
  };
  Await(call, look, wait.count == 1 ? wait.variables : nullptr);
  return found;
}

uint64_t SignalWaitUntil(const char* call, uint64_t* signal_address, int comparison,
                         uint64_t value) {
  CheckRunning(call);
  CheckComparison(call, comparison);
  CheckWords(call, "the signal's address", signal_address, sizeof(*signal_address));
  uint64_t found = 0;
  const auto look = [&] {
    found = shm::LoadAcquire(*signal_address);  // Pairs with PutSignal.
    return Holds(found, comparison, value);
  };
  Await(call, look, signal_address);
  return found;
}

#define FERRY_WAITS_OF(T)                                            \
  template size_t Test<T>(const char*, WaitFor, const WaitCall<T>&); \
  template size_t WaitUntil<T>(const char*, WaitFor, const WaitCall<T>&)
FERRY_WAITS_OF(int16_t);
FERRY_WAITS_OF(uint16_t);
FERRY_WAITS_OF(int32_t);
FERRY_WAITS_OF(uint32_t);
FERRY_WAITS_OF(int64_t);
FERRY_WAITS_OF(uint64_t);
#undef FERRY_WAITS_OF

}  // namespace ferry::shmem
