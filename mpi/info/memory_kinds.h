// Kinds of memory that programs may pass to MPI: mpi_memory_alloc_kinds (MPI 5.0, section 11.4.3,
// and the side document "Memory Allocation Kinds" 1.0 for those of GPUs).
//
// A kind is a name, perhaps with restrictors behind colons ("cuda:device"): without any, all memory
// of the kind is meant.
//
// Pure; any thread; does not block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mpi/info/info.h"

namespace ferry::mpi {

class MemoryKinds {
 public:
  // The kinds that Ferry serves over that GPU backend: "mpi", "system", "ferry" (memory of
  // ferry_alloc, with the restrictors host, pinned and device), and the backend's own.
  explicit MemoryKinds(std::string_view gpu_backend);

  // Returns true if Ferry serves each kind of a list ("mpi,cuda:device"), also for an empty list.
  bool HasAll(std::string_view kinds) const;
  // Returns the answer to a program that has asked for these kinds: all kinds that Ferry serves,
  // with the requested ones among them in the program's own words.
  std::string Supported(std::string_view requested) const;

 private:
  struct Kind {
    std::string_view name;
    std::vector<std::string_view> restrictors;
    bool is_whole = true;  // served without restrictors, too
  };

  bool Has(std::string_view kind) const;

  std::vector<Kind> kinds_;
};

// mpi_assert_memory_alloc_kinds, by which the program promises to pass only memory of these kinds
// (communicators: MPI 5.0, section 7.4.4, windows: 12.2.1). A hint of that name is among `hints`
// once it was `given` with kinds that are all among `kinds`; other values are ignored.
void TakeAssertedKinds(const std::vector<Info::Entry>& given, const MemoryKinds& kinds,
                       std::vector<Info::Entry>* hints);

}  // namespace ferry::mpi
