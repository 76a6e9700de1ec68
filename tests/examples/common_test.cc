// Tests of the code that the examples share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "examples/common/arguments.h"
#include "examples/common/process_grid.h"
#include "examples/common/stencil.h"
#include "examples/stencil3d/block.h"
#include "examples/stencil5/slab.h"

namespace examples {
namespace {

using testing::HasSubstr;

// ---- Arguments

constexpr StencilProgram kPlane = {"plane", "a plane", {20, 10, 1}, 2, true};
constexpr StencilProgram kSpace = {"space", "a space", {9, 9, 9}, 3, false};

struct Parsed {
  bool good = false;
  int exit_code = 0;
  StencilArguments arguments;
  std::string error;
};

Parsed Parse(const StencilProgram& program, std::vector<std::string> flags) {
  flags.insert(flags.begin(), program.name);
  std::vector<char*> argv;
  argv.reserve(flags.size() + 1);
  for (std::string& flag : flags) {
    argv.push_back(flag.data());
  }
  argv.push_back(nullptr);
  Parsed parsed;
  testing::internal::CaptureStderr();
  parsed.good = ParseArguments(static_cast<int>(flags.size()), argv.data(), program, true,
                               &parsed.arguments, &parsed.exit_code);
  parsed.error = testing::internal::GetCapturedStderr();
  return parsed;
}

std::string MistakeIn(const StencilProgram& program, const std::vector<std::string>& flags) {
  const Parsed parsed = Parse(program, flags);
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.exit_code, 2);
  return parsed.error;
}

TEST(StencilArgumentsTest, HaveDefaults) {
  const Parsed parsed = Parse(kPlane, {});
  ASSERT_TRUE(parsed.good);
  EXPECT_EQ(parsed.arguments.points, kPlane.points);
  EXPECT_EQ(parsed.arguments.memory, Memory::kDevice);
  EXPECT_EQ(parsed.arguments.mode, Mode::kDirect);
  EXPECT_FALSE(parsed.arguments.check.has_value());
}

TEST(StencilArgumentsTest, AreRead) {
  const Parsed parsed = Parse(kSpace, {"--size=5x6x7", "--grid", "1x2x3", "--iterations", "0",
                                       "--memory", "heap", "--compare", "--no-check"});
  ASSERT_TRUE(parsed.good) << parsed.error;
  EXPECT_EQ(parsed.arguments.points, (Triple{5, 6, 7}));
  EXPECT_EQ(parsed.arguments.grid, (Triple{1, 2, 3}));
  EXPECT_EQ(parsed.arguments.iterations, 0);
  EXPECT_EQ(parsed.arguments.memory, Memory::kHeap);
  EXPECT_EQ(parsed.arguments.mode, Mode::kCompared);
  EXPECT_EQ(parsed.arguments.check, false);
  EXPECT_EQ(Parse(kPlane, {"--threads", "3"}).arguments.threads, 3);
}

TEST(StencilArgumentsTest, OneNumberStandsForAllAxes) {
  EXPECT_EQ(Parse(kSpace, {"--size", "12"}).arguments.points, (Triple{12, 12, 12}));
  EXPECT_EQ(Parse(kPlane, {"--size", "12"}).arguments.points, (Triple{12, 12, 1}));
}

TEST(StencilArgumentsTest, MistakesAreNamed) {
  for (const char* size : {"2", "-5", "5x5", "5x5x5x5", "5x2x5", "5x5x", "x5x5", "5 x 5 x 5", "",
                           "1048577", "99999999999"}) {
    EXPECT_THAT(MistakeIn(kSpace, {"--size", size}),
                HasSubstr(std::string("space: --size ") + size +
                          ": must be one number, or 3 with an x between them, from 3"));
  }
  EXPECT_EQ(MistakeIn(kSpace, {"--iterations", "-1"}),
            "space: --iterations -1: not a number from 0\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--iterations", "1e3"}),
            "space: --iterations 1e3: not a number from 0\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--memory", "gpu"}),
            "space: --memory gpu: must be device, heap or private\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--memory", "pinned"}),
            "space: --memory pinned: must be device, heap or private\n");
  EXPECT_EQ(MistakeIn(kPlane, {"--threads", "0"}), "plane: --threads 0: not a number from 1\n");
  EXPECT_THAT(MistakeIn(kSpace, {"--threads", "2"}), HasSubstr("takes no threads"));
  EXPECT_THAT(MistakeIn(kPlane, {"--grid", "2x2"}), HasSubstr("takes no grid"));
  EXPECT_THAT(MistakeIn(kSpace, {"--grid", "2x0x2"}), HasSubstr("must be 3 numbers from 1"));
  EXPECT_THAT(MistakeIn(kSpace, {"--grid", "4"}), HasSubstr("must be 3 numbers from 1"));
  EXPECT_EQ(
      MistakeIn(kSpace, {"--naive", "--compare"}),
      "space: --compare: --naive and --compare exclude each other; --compare runs both ways\n");
  EXPECT_EQ(MistakeIn(kSpace, {"8"}), "space: unexpected argument 8 (--help lists the flags)\n");
  EXPECT_THAT(MistakeIn(kSpace, {"--sizes", "8"}), HasSubstr("unrecognized option '--sizes'"));
  EXPECT_THAT(MistakeIn(kSpace, {"--size"}), HasSubstr("requires an argument"));
}

