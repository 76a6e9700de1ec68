#include "config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace ferry::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Strings in the form of execve.
class Environment {
 public:
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (const std::string& entry : entries_) {
      pointers_.push_back(entry.c_str());
    }
    pointers_.push_back(nullptr);
  }
  const char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<const char*> pointers_;
};

TEST(EnvironmentTest, AbsentMeansDefault) {
  Options options;
  EXPECT_TRUE(ApplyEnvironment(Environment({"HOME=/root", "PATH=/bin"}).get(), &options).ok());
  EXPECT_EQ(options, Options());
}

TEST(EnvironmentTest, ReadsNumbersAndText) {
  const Environment environment(
      {"FERRY_RANK=3", "FERRY_SIZE=4", "FERRY_JOB_SECRET=a=b", "FERRY_PROVIDER=tcp;ofi_rxm"});
  const StatusOr<Options> options = OptionsFromEnvironment(environment.get());
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->rank, 3u);
  EXPECT_EQ(options->size, 4u);
  EXPECT_EQ(options->job_secret, "a=b");
  EXPECT_EQ(options->provider, "tcp;ofi_rxm");
}

TEST(EnvironmentTest, NamesTheMalformedVariable) {
  Options options;
  EXPECT_EQ(ApplyEnvironment(Environment({"FERRY_HEAP_BYTES=lots"}).get(), &options).message(),
            "environment variable FERRY_HEAP_BYTES: heap_bytes cannot be \"lots\": it must be an "
            "integer from 1048576 to 1099511627776 (bytes)");
}

TEST(EnvironmentTest, NamesTheVariableThatIsOutOfRange) {
  Options options;
  EXPECT_EQ(ApplyEnvironment(Environment({"FERRY_COPY_WORKERS=65"}).get(), &options).message(),
            "environment variable FERRY_COPY_WORKERS: copy_workers cannot be \"65\": it must be an "
            "integer from 0 to 64 (threads)");
}

TEST(EnvironmentTest, TellsOfUnknownVariablesAndIgnoresThem) {
  for (const char* entry : {"FERRY_LOG_LEVLE=info", "FERRY_log_level=info"}) {
    const Environment environment({entry, "FERRY_HEAP_BYTES=2097152"});
    Options options;
    EXPECT_TRUE(ApplyEnvironment(environment.get(), &options).ok()) << entry;
    EXPECT_EQ(options.heap_bytes, 2097152u);
    const std::string name(entry, 15);
    EXPECT_THAT(UnknownVariables(environment.get()),
                ElementsAre("environment variable " + name +
                            " belongs to no option of Ferry; did you mean FERRY_LOG_LEVEL?"));
  }
  EXPECT_THAT(UnknownVariables(Environment({"FERRY_=1", "FERRY_HEAP_BYTES=1"}).get()),
              ElementsAre("environment variable FERRY_ belongs to no option of Ferry; `ferryd "
                          "--help` lists all options"));
}

TEST(EnvironmentTest, ReservesNamesOfPlaces) {
  const Environment environment(
      {"FERRY_ROOT=/opt", "FERRY_HOME=/opt", "FERRY_DIR=/opt", "FERRY_CC=gcc", "FERRY_CXX=g++",
       "FERRY_MEETING_PORT=4000", "FERRY_JOB_SECRET_FILE=/f"});
  Options options;
  EXPECT_TRUE(ApplyEnvironment(environment.get(), &options).ok());
  EXPECT_THAT(UnknownVariables(environment.get()), IsEmpty());
  for (const char* name : {"root", "home", "dir", "cc", "cxx"}) {
    EXPECT_EQ(FindOption(name), nullptr) << name;
  }
}

TEST(EnvironmentTest, LeavesOthersVariablesAlone) {
  Options options;
  EXPECT_TRUE(
      ApplyEnvironment(Environment({"FERRYMAN=1", "MY_FERRY_RANK=1"}).get(), &options).ok());
}

TEST(EnvironmentTest, FinishKeepsWhatWasSet) {
  const Environment environment({"FERRY_RUN_DIRECTORY=/here", "FERRY_NODE_NAME=a"});
  const StatusOr<Options> options = OptionsFromEnvironment(environment.get());
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->run_directory, "/here");
  EXPECT_EQ(options->node_name, "a");
}

