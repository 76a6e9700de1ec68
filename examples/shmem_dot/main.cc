// A dot product of vectors that are spread over all PEs: the kernel adds up everything, over the
// threads, the work-groups and the PEs.
//
//   oshrun -n 4 shmem_dot [ELEMENTS_PER_PE]
//
// Each work-group is in a reduction over all PEs at the same time as the others, with a table of
// its own. The elements are small integers, so the result is exact: it is compared with a formula.
#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "examples/shmem_dot/kernel.h"
#include "ferry/device/emulated.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"

namespace {

constexpr uint32_t kGroups = 3;
constexpr uint32_t kGroupSize = 4;
constexpr uint64_t kMostElements = 1 << 22;

struct Work {
  ferry_device_u64* tables;
  double* x;
  double* y;
  uint64_t count;
  double* partials;
  double* sums;
  std::atomic<int> status;
};

[[noreturn]] void Fail(const char* sentence) {
  std::fprintf(stderr, "shmem_dot: PE %d: %s\n", shmem_my_pe(), sentence);
  shmem_global_exit(1);
  std::abort();
}

void Check(int error) {
  if (error != FERRY_SUCCESS) {
    Fail(ferry_last_error());
  }
}

template <typename T>
T* Symmetric(uint64_t count) {
  auto* const memory = static_cast<T*>(shmem_malloc(count * sizeof(T)));
  if (memory == nullptr) {
    Fail("the vectors are too long: take shorter ones, or raise SHMEM_SYMMETRIC_SIZE");
  }
  return memory;
}

void Kernel(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch({kGroups, kGroupSize}, [&] {
    const int status = dot_run(work.tables, work.x, work.y, work.count, work.partials, work.sums);
    if (status != SHMEMX_DEVICE_SUCCESS) {
      work.status = status;
    }
  });
}

// Element i of all vectors together: 1, 2, ... 9, 1, ...; y is twice as much.
double ElementOf(uint64_t i) { return static_cast<double>(i % 9 + 1); }

double Expected(uint64_t count) {
  const uint64_t nines = count / 9;
  double sum = static_cast<double>(nines * 2 * 285);  // 1 + 4 + ... + 81
  for (uint64_t i = nines * 9; i < count; ++i) {
    sum += 2 * ElementOf(i) * ElementOf(i);
  }
  return sum;
}

int Run(uint64_t count) {
  Work work{Symmetric<ferry_device_u64>(kGroups),
            Symmetric<double>(count),
            Symmetric<double>(count),
            count,
            Symmetric<double>(uint64_t{kGroups} * kGroupSize),
            Symmetric<double>(kGroups),
            SHMEMX_DEVICE_SUCCESS};
  const int device = shmem_my_pe() % shmemx_device_count();
  for (uint32_t group = 0; group < kGroups; ++group) {
    void* const table = shmemx_device_prepare(SHMEM_TEAM_WORLD, device);
    if (table == nullptr) {
      Fail("there is no table for kernels");
    }
    work.tables[group] = reinterpret_cast<uintptr_t>(table);
  }
  for (uint64_t i = 0; i < count; ++i) {
    work.x[i] = ElementOf(static_cast<uint64_t>(shmem_my_pe()) * count + i);
    work.y[i] = 2 * work.x[i];
  }
  ferry_stream stream = nullptr;
  Check(ferry_stream_create(device, &stream));
  shmem_barrier_all();
  const auto begin = std::chrono::steady_clock::now();
  Check(ferry_stream_launch(stream, Kernel, &work));
  Check(ferry_stream_synchronize(stream));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (work.status != SHMEMX_DEVICE_SUCCESS) {
    Fail(ferry_error_string(work.status));
  }
  double product = 0;
  for (uint32_t group = 0; group < kGroups; ++group) {
    product += work.sums[group];
  }
  const bool is_right = product == Expected(count * static_cast<uint64_t>(shmem_n_pes()));
  if (shmem_my_pe() == 0 || !is_right) {
    std::printf("%d PEs, %llu elements each, %u work-groups: %.0f in %.0f us: %s\n", shmem_n_pes(),
                static_cast<unsigned long long>(count), kGroups, product, took.count(),
                is_right ? "PASS" : "FAIL");
  }
  Check(ferry_stream_destroy(&stream));
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernels are functions of this program.
  setenv("FERRY_GPU_BACKEND", "host", 1);
  char* end = nullptr;
  const char* const text = argc > 1 ? argv[1] : "100000";
  const unsigned long long count = std::strtoull(text, &end, 10);
  if (argc > 2 || *text < '0' || *text > '9' || *end != '\0' || count < 1 ||
      count > kMostElements) {
    std::fprintf(stderr, "usage: shmem_dot [ELEMENTS_PER_PE], a number from 1 to %llu\n",
                 static_cast<unsigned long long>(kMostElements));
    return 2;
  }
  shmem_init();
  const int status = Run(count);
  shmem_finalize();
  return status;
}
