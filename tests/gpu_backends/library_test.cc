#include "gpu_backends/driver/library.h"

#include <gtest/gtest.h>

namespace ferry::gpu {
namespace {

constexpr const char* kNotLoaded = "tests/fixtures/hip/libamdhip64_4.so";
constexpr const char* kLoaded = "libc.so.6";

TEST(LibraryTest, TellsWhatTheLinkerSaidOfEachName) {
  const Status status = Library::Open("Nobody's GPU", "", {"libnone.so.1", "libnone.so"}).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  for (const char* words : {"Nobody's GPU", "libnone.so.1:", "libnone.so:"}) {
    EXPECT_NE(status.message().find(words), std::string::npos) << status.ToString();
  }
}

TEST(LibraryTest, PrefersWhatTheProcessHasLoaded) {
  StatusOr<Library> library = Library::Open("a GPU", "", {kNotLoaded, kLoaded});
  ASSERT_TRUE(library.ok()) << library.status().ToString();
  EXPECT_EQ(library->name(), kLoaded);
  library = Library::Open("a GPU", "", {"libnone.so", kNotLoaded});
  ASSERT_TRUE(library.ok()) << library.status().ToString();
  EXPECT_EQ(library->name(), kNotLoaded);
}

TEST(LibraryTest, APathStandsForAllNames) {
  const StatusOr<Library> library = Library::Open("a GPU", kLoaded, {kNotLoaded});
  ASSERT_TRUE(library.ok()) << library.status().ToString();
  EXPECT_EQ(library->name(), kLoaded);
  EXPECT_FALSE(Library::Open("a GPU", "/nowhere/libc.so.6", {kLoaded}).ok());
}

TEST(LibraryTest, NamesAllThatIsMissing) {
  const StatusOr<Library> library = Library::Open("a GPU", kLoaded, {});
  ASSERT_TRUE(library.ok()) << library.status().ToString();
  int (*close_file)(int) = nullptr;
  int (*first)() = nullptr;
  int (*second)() = nullptr;
  int (*optional)() = nullptr;
  const Status status = library->Resolve(
      {Symbol::Required("close", &close_file), Symbol::Required("no_such_function", &first),
       Symbol::Required("nor_this", &second), Symbol::Optional("this_may_be", &optional)});
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_NE(status.message().find("no_such_function, nor_this"), std::string::npos)
      << status.ToString();
  EXPECT_EQ(status.message().find("this_may_be"), std::string::npos) << status.ToString();
  EXPECT_NE(close_file, nullptr);
  EXPECT_EQ(optional, nullptr);
}

}  // namespace
}  // namespace ferry::gpu
