// A profiler as tools make them: by LD_PRELOAD it stands before all functions of MPI, counts and
// times their calls, and prints a line for each function that was called, where MPI ends:
//   call_times: RANK MPI_Send COUNT SECONDS
//
// It takes the functions from the public headers. Of each it defines MPI_x, which the dynamic
// linker finds before libmpi_abi's, and calls PMPI_x.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace call_times {

template <auto kFunction>
constexpr const char* kName = nullptr;

}  // namespace call_times

namespace {

// Of one function; in a list once it was called.
struct Totals {
  const char* const name;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> ns{0};
  Totals* next = nullptr;
};
constinit std::atomic<Totals*> called{nullptr};

class Visit {
 public:
  explicit Visit(Totals* totals) : totals_(*totals) {
    if (totals_.calls.fetch_add(1, std::memory_order_relaxed) == 0) {
      totals_.next = called.load(std::memory_order_relaxed);
      while (!called.compare_exchange_weak(totals_.next, totals, std::memory_order_release)) {
      }
    }
  }
  ~Visit() {
    const auto taken = std::chrono::steady_clock::now() - begin_;
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
    totals_.ns.fetch_add(static_cast<uint64_t>(ns), std::memory_order_relaxed);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Totals& totals_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void Report(int rank) {
  for (const Totals* each = called.load(std::memory_order_acquire); each != nullptr;
       each = each->next) {
    std::printf("call_times: %d %s %llu %.9f\n", rank, each->name,
                static_cast<unsigned long long>(each->calls.load(std::memory_order_relaxed)),
                static_cast<double>(each->ns.load(std::memory_order_relaxed)) * 1e-9);
  }
  std::fflush(stdout);
}

// The function that stands before one of MPI's.
template <auto kFunction>
struct Before;

template <typename Result, typename... Arguments, Result (*kFunction)(Arguments...)>
struct Before<kFunction> {
  static Result Call(Arguments... arguments) {
    const Visit visit(&totals);
    return kFunction(arguments...);
  }
  static constinit inline Totals totals{call_times::kName<kFunction>};
};

// The last call, which says what there was.
template <>
struct Before<&PMPI_Finalize> {
  static int Call() {
    int rank = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int result = MPI_SUCCESS;
    {
      const Visit visit(&totals);
      result = PMPI_Finalize();
    }
    Report(rank);
    return result;
  }
  static constinit inline Totals totals{"MPI_Finalize"};
};

// MPI_Pcontrol, whose further arguments only tools give a meaning.
template <>
struct Before<&PMPI_Pcontrol> {
  static int Call(const int level, ...) {
    const Visit visit(&totals);
    return PMPI_Pcontrol(level);
  }
  static constinit inline Totals totals{"MPI_Pcontrol"};
};

}  // namespace

// The headers are read again. Each line of theirs becomes a function that the dynamic linker calls
// to learn where MPI_x is.
#undef FERRY_MPI_COLLECTIVES_H_
#undef FERRY_MPI_COLLECTIVES_INIT_H_
#undef FERRY_MPI_COMMUNICATORS_H_
#undef FERRY_MPI_DATATYPES_H_
#undef FERRY_MPI_ENVIRONMENT_H_
#undef FERRY_MPI_FILES_H_
#undef FERRY_MPI_NEIGHBOURS_H_
#undef FERRY_MPI_PARTITIONED_H_
#undef FERRY_MPI_POINT_TO_POINT_H_
#undef FERRY_MPI_PROCESSES_H_
#undef FERRY_MPI_SESSIONS_H_
#undef FERRY_MPI_TOOLS_H_
#undef FERRY_MPI_WINDOWS_H_
#undef FERRY_MPI
#define FERRY_MPI(result, name, parameters)                                                 \
  template <>                                                                               \
  constexpr const char* call_times::kName<&PMPI_##name> = "MPI_" #name;                     \
  extern "C" __attribute__((visibility("hidden"))) decltype(&PMPI_##name) PlaceOf##name() { \
    return &Before<&PMPI_##name>::Call;                                                     \
  }                                                                                         \
  extern "C" __attribute__((visibility("default"), ifunc("PlaceOf" #name)))                 \
  result MPI_##name parameters

#include "ferry/mpi/ferry_mpi/collectives.h"
#include "ferry/mpi/ferry_mpi/collectives_init.h"
#include "ferry/mpi/ferry_mpi/communicators.h"
#include "ferry/mpi/ferry_mpi/datatypes.h"
#include "ferry/mpi/ferry_mpi/environment.h"
#include "ferry/mpi/ferry_mpi/files.h"
#include "ferry/mpi/ferry_mpi/neighbours.h"
#include "ferry/mpi/ferry_mpi/partitioned.h"
#include "ferry/mpi/ferry_mpi/point_to_point.h"
#include "ferry/mpi/ferry_mpi/processes.h"
#include "ferry/mpi/ferry_mpi/sessions.h"
#include "ferry/mpi/ferry_mpi/tools.h"
#include "ferry/mpi/ferry_mpi/windows.h"
