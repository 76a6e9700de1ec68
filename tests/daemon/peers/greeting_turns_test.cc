#include "daemon/peers/greeting_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::daemon {
namespace {

using testing::ElementsAre;

constexpr uid_t kAnn = 1000;
constexpr uid_t kBob = 1001;

class GreetingTurnsTest : public testing::Test {
 protected:
  void Await(const std::string& name, const std::vector<uid_t>& users) {
    turns_.Await(users, [this, name](uid_t user) {
      begun_.push_back(name + (user == kAnn ? " for Ann" : " for Bob"));
      return true;
    });
  }

  GreetingTurns turns_{2};
  std::vector<std::string> begun_;
};

TEST_F(GreetingTurnsTest, SoManyOfAUserAreUnderWayAndNoneOfAnotherWaitsForThem) {
  for (const char* name : {"a", "b", "c", "d"}) {
    Await(name, {kAnn});
  }
  Await("e", {kBob});
  EXPECT_THAT(begun_, ElementsAre("a for Ann", "b for Ann", "e for Bob"));
  turns_.End(kBob);
  EXPECT_EQ(begun_.size(), 3U);
  turns_.End(kAnn);
  turns_.End(kAnn);
  EXPECT_THAT(begun_, ElementsAre("a for Ann", "b for Ann", "e for Bob", "c for Ann", "d for Ann"));
  turns_.End(kAnn);
  turns_.End(kAnn);
  Await("f", {kAnn});
  EXPECT_EQ(begun_.back(), "f for Ann");
}

// A node of two users is greeted when the first of them has a turn.
TEST_F(GreetingTurnsTest, ANodeOfTwoUsersTakesTheEarlierTurn) {
  Await("a", {kAnn});
  Await("b", {kAnn});
  Await("c", {kAnn, kBob});
  EXPECT_EQ(begun_.back(), "c for Bob");
}

TEST_F(GreetingTurnsTest, WhatNobodyWantsAnyMoreTakesNoTurn) {
  Await("a", {kAnn});
  Await("b", {kAnn});
  int asked = 0;
  for (int i = 0; i < 3; ++i) {
    turns_.Await({kAnn}, [&asked](uid_t) {
      ++asked;
      return false;
    });
  }
  Await("c", {kAnn});
  turns_.End(kAnn);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(begun_.back(), "c for Ann");
  turns_.End(kAnn);
  turns_.Await({kAnn}, [](uid_t) { return false; });
  Await("d", {kAnn});
  EXPECT_EQ(begun_.back(), "d for Ann");
}

}  // namespace
}  // namespace ferry::daemon
