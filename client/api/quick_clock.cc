#include "client/api/quick_clock.h"

#include "common/clock.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace ferry::client {
namespace {

constexpr uint64_t kTrustedNs = 10'000'000;  // ticks are counted from one reading for so long
// Two readings, so far apart, tell how long a tick is.
constexpr uint64_t kLeastNs = 1'000'000;
constexpr uint64_t kMostNs = 100'000'000;
constexpr uint64_t kMostSpread = 1'000;  // in ticks: a longer reading was interrupted
constexpr int kReadings = 4;
// So often in a row no reading was short enough: then none is here (an emulator, a slow clock).
constexpr uint32_t kMostFailures = 16;
constexpr int kShift = 32;

struct Reading {
  uint64_t ticks = 0;
  uint64_t ns = 0;
};

// The state of a thread. All zeros: it has none.
struct Ticks {
  Reading from;  // since then the length of a tick is measured
  Reading base;
  uint64_t most = 0;        // ticks after `base` that may be counted
  uint64_t ns_of_tick = 0;  // shifted by kShift
  uint32_t failures = 0;    // in a row; kMostFailures: the thread counts no ticks any more
};

// Ticks come at a constant rate, and the kernel has found them to be alike on all processors.
bool AreTicksSteady() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kPowerManagement = 0x8000'0007;
  constexpr unsigned kInvariant = 1U << 8;
  if (__get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) == 0 || (edx & kInvariant) == 0) {
    return false;
  }
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  char text[16];
  const ssize_t size = read(file, text, sizeof(text));
  close(file);
  return size > 0 && std::string_view(text, static_cast<size_t>(size)) == "tsc\n";
}

// Returns false if the thread is interrupted again and again.
bool Read(Reading* reading) {
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = __rdtsc();
    reading->ns = MonotonicNs();
    const uint64_t spread = __rdtsc() - before;
    reading->ticks = before + spread / 2;
    if (spread <= kMostSpread) {
      return true;
    }
  }
  return false;
}

unsigned __int128 Shifted(uint64_t ns) { return static_cast<unsigned __int128>(ns) << kShift; }

uint64_t Renew(Ticks* ticks) {
  static const bool are_steady = AreTicksSteady();
  Reading now;
  if (!are_steady || ticks->failures == kMostFailures) {
    return MonotonicNs();
  }
  if (!Read(&now)) {
    ++ticks->failures;
    return MonotonicNs();
  }
  ticks->failures = 0;
  const uint64_t passed_ns = now.ns - ticks->from.ns;
  const uint64_t passed = now.ticks - ticks->from.ticks;
  const bool is_first = ticks->from.ns == 0;
  if (!is_first && passed_ns < kLeastNs) {
    return now.ns;
  }
  ticks->base = now;
  ticks->most = 0;
  const uint64_t before = std::exchange(ticks->ns_of_tick, 0);
  if (!is_first && passed != 0) {
    const auto ns_of_tick = static_cast<uint64_t>(Shifted(passed_ns) / passed);
    // Else the machine was moved or has slept.
    const bool is_alike =
        before == 0 || (ns_of_tick > before - before / 64 && ns_of_tick < before + before / 64);
    if (is_alike && ns_of_tick != 0) {
      ticks->ns_of_tick = ns_of_tick;
      // For no longer than it was measured: then its error is no larger than those of the readings.
      ticks->most = static_cast<uint64_t>(Shifted(std::min(kTrustedNs, passed_ns)) / ns_of_tick);
    }
  }
  if (is_first || ticks->most == 0 || passed_ns > kMostNs) {
    ticks->from = now;
  }
  return now.ns;
}

}  // namespace

uint64_t QuickMonotonicNs() {
  constinit thread_local Ticks ticks;
  const uint64_t passed = __rdtsc() - ticks.base.ticks;
  if (passed < ticks.most) [[likely]] {
    return ticks.base.ns +
           static_cast<uint64_t>((static_cast<unsigned __int128>(passed) * ticks.ns_of_tick) >>
                                 kShift);
  }
  return Renew(&ticks);
}

}  // namespace ferry::client

#else

namespace ferry::client {

uint64_t QuickMonotonicNs() { return MonotonicNs(); }

}  // namespace ferry::client

#endif
