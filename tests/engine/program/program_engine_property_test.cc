// Random programs whose operations end in random order, well or badly: each operation runs once for
// each start, never before its trigger, and nothing waits for ever.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/program/program_check.h"
#include "engine/program/program_engine.h"
#include "tests/engine/program/recording_executor.h"

namespace ferry::engine {
namespace {

class RandomPrograms {
 public:
  explicit RandomPrograms(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  // Every operation waits for the start, or for counters of earlier operations.
  ProgramSpec Make(std::vector<shm::CounterLayout>& words) {
    ProgramSpec spec;
    for (shm::CounterLayout& word : words) {
      spec.counters.push_back({&word, 0});
    }
    std::vector<uint64_t> adds(words.size());
    const uint32_t count = 1 + Below(12);
    for (uint32_t i = 0; i < count; ++i) {
      Operation operation;
      operation.body = i;
      operation.placement = Below(2) == 0 ? Placement::kNic : Placement::kDaemon;
      const uint32_t trigger = Below(static_cast<uint32_t>(words.size()));
      if (adds[trigger] != 0 && Below(4) != 0) {
        operation.trigger = {trigger, 1 + Below(static_cast<uint32_t>(adds[trigger]))};
      }
      // Adds only to counters that no earlier operation waits for, so that no threshold moves.
      const uint32_t done = Below(static_cast<uint32_t>(words.size()));
      bool waited_for = done == operation.trigger.counter;
      for (const Operation& earlier : spec.operations) {
        waited_for = waited_for || earlier.trigger.counter == done;
      }
      if (!waited_for) {
        operation.local_done = done;
        ++adds[done];
      }
      spec.operations.push_back(operation);
    }
    return spec;
  }

 private:
  std::mt19937 random_;
};

// Checks, whenever an operation begins, that its trigger was reached.
class CheckingExecutor final : public Executor {
 public:
  CheckingExecutor(const ProgramSpec& spec, size_t room)
      : spec_(spec), strides_(Strides(spec)), room_(room), runs_(spec.operations.size()) {}

  ErrorCode Begin(const Operation& operation, Token token) override {
    if (under_way.size() >= room_) {
      return ErrorCode::kWouldBlock;
    }
    const uint64_t run = runs_[operation.body]++;
    if (const uint32_t counter = operation.trigger.counter; counter != kNoCounter) {
      EXPECT_GE(shm::Counter(spec_.counters[counter].word).Value(),
                operation.trigger.threshold + run * strides_[counter]);
    }
    EXPECT_LT(run, starts);
    under_way.push_back(token);
    return ErrorCode::kOk;
  }
  void Renounce(const Operation&, ErrorCode) override {}
  void Abandon(const Operation&, Token) override {}

  uint64_t Runs(size_t operation) const { return runs_[operation]; }

  uint64_t starts = 0;
  std::vector<Token> under_way;

