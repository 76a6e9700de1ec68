// A receiver that does not receive: memory stays bounded, no other rank waits, and no message is
// lost.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::RunWell;

constexpr char kFlood[] = "tests/faults/ranks/flood";
constexpr unsigned kLimitSeconds = kSanitized ? 240 : 60;

struct Flood {
  int ranks;
  int nodes;
  const char* kind;
  const char* messages;
  long allowed_kib;  // by which the receiver may grow
};

class FloodTest : public testing::TestWithParam<Flood> {};

TEST_P(FloodTest, IsHeldBackAndArrivesWhole) {
  const Flood& flood = GetParam();
  const std::string out =
      RunWell(PrivateJob(flood.ranks, flood.nodes, {}, {kFlood, flood.kind, flood.messages}), {},
              kLimitSeconds);
  ExpectAllRight(out, flood.ranks);
  const std::string grew = "rank 0: grew by ";
  const size_t at = out.find(grew);
  ASSERT_NE(at, std::string::npos) << out;
  const long grew_kib = std::atol(out.c_str() + at + grew.size());
  std::printf("%s %s on %d node(s): the receiver grew by %ld KiB\n", flood.kind, flood.messages,
              flood.nodes, grew_kib);
  EXPECT_LT(grew_kib, kSanitized ? 10 * flood.allowed_kib : flood.allowed_kib);
}

// 9,000 messages hold 200 MB, of which the receiver must keep almost nothing; small ones cost it
// one entry of 128 bytes each.
INSTANTIATE_TEST_SUITE_P(Floods, FloodTest,
                         testing::Values(Flood{4, 1, "never-posts", "9000", 32 << 10},
                                         Flood{4, 2, "never-posts", "9000", 32 << 10},
                                         Flood{4, 4, "never-posts", "9000", 32 << 10},
                                         Flood{2, 1, "one-tag", "250000", 50 << 10},
                                         Flood{2, 2, "one-tag", "250000", 50 << 10}));

}  // namespace
}  // namespace ferry::faults
