// MPI-IO by programs, on one node and on two: opening and errors, views, every form of reads and
// writes, the shared pointer. The programs name the step in which they fail.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;

// A folder for the files of one test.
class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "/files.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class FilesTest : public testing::TestWithParam<Placement> {
 protected:
  // Expects that the program leaves no file behind.
  static void Run(const std::string& program, const std::string& line,
                  std::vector<std::string> words = {}) {
    const Folder folder;
    words.insert(words.begin(), {"tests/mpi/ranks/files_" + program, folder.path()});
    ExpectJob(GetParam(), words, line);
  }
};

TEST_P(FilesTest, OpenAndFailAsTheyShould) { Run("open", "all files were right"); }

TEST_P(FilesTest, ViewsShowTheRightBytes) { Run("views", "all views were right"); }

TEST_P(FilesTest, ReadsAndWritesMoveEveryByte) { Run("moves", "all moves were right"); }

TEST_P(FilesTest, SharedPointersKeepRecordsWhole) {
  Run("shared", "all shared pointers were right");
}

TEST_P(FilesTest, PipesHoldNothingUpAndBreakByName) { Run("pipes", "all pipes were right"); }

TEST_P(FilesTest, RepresentationsConvertEveryByte) {
  Run("datareps", "all representations were right");
}

TEST_P(FilesTest, CollectiveCallsThatDoNotBlockWaitForNothingElse) {
  Run("background", "all calls in the background were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, FilesTest, testing::ValuesIn(AllPlacements()), NameOf);

// FERRY_MPI_CHECK=1: which files are left open is told, too.
TEST(FilesCheckTest, CallsThatDoNotBelongTogetherFailInTheSameWords) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-n", "3"}, {"-n", "3", "--nodes", "2"}}) {
    const Folder folder;
    const e2e::CommandResult result = RunJob(
        {"", flags}, {"tests/mpi/ranks/files_checked", folder.path()}, {"FERRY_MPI_CHECK=1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr(": MPI_Finalize: the file '" + folder.path() +
                                               "/left' is open"));
  }
}

TEST(FilesCheckTest, CallsThatBelongTogetherGoOn) {
  for (const char* const program : {"background", "moves", "shared"}) {
    const Folder folder;
    const e2e::CommandResult result =
        RunJob({"", {"-n", "3"}}, {std::string("tests/mpi/ranks/files_") + program, folder.path()},
               {"FERRY_MPI_CHECK=1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
}

TEST(FilesThreadsTest, MoveWhereTheLibraryServesThreads) {
  for (const char* const program : {"background", "moves", "shared"}) {
    const Folder folder;
    const e2e::CommandResult result =
        RunJob({"", {"-n", "2"}},
               {std::string("tests/mpi/ranks/files_") + program, folder.path(), "multiple"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
