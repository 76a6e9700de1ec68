// `ferryctl tune --kernels`: measures puts and gets of kernels inside a node, by stores and by
// ferryd, which the leader of a work-group asks, and writes the option shmem_cutovers that follows.
//
// The measurements are jobs of ferry-kernel-meter under ferryrun, on the emulated device: Ferry
// cannot launch a program's kernels on others. The two ways take turns, so that a moment's noise
// does not meet one alone. Main thread; blocks until all jobs have ended.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/status.h"
#include "shmem/base/cutovers.h"
#include "tools/tune/kernel_times.h"

namespace ferry::tools {

struct KernelPlan {
  std::string job;                // flags of ferryrun, by spaces; empty: two PEs
  std::vector<uint64_t> sizes;    // empty: 64 bytes to 1 MiB
  std::vector<uint32_t> threads;  // of a work-group; empty: 1, 16, 128
  uint32_t rounds = 3;            // the shortest times count
  std::string output;             // file for the option; empty: none
  bool force = false;
  std::vector<std::string> options;  // "--name=value", passed on to ferryrun
};

struct KernelResult {
  std::vector<KernelComparison> comparisons;
  shmem::Cutovers cutovers;
};

// Measures and writes the file. Errors as of TuneCollectives.
StatusOr<KernelResult> TuneKernels(const KernelPlan& plan);

// The file's text: the option, for --config_file.
std::string KernelFile(const KernelResult& result);
// The text for the terminal.
std::string KernelText(const KernelResult& result);
nlohmann::ordered_json KernelJson(const KernelResult& result);

}  // namespace ferry::tools
