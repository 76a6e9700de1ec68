// Waiting for memory to change (OpenSHMEM 1.5, section 9.10). See operations.h.
#include <string>

#include "client/shmem/fail.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/patience.h"
#include "client/shmem/reach.h"
#include "shm/atomic.h"

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

// Looks once at all. `is_empty`: everything is masked, so there is nothing to wait for.
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
      if (what == WaitFor::kAny) {
        return i;
      }
      if (wait.indices != nullptr && what == WaitFor::kSome) {
        wait.indices[held] = i;
      }
      held++;
    } else if (what == WaitFor::kAll) {
      return 0;
    }
  }
  return what == WaitFor::kAny ? SIZE_MAX : what == WaitFor::kAll ? 1 : held;
}

// What LookAtAll returns when it found nothing.
constexpr size_t Nothing(WaitFor what) { return what == WaitFor::kAny ? SIZE_MAX : 0; }

// Waits for each in turn: once it has held, it need not hold any more when the last one does.
template <typename T>
void AwaitEach(const char* call, const WaitCall<T>& wait) {
  for (size_t i = 0; i < wait.count; ++i) {
    if (!IsMasked(wait, i)) {
      Await(call, [&] { return HoldsAt(wait, i); });
    }
  }
}

}  // namespace

template <typename T>
size_t Test(const char* call, WaitFor what, const WaitCall<T>& wait) {
  Check(call, wait);
  bool is_empty = false;
  return LookAtAll(what, wait, &is_empty);
}

template <typename T>
size_t WaitUntil(const char* call, WaitFor what, const WaitCall<T>& wait) {
  Check(call, wait);
  if (what == WaitFor::kAll) {
    AwaitEach(call, wait);
    return 1;
  }
  size_t found = 0;
  Await(call, [&] {
    bool is_empty = false;
    found = LookAtAll(what, wait, &is_empty);
    return is_empty || found != Nothing(what);
  });
  return found;
}

uint64_t SignalWaitUntil(const char* call, uint64_t* signal_address, int comparison,
                         uint64_t value) {
  CheckRunning(call);
  CheckComparison(call, comparison);
  CheckWords(call, "the signal's address", signal_address, sizeof(*signal_address));
  uint64_t found = 0;
  Await(call, [&] {
    found = shm::LoadAcquire(*signal_address);  // Pairs with PutSignal.
    return Holds(found, comparison, value);
  });
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
