// Host memory registered with a driver by whole pages, each page once.
//
// Vendors refuse a page that is registered already, while two ranges that a program registers may
// share one. So runs of pages are registered, and a run stays for as long as any range needs one of
// its pages.
//
// Thread-safe; Add and Remove block for as long as the driver pins memory.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

class PageRegistrations {
 public:
  // The driver outlives this.
  explicit PageRegistrations(Driver& driver);

  enum class Kind : uint8_t { kMemory, kIo };  // Driver::Register, Driver::RegisterIo

  // Registers those pages of the range that are not registered yet. Errors as of Driver::Register;
  // nothing has then changed.
  Status Add(void* pointer, uint64_t size_bytes, Kind kind = Kind::kMemory);
  // Removes a range that was added. Returns the driver's first error; the range is gone in any
  // case.
  Status Remove(void* pointer, uint64_t size_bytes);
  // Returns how many bytes from `pointer` on, at least 1, lie in one run of registered pages, or in
  // none: vendors refuse to copy across the end of a run. Does not wait for the driver unless
  // memory is being registered.
  uint64_t UniformBytes(const void* pointer, uint64_t size_bytes) const;

 private:
  struct Run {
    uintptr_t end;
    uint64_t users;  // ranges
  };
  struct Range {
    uintptr_t begin;
    uintptr_t end;
  };

  Range PagesOf(const void* pointer, uint64_t size_bytes) const;
  std::vector<Range> GapsIn(Range pages) const;
  // Visits every run that has a page there.
  template <typename Visit>
  void ForEachRun(Range pages, Visit&& visit);

  Driver& driver_;
  const uintptr_t page_bytes_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Run> runs_;  // by their beginning; they do not overlap
};

}  // namespace ferry::gpu
