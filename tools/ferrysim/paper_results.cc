#include "tools/ferrysim/paper_results.h"

#include <array>
#include <cstdio>

#include "tools/tune/plot.h"

namespace ferry::sim {
namespace {

// ------------------------------------------------------------------------------------------- plots

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

// ------------------------------------------------------------------------------------------ tables

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

const char* NameInPaper(SendKind kind) {
  return kind == SendKind::kCpu     ? "Cray MPICH"
         : kind == SendKind::kReady ? "Stream Rsend"
                                    : "Stream Send";
}

struct Best {
  double speedup = 0;
  uint32_t nodes = 0;
  uint32_t ranks = 0;
};

Best BestOf(const PaperRuns::Problem& problem, const Curve& curve) {
  Best best;
  for (const ScalingPoint& point : curve) {
    // More ranks for less than 0.1 % are not better.
    if (SpeedupOf(problem, point.fastest_us) > best.speedup * 1.001) {
      best = {SpeedupOf(problem, point.fastest_us), point.fastest_nodes, point.ranks};
    }
  }
  return best;
}

std::string BestTable(const PaperRuns& runs) {
  std::string text =
      "| problem | sends | paper | at nodes/ranks | model | at nodes/ranks | model, same ranks | "
      "difference there |\n|---|---|--:|--:|--:|--:|--:|--:|\n";
  for (const PaperRuns::Problem& problem : runs.problems) {
    for (const PublishedBest& row : TableFive()) {
      if (row.cells != problem.published.cells) {
        continue;
      }
      const Curve& curve = problem.curves.at(row.send);
      const Best best = BestOf(problem, curve);
      double there = 0;
      for (const ScalingPoint& point : curve) {
        there = point.ranks == row.ranks ? SpeedupOf(problem, point.fastest_us) : there;
      }
      if (there == 0) {
        continue;  // not simulated
      }
      text +=
          Format("| %s | %s | %.2f | %u/%u | %.1f | %u/%u | %.1f | %+.0f %% |\n",
                 problem.published.name, NameInPaper(row.send), row.speedup, row.nodes, row.ranks,
                 best.speedup, best.nodes, best.ranks, there, 100 * (there / row.speedup - 1));
    }
  }
  return text;
}

std::string Beside(double model, double measured) {
  return Format("%.1f | %.1f | %+.0f %%", measured, model, 100 * (model / measured - 1));
}

std::string IterationTable(const PaperRuns::Problem& problem) {
  std::string text =
      "| ranks | edge, B | ready: measured | model | | regular: measured | model | | CPU: measured "
      "| model | | CPU, eager below 4 KiB |\n"
      "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const PublishedIteration& measured : PublishedIterations()) {
    if (measured.cells != problem.published.cells ||
        measured.ranks > problem.early_cpu.back().ranks) {
      continue;
    }
    std::string row =
        Format("| %u | %.0f", measured.ranks, MeanEdgeBytes(measured.ranks, measured.cells, 8));
    for (const SendKind kind : {SendKind::kReady, SendKind::kRegular, SendKind::kCpu}) {
      for (const ScalingPoint& point : problem.curves.at(kind)) {
        if (point.ranks == measured.ranks) {
          row += " | " + Beside(point.iteration_us, measured.Of(kind));
        }
      }
    }
    for (const ScalingPoint& point : problem.early_cpu) {
      if (point.ranks == measured.ranks) {
        row += Format(" | %.1f", point.iteration_us);
      }
    }
    text += row + " |\n";
  }
  return text;
}

std::string SeriesTable(const std::vector<Series>& all, const std::string& x_name) {
  std::string text = "| " + x_name;
  std::string rule = "|--:";
  for (const Series& series : all) {
    text += " | " + series.name;
    rule += "|--:";
  }
  text += " |\n" + rule + "|\n";
  for (size_t i = 0; i < all.front().samples.size(); ++i) {
    text += Format("| %.0f", all.front().samples[i].x);
    for (const Series& series : all) {
      text += i < series.samples.size() ? Format(" | %.1f", series.samples[i].time_us) : " |";
    }
    text += " |\n";
  }
  return text;
}

std::string EntriesTable(const std::vector<Series>& all) {
  std::string text = "| entries";
  std::string rule = "|--:";
  for (const Series& series : all) {
    text += " | " + series.name + ", us | in software, %";
    rule += "|--:|--:";
  }
  text += " |\n" + rule + "|\n";
  for (size_t i = 0; i < all.front().samples.size(); ++i) {
    text += Format("| %.0f", all.front().samples[i].x);
    for (const Series& series : all) {
      text +=
          Format(" | %.1f | %.0f", series.samples[i].time_us, series.samples[i].software_percent);
    }
    text += " |\n";
  }
  return text;
}

std::string BeyondTable(const Curves& curves) {
  std::vector<Series> all;
  for (const auto& [kind, curve] : curves) {
    Series series{.name = SendKindName(kind), .samples = {}};
    for (const ScalingPoint& point : curve) {
      series.samples.push_back(
          {.x = static_cast<double>(point.ranks), .time_us = point.iteration_us});
    }
    all.push_back(series);
  }
  return SeriesTable(all, "ranks");
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

std::string PaperTables(const PaperRuns& runs) {
  std::string text =
      "# Simulated halo exchanges and allreduces\n\nMade by `./dev sim`, as the plots beside it; "
      "[simulation.md](../../simulation.md) says what is modelled and what to believe.\n\n"
      "## The paper's Table V: highest speed-up over one rank\n\n" +
      BestTable(runs);
  for (const PaperRuns::Problem& problem : runs.problems) {
    text += "\n## " + std::string(problem.published.name) +
            ": us for an iteration, mean over 1 to 8 ranks on a node\n\n" +
            Format("%.2f ps for a cell, fitted to one rank.\n\n", problem.ps_per_cell) +
            IterationTable(problem);
  }
  const auto add = [&](const char* title, bool is_known, const auto& table) {
    text += is_known ? "\n## " + std::string(title) + "\n\n" + table() : "";
  };
  add("30 GB, eight ranks on a node: us for an iteration", !runs.beyond.empty(),
      [&] { return BeyondTable(runs.beyond); });
  add("2 GB, eight ranks on a node, ready sends: us for an iteration", !runs.topologies.empty(),
      [&] { return SeriesTable(runs.topologies, "ranks"); });
  add("NICs with few deferred-work entries: 2 GB, 64 ranks, eight on a node", !runs.entries.empty(),
      [&] { return EntriesTable(runs.entries); });
  add("Allreduce of 8 bytes, eight ranks on a node: us", !runs.allreduce_ranks.empty(),
      [&] { return SeriesTable(runs.allreduce_ranks, "ranks"); });
  add("Allreduce of 1,024 ranks, eight on a node: us", !runs.allreduce_bytes.empty(),
      [&] { return SeriesTable(runs.allreduce_bytes, "bytes"); });
  return text;
}

}  // namespace ferry::sim
