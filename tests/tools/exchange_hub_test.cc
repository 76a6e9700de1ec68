#include "tools/ferryrun/exchange_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = ExchangeMessage::Kind;

ExchangeMessage Part(const std::string& fence, const std::string& data,
                     std::vector<uint32_t> ranks = {}) {
  return {.kind = Kind::kPart, .fence = fence, .ranks = std::move(ranks), .data = data};
}

ExchangeMessage Never(const std::string& fence, const std::string& why) {
  return {.kind = Kind::kPart, .fence = fence, .why = why};
}

// "MACHINE:DATA", or "MACHINE!WHY".
std::vector<std::string> Texts(const std::vector<ExchangeHub::Outgoing>& all) {
  std::vector<std::string> texts;
  for (const ExchangeHub::Outgoing& one : all) {
    const ExchangeMessage& message = one.message;
    texts.push_back(std::to_string(one.machine) +
                    (message.why.empty() ? ":" + message.data : "!" + message.why));
  }
  return texts;
}

// Two ranks on machine 0, one each on 1 and 2.
class ExchangeHubTest : public testing::Test {
 protected:
  std::vector<std::string> Take(uint32_t machine, const ExchangeMessage& message) {
    return Texts(hub_.Take(machine, message));
  }

  ExchangeHub hub_{{0, 0, 1, 2}};
};

TEST_F(ExchangeHubTest, AFenceIsCompleteOnceAllMachinesHaveSentTheirParts) {
  EXPECT_THAT(Take(2, Part("a", "two ")), IsEmpty());
  EXPECT_THAT(Take(0, Part("a", "zero ")), IsEmpty());
  EXPECT_THAT(Take(0, Part("a", "once more ")), IsEmpty()) << "a machine has one part";
  EXPECT_THAT(Take(0, Part("b", "the next ")), IsEmpty()) << "fences do not mix";
  EXPECT_THAT(Take(1, Part("a", "one ")),
              ElementsAre("0:zero one two ", "1:zero one two ", "2:zero one two "));
  EXPECT_THAT(Take(1, Part("a", "")), IsEmpty()) << "that one is over";
}

TEST_F(ExchangeHubTest, OnlyMachinesOfRanksThatTakePartCount) {
  EXPECT_THAT(Take(0, Part("a", "x", {1, 3})), IsEmpty());
  EXPECT_THAT(Take(2, Part("a", "y", {1, 3})), ElementsAre("0:xy", "2:xy"));
  EXPECT_THAT(Take(1, Part("b", "z", {2})), ElementsAre("1:z"));
}

TEST_F(ExchangeHubTest, ThoseThatWaitHearThatAFenceWillNeverBeComplete) {
  EXPECT_THAT(Take(0, Part("a", "x")), IsEmpty());
  EXPECT_THAT(Take(1, Never("a", "rank 2")), ElementsAre("0!rank 2"));
  EXPECT_THAT(Take(2, Part("a", "y")), ElementsAre("2!rank 2")) << "the first has been told";
}

TEST_F(ExchangeHubTest, AnEndThatAllKnowOfIsSilent) {
  EXPECT_THAT(Take(0, Never("a", "rank 0")), IsEmpty());
  EXPECT_THAT(Take(1, Never("a", "rank 2")), IsEmpty());
  EXPECT_THAT(Take(2, Never("a", "rank 3")), IsEmpty());
}

TEST_F(ExchangeHubTest, MoreThanAFrameHoldsIsRefused) {
  const std::string much(kMostExchangeBytes / 2, 'x');
  EXPECT_THAT(Take(0, Part("a", much)), IsEmpty());
  EXPECT_THAT(Take(1, Part("a", much)), IsEmpty());
  const auto whole = Take(2, Part("a", "y"));
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_THAT(whole[0], HasSubstr("33554433 bytes"));
}

TEST_F(ExchangeHubTest, QuestionsAndAnswersFindTheirWay) {
  const auto asked = hub_.Take(1, {.kind = Kind::kAsk, .fence = "7", .rank = 3});
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].machine, 2U);
  ExchangeMessage answer = asked[0].message;
  answer.kind = Kind::kAnswer;
  answer.data = "words";
  const auto answered = hub_.Take(2, answer);
  ASSERT_EQ(answered.size(), 1U);
  EXPECT_EQ(answered[0].machine, 1U);
  EXPECT_EQ(answered[0].message.fence, "7");
  EXPECT_THAT(Take(1, {.kind = Kind::kAsk, .rank = 4}), IsEmpty()) << "there is no such rank";
}

}  // namespace
}  // namespace ferry::tools
