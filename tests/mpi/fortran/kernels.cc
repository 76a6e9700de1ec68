// Kernels of an emulated device for programs in Fortran: each group of threads has a partition of
// `count` integers. Those of a launch are there until the stream has carried it out.
#include <ferry/stream.h>
#include <mpix.h>

#include <atomic>

#include "ferry/device/emulated.h"
#include "ferry/device/partitioned.h"

namespace {

struct Work {
  int* data;
  int partitions;
  int count;
  int value;
  MPIX_Prequest prequest;
};

constexpr ferry_device_u32 kThreads = 2;  // of a group

std::atomic<int> wrong = 0;

// The calling thread's numbers of its group's partition.
template <typename Each>
void ForMine(const Work& work, Each&& each) {
  const ferry_device_crew crew = ferry_device_crew_of(FERRY_DEVICE_CREW_GROUP);
  int* const mine = work.data + static_cast<int>(ferry_device_group()) * work.count;
  for (unsigned i = crew.thread; i < static_cast<unsigned>(work.count); i += crew.count) {
    each(mine[i]);
  }
}

void Fill(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch({static_cast<ferry_device_u32>(work.partitions), kThreads}, [&] {
    ForMine(work, [&](int& number) { number = work.value; });
    const int partition = static_cast<int>(ferry_device_group());
    if (MPIX_Pready_block(partition, work.prequest) != MPIX_DEVICE_SUCCESS) {
      ++wrong;
    }
  });
  delete &work;
}

void Expect(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch({static_cast<ferry_device_u32>(work.partitions), kThreads}, [&] {
    const int partition = static_cast<int>(ferry_device_group());
    if (MPIX_Pawait_block(work.prequest, partition) != MPIX_DEVICE_SUCCESS) {
      ++wrong;
    }
    ForMine(work, [&](int& number) { wrong += number != work.value; });
  });
  delete &work;
}

}  // namespace

extern "C" {

// Enqueues a kernel that fills the partitions with a number and readies each. Returns 0, or the
// stream's error.
int fill_and_ready(ferry_stream stream, int* data, int partitions, int count, int value,
                   MPIX_Prequest prequest) {
  return ferry_stream_launch(stream, Fill, new Work{data, partitions, count, value, prequest});
}

// Enqueues a kernel that waits for the partitions and compares them with a number.
int await_and_expect(ferry_stream stream, int* data, int partitions, int count, int value,
                     MPIX_Prequest prequest) {
  return ferry_stream_launch(stream, Expect, new Work{data, partitions, count, value, prequest});
}

// How many calls of kernels have failed, and how many numbers were not what was expected.
int wrong_in_kernels() { return wrong; }

}  // extern "C"