 private:
  const ProgramSpec& spec_;
  const std::vector<uint64_t> strides_;
  const size_t room_;
  std::vector<uint64_t> runs_;
};

class ProgramEnginePropertyTest : public testing::TestWithParam<bool> {};

TEST_P(ProgramEnginePropertyTest, EveryStartRunsEachOperationOnce) {
  const bool with_failure = GetParam();
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomPrograms random(seed);
    std::vector<shm::CounterLayout> words(1 + random.Below(6));
    const ProgramSpec spec = random.Make(words);
    CheckingExecutor executor(spec, 1 + random.Below(4));
    ProgramEngine engine({nullptr, nullptr, nullptr, &executor});
    const StatusOr<ProgramId> program = engine.Install(spec);
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    const uint64_t wanted = 1 + random.Below(4);
    const uint64_t fail_at = with_failure ? random.Below(10) : UINT64_MAX;
    uint64_t ends = 0;
    uint64_t now = 0;
    while (executor.starts < wanted || engine.IsBusy(*program)) {
      ASSERT_LT(now, 10000U) << "it stands still";
      engine.Poll(++now);
      if (executor.starts < wanted && random.Below(2) == 0) {
        executor.starts++;
        (void)engine.Start(*program);
      } else if (!executor.under_way.empty()) {
        const size_t which = random.Below(static_cast<uint32_t>(executor.under_way.size()));
        const Token token = executor.under_way[which];
        executor.under_way.erase(executor.under_way.begin() + static_cast<ptrdiff_t>(which));
        engine.Completed(token, ends++ == fail_at ? ErrorCode::kPeerDied : ErrorCode::kOk);
      }
    }
    EXPECT_TRUE(executor.under_way.empty());
    const bool failed = ends > fail_at;
    EXPECT_EQ(engine.counts().failed != 0, failed);
    for (size_t i = 0; i < spec.operations.size(); ++i) {
      if (!failed) {
        EXPECT_EQ(executor.Runs(i), wanted);
      }
    }
    const std::vector<uint64_t> strides = Strides(spec);
    for (size_t i = 0; i < words.size(); ++i) {
      const shm::Counter counter(&words[i]);
      if (!failed) {
        EXPECT_EQ(counter.Value(), wanted * strides[i]);
      } else if (counter.Value() >= shm::kCounterFailure) {
        EXPECT_EQ(counter.error(), ErrorCode::kPeerDied);
      }
    }
    engine.Free(*program);
    EXPECT_EQ(engine.program_count(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(WellOrBadly, ProgramEnginePropertyTest, testing::Bool());

// All orders in which the operations of a pipeline of blocks may end; each operation in turn fails,
// or none.
class EveryOrder {
 public:
  static constexpr uint32_t kBlocks = 2;
  static constexpr uint32_t kStages = 3;

  // Walks the tree of choices; a path is replayed from its beginning.
  void Walk() {
    std::vector<uint32_t> path;
    do {
      Play(path);
      ++plays;
    } while (Next(path));
  }

  uint64_t plays = 0;

 private:
  // Copy in, move, copy out: each stage of a block waits for the one before.
  ProgramSpec Pipeline() {
    ProgramSpec spec;
    words_.assign(size_t{kBlocks} * kStages, {});
    for (shm::CounterLayout& word : words_) {
      spec.counters.push_back({&word, 0});
    }
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t stage = 0; stage < kStages; ++stage) {
        Operation operation;
        operation.body = block * kStages + stage;
        if (stage != 0) {
          operation.trigger = {block * kStages + stage - 1, 1};
        }
        operation.local_done = block * kStages + stage;
        spec.operations.push_back(operation);
      }
    }
    return spec;
  }

  // Choice 2i ends the i-th operation under way well, choice 2i + 1 badly.
  void Play(std::vector<uint32_t>& path) {
    const ProgramSpec spec = Pipeline();
    RecordingExecutor executor;
    ProgramEngine engine({nullptr, nullptr, nullptr, &executor});
    const StatusOr<ProgramId> program = engine.Install(spec);
    ASSERT_TRUE(program.ok());
    ASSERT_EQ(engine.Start(*program), ErrorCode::kOk);
    choices_.clear();
    std::vector<bool> block_failed(kBlocks);
    while (!executor.under_way.empty()) {
      const size_t step = choices_.size();
      if (step == path.size()) {
        path.push_back(0);
      }
      choices_.push_back(static_cast<uint32_t>(2 * executor.under_way.size()));
      const size_t which = path[step] / 2;
      const uint64_t block = executor.under_way[which].operation.body / kStages;
      const bool badly = path[step] % 2 == 1;
      block_failed[block] = block_failed[block] || badly;
      engine.Completed(executor.Take(which), badly ? ErrorCode::kPeerDied : ErrorCode::kOk);
    }
    EXPECT_FALSE(engine.IsBusy(*program));
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const shm::Counter last(&words_[size_t{block} * kStages + kStages - 1]);
      EXPECT_EQ(last.error(), block_failed[block] ? ErrorCode::kPeerDied : ErrorCode::kOk);
      EXPECT_TRUE(last.Reached(1));
    }
  }

  // The next path in order; false after the last.
  bool Next(std::vector<uint32_t>& path) {
    path.resize(choices_.size());
    while (!path.empty() && path.back() + 1 == choices_[path.size() - 1]) {
      path.pop_back();
    }
    if (path.empty()) {
      return false;
    }
    ++path.back();
    return true;
  }

  std::vector<shm::CounterLayout> words_;
  std::vector<uint32_t> choices_;  // the number of them at each step of the last play
};

TEST(ProgramEngineOrderTest, APipelineEndsInEveryOrder) {
  EveryOrder every;
  every.Walk();
  EXPECT_GT(every.plays, 50U);
}

}  // namespace
}  // namespace ferry::engine
