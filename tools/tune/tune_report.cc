#include "tools/tune/tune_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "common/version.h"
#include "tools/display/table.h"
#include "tools/tune/plot.h"

namespace ferry::tools {
namespace {

using engine::BlockMode;
using nlohmann::ordered_json;

constexpr uint64_t kSmallestShownBytes = 16384;
constexpr uint32_t kShownBlocks[] = {2, 4, 8};

std::string Number(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Microseconds(double value) { return Number(value, value < 100 ? 1 : 0); }

struct NamedCurve {
  const char* name;
  const char* json_name;
  const Curve& curve;
  const char* color;
  bool dashed;
};

std::array<NamedCurve, 5> Curves(const TuneResult& result) {
  return {{{"device to pinned host", "to_host", result.copies.to_host, "#1f77b4", false},
           {"pinned host to device", "to_device", result.copies.to_device, "#ff7f0e", false},
           {"device to ordinary host", "pageable_to_host", result.copies.pageable_to_host,
            "#1f77b4", true},
           {"ordinary host to device", "pageable_to_device", result.copies.pageable_to_device,
            "#ff7f0e", true},
           {"network, read", "network", result.network.reads, "#2ca02c", false}}};
}

const char* ModeText(BlockMode mode) {
  switch (mode) {
    case BlockMode::kNaive:
      return "naive";
    case BlockMode::kEven:
      return "even";
    case BlockMode::kAdvanced:
      break;
  }
  return "advanced";
}

// The option's name, and its value as TOML (and JSON) has it.
std::array<std::pair<const char*, ordered_json>, 4> ChosenOptions(const PipelineChoice& choice) {
  return {{{"pipeline_threshold_bytes", choice.threshold_bytes},
           {"pipeline_mode", ModeText(choice.mode)},
           {"pipeline_blocks_to_host", choice.blocks_to_host},
           {"pipeline_blocks_to_device", choice.blocks_to_device}}};
}

std::string WhatDevice(const TuneResult& result) {
  return "device " + std::to_string(result.device) + " of the " + result.backend + " backend" +
         (result.device_info.name.empty() ? "" : " (" + result.device_info.name + ")");
}

std::string WhatNetwork(const TuneResult& result) {
  return "provider " + result.network.description.provider + ", domain " +
         result.network.description.domain +
         (result.loopback ? ", two endpoints of this process" : ", to another node");
}

Table CurveTable(const TuneResult& result) {
  Table table({{"CURVE"},
               {"START-UP us", Align::kRight},
               {"MB/s", Align::kRight},
               {BytesText(result.sizes.back()) + " us", Align::kRight}});
  for (const NamedCurve& row : Curves(result)) {
    table.AddRow({row.name, Microseconds(row.curve.start_up_us()), Number(row.curve.mb_per_s(), 0),
                  Microseconds(row.curve.AloneUs(result.sizes.back()))});
  }
  return table;
}

struct Prediction {
  uint64_t size_bytes;
  double one_block_us;
  double chosen_us;
};

std::vector<Prediction> Predictions(const TuneResult& result) {
  const PipelineChoice one_block;
  std::vector<Prediction> predictions;
  for (const uint64_t size : result.sizes) {
    if (size >= std::min(kSmallestShownBytes, result.sizes.back())) {
      const auto predict = [&](const PipelineChoice& choice) {
        return PredictUs(result.stages(), Route::kBetweenDevices, size, choice,
                         result.longest_block_bytes);
      };
      predictions.push_back({size, predict(one_block), predict(result.choice)});
    }
  }
  return predictions;
}

Table PredictionTable(const TuneResult& result) {
  Table table({{"SIZE", Align::kRight},
               {"ONE BLOCK us", Align::kRight},
               {"WITH THESE us", Align::kRight},
               {"RATIO", Align::kRight}});
  for (const Prediction& row : Predictions(result)) {
    table.AddRow({BytesText(row.size_bytes), Microseconds(row.one_block_us),
                  Microseconds(row.chosen_us), Number(row.chosen_us / row.one_block_us, 2)});
  }
  return table;
}

std::string OptionLines(const TuneResult& result) {
  std::string lines;
  for (const auto& [name, value] : ChosenOptions(result.choice)) {
    lines += std::string(name) + " = " + value.dump() + "\n";
  }
  return lines;
}

// Facts that the figures do not show by themselves.
std::string Remarks(const TuneResult& result) {
  std::string remarks;
  if (result.device_info.direct.cpu || result.device_info.direct.network) {
    remarks +=
        "This device's memory is within reach of CPUs or network: its messages pass no pipeline, "
        "and the options do not matter.\n";
  }
  if (result.choice.mode == BlockMode::kNaive) {
    remarks += "No pipeline is faster than one block at any size measured.\n";
  }
  if (result.loopback) {
    remarks +=
        "The network was measured inside this node; `ferryctl tune --serve` on another and --peer "
        "here measure the way between them.\n";
  }
  return remarks;
}

std::string Comment(const std::string& text) {
  std::istringstream lines(text);
  std::string comment;
  for (std::string line; std::getline(lines, line);) {
    comment += line.empty() ? "#\n" : "# " + line + "\n";
  }
  return comment;
}

std::string NowText() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &utc)};
}

