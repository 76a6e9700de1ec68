#include "client/core/failure_words.h"

#include <gtest/gtest.h>

#include <thread>

namespace ferry::client {
namespace {

constexpr ErrorCode kSystem = ErrorCode::kSystem;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

class FailureWordsTest : public testing::Test {
 protected:
  ~FailureWordsTest() override { (void)FailureWords::Take(kSystem); }

  FailureWords words_;
};

TEST_F(FailureWordsTest, AreOfTheRequestThatFailed) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(2, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "the driver says");
}

TEST_F(FailureWordsTest, AreOfOneLifeOfTheRequest) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 6, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);  // they went with the other life
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreOfTheErrorThatTheRequestEndedWith) {
  words_.Note(1, 5, {kUnsupported, "out of reach"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreSaidOnce) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "the driver says");
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

// A call's own error after a request's, which nobody has asked about, or before it.
TEST_F(FailureWordsTest, AreOfNeitherOfTwoErrors) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Tell(kSystem), kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");

  words_.Note(1, 6, {kSystem, "the driver says"});
  EXPECT_EQ(FailureWords::Tell(kSystem), kSystem);
  words_.Tell(1, 6, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");

  EXPECT_EQ(FailureWords::Tell(kSystem, "the only one"), kSystem);
  EXPECT_EQ(FailureWords::Tell(ErrorCode::kOk), ErrorCode::kOk);  // is none
  EXPECT_EQ(FailureWords::Take(kSystem), "the only one");
}

TEST_F(FailureWordsTest, AskingForAnotherErrorForgetsThem) {
  EXPECT_EQ(FailureWords::Tell(kSystem, "the driver says"), kSystem);
  EXPECT_EQ(FailureWords::Take(kUnsupported), "");
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreOfTheThreadThatCollects) {
  std::thread([this] { words_.Note(1, 5, {kSystem, "a helper's copy"}); }).join();
  std::thread([] { EXPECT_EQ(FailureWords::Tell(kSystem, "another thread's"), kSystem); }).join();
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "a helper's copy");
}

}  // namespace
}  // namespace ferry::client
