// `ferryctl tune` works from measurements with curves that are known exactly.
// tests/e2e/trace_test.cc runs the program itself.
#include "tools/tune/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/toml_loader.h"
#include "tests/support/processes.h"
#include "tools/display/new_file.h"
#include "tools/tune/curve.h"
#include "tools/tune/network_meter.h"
#include "tools/tune/pipeline_choice.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using engine::BlockMode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kKibi = 1024;
constexpr uint64_t kMebi = 1024 * kKibi;

// A straight line, alone and in a queue alike.
Curve Line(double latency_us, double mb_per_s) {
  const auto at = [&](uint64_t size) {
    const double us = latency_us + static_cast<double>(size) / mb_per_s;
    return CurvePoint{size, us, us};
  };
  return Curve({at(1), at(64 * kMebi)});
}

StageCurves SameStages(double latency_us, double mb_per_s) {
  const Curve line = Line(latency_us, mb_per_s);
  return {line, line, line};
}

TEST(CurveTest, IsStraightBetweenMeasurementsAndBeyond) {
  const Curve curve({{1000, 20, 10}, {100, 11, 5}, {2000, 40, 30}});  // in any order
  EXPECT_DOUBLE_EQ(curve.AloneUs(1), 11);
  EXPECT_DOUBLE_EQ(curve.AloneUs(100), 11);
  EXPECT_DOUBLE_EQ(curve.AloneUs(550), 15.5);
  EXPECT_DOUBLE_EQ(curve.AloneUs(1000), 20);
  EXPECT_DOUBLE_EQ(curve.AloneUs(1500), 30);
  EXPECT_DOUBLE_EQ(curve.AloneUs(3000), 60);
  EXPECT_DOUBLE_EQ(curve.QueuedUs(1500), 20);
  EXPECT_DOUBLE_EQ(curve.start_up_us(), 11);
  EXPECT_DOUBLE_EQ(curve.mb_per_s(), 1000.0 / 20);
}

TEST(CurveTest, AShorterOneThatWasDisturbedCountsAsTheLonger) {
  const Curve curve({{100, 500, 1}, {200, 20, 30}, {300, 30, 25}});
  EXPECT_DOUBLE_EQ(curve.AloneUs(100), 20);
  EXPECT_DOUBLE_EQ(curve.QueuedUs(200), 20) << "nor longer in a queue than alone";
}

TEST(CurveTest, WithoutMeasurementsTakesNothing) {
  EXPECT_DOUBLE_EQ(Curve().AloneUs(77), 0);
  EXPECT_DOUBLE_EQ(Curve().mb_per_s(), 0);
  EXPECT_DOUBLE_EQ(Curve({{10, 3, 3}}).QueuedUs(1000), 3);
  EXPECT_DOUBLE_EQ(Curve({{10, 3, 3}}).mb_per_s(), 0);
}

TEST(SamplesTest, TakesMediansOfWhatHasEnded) {
  std::vector<uint32_t> counts;
  const auto curve = MeasureCurve(std::vector<uint64_t>{10}, 2, [&](uint64_t size, uint32_t count) {
    EXPECT_EQ(size, 10U);
    counts.push_back(count);
    return Status();
  });
  ASSERT_TRUE(curve.ok());
  EXPECT_THAT(counts, ElementsAre(kQueued, 1, kQueued, 1, kQueued));
  const auto failed = MeasureCurve(std::vector<uint64_t>{10, 20}, 2, [](uint64_t, uint32_t) {
    return Status(ErrorCode::kTimeout, "no answer");
  });
  EXPECT_EQ(failed.status().code(), ErrorCode::kTimeout);
}

