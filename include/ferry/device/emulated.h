/* ferry/device/emulated.h - launches of kernels on an emulated device, in work-groups: each thread
 * of a launch is one of this process. C++17.
 *
 * The threads run at the same time, and in any order, as those of a device do; groups may wait for
 * one another. Meant for programs and tests on machines without a GPU: a launch takes some
 * microseconds for each thread. */
#ifndef FERRY_DEVICE_EMULATED_H
#define FERRY_DEVICE_EMULATED_H

#include <cstddef>
#include <thread>
#include <vector>

#include "ferry/device/groups.h"

namespace ferry::device {

struct Shape {
  ferry_device_u32 groups = 1;
  ferry_device_u32 group_size = 1;
  ferry_device_u32 sub_group_size = 4; /* the last of a group may be smaller */
};

/* Calls kernel() as each thread of the launch. Blocks until all of them have returned. Ends the
 * program if a thread cannot be created. May be called by any thread. */
template <typename Kernel>
void Launch(const Shape& shape, Kernel&& kernel) {
  const ferry_device_u32 size = shape.group_size;
  const ferry_device_u32 waves = (size + shape.sub_group_size - 1) / shape.sub_group_size;
  std::vector<ferry_device_host_barrier> groups(shape.groups);
  std::vector<ferry_device_host_barrier> sub_groups(size_t{shape.groups} * waves);
  std::vector<ferry_device_host_place> places;
  places.reserve(size_t{shape.groups} * size);
  for (ferry_device_u32 i = 0; i < shape.groups * size; ++i) {
    const ferry_device_u32 wave = i % size / shape.sub_group_size;
    const ferry_device_u32 rest = size - wave * shape.sub_group_size;
    ferry_device_host_place place = {i, ferry_device_u64{shape.groups} * size};
    place.group_thread = i % size;
    place.group_size = size;
    place.sub_group_thread = place.group_thread % shape.sub_group_size;
    place.sub_group_size = rest < shape.sub_group_size ? rest : shape.sub_group_size;
    place.group_barrier = &groups[i / size];
    place.sub_group_barrier = &sub_groups[i / size * waves + wave];
    place.group_barrier->count = place.group_size;
    place.sub_group_barrier->count = place.sub_group_size;
    places.push_back(place);
  }
  std::vector<std::thread> threads;
  threads.reserve(places.size());
  for (const ferry_device_host_place& place : places) {
    threads.emplace_back([&place, &kernel] {
      ferry_device_host_thread = place;
      kernel();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace ferry::device

#endif
