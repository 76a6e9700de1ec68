#include "tools/ferryrun/foreign_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/ferryrun/interface_folders.h"
#include "tools/ferryrun/linked_libraries.h"

namespace ferry::tools {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr char kLibrary[] = "tests/tools/libmpi.so.99";
constexpr char kProgram[] = "tests/tools/foreign_rank";
constexpr uint64_t kLater = UINT64_MAX / 2;

std::string ForeignIn(const std::string& maps) { return ParseMaps(maps).foreign; }

TEST(ForeignLibraryTest, KnowsThemByTheirNames) {
  EXPECT_EQ(ForeignIn("7f0-7f1 r--p 00000000 fe:01 12 /usr/lib/libmpi.so.40.30.4\n"),
            "/usr/lib/libmpi.so.40.30.4");
  EXPECT_EQ(ForeignIn("libc.so.6\nlibmpich.so.12\nlibmpi.so.40\n"), "libmpich.so.12");
  EXPECT_EQ(ForeignIn("7f0-7f1 r--p 0 fe:01 12 /opt/my env/liboshmem.so.40\n"),
            "/opt/my env/liboshmem.so.40");
  EXPECT_EQ(ForeignIn("7f0-7f1 r--p 0 fe:01 12 /usr/lib/libmpi/libz.so\n7f2-7f3 rw-p 0 00:00 0\n"),
            "");
  EXPECT_EQ(ForeignIn(""), "");
}

TEST(ForeignLibraryTest, FerrysOwnHasTheNameOfTheStandard) {
  const LibrariesSeen seen = ParseMaps("/a/libmpi_abi.so.1\n/a/libferry.so.0\n");
  EXPECT_TRUE(seen.ferry);
  EXPECT_FALSE(ParseMaps("/a/libferry_malloc.so\n").ferry) << "any program may have that";
  EXPECT_EQ(ParseMaps("/a/libmpifort_abi.so.1\n").foreign, "");
  EXPECT_EQ(ParseMaps("/a/libmpifort.so.12\n").foreign, "/a/libmpifort.so.12");
}

// A look may come when a rank has such a library and not yet what that opens.
TEST(ForeignLibraryTest, WhatLiesInAFolderOfFerrysIsFerrys) {
  for (const InterfaceFamily& family : kInterfaceFamilies) {
    const std::string folder = FolderOf(family);
    const std::string library = "/" + std::string(family.library);
    ASSERT_NE(folder, "") << family.name;
    const LibrariesSeen own = ParseMaps("7f0-7f1 r--p 0 fe:01 12 " + folder + library + "\n");
    EXPECT_EQ(own.foreign, "");
    EXPECT_TRUE(own.ferry);
    const LibrariesSeen other = ParseMaps("7f0-7f1 r--p 0 fe:01 12 /usr/lib" + library + "\n");
    EXPECT_EQ(other.foreign, "/usr/lib" + library);
    EXPECT_FALSE(other.ferry);
  }
}

TEST(LinkedLibrariesTest, LooksIntoLibrariesToo) {
  const auto all = [](const std::string&) { return false; };
  const std::vector<std::string> needed = AllNeededLibraries(kProgram, "", all);
  EXPECT_THAT(needed, testing::Contains("libmpi.so.99"));
  EXPECT_THAT(needed, testing::Contains("libc.so.6"));
  EXPECT_THAT(needed, testing::Contains("ld-linux-x86-64.so.2")) << "which only others name";
  EXPECT_THAT(NeededLibraries(kProgram), testing::Not(HasSubstr("ld-linux")));
  const std::vector<std::string> few =
      AllNeededLibraries(kProgram, "", [](const std::string&) { return true; });
  EXPECT_THAT(few, testing::Not(testing::Contains("ld-linux-x86-64.so.2")));
  EXPECT_THAT(AllNeededLibraries("/etc/passwd", "", all), testing::IsEmpty());
}

TEST(ForeignLibraryTest, ReadsWhatAProgramIsLinkedWith) {
  EXPECT_THAT(NeededLibraries(kProgram), HasSubstr("libmpi.so.99\n"));
  EXPECT_THAT(NeededLibraries("/proc/self/exe"), HasSubstr("libc.so.6\n"));
  EXPECT_EQ(NeededLibraries("/etc/passwd"), "");
  EXPECT_EQ(NeededLibraries("/nonexistent"), "");
}

TEST(ForeignLibraryTest, AProgramThatNobodyLookedAtIsJudgedByItsFile) {
  EXPECT_EQ(LibraryWatch({"/bin/sh", kProgram}).Foreign(), "libmpi.so.99");
  EXPECT_EQ(LibraryWatch({"/bin/sh"}).Foreign(), "");
}

TEST(ForeignLibraryTest, LooksAtWhatARankHasLoaded) {
  LibraryWatch watch({"/bin/sh"});
  watch.Look(1, {getpid()});
  EXPECT_NE(watch.next_ns(), 0u);
  void* const library = dlopen(kLibrary, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  watch.Look(watch.next_ns(), {getpid()});
  EXPECT_THAT(watch.Foreign(), EndsWith("/libmpi.so.99"));
  EXPECT_EQ(watch.next_ns(), 0u) << "it is known";
  dlclose(library);
}

// The library of the test by another name, loaded as long as this lives.
class Loaded {
 public:
  explicit Loaded(const std::string& name) {
    const std::string path = testing::TempDir() + name;
    std::filesystem::copy_file(kLibrary, path, std::filesystem::copy_options::overwrite_existing);
    library_ = dlopen(path.c_str(), RTLD_NOW);
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  ~Loaded() { dlclose(library_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

 private:
  void* library_ = nullptr;
};

TEST(ForeignLibraryTest, ALookBetweenTwoLibrariesOfFerrysDecidesNothing) {
  LibraryWatch watch({"/bin/sh"});
  watch.Look(1, {getpid()});
  const Loaded standard("libmpi_abi.so.1");
  watch.Look(watch.next_ns(), {getpid()});
  ASSERT_NE(watch.next_ns(), 0u) << "the next may be on its way";
  const Loaded ferry("libferry.so.0");
  watch.Look(watch.next_ns(), {getpid()});
  EXPECT_EQ(watch.next_ns(), 0u);
  EXPECT_EQ(watch.Foreign(), "");
}

TEST(ForeignLibraryTest, ALibraryWithTheStandardsNameThatStaysAloneIsForeign) {
  LibraryWatch watch({"/bin/sh"});
  watch.Look(1, {getpid()});
  const Loaded standard("libmpi_abi.so.1");
  watch.Look(watch.next_ns(), {getpid()});
  watch.Look(watch.next_ns(), {getpid()});
  EXPECT_EQ(watch.next_ns(), 0u);
  EXPECT_THAT(watch.Foreign(), EndsWith("/libmpi_abi.so.1"));
}

TEST(ForeignLibraryTest, LooksThroughAWrapper) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t wrapper = fork();
  if (wrapper == 0) {
    setpgid(0, 0);
    if (fork() == 0) {
      (void)!write(ends[1], dlopen(kLibrary, RTLD_NOW) != nullptr ? "y" : "n", 1);
      pause();
    }
    pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ends[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  LibraryWatch watch({"/bin/sh"});
  watch.Look(1, {wrapper});
  watch.Look(kLater, {wrapper});
  EXPECT_THAT(watch.Foreign(), EndsWith("/libmpi.so.99"));
  kill(-wrapper, SIGKILL);
  waitpid(wrapper, nullptr, 0);
}

}  // namespace
}  // namespace ferry::tools
