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

control::CountersReply Counters(uint32_t ranks) {
  control::CountersReply reply;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const char* name : {"messages_sent", "bytes_sent"}) {
      control::CounterValue* const counter = reply.add_counters();
      counter->set_scope("job heat rank " + std::to_string(rank));
      counter->set_name(name);
      counter->set_value(name[0] == 'm' ? rank % 7 : 0);
      counter->set_unit("messages");
    }
  }
  return reply;
}

TEST(CounterGroupsTest, AThousandRanksAreALineForEachCounter) {
  EXPECT_FALSE(HasManyRanks(Counters(64)));
  const control::CountersReply reply = Counters(1024);
  EXPECT_TRUE(HasManyRanks(reply));
  const std::string text = CounterGroups(reply, {.width = 200});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  // 1,024 ranks are 146 rounds of 0 to 6, and 0 and 1.
  EXPECT_THAT(text, HasSubstr("heat  messages_sent    877  3067     6        6  messages"));
  EXPECT_THAT(text, HasSubstr("heat  bytes_sent         0     0     0        -"));
  EXPECT_LT(text.find("messages_sent"), text.find("bytes_sent")) << "in the order of the daemon";
  EXPECT_THAT(text, testing::EndsWith("\n(--all lists each rank)\n"));
}

TEST(CounterGroupsTest, WhatIsOfNoRankIsNamedAsItIs) {
  for (const char* scope : {"daemon", "job heat rank x", "job heat rank 1 of many", "rank 3"}) {
    control::CountersReply reply;
    reply.add_counters()->set_scope(scope);
    EXPECT_THAT(CounterGroups(reply, {.width = 200}), HasSubstr(std::string(scope) + "  "))
        << scope;
  }
}

TEST(LinkGroupsTest, ManyPairsAreALineForEachWayAndReason) {
  control::LinksReply reply;
  for (uint32_t rank = 0; rank < 512; ++rank) {
    for (uint32_t peer = 512; peer < 514; ++peer) {
      control::LinkStatus* const link = reply.add_links();
      link->set_job_id("heat");
      link->set_rank(rank);
      link->set_peer(peer);
      const bool is_up = rank < 100;
      link->set_state(is_up ? "up" : "none");
      link->set_out(is_up ? "link" : "daemon");
      link->set_in(is_up ? "link" : "daemon");
      link->set_why(is_up ? "" : "too few messages");
      link->set_daemon_messages(2);
      link->set_daemon_bytes(1024);
    }
    control::LinkTotals* const totals = reply.add_totals();
    totals->set_job_id("heat");
    totals->set_rank(rank);
    totals->set_links(rank < 100 ? 2 : 0);
    totals->set_messages_sent(10);
    totals->set_errors(rank == 7 ? 1 : 0);
  }
  const std::string text = LinkGroups(reply, {.width = 200});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7) << text;
  EXPECT_THAT(text, HasSubstr("heat  up      200  link    link          400  200 KiB  0-99"));
  EXPECT_THAT(text, HasSubstr("heat  none    824  daemon  daemon       1648  824 KiB  100-511"));
  EXPECT_THAT(text, HasSubstr("too few messages\n"));
  EXPECT_THAT(text, HasSubstr("heat    512    200  5120  0 B         0  0 B       1  0-511\n"));
  EXPECT_THAT(text, testing::EndsWith("\n(--all lists each rank)\n"));
  reply.set_refusal("the option is off");
  EXPECT_THAT(LinkGroups(reply), HasSubstr("\nno direct links: the option is off\n"));
}

}  // namespace
}  // namespace ferry::tools
