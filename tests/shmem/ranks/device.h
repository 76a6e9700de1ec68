// Helpers for programs whose kernels use OpenSHMEM on an emulated device.
#pragma once

#include <cstdint>

#include "ferry/device/emulated.h"
#include "ferry/device/shmem.h"
#include "tests/shmem/ranks/check.h"

// A table for kernels, for as long as it lives. Made and ended by all PEs of the team.
class Table {
 public:
  explicit Table(int device = 0, shmem_team_t team = SHMEM_TEAM_WORLD)
      : address_(shmemx_device_prepare(team, device)) {
    CHECK(address_ != nullptr);
  }
  ~Table() { shmemx_device_release(address_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const void* address() const { return address_; }
  shmemx_device_t Open() const { return shmemx_device_open(address_); }

 private:
  void* const address_;
};

// Returns true if this thread calls for its crew: for a crew of one thread, only the first of the
// group.
inline bool Takes(ferry_device_u32 kind) {
  return kind != FERRY_DEVICE_CREW_THREAD || ferry_device_group_thread() == 0;
}

template <typename T>
T* Symmetric(size_t count) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}
