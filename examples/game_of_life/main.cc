// game_of_life: a cellular automaton on a board that the ranks divide among themselves, all of its
// generations enqueued on streams before the first is over.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "examples/common/options.h"
#include "examples/common/traffic.h"
#include "examples/game_of_life/rle.h"
#include "examples/game_of_life/tile.h"

namespace life {
namespace {

using Clock = std::chrono::steady_clock;
using examples::ProcessGrid;
using examples::Triple;

constexpr int kPatternTag = 300;
constexpr int kCellsTag = 301;

struct Arguments {
  std::string pattern;
  std::string output;
  Triple size = {0, 0, 1};  // 0: chosen
  Triple grid = {0, 0, 1};
  int generations = 1000;
  bool is_torus = true;
  bool check = true;
  ferry::Sends sends = ferry::Sends::kReady;
};

bool Parse(int argc, char** argv, bool speak, Arguments* arguments, int* exit_code) {
  examples::Options options("game_of_life [OPTION]...");
  options.AddText("--pattern", "FILE",
                  "an .rle file, put in the middle of the board (a random soup)",
                  &arguments->pattern);
  options.AddText("--output", "FILE", "where the last generation is written, as .rle",
                  &arguments->output);
  options.Add("--size", "WxH", "cells of the board (256x192, or the pattern and 64 around it)",
              "a size such as 256x192",
              [&](std::string_view text) { return examples::ReadAxes(text, 2, &arguments->size); });
  options.Add("--grid", "NxN", "ranks along each axis (those that exchange the least)",
              "a box such as 2x2",
              [&](std::string_view text) { return examples::ReadAxes(text, 2, &arguments->grid); });
  options.AddCount("--generations", "how many", 0, &arguments->generations);
  options.AddFlag("--plane", "beyond the board's ends all is dead; else they meet",
                  &arguments->is_torus, false);
  options.Add("--sends", "KIND", "ready, standard, cpu or staged (ready)",
              "ready, standard, cpu or staged",
              [&](std::string_view text) { return examples::ReadSends(text, &arguments->sends); });
  options.AddFlag("--no-check", "no comparison with a serial run", &arguments->check, false);
  return options.Parse(argc, argv, speak, exit_code);
}

// Fills the board, alike on every rank, so that about a third of the cells are alive.
void FillWithSoup(Pattern* board) {
  uint64_t state = 1;
  for (uint8_t& cell : board->cells) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    cell = (state >> 33) % 3 == 0 ? 1 : 0;
  }
}

// Rank 0's text, on all ranks.
std::string Share(const ferry::Session& session, std::string text) {
  uint64_t size = text.size();
  if (session.rank() == 0) {
    for (int rank = 1; rank < session.size(); ++rank) {
      ferry::Request::Send(&size, sizeof(size), rank, kPatternTag).Wait();
      ferry::Request::Send(text.data(), size, rank, kPatternTag).Wait();
    }
    return text;
  }
  ferry::Request::Receive(&size, sizeof(size), 0, kPatternTag).Wait();
  text.resize(size);
  ferry::Request::Receive(text.data(), size, 0, kPatternTag).Wait();
  return text;
}

// Makes the board at the beginning; false on all ranks, with the reason, if there is none.
bool MakeBoard(const ferry::Session& session, const Arguments& arguments, Pattern* board,
               std::string* mistake) {
  Pattern pattern;
  if (!arguments.pattern.empty()) {
    std::ostringstream text;
    if (session.rank() == 0) {
      text << std::ifstream(arguments.pattern).rdbuf();
    }
    const std::string shared = Share(session, text.str());
    if (shared.empty()) {
      *mistake = arguments.pattern + " cannot be read, or is empty";
      return false;
    }
    if (!ReadRle(shared, &pattern, mistake)) {
      *mistake = arguments.pattern + ": " + *mistake;
      return false;
    }
  }
  const bool has_pattern = pattern.width > 0;
  const Triple chosen =
      has_pattern ? Triple{pattern.width + 128, pattern.height + 128, 1} : Triple{256, 192, 1};
  board->rule = pattern.rule;
  board->width = arguments.size[0] != 0 ? arguments.size[0] : chosen[0];
  board->height = arguments.size[1] != 0 ? arguments.size[1] : chosen[1];
  if (board->width < pattern.width || board->height < pattern.height) {
    *mistake = "the pattern has " + std::to_string(pattern.width) + " x " +
               std::to_string(pattern.height) + " cells: make --size larger";
    return false;
  }
  board->cells.assign(static_cast<size_t>(board->width) * static_cast<size_t>(board->height), 0);
  if (!has_pattern) {
    FillWithSoup(board);
  }
  const int left = (board->width - pattern.width) / 2;
  const int top = (board->height - pattern.height) / 2;
  for (int y = 0; y < pattern.height; ++y) {
    for (int x = 0; x < pattern.width; ++x) {
      board->At(left + x, top + y) = pattern.At(x, y);
    }
  }
  return true;
}

std::optional<ProcessGrid> ChooseGrid(const Arguments& arguments, const Pattern& board, int ranks,
                                      std::string* mistake) {
  const auto refuse = [&](const std::string& what) {
    *mistake = what;
    return std::nullopt;
  };
  const Triple with_edge = {board.width + 2, board.height + 2, 3};
  if (arguments.grid[0] == 0) {
    const auto chosen = ProcessGrid::Choose(ranks, with_edge);
    return chosen ? chosen : refuse("the board has too few cells for so many ranks");
  }
  const ProcessGrid grid(arguments.grid);
  const std::string text = "--grid " + examples::TimesText(grid.counts(), 2);
  if (grid.ranks() != ranks) {
    return refuse(text + " has places for " + std::to_string(grid.ranks()) +
                  " ranks, but the job has " + std::to_string(ranks));
  }
  return grid.Fits(with_edge) ? std::optional(grid) : refuse(text + " leaves ranks without a cell");
}

// Collective: all cells, on rank 0.
Pattern Collect(const ferry::Session& session, const Pattern& board, const ProcessGrid& grid,
                const Tile& tile) {
  const std::vector<uint8_t> mine = tile.Cells();
  ferry::Request send = ferry::Request::Send(mine.data(), mine.size(), 0, kCellsTag);
  Pattern all = board;
  for (int rank = 0; session.rank() == 0 && rank < session.size(); ++rank) {
    const Triple place = grid.PlaceOf(rank);
    const Span columns = SpanOf(board.width, grid.counts()[0], place[0]);
    const Span rows = SpanOf(board.height, grid.counts()[1], place[1]);
    const int width = columns.last - columns.first;
    std::vector<uint8_t> cells(static_cast<size_t>(width) *
                               static_cast<size_t>(rows.last - rows.first));
    ferry::Request::Receive(cells.data(), cells.size(), rank, kCellsTag).Wait();
    for (size_t i = 0; i < cells.size(); ++i) {
      const int at = static_cast<int>(i);
      all.At(columns.first + at % width, rows.first + at / width) = cells[i];
    }
  }
  send.Wait();
  return all;
}

int Report(const Arguments& arguments, const Pattern& board, const Pattern& after, double seconds) {
  std::printf("time: %.3f s, %.1f us per generation; %zu cells alive, %zu at first\n", seconds,
              seconds * 1e6 / std::max(arguments.generations, 1), after.Living(), board.Living());
  if (!arguments.output.empty()) {
    std::ofstream file(arguments.output);
    file << WriteRle(after);
    file.close();
    if (!file) {
      std::printf("game_of_life: FAIL: %s cannot be written\n", arguments.output.c_str());
      return 1;
    }
  }
  if (!arguments.check) {
    std::printf("game_of_life: DONE, not compared with a serial run\n");
    return 0;
  }
  if (RunSerially(board, arguments.generations, arguments.is_torus).cells != after.cells) {
    std::printf("game_of_life: FAIL: the last generation is not that of a serial run\n");
    return 1;
  }
  std::printf("every cell equal to the serial run\ngame_of_life: PASS\n");
  return 0;
}

int Run(const ferry::Session& session, const Arguments& arguments) {
  Pattern board;
  std::string mistake;
  std::optional<ProcessGrid> grid;
  if (MakeBoard(session, arguments, &board, &mistake)) {
    grid = ChooseGrid(arguments, board, session.size(), &mistake);
  }
  if (!grid) {
    if (session.rank() == 0) {
      std::fprintf(stderr, "game_of_life: %s\n", mistake.c_str());
    }
    return 2;
  }
  ferry_stream stream = nullptr;
  ferry::Check(ferry_stream_create(0, &stream));
  Pattern after;
  double seconds = 0;
  {
    Tile tile(board, *grid, arguments.is_torus, arguments.sends, stream);
    ferry::Check(ferry_barrier());
    const auto start = Clock::now();
    tile.Enqueue(arguments.generations);
    tile.Wait();
    ferry::Check(ferry_barrier());
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    after = Collect(session, board, *grid, tile);
  }
  ferry::Check(ferry_stream_destroy(&stream));
  if (session.rank() != 0) {
    return 0;
  }
  std::printf(
      "game_of_life: %d x %d cells of a %s, rule %s, ranks %s, %d generations, on %s, "
      "%s sends\n",
      board.width, board.height, arguments.is_torus ? "torus" : "plane", board.rule.Text().c_str(),
      examples::TimesText(grid->counts(), 2).c_str(), arguments.generations,
      examples::NodesText(session).c_str(), examples::NameOf(arguments.sends));
  return Report(arguments, board, after, seconds);
}

}  // namespace
}  // namespace life

int main(int argc, char** argv) {
  try {
    const ferry::Session session;
    life::Arguments arguments;
    int exit_code = 0;
    if (!life::Parse(argc, argv, session.rank() == 0, &arguments, &exit_code)) {
      return exit_code;
    }
    return life::Run(session, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "game_of_life: rank %d: %s\n", ferry_rank(), error.what());
    return 1;
  }
}
