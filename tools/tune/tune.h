// `ferryctl tune`: measures the stages of a message from or to device memory on its way to another
// node, and says which pipeline of blocks suits it (pipeline_choice.h).
//
// One thread; it blocks, for some seconds.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/types.h"
#include "tools/tune/curve.h"
#include "tools/tune/network_meter.h"
#include "tools/tune/pipeline_choice.h"

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

// Copies between host and device memory.
struct CopyCurves {
  Curve to_host;  // from the device to pinned host memory
  Curve to_device;
  Curve pageable_to_host;  // with ordinary host memory
  Curve pageable_to_device;
};

struct TuneResult {
  std::string host;
  std::string backend;
  int device = 0;
  gpu::DeviceInfo device_info;
  CopyCurves copies;
  NetworkCurve network;
  bool loopback = true;
  std::vector<uint64_t> sizes;
  uint32_t repetitions = 0;
  uint64_t longest_block_bytes = 0;
  PipelineChoice choice;

  StageCurves stages() const { return {copies.to_host, network.reads, copies.to_device}; }
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

// ---- The results, for ferryd, for people and for programs: pure, any thread (tune_report.cc) ----

// A configuration file for ferryd: the measurements as comments, then the options.
std::string TuneFragment(const TuneResult& result);
// SVG: the curves, and the times of pipelines by them.
std::string TunePlot(const TuneResult& result);
// The text for the terminal.
std::string TuneText(const TuneResult& result);
nlohmann::ordered_json TuneJson(const TuneResult& result);

}  // namespace ferry::tools