std::string WhatWasMeasured(const TuneResult& result) {
  return "Measured: " + WhatDevice(result) + ";\n" + WhatNetwork(result) + ";\nmedians of " +
         std::to_string(result.repetitions) + ".\n\n" + CurveTable(result).Text() +
         "\nPredicted from that, for messages from device to device on another node:\n\n" +
         PredictionTable(result).Text() + "\n" + Remarks(result);
}

Panel CurvePanel(const TuneResult& result) {
  Panel panel;
  panel.title = "One copy, or one read over the network, alone";
  panel.y_label = "time, us";
  panel.y_is_logarithmic = true;
  for (const NamedCurve& named : Curves(result)) {
    PlotLine line{named.name, named.color, named.dashed, true, {}};
    for (const CurvePoint& point : named.curve.points()) {
      line.points.push_back(
          {static_cast<double>(point.size_bytes), std::max(point.alone_us, 0.01)});
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

Panel PipelinePanel(const TuneResult& result) {
  const PipelineChoice one_block;
  const StageCurves stages = result.stages();
  Panel panel;
  panel.title = "A message from device to device on another node, predicted";
  panel.y_label = "time over that of one block";
  const auto ratios = [&](const PipelineChoice& choice) {
    std::vector<PlotPoint> points;
    const auto from = std::max<uint64_t>(4096, result.sizes.front());
    const auto predict = [&](uint64_t size, const PipelineChoice& by) {
      return PredictUs(stages, Route::kBetweenDevices, size, by, result.longest_block_bytes);
    };
    for (uint64_t size = from; size <= result.sizes.back();
         size += std::max<uint64_t>(size / 4, 1)) {
      points.push_back(
          {static_cast<double>(size), predict(size, choice) / predict(size, one_block)});
    }
    return points;
  };
  constexpr const char* kColors[] = {"#9467bd", "#8c564b", "#7f7f7f"};
  for (size_t i = 0; i < std::size(kShownBlocks); ++i) {
    panel.lines.push_back({std::to_string(kShownBlocks[i]) + " blocks, advanced", kColors[i], true,
                           false,
                           ratios({BlockMode::kAdvanced, kShownBlocks[i], kShownBlocks[i], 0})});
  }
  panel.lines.push_back({"as chosen", "#d62728", false, false, ratios(result.choice)});
  if (result.choice.mode != BlockMode::kNaive) {
    panel.marked_x = static_cast<double>(result.choice.threshold_bytes);
    panel.mark = "one block up to " + BytesText(result.choice.threshold_bytes);
  }
  return panel;
}

}  // namespace

std::string TuneFragment(const TuneResult& result) {
  return Comment(std::string("Written by ferryctl tune ") + kFerryVersion + " on " + result.host +
                 ", " + NowText() +
                 ".\nFor ferryd: --config_file names this file, or its last lines go into "
                 "ferryd.toml.\n\n" +
                 WhatWasMeasured(result)) +
         "\n" + OptionLines(result);
}

std::string TunePlot(const TuneResult& result) {
  return Svg("ferryctl tune: " + result.host, WhatDevice(result) + "; " + WhatNetwork(result),
             {CurvePanel(result), PipelinePanel(result)});
}

std::string TuneText(const TuneResult& result) {
  return WhatWasMeasured(result) + "\n" + OptionLines(result);
}

ordered_json TuneJson(const TuneResult& result) {
  ordered_json curves = ordered_json::object();
  for (const NamedCurve& named : Curves(result)) {
    ordered_json points = ordered_json::array();
    for (const CurvePoint& point : named.curve.points()) {
      points.push_back({{"size_bytes", point.size_bytes},
                        {"alone_us", point.alone_us},
                        {"queued_us", point.queued_us}});
    }
    curves[named.json_name] = {{"start_up_us", named.curve.start_up_us()},
                               {"mb_per_s", named.curve.mb_per_s()},
                               {"points", points}};
  }
  ordered_json predictions = ordered_json::array();
  for (const Prediction& row : Predictions(result)) {
    predictions.push_back({{"size_bytes", row.size_bytes},
                           {"one_block_us", row.one_block_us},
                           {"chosen_us", row.chosen_us}});
  }
  ordered_json options = ordered_json::object();
  for (const auto& [name, value] : ChosenOptions(result.choice)) {
    options[name] = value;
  }
  return {{"host", result.host},
          {"backend", result.backend},
          {"device", result.device},
          {"provider", result.network.description.provider},
          {"domain", result.network.description.domain},
          {"loopback", result.loopback},
          {"repetitions", result.repetitions},
          {"curves", curves},
          {"predictions", predictions},
          {"options", options}};
}

}  // namespace ferry::tools
