#include "tools/ferrysim/paper.h"
#include "tools/tune/plot.h"

namespace ferry::sim {
namespace {

using tools::Panel;
using tools::PlotLine;
using tools::PlotPoint;
using tools::Svg;

constexpr const char* kColors[] = {"#1f77b4", "#ff7f0e", "#9467bd", "#2ca02c", "#d62728"};

const char* ColorOf(SendKind kind) { return kColors[static_cast<size_t>(kind)]; }

std::string LabelOf(SendKind kind) {
  switch (kind) {
    case SendKind::kRegular:
      return "stream, regular";
    case SendKind::kReady:
      return "stream, ready";
    case SendKind::kBounce:
      return "stream, bounce cells";
    case SendKind::kCpu:
      break;
  }
  return "CPU-triggered";
}

Panel RanksPanel(const std::string& title, const std::string& y_label) {
  Panel panel;
  panel.title = title;
  panel.y_label = y_label;
  panel.x_label = "ranks";
  panel.x_is_bytes = false;
  return panel;
}

PlotLine LineOf(SendKind kind) {
  PlotLine line;
  line.name = LabelOf(kind);
  line.color = ColorOf(kind);
  line.dashed = kind == SendKind::kBounce;
  return line;
}

PlotLine MeasuredOf(SendKind kind) {
  PlotLine line = LineOf(kind);
  line.name = "measured, " + std::string(kind == SendKind::kCpu     ? "Cray MPICH"
                                         : kind == SendKind::kReady ? "Rsend"
                                                                    : "Send");
  line.is_bare = line.marks = true;
  return line;
}

constexpr SendKind kMeasured[] = {SendKind::kReady, SendKind::kRegular, SendKind::kCpu};

Panel ScalingPanel(const PaperRuns::Problem& problem) {
  Panel panel =
      RanksPanel(std::string("Game of Life, ") + problem.published.name, "speed-up over one rank");
  for (const auto& [kind, curve] : problem.curves) {
    PlotLine line = LineOf(kind);
    for (const ScalingPoint& point : curve) {
      line.points.push_back(
          {static_cast<double>(point.ranks), SpeedupOf(problem, point.iteration_us)});
    }
    panel.lines.push_back(line);
  }
  for (const SendKind kind : kMeasured) {
    PlotLine line = MeasuredOf(kind);
    for (const PublishedIteration& measured : PublishedIterations()) {
      if (measured.cells == problem.published.cells) {
        line.points.push_back(
            {static_cast<double>(measured.ranks), SpeedupOf(problem, measured.Of(kind))});
      }
    }
    panel.lines.push_back(line);
  }
  return panel;
}

double Percent(double cpu_us, double us) { return 100 * (cpu_us / us - 1); }

// Against CPU-triggered sends, in per cent, by the mean length of an edge.
Panel EdgePanel(const PaperRuns::Problem& problem) {
  Panel panel;
  panel.title = std::string("Game of Life, ") + problem.published.name;
  panel.y_label = "faster than CPU-triggered, %";
  panel.x_label = "mean length of an edge";
  const Curve& cpu = problem.curves.at(SendKind::kCpu);
  const auto edge = [&](uint32_t ranks) {
    return MeanEdgeBytes(ranks, problem.published.cells, 8);
  };
  for (const auto& [kind, curve] : problem.curves) {
    if (kind == SendKind::kCpu) {
      continue;
    }
    PlotLine line = LineOf(kind);
    for (size_t i = 0; i < curve.size() && i < cpu.size(); ++i) {
      line.points.push_back(
          {edge(curve[i].ranks), Percent(cpu[i].iteration_us, curve[i].iteration_us)});
    }
    panel.lines.push_back(line);
  }
  for (const SendKind kind : {SendKind::kReady, SendKind::kRegular}) {
    PlotLine line = MeasuredOf(kind);
    for (const PublishedIteration& measured : PublishedIterations()) {
      if (measured.cells == problem.published.cells) {
        line.points.push_back({edge(measured.ranks), Percent(measured.cpu_us, measured.Of(kind))});
      }
    }
    panel.lines.push_back(line);
  }
  return panel;
}

void AddSeries(const std::vector<Series>& all, double Sample::*value, Panel* panel) {
  for (size_t i = 0; i < all.size(); ++i) {
    PlotLine line;
    line.name = all[i].name;
    line.color = kColors[i % std::size(kColors)];
    line.marks = true;
    for (const Sample& sample : all[i].samples) {
      line.points.push_back({sample.x, sample.*value});
    }
    panel->lines.push_back(line);
  }
}

}  // namespace

std::string ScalingPlot(const PaperRuns& runs) {
  std::vector<Panel> panels;
  for (const PaperRuns::Problem& problem : runs.problems) {
    panels.push_back(ScalingPanel(problem));
  }
  return Svg("Strong scaling of a halo exchange", "ferrysim; dots: measured on Frontier", panels);
}

std::string EdgePlot(const PaperRuns& runs) {
  std::vector<Panel> panels;
  for (const PaperRuns::Problem& problem : runs.problems) {
    panels.push_back(EdgePanel(problem));
  }
  return Svg("Speed-up by edge length", "ferrysim; dots: measured on Frontier", panels);
}

std::string BeyondPlot(const PaperRuns& runs) {
  Panel panel = RanksPanel("Game of Life, 30 GB, eight ranks on a node", "iteration, us");
  panel.y_is_logarithmic = true;
  for (const auto& [kind, curve] : runs.beyond) {
    PlotLine line = LineOf(kind);
    line.marks = true;
    for (const ScalingPoint& point : curve) {
      line.points.push_back({static_cast<double>(point.ranks), point.iteration_us});
    }
    panel.lines.push_back(line);
  }
  Panel topologies = RanksPanel("Ready sends, 2 GB, on two topologies", "iteration, us");
  AddSeries(runs.topologies, &Sample::time_us, &topologies);
  return Svg("Beyond the paper", "ferrysim", {panel, topologies});
}

std::string EntriesPlot(const PaperRuns& runs) {
  Panel time = RanksPanel("64 ranks, 2 GB, eight ranks on a node", "iteration, us");
  time.x_label = "deferred-work entries of a NIC";
  AddSeries(runs.entries, &Sample::time_us, &time);
  Panel software = RanksPanel("What ran in the daemons instead", "% of deferred operations");
  software.x_label = time.x_label;
  AddSeries(runs.entries, &Sample::software_percent, &software);
  return Svg("NICs with few entries", "ferrysim", {time, software});
}

std::string AllreducePlot(const PaperRuns& runs) {
  Panel ranks = RanksPanel("8 bytes, eight ranks on a node", "allreduce, us");
  AddSeries(runs.allreduce_ranks, &Sample::time_us, &ranks);
  Panel bytes;
  bytes.title = "1,024 ranks, eight on a node";
  bytes.y_label = "allreduce, us";
  bytes.y_is_logarithmic = true;
  AddSeries(runs.allreduce_bytes, &Sample::time_us, &bytes);
  return Svg("Allreduce by Ferry's schedules", "ferrysim", {ranks, bytes});
}

}  // namespace ferry::sim