TEST(EnvironmentTest, FinishFillsInTheRunDirectory) {
  const StatusOr<Options> with =
      OptionsFromEnvironment(Environment({"XDG_RUNTIME_DIR=/run/user/7"}).get());
  const StatusOr<Options> without = OptionsFromEnvironment(Environment({}).get());
  ASSERT_TRUE(with.ok() && without.ok());
  const bool root = geteuid() == 0;
  EXPECT_EQ(with->run_directory, root ? "/run/ferry" : "/run/user/7/ferry");
  if (root) {
    EXPECT_EQ(without->run_directory, "/run/ferry");
  } else {
    EXPECT_NE(without->run_directory, "/tmp/ferry-" + std::to_string(geteuid()))
        << "which anybody could make";
  }
  EXPECT_TRUE(IsDefaultRunDirectory(without->run_directory, Environment({}).get()));
  EXPECT_FALSE(IsDefaultRunDirectory("/here", Environment({}).get()));
  EXPECT_FALSE(with->node_name.empty());
}

TEST(EnvironmentTest, FinishChecksTheWhole) {
  const StatusOr<Options> options =
      OptionsFromEnvironment(Environment({"FERRY_RANK=2", "FERRY_SIZE=2"}).get());
  EXPECT_EQ(options.status().code(), ErrorCode::kConfiguration);
}

TEST(EnvironmentTest, PassesOnWhatIsNotDefault) {
  Options options;
  EXPECT_THAT(EnvironmentFor(options), ElementsAre());
  options.eager_max_bytes = 512;
  options.job_secret = "hunter2";
  EXPECT_THAT(EnvironmentFor(options),
              ElementsAre("FERRY_EAGER_MAX_BYTES=512", "FERRY_JOB_SECRET=hunter2"));
}

TEST(EnvironmentTest, PassesOnTheWholePlaceInAJob) {
  Options options;
  options.size = 2;
  EXPECT_THAT(EnvironmentFor(options),
              ElementsAre("FERRY_JOB_ID=", "FERRY_JOB_SECRET=", "FERRY_RANK=0", "FERRY_SIZE=2",
                          "FERRY_NODE=0", "FERRY_ABORT_FD=0", "FERRY_APP=0", "FERRY_APP_SIZE=0",
                          "FERRY_UNIVERSE_SIZE=0"));
}

TEST(EnvironmentTest, TellsAWorkerOfGpusAndNothingElse) {
  Options options;
  options.gpu_backend = "cuda";
  options.cuda_library = "/opt/libcuda.so.1";
  options.eager_max_bytes = 512;
  options.job_secret = "hunter2";
  const Environment environment({"CUDA_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=2",
                                 "ZE_AFFINITY_MASK=0", "LD_LIBRARY_PATH=/opt", "HOME=/root",
                                 "TOKEN=hunter2", "XCUDA_A=1", "FERRY_LOG_LEVEL=debug"});
  EXPECT_THAT(GpuEnvironment(options, environment.get()),
              ElementsAre("FERRY_GPU_BACKEND=cuda", "FERRY_CUDA_LIBRARY=/opt/libcuda.so.1",
                          "CUDA_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=2", "ZE_AFFINITY_MASK=0",
                          "LD_LIBRARY_PATH=/opt"));
}

TEST(EnvironmentTest, FindsWholeNamesOnly) {
  const Environment environment({"PATHS=/no", "PATH=/bin:/usr/bin", "EMPTY="});
  EXPECT_EQ(FindVariable(environment.get(), "PATH"), "/bin:/usr/bin");
  EXPECT_EQ(FindVariable(environment.get(), "EMPTY"), "");
  EXPECT_EQ(FindVariable(environment.get(), "PAT"), std::nullopt);
}

TEST(EnvironmentTest, TellsForeignVariablesFromFerrys) {
  EXPECT_THAT(ForeignEnvironment(Environment({"FERRY_RANK=1", "FERRYMAN=1", "FERRY_HOME=/opt",
                                              "FERRY_OF_MINE=1", "HOME=/"})
                                     .get()),
              ElementsAre("FERRYMAN=1", "FERRY_HOME=/opt", "FERRY_OF_MINE=1", "HOME=/"));
}

TEST(EnvironmentTest, WhatIsPassedOnReadsBackTheSame) {
  Options options;
  for (const Option& option : OptionTable()) {
    if (const auto* number = std::get_if<uint64_t Options::*>(&option.member)) {
      options.*(*number) = option.max;
    }
  }
  Options read;
  ASSERT_TRUE(ApplyEnvironment(Environment(EnvironmentFor(options)).get(), &read).ok());
  EXPECT_EQ(read, options);
}

TEST(EnvironmentTest, ProcessEnvironmentIsTheOneOfThisProcess) {
  bool found = false;
  for (const char* const* entry = ProcessEnvironment(); *entry != nullptr; ++entry) {
    found = found || std::string(*entry).starts_with("TEST_TMPDIR=");
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace ferry::config
