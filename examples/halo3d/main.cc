// halo3d: a 27-point stencil in space whose halos are exchanged on streams: by ready and by
// standard sends that the streams trigger, and, for comparison, by CPUs that synchronise with them.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/options.h"
#include "examples/common/traffic.h"
#include "examples/halo3d/space.h"

namespace halo3d {
namespace {

using Clock = std::chrono::steady_clock;
using examples::ProcessGrid;

constexpr int kValuesTag = 400;
constexpr int kTurns = 5;

struct Arguments {
  Triple cells = {48, 48, 48};
  Triple grid = {0, 0, 0};  // 0: chosen
  int iterations = 100;
  bool is_periodic = true;
  bool check = true;
  std::optional<ferry::Sends> sends;  // absent: all, in turns
};

bool Parse(int argc, char** argv, bool speak, Arguments* arguments, int* exit_code) {
  examples::Options options("halo3d [OPTION]...");
  options.Add(
      "--size", "NxNxN", "cells of the whole (48x48x48)", "a size such as 48x48x48",
      [&](std::string_view text) { return examples::ReadAxes(text, 3, &arguments->cells); });
  options.Add("--grid", "NxNxN", "ranks along each axis (those that exchange the least)",
              "a box such as 2x2x1",
              [&](std::string_view text) { return examples::ReadAxes(text, 3, &arguments->grid); });
  options.AddCount("--iterations", "how many, of each way", 1, &arguments->iterations);
  options.AddFlag("--open", "beyond the ends of the axes all is 0; else they meet",
                  &arguments->is_periodic, false);
  options.Add("--sends", "KIND", "ready, standard, cpu or staged (all of them, in turns)",
              "ready, standard, cpu or staged", [&](std::string_view text) {
                return examples::ReadSends(text, &arguments->sends.emplace());
              });
  options.AddFlag("--no-check", "no comparison with a serial solve", &arguments->check, false);
  return options.Parse(argc, argv, speak, exit_code);
}

std::optional<ProcessGrid> ChooseGrid(const Arguments& arguments, int ranks, std::string* mistake) {
  Triple with_edge = arguments.cells;
  for (int& count : with_edge) {
    count += 2;
  }
  if (arguments.grid[0] == 0) {
    const auto chosen = ProcessGrid::Choose(ranks, with_edge);
    *mistake =
        "no box of " + std::to_string(ranks) + " ranks leaves each a cell: make --size larger";
    return chosen;
  }
  const ProcessGrid grid(arguments.grid);
  const std::string text = "--grid " + examples::TimesText(grid.counts(), 3);
  if (grid.ranks() != ranks) {
    *mistake = text + " has places for " + std::to_string(grid.ranks()) +
               " ranks, but the job has " + std::to_string(ranks);
    return std::nullopt;
  }
  *mistake = text + " leaves ranks without a cell";
  return grid.Fits(with_edge) ? std::optional(grid) : std::nullopt;
}

struct Way {
  ferry::Sends sends;
  std::unique_ptr<Block> block;
  double seconds = 0;
};

// Collective: whether all ranks have what a serial solve has; known to rank 0.
bool IsRight(const ferry::Session& session, const Arguments& arguments, const ProcessGrid& grid,
             const Block& block, const std::vector<double>& serial) {
  const std::vector<double> mine = block.Values();
  ferry::Request send =
      ferry::Request::Send(mine.data(), mine.size() * sizeof(double), 0, kValuesTag);
  bool is_right = true;
  for (int rank = 0; session.rank() == 0 && rank < session.size(); ++rank) {
    const std::vector<double> wanted =
        ValuesOf(serial, arguments.cells, PartOf(arguments.cells, grid, rank));
    std::vector<double> values(wanted.size());
    ferry::Request::Receive(values.data(), values.size() * sizeof(double), rank, kValuesTag).Wait();
    is_right = is_right && values == wanted;
  }
  send.Wait();
  return is_right;
}

// Collective. The ways take turns, so that a disturbance of the machine hits all alike.
void Measure(const Arguments& arguments, std::vector<Way>* ways) {
  for (int turn = 0; turn < kTurns; ++turn) {
    const int iterations =
        arguments.iterations * (turn + 1) / kTurns - arguments.iterations * turn / kTurns;
    for (Way& way : *ways) {
      ferry::Check(ferry_barrier());
      const auto start = Clock::now();
      way.block->Enqueue(iterations);
      way.block->Wait();
      ferry::Check(ferry_barrier());
      way.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    }
  }
}

int Run(const ferry::Session& session, const Arguments& arguments) {
  std::string mistake;
  const auto grid = ChooseGrid(arguments, session.size(), &mistake);
  const bool speak = session.rank() == 0;
  if (!grid) {
    if (speak) {
      std::fprintf(stderr, "halo3d: %s\n", mistake.c_str());
    }
    return 2;
  }
  ferry_stream stream = nullptr;
  ferry::Check(ferry_stream_create(0, &stream));
  std::vector<Way> ways;
  for (const ferry::Sends sends : examples::kAllSends) {
    if (!arguments.sends || *arguments.sends == sends) {
      ways.push_back({sends, std::make_unique<Block>(arguments.cells, *grid, arguments.is_periodic,
                                                     sends, stream)});
    }
  }
  Measure(arguments, &ways);
  if (speak) {
    std::printf("halo3d: %s cells, ranks %s, %zu neighbours, %d iterations, on %s\n",
                examples::TimesText(arguments.cells, 3).c_str(),
                examples::TimesText(grid->counts(), 3).c_str(), ways[0].block->neighbour_count(),
                arguments.iterations, examples::NodesText(session).c_str());
  }
  std::vector<double> serial;
  if (speak && arguments.check) {
    serial = SolveSerially(arguments.cells, arguments.iterations, arguments.is_periodic);
  }
  bool all_right = true;
  for (Way& way : ways) {
    const bool is_right =
        !arguments.check || IsRight(session, arguments, *grid, *way.block, serial);
    if (speak) {
      std::printf("%-8s sends: %.1f us per iteration%s\n", examples::NameOf(way.sends),
                  way.seconds * 1e6 / arguments.iterations,
                  is_right ? "" : ": not what a serial solve has");
    }
    all_right = all_right && is_right;
    way.block.reset();
  }
  ferry::Check(ferry_stream_destroy(&stream));
  if (speak) {
    std::printf("halo3d: %s\n", !all_right         ? "FAIL"
                                : !arguments.check ? "DONE, not compared with a serial solve"
                                                   : "PASS");
  }
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace halo3d

int main(int argc, char** argv) {
  try {
    const ferry::Session session;
    halo3d::Arguments arguments;
    int exit_code = 0;
    if (!halo3d::Parse(argc, argv, session.rank() == 0, &arguments, &exit_code)) {
      return exit_code;
    }
    return halo3d::Run(session, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halo3d: rank %d: %s\n", ferry_rank(), error.what());
    return 1;
  }
}