TEST(PipelineChoiceTest, PredictsWhatThePipelineTakes) {
  constexpr double kLatencyUs = 10;
  constexpr double kBandwidth = 1000;  // bytes in a microsecond
  const StageCurves stages = SameStages(kLatencyUs, kBandwidth);
  const uint64_t size = kMebi;
  const double bytes_us = static_cast<double>(size) / kBandwidth;
  const auto predict = [&](Route route, PipelineChoice choice) {
    return PredictUs(stages, route, size, choice, 0);
  };
  const PipelineChoice one;
  EXPECT_NEAR(predict(Route::kBetweenDevices, one), 3 * (kLatencyUs + bytes_us), 1e-6);
  EXPECT_NEAR(predict(Route::kFromDevice, one), 2 * (kLatencyUs + bytes_us), 1e-6);
  for (const uint32_t count : {2U, 4U, 8U}) {
    const PipelineChoice even{BlockMode::kEven, count, count, 0};
    const double block_us = kLatencyUs + bytes_us / count;
    EXPECT_NEAR(predict(Route::kBetweenDevices, even), (count + 2) * block_us, 1e-6);
    EXPECT_NEAR(predict(Route::kToDevice, even), (count + 1) * block_us, 1e-6);
  }
  // A quarter, then three quarters.
  EXPECT_NEAR(predict(Route::kFromDevice, {BlockMode::kAdvanced, 2, 1, 0}),
              3 * kLatencyUs + 1.75 * bytes_us, 1e-6);
  EXPECT_NEAR(predict(Route::kFromDevice, {BlockMode::kAdvanced, 1, 2, 0}),
              2 * (kLatencyUs + bytes_us), 1e-6)
      << "the other direction's blocks";
  EXPECT_NEAR(predict(Route::kFromDevice, {BlockMode::kEven, 4, 4, size}),
              2 * (kLatencyUs + bytes_us), 1e-6)
      << "up to the threshold";
}

TEST(PipelineChoiceTest, ABlockThatWaitsForItsStagePaysNoStartUp) {
  StageCurves stages;  // the network, and the way into the device, take nothing
  stages.to_host = Curve({{1, 10, 2}, {kMebi, 10 + 100, 2 + 100}});
  const double half_us = 100 * (kMebi / 2.0 - 1) / (kMebi - 1);
  EXPECT_NEAR(PredictUs(stages, Route::kFromDevice, kMebi, {BlockMode::kEven, 2, 2, 0}, 0),
              10 + half_us + 2 + half_us, 1e-6);
}

TEST(PipelineChoiceTest, LongBlocksAreCut) {
  const StageCurves stages = SameStages(10, 1000);
  const PipelineChoice one;
  const PipelineChoice even{BlockMode::kEven, 4, 4, 0};
  EXPECT_DOUBLE_EQ(PredictUs(stages, Route::kToDevice, kMebi, one, kMebi / 4),
                   PredictUs(stages, Route::kToDevice, kMebi, even, 0));
  EXPECT_DOUBLE_EQ(PredictUs(stages, Route::kToDevice, kMebi, even, kMebi / 4),
                   PredictUs(stages, Route::kToDevice, kMebi, even, 0));
}

