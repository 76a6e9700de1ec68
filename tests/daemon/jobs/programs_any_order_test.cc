// Programs that follow each other, where ranks and the network take their steps in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "daemon/jobs/job_programs.h"
#include "tests/daemon/jobs/programs_world.h"

namespace ferry::daemon {
namespace {

using testing::IsEmpty;

// Ranks, the network and its losses take steps in a random order. Each rank runs so many programs;
// in some worlds one rank dies, or its slot ends, somewhere.
class AnyOrderTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kPrograms = 4;
  enum class Step { kAbsent, kInside, kOver };
  struct Slot {
    Step step = Step::kAbsent;
    uint32_t programs = 0;  // that it has left
    Status end;             // why it has run no more
  };

  // One step of a rank; returns false if it has to wait.
  bool Advance(ProgramsWorld& world, uint32_t rank, std::vector<Slot>& slots) {
    Slot& slot = slots[rank];
    if (slot.step == Step::kOver) {
      return false;
    }
    if (slot.step == Step::kAbsent) {
      const Status status = world.Attach(rank);
      slot.step = status.ok() ? Step::kInside : Step::kOver;
      slot.end = status;
      return true;
    }
    if (!world.processes[rank]->joined.has_value()) {
      return false;
    }
    if (!world.JoinOf(rank).ok()) {
      slot.end = world.JoinOf(rank);
      slot.step = Step::kOver;
      world.Die(rank);
      return true;
    }
    if (!HaveAllMet(world, slots, slot.programs)) {
      return false;  // in the last barrier
    }
    world.Leave(rank);
    slot.step = ++slot.programs == kPrograms ? Step::kOver : Step::kAbsent;
    return true;
  }
  // True if all ranks have been inside their next program after `programs`, but for those that
  // take no further part.
  static bool HaveAllMet(const ProgramsWorld& world, const std::vector<Slot>& slots,
                         uint32_t programs) {
    for (uint32_t rank = 0; rank < slots.size(); ++rank) {
      const bool is_inside = slots[rank].step == Step::kInside && world.JoinOf(rank).ok();
      if (slots[rank].programs <= programs && !is_inside && slots[rank].step != Step::kOver) {
        return false;
      }
    }
    return true;
  }
};

TEST_P(AnyOrderTest, AllRunAllPrograms) {
  std::mt19937 random(GetParam());
  ProgramsWorld world(GetParam() % 2 == 0 ? std::vector<uint32_t>{0, 1, 2}
                                          : std::vector<uint32_t>{0, 1, 0, 1});
  world.Launch();
  std::vector<Slot> slots(world.size());
  const auto is_over = [](const Slot& slot) { return slot.step == Step::kOver; };
  for (int step = 0; step < 20'000 && !std::all_of(slots.begin(), slots.end(), is_over); ++step) {
    const uint32_t dice = random() % 16;
    if (dice == 0) {
      world.losses += static_cast<int>(random() % 2);
    } else if (dice == 1) {
      world.Tick();
    } else if (dice < 8 && !world.messages.empty()) {
      world.Deliver(random() % world.messages.size());
    } else {
      Advance(world, random() % world.size(), slots);
    }
  }
  for (const Slot& slot : slots) {
    EXPECT_EQ(slot.programs, kPrograms) << slot.end.message();
  }
  world.losses = 0;
  world.Settle();
  for (uint32_t node = 0; node < world.nodes.size(); ++node) {
    EXPECT_THAT(world.JobsAt(node), IsEmpty());
    EXPECT_EQ(world.nodes[node]->plane.Count("AddJob"), kPrograms);
    EXPECT_EQ(world.nodes[node]->plane.Count("RemoveJob"), kPrograms);
    EXPECT_EQ(world.nodes[node]->wires.acquired, static_cast<int>(world.nodes.size()) - 1);
    ASSERT_TRUE(world.At(node).DestroyJob("x").ok());
    EXPECT_EQ(world.nodes[node]->wires.acquired, 0);
    EXPECT_EQ(world.At(node).leaving(), 0U);
  }
}

// Each rank that has not run all its programs has been told why, and none waits.
TEST_P(AnyOrderTest, OneEndIsToldToAll) {
  std::mt19937 random(GetParam());
  ProgramsWorld world(GetParam() % 2 == 0 ? std::vector<uint32_t>{0, 1, 2}
                                          : std::vector<uint32_t>{0, 1, 0, 1});
  world.Launch();
  std::vector<Slot> slots(world.size());
  const uint32_t victim = random() % world.size();
  const int when = static_cast<int>(random() % 400);
  bool has_happened = false;
  const auto happen = [&] {
    Slot& slot = slots[victim];
    if (has_happened || slot.step == Step::kOver) {
      return;
    }
    has_happened = true;
    if (slot.step == Step::kInside) {
      world.Die(victim);
    } else {  // its slot ends while others wait in the next program
      EXPECT_TRUE(*world.Of(victim).RankProcessEnded(TextOf(JobName{"x", slot.programs + 1}),
                                                     victim, "(slot) exited"));
    }
    slot.step = Step::kOver;
  };
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t dice = random() % 16;
    if (step == when) {
      happen();
    } else if (dice == 0 && step < 10'000) {
      world.losses += static_cast<int>(random() % 2);
    } else if (dice == 1) {
      world.Tick();
    } else if (dice < 8 && !world.messages.empty()) {
      world.Deliver(random() % world.messages.size());
    } else {
      Advance(world, random() % world.size(), slots);
    }
  }
  for (uint32_t rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(slots[rank].step, Step::kOver) << rank << " waits";
    if (has_happened && rank != victim && slots[rank].programs != kPrograms) {
      EXPECT_THAT(slots[rank].end.message(), testing::HasSubstr("rank "));
      EXPECT_EQ(static_cast<int>(slots[rank].end.code()), static_cast<int>(ErrorCode::kPeerDied))
          << slots[rank].end.message();
    } else if (!has_happened) {
      EXPECT_EQ(slots[rank].programs, kPrograms);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrderTest, testing::Range(0U, 60U));

}  // namespace
}  // namespace ferry::daemon
