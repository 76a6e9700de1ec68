#include "client/mpi/comm/hints.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

std::string ValueOf(const std::vector<Info::Entry>& hints, const std::string& key) {
  for (const Info::Entry& hint : hints) {
    if (hint.first == key) {
      return hint.second;
    }
  }
  return "none";
}

TEST(HintsTest, TakeWhatTheProgramPromises) {
  auto hints = WithHints(DefaultHints(), {{"mpi_assert_no_any_tag", "true"}});
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_tag"), "true");
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_source"), "false");
  hints = WithHints(hints, {{"mpi_assert_no_any_tag", "false"}});
  EXPECT_EQ(hints, DefaultHints());
}

TEST(HintsTest, IgnoreKeysThatAreNoHintsAndValuesThatHintsCannotHave) {
  EXPECT_EQ(WithHints(DefaultHints(), {{"colour", "true"}, {"mpi_assert_exact_length", "maybe"}}),
            DefaultHints());
}

}  // namespace
}  // namespace ferry::mpi
