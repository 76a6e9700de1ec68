// `ferryctl tune --kernels`, and jobs that take the option that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/shmem/e2e/shmem_job.h"
#include "tests/support/processes.h"

namespace ferry::shmem_tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class KernelTuneTest : public testing::Test {
 protected:
  KernelTuneTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    file_ = directory_ + "/kernels.toml";
  }
  ~KernelTuneTest() override { fs::remove_all(directory_); }

  e2e::CommandResult Tune(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"tools/ferryctl/ferryctl", "tune", "--kernels",
                                          "--output", file_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    e2e::Command command(arguments, {}, "", 200);
    e2e::CommandResult result = command.Wait();
    EXPECT_THAT(command.Leftovers(), IsEmpty());
    return result;
  }

  std::string directory_ = "/tmp/ferry-tune-XXXXXX";
  std::string file_;
};

TEST_F(KernelTuneTest, JobsTakeTheOptionThatItWrites) {
  const e2e::CommandResult tuned =
      Tune({"--job", "--private --ferryd daemon/ferryd -n 2", "--sizes", "64,64K", "--threads",
            "1,4", "--repetitions", "1", "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const nlohmann::json result = nlohmann::json::parse(tuned.out);
  EXPECT_EQ(result["file"], file_);
  EXPECT_EQ(result["cases"].size(), 2u * 2u * 2u);
  for (const nlohmann::json& one : result["cases"]) {
    EXPECT_GT(one["stores_us"], 0) << one;
    EXPECT_GT(one["ferryd_us"], 0) << one;
  }
  const std::string option = result["shmem_cutovers"];
  EXPECT_THAT(tests::ReadFile(file_), HasSubstr("\nshmem_cutovers = \"" + option + "\"\n"));
  ExpectAllOk({.flags = {"--config_file=" + file_, "--gpu_backend=host"},
               .variables = {"SHMEM_SYMMETRIC_SIZE=16m"}},
              {"device_moves"});
}

TEST_F(KernelTuneTest, SaysWhatItCannotDo) {
  const struct {
    std::vector<std::string> arguments;
    std::string words;
  } cases[] = {
      {{"--sizes", "0"}, "--sizes takes numbers from 1 to 67108864, not 0"},
      {{"--threads", "2048"}, "--threads takes numbers from 1 to 1024, not 2048"},
      {{"--job", "--private --ferryd daemon/ferryd -n 2 --no_such_flag"}, "no_such_flag"},
      {{"--collectives"}, "excludes"},
  };
  for (const auto& [arguments, words] : cases) {
    const e2e::CommandResult result = Tune(arguments);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_TRUE(fs::is_empty(directory_));
  }
}

}  // namespace
}  // namespace ferry::shmem_tests
