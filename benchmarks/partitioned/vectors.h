// The kernel of device.cc, which adds two vectors, and the emulated device that runs it.
#pragma once

#include <mpi.h>
#include <mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ferry/device/partitioned.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"

#define FERRY_CHECK(call)                                                  \
  do {                                                                     \
    if ((call) != FERRY_SUCCESS) {                                         \
      std::fprintf(stderr, "device: %s: %s\n", #call, ferry_last_error()); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

inline double* DeviceVector(uint64_t bytes) {
  void* memory = nullptr;
  FERRY_CHECK(ferry_alloc(bytes, FERRY_MEMORY_DEVICE, 0, &memory));
  return static_cast<double*>(memory);
}

// ---- The kernel --------------------------------------------------------------------------------

struct Kernel {
  const double* a = nullptr;
  const double* b = nullptr;
  double* sum = nullptr;
  uint64_t count = 0;  // of each partition
  int partitions = 0;
  MPIX_Prequest request = MPIX_PREQUEST_NULL;
  int (*ready)(int partition, MPIX_Prequest request) = MPIX_Pready_work_group;
  // A word of each partition, into which its group stores `round` when it is done; or null.
  ferry_device_u64* done = nullptr;
  uint64_t round = 0;
};

// A work-group's share: one partition.
inline void AddAndReady(const Kernel& kernel) {
  const int partition = static_cast<int>(ferry_device_group());
  const uint64_t begin = static_cast<uint64_t>(partition) * kernel.count;
  for (uint64_t i = begin; i < begin + kernel.count; ++i) {
    kernel.sum[i] = kernel.a[i] + kernel.b[i];
  }
  if (kernel.request != MPIX_PREQUEST_NULL) {
    (void)kernel.ready(partition, kernel.request);  // MPI_Wait reports an error
  }
  if (kernel.done != nullptr) {
    ferry_device_store_release(kernel.done + partition, kernel.round);
  }
}

// Runs on the stream's thread.
inline void RunGroups(void* argument) {
  const Kernel& kernel = *static_cast<const Kernel*>(argument);
  const auto groups = static_cast<ferry_device_u32>(kernel.partitions);
  for (ferry_device_u32 group = 0; group < groups; ++group) {
    ferry_device_host_thread = {group, groups};
    AddAndReady(kernel);
  }
  ferry_device_host_thread = {0, 1};
}

inline double AddendOf(int rank, uint64_t i) {
  return static_cast<double>((rank + 1) * (i % 7 + 1));
}

// The vectors of one rank, and a stream.
class Device {
 public:
  Device(int rank, uint64_t most_bytes)
      : rank_(rank),
        a_(DeviceVector(most_bytes)),
        b_(DeviceVector(most_bytes)),
        sum_(DeviceVector(most_bytes)),
        in_(DeviceVector(most_bytes)) {
    for (uint64_t i = 0; i < most_bytes / sizeof(double); ++i) {
      a_[i] = AddendOf(rank, i);
      b_[i] = 1;
    }
    FERRY_CHECK(ferry_stream_create(0, &stream_));
  }
  ~Device() {
    (void)ferry_stream_destroy(&stream_);
    for (double* const vector : {a_, b_, sum_, in_}) {
      (void)ferry_free(vector);
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  double* sum() const { return sum_; }
  double* in() const { return in_; }

  // The addition, in which each work-group computes one partition. It must last as long as the
  // launch.
  Kernel KernelFor(uint64_t count, int partitions, MPIX_Prequest request) const {
    Kernel kernel;
    kernel.a = a_;
    kernel.b = b_;
    kernel.sum = sum_;
    kernel.count = count;
    kernel.partitions = partitions;
    kernel.request = request;
    return kernel;
  }
  void Launch(Kernel* kernel) const {
    FERRY_CHECK(ferry_stream_launch(stream_, RunGroups, kernel));
  }
  void Synchronize() const { FERRY_CHECK(ferry_stream_synchronize(stream_)); }

  void Forget(uint64_t count) const {
    std::fill_n(sum_, count, 0.0);
    std::fill_n(in_, count, 0.0);
  }
  // Aborts the job unless `in` is the sum of the vectors that ranks [first, last] have computed.
  void Compare(uint64_t count, int first, int last) const {
    for (uint64_t i = 0; i < count; ++i) {
      double wanted = 0;
      for (int rank = first; rank <= last; ++rank) {
        wanted += AddendOf(rank, i) + 1;
      }
      if (in_[i] != wanted) {
        std::fprintf(stderr, "device: rank %d, %llu doubles: wrong sum at %llu\n", rank_,
                     static_cast<unsigned long long>(count), static_cast<unsigned long long>(i));
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
  }

 private:
  int rank_;
  double* a_;
  double* b_;
  double* sum_;
  double* in_;
  ferry_stream stream_ = nullptr;
};
