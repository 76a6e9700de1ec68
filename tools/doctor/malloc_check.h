// The check of `ferryctl doctor` of Ferry's malloc: whether ferryrun --malloc would find and
// preload it here, and whether other ranks could map its memory.
#pragma once

#include <cstdint>
#include <string>

#include "tools/doctor/checks.h"
#include "tools/doctor/finding.h"

namespace ferry::tools {

struct MallocFacts {
  std::string path;                     // of libferry_malloc.so; empty: ferryrun finds none
  std::string loader_says = {};         // of a program that it is preloaded into; empty: nothing
  int memfd_error = 0;                  // errno of making the file that it shares, or 0
  uint64_t file_bytes = kUnlimited;     // ulimit -f
  uint64_t address_bytes = kUnlimited;  // ulimit -v
  uint64_t quota_bytes = 0;             // quota_pinned_bytes; 0: no limit
  bool is_wanted = false;               // the option malloc asks for it
};

// Finds the library and starts a program with it. Main thread; blocks for as long as that takes.
MallocFacts LookForMalloc();

// Where it cannot work, messages go as they would without it: a warning, unless ferryrun could not
// start what the options ask for. Pure.
Finding CheckMalloc(const MallocFacts& facts);

}  // namespace ferry::tools