TEST(StencilArgumentsTest, HelpEndsTheProgramWell) {
  testing::internal::CaptureStdout();
  const Parsed parsed = Parse(kSpace, {"--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_THAT(help, HasSubstr("--grid"));
  EXPECT_THAT(help, HasSubstr("(9 x 9 x 9)"));
}

// ---- Grids of processes

TEST(ProcessGridTest, RangesCoverTheInteriorOnce) {
  for (const int points : {3, 4, 10, 17, 512}) {
    for (int parts = 1; parts <= points - 2 && parts <= 7; ++parts) {
      int next = 1;
      for (int part = 0; part < parts; ++part) {
        const Range range = RangeOf(points, parts, part);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, 1);
        EXPECT_LE(range.count, (points - 2) / parts + 1);
        next += range.count;
      }
      EXPECT_EQ(next, points - 1);
    }
  }
}

Triple Chosen(int ranks, const Triple& points) {
  const auto grid = ProcessGrid::Choose(ranks, points);
  return grid ? grid->counts() : Triple{0, 0, 0};
}

TEST(ProcessGridTest, ChoosesTheGridThatExchangesTheLeast) {
  EXPECT_EQ(Chosen(1, {66, 66, 66}), (Triple{1, 1, 1}));
  EXPECT_EQ(Chosen(8, {66, 66, 66}), (Triple{2, 2, 2}));
  EXPECT_EQ(Chosen(7, {66, 66, 66}), (Triple{1, 1, 7}));
  EXPECT_EQ(Chosen(4, {1002, 12, 12}), (Triple{4, 1, 1}));
  EXPECT_EQ(Chosen(27, {32, 32, 32}), (Triple{3, 3, 3}));
}

TEST(ProcessGridTest, AmongEqualsSplitsTheSlowestAxis) {
  EXPECT_EQ(Chosen(2, {10, 10, 10}), (Triple{1, 1, 2}));
}

TEST(ProcessGridTest, GivesEachRankAPointOrNothing) {
  EXPECT_EQ(Chosen(8, {3, 4, 6}), (Triple{1, 2, 4}));
  EXPECT_EQ(Chosen(2, {3, 3, 3}), (Triple{0, 0, 0}));
  EXPECT_EQ(Chosen(5, {6, 6, 6}), (Triple{0, 0, 0}));
  EXPECT_TRUE(ProcessGrid({2, 1, 1}).Fits({4, 3, 3}));
  EXPECT_FALSE(ProcessGrid({2, 1, 1}).Fits({3, 9, 9}));
}

TEST(ProcessGridTest, PlacesAreDistinct) {
  const ProcessGrid grid({2, 3, 4});
  std::set<Triple> places;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    places.insert(grid.PlaceOf(rank));
  }
  EXPECT_EQ(places.size(), 24U);
  EXPECT_EQ(grid.PlaceOf(0), (Triple{0, 0, 0}));
  EXPECT_EQ(grid.PlaceOf(1), (Triple{1, 0, 0}));
  EXPECT_EQ(grid.PlaceOf(23), (Triple{1, 2, 3}));
}

TEST(ProcessGridTest, NeighboursAreOneStepAway) {
  const ProcessGrid grid({2, 3, 4});
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    for (const int axis : {0, 1, 2}) {
      for (const int step : {-1, 1}) {
        Triple wanted = grid.PlaceOf(rank);
        int& place = wanted[static_cast<size_t>(axis)];
        place += step;
        const int neighbour = grid.Neighbour(rank, axis, step);
        if (place < 0 || place >= grid.counts()[static_cast<size_t>(axis)]) {
          EXPECT_EQ(neighbour, -1);
        } else {
          EXPECT_EQ(grid.PlaceOf(neighbour), wanted);
        }
      }
    }
  }
}

// ---- The parts of a problem, whose faces are exchanged here by hand, against its serial solve

StencilArguments Private(const Triple& points) {
  StencilArguments arguments;
  arguments.points = points;
  arguments.memory = Memory::kPrivate;
  return arguments;
}

