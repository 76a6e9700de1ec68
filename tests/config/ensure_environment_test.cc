#include "config/ensure_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "config/environment.h"

namespace ferry::config {
namespace {

constexpr int kExecutedAnew = 42;
constexpr int kNotExecuted = 43;

std::string Value(const char* name) {
  return std::string(FindVariable(ProcessEnvironment(), name).value_or("(not set)"));
}

TEST(EnsureEnvironmentTest, ReturnsWhereNothingIsMissing) {
  const Variable variables[] = {{"PATH", "not to be set to this"}};
  const std::string before = Value("PATH");
  char* argv[] = {nullptr};
  EXPECT_TRUE(EnsureEnvironment(argv, variables).ok());
  EXPECT_EQ(Value("PATH"), before);
}

void ExecuteAnew() {
  const Variable variables[] = {{"PATH", "not to be set to this"}, {"FOR_THIS_TEST", "yes"}};
  char name[] = "anew";
  char* argv[] = {name, nullptr};
  (void)EnsureEnvironment(argv, variables);
  std::exit(kNotExecuted);
}

TEST(EnsureEnvironmentTest, ExecutesTheProgramAnewWithWhatIsMissing) {
  EXPECT_EXIT(ExecuteAnew(), testing::ExitedWithCode(kExecutedAnew), "");
}

}  // namespace
}  // namespace ferry::config

// Executed anew, it only looks at what it was given.
int main(int argc, char** argv) {
  if (std::string(argv[0]) == "anew") {
    const bool right = ferry::config::Value("FOR_THIS_TEST") == "yes" &&
                       ferry::config::Value("PATH") != "not to be set to this";
    return right ? ferry::config::kExecutedAnew : EXIT_FAILURE;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
