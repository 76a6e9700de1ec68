#include "tools/tune/pipeline_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>

namespace ferry::tools {
namespace {

using engine::Block;
using engine::BlockMode;
using engine::BlockPlan;
using engine::BlockRules;

constexpr uint64_t kPageBytes = 4096;
// A choice with more blocks must be better by this much: less is noise.
constexpr double kWorthwhile = 0.005;

uint32_t BlocksOn(Route route, const PipelineChoice& choice) {
  switch (route) {
    case Route::kFromDevice:
      return choice.blocks_to_host;
    case Route::kToDevice:
      return choice.blocks_to_device;
    case Route::kBetweenDevices:
      break;
  }
  return std::max(choice.blocks_to_host, choice.blocks_to_device);
}

std::vector<uint64_t> BlockSizes(Route route, uint64_t size_bytes, const PipelineChoice& choice,
                                 uint64_t longest_bytes) {
  const BlockPlan plan(size_bytes, {.mode = choice.mode,
                                    .block_count = BlocksOn(route, choice),
                                    .threshold_bytes = choice.threshold_bytes});
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; i < plan.block_count(); ++i) {
    uint64_t left = plan.block(i).size_bytes;
    while (longest_bytes != 0 && left > longest_bytes) {
      sizes.push_back(longest_bytes);
      left -= longest_bytes;
    }
    sizes.push_back(left);
  }
  return sizes;
}

// The stage's blocks come in when `ready_us` says; turns that into when they leave.
void Pass(const Curve& stage, const std::vector<uint64_t>& sizes, std::vector<double>* ready_us) {
  double free_us = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    double& at_us = (*ready_us)[i];
    const bool waits = i > 0 && at_us <= free_us;
    at_us = waits ? free_us + stage.QueuedUs(sizes[i]) : at_us + stage.AloneUs(sizes[i]);
    free_us = at_us;
  }
}

// Sizes from the smallest to the largest, in steps of a 16th or of a page, whichever is more.
std::vector<uint64_t> MessageSizes(const ChoiceLimits& limits) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = limits.smallest_bytes; size < limits.largest_bytes;
       size += std::max(kPageBytes, size / 16 / kPageBytes * kPageBytes)) {
    sizes.push_back(size);
  }
  sizes.push_back(limits.largest_bytes);
  return sizes;
}

// The weight of a size: it stands for those up to the next, in equal ratios. The weights sum to 1.
double Weight(std::span<const uint64_t> sizes, size_t index) {
  if (index + 1 == sizes.size()) {
    return sizes.size() == 1 ? 1 : 0;
  }
  const auto ratio = [](uint64_t more, uint64_t less) {
    return std::log(static_cast<double>(more) / static_cast<double>(less));
  };
  return ratio(sizes[index + 1], sizes[index]) / ratio(sizes.back(), sizes.front());
}

using RouteTimes = std::array<double, std::size(kRoutes)>;

std::vector<RouteTimes> Times(const StageCurves& curves, std::span<const uint64_t> sizes,
                              const PipelineChoice& choice, uint64_t longest_bytes) {
  std::vector<RouteTimes> times;
  for (const uint64_t size : sizes) {
    std::transform(
        std::begin(kRoutes), std::end(kRoutes), times.emplace_back().begin(),
        [&](Route route) { return PredictUs(curves, route, size, choice, longest_bytes); });
  }
  return times;
}

// How much shorter messages of one size become: the mean of the ratios' logarithms. None when they
// become longer on some route.
std::optional<double> Gain(const RouteTimes& one_block, const RouteTimes& times) {
  double sum = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > one_block[i]) {
      return std::nullopt;
    }
    sum += std::log(one_block[i] / times[i]);
  }
  return sum / static_cast<double>(times.size());
}

}  // namespace

double PredictUs(const StageCurves& curves, Route route, uint64_t size_bytes,
                 const PipelineChoice& choice, uint64_t longest_block_bytes) {
  const std::vector<uint64_t> sizes = BlockSizes(route, size_bytes, choice, longest_block_bytes);
  std::vector<double> ready_us(sizes.size(), 0);
  if (route != Route::kToDevice) {
    Pass(curves.to_host, sizes, &ready_us);
  }
  Pass(curves.network, sizes, &ready_us);
  if (route != Route::kFromDevice) {
    Pass(curves.to_device, sizes, &ready_us);
  }
  return ready_us.back();
}

PipelineChoice ChoosePipeline(const StageCurves& curves, const ChoiceLimits& limits) {
  const std::vector<uint64_t> sizes = MessageSizes(limits);
  PipelineChoice best{.threshold_bytes = limits.largest_bytes};
  const std::vector<RouteTimes> one_block = Times(curves, sizes, best, limits.longest_block_bytes);
  double best_gain = 0;
  const auto consider = [&](PipelineChoice choice) {
    const std::vector<RouteTimes> times = Times(curves, sizes, choice, limits.longest_block_bytes);
    double gain = 0;
    for (size_t i = sizes.size(); i-- > 0;) {
      const std::optional<double> of_size = Gain(one_block[i], times[i]);
      if (!of_size) {
        choice.threshold_bytes = sizes[i];
        break;
      }
      gain += *of_size * Weight(sizes, i);
    }
    if (gain > best_gain + kWorthwhile) {
      best_gain = gain;
      best = choice;
    }
  };
  for (uint32_t most = 2; most <= limits.most_blocks; most *= 2) {
    for (const BlockMode mode : {BlockMode::kAdvanced, BlockMode::kEven}) {
      for (uint32_t fewer = 1; fewer <= most; fewer *= 2) {
        consider({mode, fewer, most, 0});
        consider({mode, most, fewer, 0});
      }
    }
  }
  return best;
}

}  // namespace ferry::tools
