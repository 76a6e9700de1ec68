// Whatever happens while two ranks switch their directions between the daemons and a direct link,
// nothing is lost, doubled or overtaken: every order of events, for small programs.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/path_explorer.h"

namespace ferry::engine {
namespace {

void Print(const Totals& totals) {
  std::printf("%lu programs, %lu states, %lu ends, %lu of them with a switch\n", totals.programs,
              totals.states, totals.ends, totals.switched);
  EXPECT_GT(totals.switched, 0U);
}

// ---- Programs ----------------------------------------------------------------------------------

const Script kThreeReceives = {Act::kReceive, Act::kReceive, Act::kReceive};

TEST(PathSwitchTest, OneDirectionThereAndBack) {
  Totals totals;
  for (const bool pushes : {false, true}) {
    for (const Act first : {Act::kSend, Act::kRts}) {
      for (const Act second : {Act::kSend, Act::kRts, Act::kSynchronous}) {
        Program program{{{first, Act::kUse, second, Act::kLeave, Act::kSend}, kThreeReceives}};
        program.pushes = pushes;
        Explore(program, &totals);
      }
    }
  }
  Print(totals);
}

TEST(PathSwitchTest, BothDirectionsAtOnce) {
  Totals totals;
  for (const Act third : {Act::kSend, Act::kLeave}) {
    for (const Act fourth : {Act::kRts, Act::kLeave}) {
      Explore({{{Act::kSend, Act::kUse, third, Act::kReceive},
                {Act::kRts, Act::kUse, fourth, Act::kReceive}}},
              &totals);
    }
  }
  Print(totals);
}

TEST(PathSwitchTest, WildcardsProbesAndShortReceives) {
  Totals totals;
  const Script sender = {Act::kSend, Act::kUse, Act::kRts, Act::kLeave, Act::kSend};
  for (const Act odd : {Act::kReceiveAny, Act::kReceiveShort, Act::kProbe}) {
    Explore({{sender, {Act::kReceive, odd, Act::kReceive}}}, &totals);
    Explore({{sender, {odd, Act::kReceiveAny, Act::kReceive}}}, &totals);
  }
  Print(totals);
}

TEST(PathSwitchTest, Cancels) {
  Totals totals;
  for (const Act rts : {Act::kRts, Act::kSynchronous}) {
    const Script receiver = {Act::kReceive, Act::kCancelReceive, Act::kReceive};
    Explore({{{rts, Act::kUse, Act::kCancelSend, Act::kSend}, receiver}}, &totals);
    Explore({{{Act::kUse, rts, Act::kLeave, Act::kCancelSend, Act::kSend}, receiver}}, &totals);
    Explore({{{Act::kUse, rts, Act::kCancelSend, Act::kLeave, Act::kSend},
              {Act::kProbe, Act::kReceive, Act::kReceive}}},
            &totals);
  }
  Print(totals);
}

TEST(PathSwitchTest, RanksAndTheirWorkersInTurn) {
  Totals totals;
  for (const Act second : {Act::kSend, Act::kRts}) {
    Program program{{{Act::kSend, Act::kUse, second, Act::kLeave}, {Act::kReceive, Act::kReceive}}};
    program.with_workers = true;
    Explore(program, &totals);
  }
  Print(totals);
}

TEST(PathSwitchTest, RtrsAreOfTheDaemons) {
  Totals totals;
  const auto explore = [&totals](const Script& sender, const Script& receiver, Fault fault) {
    Program program{{sender, receiver}, fault};
    program.announces = true;
    Explore(program, &totals);
  };
  for (const Script& sender : {Script{Act::kUse, Act::kWrite, Act::kLeave, Act::kWrite},
                               Script{Act::kWrite, Act::kUse, Act::kSend, Act::kLeave}}) {
    explore(sender, {Act::kReceiveLong, Act::kReceiveLong}, Fault::kNone);
    explore(sender, {Act::kReceiveLong, Act::kCancelReceive, Act::kReceiveLong}, Fault::kNone);
  }
  explore({Act::kUse, Act::kWrite}, {Act::kReceiveLong}, Fault::kCut);
  explore({Act::kWrite, Act::kUse}, {Act::kReceiveLong, Act::kCancelReceive}, Fault::kCut);
  Print(totals);
}

// ---- Faults at any time ------------------------------------------------------------------------

class PathSwitchFaultTest : public testing::TestWithParam<Fault> {};

INSTANTIATE_TEST_SUITE_P(Faults, PathSwitchFaultTest,
                         testing::Values(Fault::kDeath, Fault::kCut, Fault::kLoss));

TEST_P(PathSwitchFaultTest, OneDirectionThereAndBack) {
  Totals totals;
  for (const bool pushes : {false, true}) {
    for (const Act second : {Act::kSend, Act::kRts}) {
      if (pushes && second == Act::kSend) {
        continue;  // no other than without
      }
      Program program{
          {{Act::kUse, second, Act::kLeave, Act::kSend}, {Act::kReceive, Act::kReceive}},
          GetParam()};
      program.pushes = pushes;
      Explore(program, &totals);
    }
  }
  Print(totals);
}

TEST_P(PathSwitchFaultTest, BothDirectionsAtOnce) {
  Totals totals;
  Explore(
      {{{Act::kUse, Act::kRts, Act::kReceive}, {Act::kUse, Act::kSend, Act::kReceive}}, GetParam()},
      &totals);
  Print(totals);
}

TEST_P(PathSwitchFaultTest, WithWorkers) {
  Totals totals;
  Program program{{{Act::kUse, Act::kSend}, {Act::kReceive}}, GetParam()};
  program.with_workers = true;
  Explore(program, &totals);
  Print(totals);
}

}  // namespace
}  // namespace ferry::engine
