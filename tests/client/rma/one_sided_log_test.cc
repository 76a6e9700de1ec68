// Which context has begun what, and what of it is over.
#include "client/rma/one_sided_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace ferry::client {
namespace {

TEST(OneSidedLogTest, KnowsWhoseOperationsAreUnderWay) {
  OneSidedContext a;
  OneSidedContext b;
  OneSidedLog log;
  uint64_t done = 0;
  const auto begun_by = [&](const OneSidedContext& context, std::optional<uint32_t> with) {
    std::vector<OneSidedLog::Begun> begun;
    log.List(&context, with, &begun);
    return begun;
  };
  const auto forget = [&](uint64_t number) {
    done = number;
    log.Look([&](uint32_t rank) { return rank == 5 ? done : 0; });
    log.ForgetOver();
  };
  log.Add(&a, 5, 1, true);
  log.Add(&a, 5, 2, true);
  log.Add(&b, 5, 3, true);
  log.Add(&a, 5, 4, false);
  log.Add(&a, 2, 1, true);
  ASSERT_EQ(begun_by(a, 5).size(), 2U);
  EXPECT_EQ(begun_by(a, 5).back().number, 4U);
  ASSERT_EQ(begun_by(a, std::nullopt).size(), 3U);
  EXPECT_EQ(begun_by(a, std::nullopt).back().rank, 2U);
  std::vector<const OneSidedContext*> blamed;
  const auto blame = [&](uint64_t first, uint64_t last) {
    blamed.clear();
    log.ForEachSilent(5, first, last, [&](OneSidedContext& of) { blamed.push_back(&of); });
    return blamed;
  };
  EXPECT_EQ(blame(2, 3), (std::vector<const OneSidedContext*>{&a, &b}));
  EXPECT_EQ(blame(3, 4), (std::vector<const OneSidedContext*>{&b}));
  EXPECT_TRUE(blame(4, 9).empty());
  forget(1);
  EXPECT_TRUE(blame(1, 1).empty());
  EXPECT_EQ(blame(2, 2).size(), 1U);
  log.Leave(&b);
  EXPECT_TRUE(blame(3, 3).empty());
  forget(4);
  EXPECT_TRUE(begun_by(a, 5).empty());
  EXPECT_EQ(begun_by(a, 2).size(), 1U);
}

}  // namespace
}  // namespace ferry::client