// Two even blocks over two stages: 3 L + 3/2 S/B against 2 L + 2 S/B, so they pay from S = 2 L B
// on.
TEST(PipelineChoiceTest, TheThresholdIsWhereTwoBlocksBeginToPay) {
  const StageCurves stages = SameStages(20, 4000);  // 2 L B = 160,000
  const PipelineChoice choice = ChoosePipeline(stages, {.most_blocks = 2});
  EXPECT_EQ(choice.mode, BlockMode::kEven);
  EXPECT_GT(choice.threshold_bytes, 160'000 / 2U);
  EXPECT_LT(choice.threshold_bytes, 160'000U);
  EXPECT_EQ(choice.threshold_bytes, 38 * 4096U) << "the size tried last below it";
}

TEST(PipelineChoiceTest, NoMessageIsSlowerThanInOneBlock) {
  const PipelineChoice one;
  for (const double latency_us : {1.0, 5.0, 27.0, 90.0}) {
    const StageCurves stages{Line(latency_us, 5622), Line(latency_us / 3, 8500),
                             Line(latency_us, 3768)};
    const PipelineChoice choice = ChoosePipeline(stages, {});
    for (const Route route : kRoutes) {
      for (uint64_t size = 4 * kKibi; size <= 4 * kMebi; size *= 2) {
        EXPECT_LE(PredictUs(stages, route, size, choice, 0), PredictUs(stages, route, size, one, 0))
            << latency_us << " us, " << size << " bytes";
      }
    }
  }
}

TEST(PipelineChoiceTest, CheapStartsWantMoreBlocks) {
  const PipelineChoice cheap = ChoosePipeline(SameStages(0.1, 4000), {});
  const PipelineChoice dear = ChoosePipeline(SameStages(40, 4000), {});
  EXPECT_EQ(std::max(cheap.blocks_to_host, cheap.blocks_to_device), 16U);
  EXPECT_LT(std::max(dear.blocks_to_host, dear.blocks_to_device), 8U);
  EXPECT_LT(cheap.threshold_bytes, dear.threshold_bytes);
}

TEST(PipelineChoiceTest, ADirectionThatIsNoBottleneckNeedsFewerBlocks) {
  // Hardly anything to hide in the copies out of the device, but dear to start.
  const StageCurves stages{Line(30, 1'000'000), Line(1, 2000), Line(1, 2000)};
  const PipelineChoice choice = ChoosePipeline(stages, {});
  EXPECT_EQ(choice.blocks_to_host, 1U);
  EXPECT_GT(choice.blocks_to_device, 1U);
}

TEST(PipelineChoiceTest, WhereNothingPaysThereIsNoPipeline) {
  const PipelineChoice choice = ChoosePipeline(SameStages(5000, 4000), {});
  EXPECT_EQ(choice, (PipelineChoice{BlockMode::kNaive, 1, 1, 4 * kMebi}));
}

// The device of the OSU paper (gpu_backends/host/link_options.h), whose starts take 27 us: the
// default threshold of 64 KiB is too low for it.
TEST(PipelineChoiceTest, TheDeviceOfThePaperWantsAHigherThreshold) {
  const StageCurves stages{Line(27, 5622), Line(1, 8500), Line(27, 3768)};
  const PipelineChoice two = ChoosePipeline(stages, {.most_blocks = 2});
  EXPECT_GE(two.threshold_bytes, 128 * kKibi);
  EXPECT_LE(two.threshold_bytes, 512 * kKibi);
  const PipelineChoice best = ChoosePipeline(stages, {});
  EXPECT_GE(best.threshold_bytes, 128 * kKibi);
  const PipelineChoice one;
  EXPECT_LT(PredictUs(stages, Route::kBetweenDevices, 4 * kMebi, best, 0),
            PredictUs(stages, Route::kBetweenDevices, 4 * kMebi, one, 0) / 1.3);
}

TEST(ServedMemoryTest, FitsIntoAWord) {
  const ServedMemory memory{{std::byte{0}, std::byte{0xab}}, ~uint64_t{0}, 0, 4096};
  const std::string word = WordFor(memory);
  EXPECT_EQ(word, "00ab.ffffffffffffffff.0.1000");
  const StatusOr<ServedMemory> back = ServedMemoryFrom(word);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, memory);
  for (const char* wrong : {"", ".", "00ab", "00ab.1.2", "00ab.1.2.3.4", "00ab.1.2.3.", "0.1.2.3",
                            "0x.1.2.3", "00ab.1.2.g", "00ab..2.3", "00ab.1ffffffffffffffff.2.3"}) {
    EXPECT_EQ(ServedMemoryFrom(wrong).status().code(), ErrorCode::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(ServedMemoryFrom(std::string(100'000, 'a') + ".1.2.3").ok());
}

TunePlan PlanFor(std::vector<uint64_t> sizes) {
  TunePlan plan;
  plan.sizes = std::move(sizes);
  return plan;
}

TEST(TunePlanTest, SizesAreSortedAndSensible) {
  const auto sizes = SizesToMeasure(PlanFor({65536, 16, 65536, 4096}));
  ASSERT_TRUE(sizes.ok());
  EXPECT_THAT(*sizes, ElementsAre(16, 4096, 65536));
  ASSERT_TRUE(SizesToMeasure({}).ok());
  EXPECT_EQ(SizesToMeasure({})->back(), 4 * kMebi);
  for (const std::vector<uint64_t>& wrong :
       {std::vector<uint64_t>{4096}, {4096, 4096}, {0, 4096}, {4096, 2048 * kMebi}}) {
    EXPECT_EQ(SizesToMeasure(PlanFor(wrong)).status().code(), ErrorCode::kInvalidArgument);
  }
}

class FileTest : public testing::Test {
 protected:
  FileTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/tuned.toml";
  }
  ~FileTest() override { fs::remove_all(directory_); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string directory_ = "/tmp/ferry-tune-XXXXXX";
  std::string path_;
};

TEST_F(FileTest, IsNoneWhereNobodyNamesOne) {
  const auto none = FileIfNamed("", false);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto some = FileIfNamed(path_, false);
  ASSERT_TRUE(some.ok());
  EXPECT_TRUE(some->has_value());
}

TEST_F(FileTest, IsThereOnceItIsWhole) {
  {
    StatusOr<NewFile> file = NewFile::Create(path_, false);
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_TRUE(file->Commit("text").ok());
  }
  EXPECT_EQ(tests::ReadFile(path_), "text");
  EXPECT_THAT(Files(), ElementsAre("tuned.toml"));
}

TEST_F(FileTest, LeavesNothingBehindThatWasNotWritten) {
  ASSERT_TRUE(NewFile::Create(path_, false).ok());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FileTest, ReplacesNothingUnasked) {
  StatusOr<NewFile> early = NewFile::Create(path_, false);
  ASSERT_TRUE(early.ok());
  std::ofstream(path_) << "another's";
  EXPECT_EQ(NewFile::Create(path_, false).status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(early->Commit("text").code(), ErrorCode::kAlreadyExists) << "it came meanwhile";
  EXPECT_EQ(tests::ReadFile(path_), "another's");
  StatusOr<NewFile> forced = NewFile::Create(path_, true);
  ASSERT_TRUE(forced.ok());
  EXPECT_TRUE(forced->Commit("text").ok());
  EXPECT_EQ(tests::ReadFile(path_), "text");
  EXPECT_FALSE(NewFile::Create(directory_, true).ok()) << "a directory";
  EXPECT_FALSE(NewFile::Create(directory_ + "/none/tuned.toml", false).ok());
}

class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    result_.host = "node<1>&co";
    result_.backend = "host";
    result_.network.description.provider = "tcp;ofi_rxm";
    result_.copies = {Line(27, 5622), Line(27, 3768), Line(54, 3510), Line(54, 2917)};
    result_.network.reads = Line(5, 8500);
    result_.sizes = {4 * kKibi, 64 * kKibi, kMebi};
    result_.repetitions = 7;
    result_.choice = {BlockMode::kEven, 2, 4, 192 * kKibi};
  }

  TuneResult result_;
};

TEST_F(ReportTest, TheFragmentIsAConfigurationThatSaysWhatWasMeasured) {
  const std::string text = TuneFragment(result_);
  EXPECT_THAT(text, AllOf(HasSubstr("host backend"), HasSubstr("tcp;ofi_rxm"),
                          HasSubstr("medians of 7"), HasSubstr("5622"), HasSubstr("3768")));
  config::Options options;
  const Status read = config::ApplyTomlText(text, "tuned.toml", &options);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(options.pipeline_threshold_bytes, 192 * kKibi);
  EXPECT_EQ(options.pipeline_mode, "even");
  EXPECT_EQ(options.pipeline_blocks_to_host, 2U);
  EXPECT_EQ(options.pipeline_blocks_to_device, 4U);
}

TEST_F(ReportTest, ThePlotHasEveryCurveAndTheThreshold) {
  const std::string svg = TunePlot(result_);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* text :
       {">device to pinned host<", ">pinned host to device<", ">device to ordinary host<",
        ">ordinary host to device<", ">network, read<", ">time, us<", ">size<", ">64 KiB<",
        ">time over that of one block<", ">one block up to 192 KiB<", "node&lt;1&gt;&amp;co"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_EQ(svg.find("nan"), svg.npos);
  EXPECT_EQ(svg.find("inf"), svg.npos);
  EXPECT_LT(svg.size(), 64 * kKibi);
}

TEST_F(ReportTest, SaysWhereThePipelineDoesNotMatter) {
  EXPECT_THAT(TuneText(result_), HasSubstr("measured inside this node"));
  result_.loopback = false;
  result_.device_info.direct.cpu = true;
  result_.choice = {BlockMode::kNaive, 1, 1, kMebi};
  EXPECT_THAT(TuneText(result_),
              AllOf(HasSubstr("pass no pipeline"), HasSubstr("No pipeline is faster"),
                    HasSubstr("pipeline_mode = \"naive\"")));
}

}  // namespace
}  // namespace ferry::tools
