#include "tools/display/rank_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace ferry::tools {
namespace {

using testing::HasSubstr;

TEST(RanksTextTest, NamesRanges) {
  EXPECT_EQ(RanksText({}), "");
  EXPECT_EQ(RanksText({7}), "7");
  EXPECT_EQ(RanksText({4, 3, 4}), "3, 4");
  EXPECT_EQ(RanksText({0, 1, 2, 5, 7, 8, 9}), "0-2, 5, 7-9");
}

TEST(RanksTextTest, OfManyRangesTheFirstAreNamed) {
  std::vector<uint32_t> even;
  for (uint32_t rank = 0; rank < 100; rank += 2) {
    even.push_back(rank);
  }
  EXPECT_EQ(RanksText(even), "0, 2, 4, 6, 8, 10, 12, 14 and 42 more");
}

TEST(SessionGroupsTest, AThousandRanksAreAFewLines) {
  control::SessionsReply reply;
  for (uint32_t rank = 0; rank < 1024; ++rank) {
    control::SessionStatus* const session = reply.add_sessions();
    session->set_job_id(rank < 1000 ? "heat" : "halo");
    session->set_rank(rank);
    session->set_state(rank == 500 ? "stopped" : "joined");
    session->set_messages_sent(3);
    session->set_bytes_sent(1024);
    if (rank < 500) {
      control::RankCall* const call = session->add_calls();
      call->set_name("MPI_Recv");
      call->set_for_ms(1000 * rank);
    }
  }
  const std::string text = SessionGroups(reply, {.width = 200});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 12) << text;
  EXPECT_THAT(text, HasSubstr("heat  joined     999  2997  999 KiB"));
  EXPECT_THAT(text, HasSubstr("0-499, 501-999\n"));
  EXPECT_THAT(text, HasSubstr("heat  stopped      1     3    1 KiB"));
  EXPECT_THAT(text, HasSubstr("halo  joined      24    72   24 KiB"));
  EXPECT_THAT(text, HasSubstr("heat  MPI_Recv    500  8 min 19 s  0-499\n"));
  EXPECT_THAT(text, testing::EndsWith("\n(--all lists each rank)\n"));
}

}  // namespace
}  // namespace ferry::tools