// Copies each face to where its peer expects it; each must be expected exactly once.
void Deliver(const std::vector<std::vector<Face>>& faces) {
  for (size_t rank = 0; rank < faces.size(); ++rank) {
    for (const Face& sent : faces[rank]) {
      int takers = 0;
      for (const Face& face : faces[static_cast<size_t>(sent.peer)]) {
        if (face.peer == static_cast<int>(rank) && face.receive_tag == sent.send_tag) {
          ASSERT_EQ(face.count, sent.count);
          std::copy_n(sent.send, sent.count, face.receive);
          ++takers;
        }
      }
      EXPECT_EQ(takers, 1);
    }
  }
}

void ExpectEqualToSerial(const Problem& problem, int ranks, int iterations) {
  std::vector<std::unique_ptr<Part>> parts;
  parts.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(problem.MakePart(rank));
  }
  for (int i = 0; i < iterations; ++i) {
    std::vector<std::vector<Face>> faces;
    for (const auto& part : parts) {
      faces.push_back(part->PackFaces());
      part->ComputeInside();
    }
    Deliver(faces);
    for (const auto& part : parts) {
      part->ComputeRest();
    }
  }
  const std::vector<double> serial = problem.SolveSerially(iterations);
  size_t points = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<double> values = parts[static_cast<size_t>(rank)]->Values();
    EXPECT_EQ(values, problem.ValuesOf(serial, rank)) << rank << " of " << ranks;
    points += values.size();
  }
  EXPECT_GE(static_cast<double>(points), problem.PointsPerIteration());
}

TEST(Stencil5Test, PartsEqualTheSerialSolve) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const int threads : {1, 3}) {
      std::string mistake;
      const auto plane = stencil5::Plane::Make(Private({13, 9, 1}), ranks, threads, &mistake);
      ASSERT_NE(plane, nullptr) << mistake;
      ExpectEqualToSerial(*plane, ranks, 6);
    }
  }
}

TEST(Stencil5Test, StepsChangeThePattern) {
  std::string mistake;
  const auto plane = stencil5::Plane::Make(Private({5, 5, 1}), 1, 1, &mistake);
  EXPECT_NE(plane->SolveSerially(1), plane->SolveSerially(2));
}

TEST(Stencil5Test, RefusesMoreRanksThanRows) {
  std::string mistake;
  EXPECT_EQ(stencil5::Plane::Make(Private({100, 9, 1}), 8, 1, &mistake), nullptr);
  EXPECT_EQ(
      mistake,
      "8 ranks need at least 10 rows, one each and the fixed edge, but --size is 100 x 9: make "
      "it larger, or run fewer ranks");
}

std::unique_ptr<stencil3d::Space> Space(const Triple& points, int ranks, std::string* mistake,
                                        std::optional<Triple> grid = {}) {
  StencilArguments arguments = Private(points);
  arguments.grid = grid;
  return stencil3d::Space::Make(arguments, ranks, mistake);
}

TEST(Stencil3dTest, PartsEqualTheSerialSolve) {
  for (const int ranks : {1, 2, 3, 4, 8, 12, 27}) {
    std::string mistake;
    const auto space = Space({7, 9, 8}, ranks, &mistake);
    ASSERT_NE(space, nullptr) << mistake;
    ExpectEqualToSerial(*space, ranks, 5);
  }
}

TEST(Stencil3dTest, EveryGridEqualsTheSerialSolve) {
  for (const Triple& grid : {Triple{4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 1, 2}, {2, 2, 1}}) {
    std::string mistake;
    const auto space = Space({6, 7, 9}, 4, &mistake, grid);
    ASSERT_NE(space, nullptr) << mistake;
    EXPECT_EQ(space->Describe(), "6 x 7 x 9 points, ranks " + TimesText(grid, 3));
    ExpectEqualToSerial(*space, 4, 4);
  }
}

TEST(Stencil3dTest, RefusesRanksThatDoNotFit) {
  std::string mistake;
  EXPECT_EQ(Space({9, 9, 9}, 4, &mistake, Triple{2, 2, 2}), nullptr);
  EXPECT_EQ(mistake, "--grid 2 x 2 x 2 has places for 8 ranks, but the job has 4");
  EXPECT_EQ(Space({3, 9, 9}, 2, &mistake, Triple{2, 1, 1}), nullptr);
  EXPECT_EQ(mistake,
            "--grid 2 x 1 x 1 leaves ranks without an interior point of 3 x 9 x 9: make --size "
            "larger");
  EXPECT_EQ(Space({5, 5, 5}, 5, &mistake), nullptr);
  EXPECT_EQ(mistake,
            "no grid of 5 ranks fits 5 x 5 x 5 points, so that each has an interior point: make "
            "--size larger, or run another number of ranks");
}

}  // namespace
}  // namespace examples
