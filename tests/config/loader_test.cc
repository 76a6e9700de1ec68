#include "config/loader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace ferry::config {
namespace {

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << "staging_blocks = 3\ncopy_workers = 3\nspin_pauses = 3\n";
  }

  const std::string path_ = testing::TempDir() + "/ferryd.toml";
  const std::string file_variable_ = "FERRY_CONFIG_FILE=" + path_;
  const std::string file_flag_ = "--config_file=" + path_;
};

TEST_F(LoaderTest, FlagsWinOverEnvironmentOverFileOverDefaults) {
  const char* environment[] = {"FERRY_COPY_WORKERS=4", "FERRY_SPIN_PAUSES=4",
                               file_variable_.c_str(), nullptr};
  const std::vector<const char*> flags = {"--spin_pauses=5"};
  const StatusOr<Options> options = LoadOptions(flags, environment);
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->spin_pauses, 5u);
  EXPECT_EQ(options->copy_workers, 4u);
  EXPECT_EQ(options->staging_blocks, 3u);
  EXPECT_EQ(options->max_ranks, Options().max_ranks);
  EXPECT_FALSE(options->run_directory.empty());
}

TEST_F(LoaderTest, NotesWhatHasSetAnOptionLast) {
  std::ofstream(path_, std::ios::app) << "launcher = \"ssh\"\n";  // the default
  const char* environment[] = {"FERRY_COPY_WORKERS=4", "FERRY_SPIN_PAUSES=4",
                               "FERRY_LOG_FILE=", file_variable_.c_str(), nullptr};
  const std::vector<const char*> flags = {"--spin-pauses=5"};
  Origins origins;
  ASSERT_TRUE(LoadOptions(flags, environment, &origins).ok());
  EXPECT_EQ(origins, (Origins{{"staging_blocks", Origin::kFile},
                              {"launcher", Origin::kFile},
                              {"copy_workers", Origin::kEnvironment},
                              {"log_file", Origin::kEnvironment},
                              {"config_file", Origin::kEnvironment},
                              {"spin_pauses", Origin::kFlag}}));
}

TEST_F(LoaderTest, AFlagNamesTheFile) {
  const char* environment[] = {"FERRY_CONFIG_FILE=/nowhere/none.toml", nullptr};
  const std::vector<const char*> flags = {file_flag_.c_str()};
  const StatusOr<Options> options = LoadOptions(flags, environment);
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->staging_blocks, 3u);
}

TEST_F(LoaderTest, WithoutAFileThereAreDefaults) {
  const char* environment[] = {nullptr};
  const StatusOr<Options> options = LoadOptions({}, environment);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->staging_blocks, Options().staging_blocks);
}

TEST_F(LoaderTest, AMissingFileIsAnError) {
  const char* environment[] = {"FERRY_CONFIG_FILE=/nowhere/none.toml", nullptr};
  const StatusOr<Options> options = LoadOptions({}, environment);
  EXPECT_EQ(options.status().code(), ErrorCode::kConfiguration);
  EXPECT_EQ(options.status().message(),
            "cannot read /nowhere/none.toml: No such file or directory");
}

TEST_F(LoaderTest, ChecksTheWhole) {
  const char* environment[] = {nullptr};
  const std::vector<const char*> flags = {"--peer_timeout_ms=100"};
  EXPECT_EQ(LoadOptions(flags, environment).status().code(), ErrorCode::kConfiguration);
}

}  // namespace
}  // namespace ferry::config
