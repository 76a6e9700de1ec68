// The measurements of `ferryctl tune` (tune.h), for ferryd, for people and for programs. Pure: any
// thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu_backends/api/types.h"
#include "tools/tune/curve.h"
#include "tools/tune/network_meter.h"
#include "tools/tune/pipeline_choice.h"

namespace ferry::tools {

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

// A configuration file for ferryd: the measurements as comments, then the options.
std::string TuneFragment(const TuneResult& result);
// SVG: the curves, and the times of pipelines by them.
std::string TunePlot(const TuneResult& result);
// The text for the terminal.
std::string TuneText(const TuneResult& result);
nlohmann::ordered_json TuneJson(const TuneResult& result);

}  // namespace ferry::tools
