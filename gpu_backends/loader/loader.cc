#include "gpu_backends/loader/loader.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/hip/hip_backend.h"
#include "gpu_backends/host/host_backend.h"
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "gpu_backends/loader/late_vendors.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

HostBackendOptions HostOptions(const config::Options& options) {
  HostBackendOptions host;
  host.device_count = static_cast<int>(options.host_gpu_count);
  host.device_memory_bytes = options.host_gpu_memory_bytes;
  host.link = {.h2d_mb_per_s = options.host_link_h2d_mb_per_s,
               .d2h_mb_per_s = options.host_link_d2h_mb_per_s,
               .pageable_h2d_mb_per_s = options.host_link_pageable_h2d_mb_per_s,
               .pageable_d2h_mb_per_s = options.host_link_pageable_d2h_mb_per_s,
               .d2d_mb_per_s = options.host_link_d2d_mb_per_s,
               .latency_us = options.host_link_latency_us,
               .pageable_latency_us = options.host_link_pageable_latency_us,
               .engines = options.host_link_engines,
               .guard = options.host_link_guard != 0};
  host.costs = {.launch_us = options.host_launch_us, .synchronize_us = options.host_synchronize_us};
  return host;
}

struct Candidate {
  const char* name;
  StatusOr<std::unique_ptr<GpuBackend>> (*open)(const config::Options& options);
};

// In the order in which "auto" tries them, but for those that the program has loaded; the last can
// always be opened.
constexpr Candidate kCandidates[] = {
    {"cuda",
     [](const config::Options& options) { return CreateCudaBackend({options.cuda_library}); }},
    {"hip", [](const config::Options& options) { return CreateHipBackend({options.hip_library}); }},
    {"level_zero",
     [](const config::Options& options) {
       return CreateLevelZeroBackend({options.level_zero_library});
     }},
    {"host",
     [](const config::Options& options) { return CreateHostBackend(HostOptions(options)); }},
};

// The backend whose library the program itself has loaded comes first: no other vendor knows its
// memory.
StatusOr<std::unique_ptr<GpuBackend>> OpenFirst(const config::Options& options) {
  std::vector<const Candidate*> candidates;
  for (const Candidate& candidate : kCandidates) {
    candidates.push_back(&candidate);
  }
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const Candidate* candidate) { return IsVendorLoaded(candidate->name); });
  for (const Candidate* const candidate : candidates) {
    if (auto backend = candidate->open(options); backend.ok()) {
      return backend;
    }
  }
  return candidates.back()->open(options);  // says what is wrong with the options
}

// Returns true if there is a device of the kernel's graphics drivers that can compute, not one that
// only shows pictures.
bool HasRenderNode(const std::string& root) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root + "/dev/dri", error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with("renderD")) {
      return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<std::unique_ptr<GpuBackend>> OpenBackend(const config::Options& options) {
  if (options.gpu_backend == "auto") {
    return OpenFirst(options);
  }
  std::string names;
  for (const Candidate& candidate : kCandidates) {
    if (options.gpu_backend == candidate.name) {
      return candidate.open(options);
    }
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
  }
  return Status(ErrorCode::kConfiguration, "gpu_backend is '" + options.gpu_backend +
                                               "'; this build has " + names + " and auto");
}

StatusOr<std::unique_ptr<GpuBackend>> OpenProgramsBackend(config::Options options) {
  const bool is_any_loaded =
      std::any_of(std::begin(kCandidates), std::end(kCandidates),
                  [](const Candidate& candidate) { return IsVendorLoaded(candidate.name); });
  if (options.gpu_backend == "auto" && !is_any_loaded && !MayHaveGpus(options)) {
    options.gpu_backend = "host";
  }
  return OpenBackend(options);
}

std::shared_ptr<GpuSource> SourceOf(const config::Options& options,
                                    std::unique_ptr<GpuBackend> opened) {
  return std::make_shared<GpuSource>([options] { return OpenBackend(options); },
                                     options.gpu_idle_release_ms * kNsPerMs, std::move(opened));
}

bool MayHaveGpus(const config::Options& options, const std::string& root) {
  const auto is_there = [&root](std::initializer_list<const char*> places) {
    std::error_code error;
    return std::any_of(places.begin(), places.end(), [&](const char* place) {
      return std::filesystem::exists(root + place, error);
    });
  };
  const auto may_open = [&](const char* name, const std::string& library, bool has_device) {
    if (options.gpu_backend != "auto" && options.gpu_backend != name) {
      return false;
    }
    return library.empty() ? has_device || options.gpu_backend == name
                           : library.find('/') == library.npos || is_there({library.c_str()});
  };
  return options.gpu_backend == "host" ||
         // CUDA makes the node when a process first asks for a GPU: so the module counts, too.
         // Tegra has a driver of its own, and Windows one for all vendors.
         may_open("cuda", options.cuda_library,
                  is_there({"/dev/nvidiactl", "/sys/module/nvidia", "/dev/nvhost-gpu", "/dev/nvgpu",
                            "/dev/dxg"})) ||
         may_open("hip", options.hip_library, is_there({"/dev/kfd", "/dev/dxg"})) ||
         may_open("level_zero", options.level_zero_library,
                  HasRenderNode(root) || is_there({"/dev/dxg"}));
}

std::vector<BackendReport> ReportBackends(const config::Options& options) {
  std::vector<BackendReport> reports;
  for (const Candidate& candidate : kCandidates) {
    BackendReport& report = reports.emplace_back();
    report.name = candidate.name;
    const auto backend = candidate.open(options);
    if (backend.ok()) {
      report.version = (*backend)->version();
      report.devices = static_cast<uint32_t>((*backend)->device_count());
    } else {
      report.why_not = backend.status().message();
    }
  }
  return reports;
}

}  // namespace ferry::gpu
