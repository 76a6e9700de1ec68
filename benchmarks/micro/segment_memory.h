// Shared memory for a benchmark, like that of ranks: a memfd, mapped and touched.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "shm/segment.h"

namespace ferry::shm {

class SegmentMemory {
 public:
  explicit SegmentMemory(uint64_t size_bytes) {
    StatusOr<UniqueFd> fd = CreateSegment("benchmark", size_bytes);
    OrAbort(fd.status());
    StatusOr<Mapping> mapping = MapSegment(fd->get(), 0);
    OrAbort(mapping.status());
    mapping_ = std::move(*mapping);
    OrAbort(Prefault(mapping_.base(), mapping_.size_bytes()));
  }

  template <typename Layout>
  Layout* At(uint64_t offset) const {
    return reinterpret_cast<Layout*>(mapping_.base() + offset);
  }
  std::byte* base() const { return mapping_.base(); }
  uint64_t size_bytes() const { return mapping_.size_bytes(); }

 private:
  static void OrAbort(const Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::abort();
    }
  }

  Mapping mapping_;
};

}  // namespace ferry::shm
