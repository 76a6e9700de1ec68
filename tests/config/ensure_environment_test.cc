
#include <gtest/gtest.h>

#include <string>

#include "config/environment.h"

namespace ferry::config {
namespace {

std::string Value(const char* name) {
  return std::string(FindVariable(ProcessEnvironment(), name).value_or("(not set)"));
}

TEST(EnsureEnvironmentTest, SetsWhatIsMissingAndNothingElse) {
  const std::string before = Value("PATH");
  ASSERT_EQ(Value("FOR_THIS_TEST"), "(not set)");
  const Variable variables[] = {{"PATH", "not to be set to this"}, {"FOR_THIS_TEST", "yes"}};
  EXPECT_TRUE(EnsureEnvironment(variables).ok());
  EXPECT_EQ(Value("PATH"), before);
  EXPECT_EQ(Value("FOR_THIS_TEST"), "yes");
}

TEST(EnsureEnvironmentTest, RefusesWhatIsNoName) {
  const Variable variables[] = {{"A=B", "value"}};
  EXPECT_FALSE(EnsureEnvironment(variables).ok());
}

}  // namespace
}  // namespace ferry::config
