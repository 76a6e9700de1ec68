// `ferryctl tune`: measures the stages of a message from or to device memory on its way to another
// node, and says which pipeline of blocks suits it (pipeline_choice.h).
//
// One thread; it blocks, for some seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/tune/network_meter.h"
#include "tools/tune/tune_report.h"

namespace ferry::tools {

struct TunePlan {
  int device = 0;
  std::vector<uint64_t> sizes;  // empty: 16 bytes, and 4 KiB to 4 MiB
  uint32_t repetitions = 15;
  std::string peer;    // the word of MemoryServer elsewhere; empty: over loopback
  std::string output;  // file for the options; empty: none
  std::string plot;    // and for the curves
  bool force = false;
};

// Returns the sizes to measure: sorted, each once. kInvalidArgument for fewer than two, and for one
// that is 0 or beyond 1 GiB.
StatusOr<std::vector<uint64_t>> SizesToMeasure(const TunePlan& plan);

// Measures and chooses. kInvalidArgument for an invalid device or word; and the errors of backend
// and transport.
StatusOr<TuneResult> Measure(const config::Options& options, const TunePlan& plan);

// Measures, and writes the files that the plan names. Checks beforehand that they can be written:
// kAlreadyExists without `force`, kPermissionDenied, kNotFound, kSystem. After an error neither
// file is there, or both are as they were; only a disk that fills up in between leaves the first.
StatusOr<TuneResult> MeasureAndWrite(const config::Options& options, const TunePlan& plan);

// Serves memory of the largest size, for Measure on another node.
StatusOr<std::unique_ptr<MemoryServer>> Serve(const config::Options& options, const TunePlan& plan);

}  // namespace ferry::tools
