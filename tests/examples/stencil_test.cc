// The parts of a problem, whose faces are exchanged here by hand, against its serial solve.
#include "examples/common/stencil.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "examples/stencil3d/block.h"
#include "examples/stencil5/slab.h"

namespace examples {
namespace {

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
