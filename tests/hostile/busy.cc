// A harmless process: it uses so much of a core, in turns of 10 ms, and nothing else.
//
//   busy PERCENT
#include <cstdlib>
#include <ctime>

namespace {

constexpr long long kTurnNs = 10'000'000;

long long NsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  const long long busy_ns = kTurnNs / 100 * (argc > 1 ? std::atoi(argv[1]) : 100);
  for (long long turn_ns = NsOf(CLOCK_MONOTONIC);; turn_ns += kTurnNs) {
    const long long begin_ns = NsOf(CLOCK_PROCESS_CPUTIME_ID);
    while (NsOf(CLOCK_PROCESS_CPUTIME_ID) < begin_ns + busy_ns) {
    }
    const timespec next{static_cast<time_t>((turn_ns + kTurnNs) / 1'000'000'000),
                        static_cast<long>((turn_ns + kTurnNs) % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
}
