#include <string>
#include <vector>

#include "client/mpi/comm/comm.h"
#include "client/mpi/info/memory_kinds.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

const MemoryKinds kKinds("host");

std::string ValueOf(const std::vector<Info::Entry>& hints, const std::string& key) {
  for (const Info::Entry& hint : hints) {
    if (hint.first == key) {
      return hint.second;
    }
  }
  return "none";
}

TEST(HintsTest, TakeWhatTheProgramPromises) {
  auto hints = WithHints(DefaultHints(), {{"mpi_assert_no_any_tag", "true"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_tag"), "true");
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_source"), "false");
  hints = WithHints(hints, {{"mpi_assert_no_any_tag", "false"}}, kKinds);
  EXPECT_EQ(hints, DefaultHints());
}

TEST(HintsTest, IgnoreKeysThatAreNoHintsAndValuesThatHintsCannotHave) {
  EXPECT_EQ(
      WithHints(DefaultHints(), {{"colour", "true"}, {"mpi_assert_exact_length", "maybe"}}, kKinds),
      DefaultHints());
}

TEST(HintsTest, TakeKindsOfMemoryThatThereAre) {
  const std::string key = "mpi_assert_memory_alloc_kinds";
  EXPECT_EQ(ValueOf(DefaultHints(), key), "none");
  auto hints = WithHints(DefaultHints(), {{key, "system"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "system");
  hints = WithHints(hints, {{key, "cuda:device"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "system");
  hints = WithHints(hints, {{key, "mpi,ferry:device"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "mpi,ferry:device");
  EXPECT_EQ(hints.size(), DefaultHints().size() + 1);
}

}  // namespace
}  // namespace ferry::mpi
