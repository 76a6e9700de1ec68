#include "gpu_backends/driver/library.h"

#include <gtest/gtest.h>

#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

constexpr const char* kNotLoaded = "tests/fixtures/hip/libamdhip64_4.so";
constexpr const char* kLoaded = "libc.so.6";

TEST(LibraryTest, TellsWhatTheLinkerSaidOfEachName) {
  const Status status = Library::Open("Nobody's GPU", "", {"libnone.so.1", "libnone.so"}).status();
  for (const char* words : {"Nobody's GPU", "libnone.so.1:", "libnone.so:"}) {
    ExpectFails(status, ErrorCode::kNotFound, words);
  }
}

TEST(LibraryTest, PrefersWhatTheProcessHasLoaded) {
  EXPECT_EQ(Must(Library::Open("a GPU", "", {kNotLoaded, kLoaded})).name(), kLoaded);
  EXPECT_EQ(Must(Library::Open("a GPU", "", {"libnone.so", kNotLoaded})).name(), kNotLoaded);
}

TEST(LibraryTest, APathStandsForAllNames) {
  EXPECT_EQ(Must(Library::Open("a GPU", kLoaded, {kNotLoaded})).name(), kLoaded);
  EXPECT_FALSE(Library::Open("a GPU", "/nowhere/libc.so.6", {kLoaded}).ok());
}

TEST(LibraryTest, NamesAllThatIsMissing) {
  const Library library = Must(Library::Open("a GPU", kLoaded, {}));
  int (*close_file)(int) = nullptr;
  int (*first)() = nullptr;
  int (*second)() = nullptr;
  int (*optional)() = nullptr;
  const Status status = library.Resolve(
      {Symbol::Required("close", &close_file), Symbol::Required("no_such_function", &first),
       Symbol::Required("nor_this", &second), Symbol::Optional("this_may_be", &optional)});
  ExpectFails(status, ErrorCode::kUnsupported, "no_such_function, nor_this");
  EXPECT_EQ(status.message().find("this_may_be"), std::string::npos) << status.ToString();
  EXPECT_NE(close_file, nullptr);
  EXPECT_EQ(optional, nullptr);
}

}  // namespace
}  // namespace ferry::gpu
