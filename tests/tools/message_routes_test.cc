// Messages between two nodes, and the events of daemons that they went through: found by their
// order, their times and their sizes; where these say too little, none is.
#include "tools/profile/message_routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ferry::tools {
namespace {

// One more, each 10 us after the last one began.
struct Traffic {
  explicit Traffic(int64_t step_ns = 10'000) : step(step_ns) {}

  void Send(uint64_t bytes, int64_t takes_ns = 8'000, uint32_t from = 0, uint32_t to = 1) {
    const int64_t begin_ns = now;
    now += step;
    messages.push_back({.id = messages.size() + 1,
                        .from = from,
                        .to = to,
                        .from_node = from,
                        .to_node = to,
                        .begin_ns = begin_ns,
                        .end_ns = begin_ns + takes_ns,
                        .bytes = bytes});
    departures.push_back({.from = from, .to = to, .at_ns = begin_ns + 500, .bytes = bytes});
    arrivals.push_back(
        {.from = from, .to = to, .at_ns = begin_ns + takes_ns - 500, .bytes = bytes});
  }
  void Find() {
    tools::FindStops(RouteSide::kDeparture, nodes, &messages, &departures);
    tools::FindStops(RouteSide::kArrival, nodes, &messages, &arrivals);
  }
  // The stops whose id is that of the message that made them; which have another one than 0.
  uint64_t Right(const std::vector<RouteStop>& stops, uint64_t* found) const {
    uint64_t right = 0;
    for (const RouteStop& stop : stops) {
      const auto message = std::find_if(messages.begin(), messages.end(), [&](const auto& one) {
        return stop.from == one.from && stop.to == one.to &&
               (stop.at_ns == one.begin_ns + 500 || stop.at_ns == one.end_ns - 500);
      });
      *found += stop.id != 0 ? 1 : 0;
      right += message != messages.end() && message->id == stop.id ? 1 : 0;
    }
    return right;
  }
  void ExpectFound(uint64_t departed, uint64_t arrived) const {
    uint64_t found = 0;
    EXPECT_EQ(Right(departures, &found), departed);
    EXPECT_EQ(found, departed) << "none is wrong";
    found = 0;
    EXPECT_EQ(Right(arrivals, &found), arrived);
    EXPECT_EQ(found, arrived) << "none is wrong";
  }

  int64_t step;
  int64_t now = 1'000'000;
  std::vector<RoutedMessage> messages;
  std::vector<RouteStop> departures;
  std::vector<RouteStop> arrivals;
  std::vector<RouteNode> nodes = std::vector<RouteNode>(
      3, RouteNode{.since_ns = 0, .until_ns = INT64_MAX / 2, .error_ns = 100});
};

TEST(MessageRoutesTest, FindsTheEventsOfOneMessage) {
  Traffic traffic;
  traffic.Send(8);
  traffic.Find();
  traffic.ExpectFound(1, 1);
}

TEST(MessageRoutesTest, FindsThemAmongThoseOfOtherRanks) {
  Traffic traffic;
  for (uint64_t i = 0; i < 30; ++i) {
    traffic.Send(8, 8'000, static_cast<uint32_t>(i % 3), static_cast<uint32_t>((i + 1) % 3));
  }
  std::mt19937 dice(1);
  std::shuffle(traffic.departures.begin(), traffic.departures.end(), dice);
  std::shuffle(traffic.messages.begin(), traffic.messages.end(), dice);
  traffic.Find();
  traffic.ExpectFound(30, 30);
}

// All are under way at once, so that times alone do not tell them apart.
TEST(MessageRoutesTest, FindsThoseOfABurstBySizes) {
  Traffic traffic(1);
  for (uint64_t i = 0; i < 20; ++i) {
    traffic.Send(i % 2 == 0 ? i : 7, 50'000);
  }
  traffic.Find();
  traffic.ExpectFound(20, 20);
}

// The daemons' rings have given up the events of the oldest messages.
TEST(MessageRoutesTest, FindsTheLastOnesIfEventsAreLost) {
  Traffic traffic;
  for (uint64_t i = 0; i < 100; ++i) {
    traffic.Send(8);
  }
  traffic.departures.erase(traffic.departures.begin(), traffic.departures.begin() + 60);
  traffic.arrivals.erase(traffic.arrivals.begin(), traffic.arrivals.begin() + 30);
  traffic.nodes[0].since_ns = traffic.departures[0].at_ns - 100;
  traffic.nodes[1].since_ns = traffic.arrivals[0].at_ns - 100;
  traffic.Find();
  traffic.ExpectFound(40, 70);
}

// The ring of the daemon was made as the first message had just gone out, but clocks differ: the
// message seems to have begun after that.
TEST(MessageRoutesTest, ClocksMayBeWrongAboutTheFirstEventThatIsKept) {
  Traffic traffic;
  for (uint64_t i = 0; i < 10; ++i) {
    traffic.Send(8);
  }
  traffic.departures.erase(traffic.departures.begin());
  traffic.arrivals.pop_back();
  traffic.nodes[0].since_ns = traffic.messages[0].begin_ns - 400;
  traffic.nodes[1].until_ns = traffic.messages[9].end_ns + 400;
  traffic.Find();
  traffic.ExpectFound(9, 9);
}

// The ring of the rank is shorter than those of the daemons.
TEST(MessageRoutesTest, FindsTheLastOnesIfMessagesAreLost) {
  Traffic traffic;
  for (uint64_t i = 0; i < 100; ++i) {
    traffic.Send(8);
  }
  traffic.messages.erase(traffic.messages.begin(), traffic.messages.begin() + 50);
  traffic.Find();
  traffic.ExpectFound(50, 50);
}

// The events of one daemon were copied earlier than the messages of the other node's ranks.
TEST(MessageRoutesTest, FindsTheFirstOnesOfAJobThatRunsOn) {
  Traffic traffic;
  for (uint64_t i = 0; i < 100; ++i) {
    traffic.Send(8);
  }
  traffic.arrivals.resize(40);
  traffic.nodes[1].until_ns = traffic.arrivals.back().at_ns + 100;
  traffic.messages[99].end_ns = INT64_MAX;
  traffic.Find();
  traffic.ExpectFound(100, 40);
}

// One goes with no event, or an event with no message: no two in their order fit all others.
TEST(MessageRoutesTest, TakesNoneWhereTheOrderIsBroken) {
  Traffic traffic;
  for (uint64_t i = 0; i < 20; ++i) {
    traffic.Send(8);
  }
  traffic.departures.erase(traffic.departures.begin() + 10);
  traffic.arrivals.insert(traffic.arrivals.begin() + 10, traffic.arrivals[9]);
  traffic.Find();
  traffic.ExpectFound(0, 0);
}

TEST(MessageRoutesTest, TakesNoneOfOtherSizes) {
  Traffic traffic;
  traffic.Send(8);
  traffic.departures[0].bytes = 9;
  traffic.arrivals[0].bytes = 7;
  traffic.Find();
  traffic.ExpectFound(0, 0);
}

// Equal messages, all under way at once, of which the oldest events are lost: it cannot be told
// which of them these are.
TEST(MessageRoutesTest, TakesNoneWhereSeveralFit) {
  Traffic traffic(1);
  for (uint64_t i = 0; i < 20; ++i) {
    traffic.Send(8, 50'000);
  }
  traffic.departures.erase(traffic.departures.begin(), traffic.departures.begin() + 3);
  traffic.arrivals.erase(traffic.arrivals.begin(), traffic.arrivals.begin() + 3);
  traffic.nodes[0].since_ns = traffic.nodes[1].since_ns = traffic.now;
  traffic.Find();
  traffic.ExpectFound(0, 0);
}

TEST(MessageRoutesTest, ADaemonThatHasNothingBreaksNothing) {
  Traffic traffic;
  traffic.Send(8);
  traffic.departures.clear();
  traffic.nodes[0] = {};
  traffic.Find();
  traffic.ExpectFound(0, 1);
}

TEST(MessageRoutesTest, MessagesWithoutArrowsKeepTheirPlaces) {
  Traffic traffic;
  for (uint64_t i = 0; i < 10; ++i) {
    traffic.Send(8);
  }
  traffic.messages[4].id = 0;
  traffic.Find();
  EXPECT_EQ(traffic.departures[3].id, 4U);
  EXPECT_EQ(traffic.departures[4].id, 0U);
  EXPECT_EQ(traffic.departures[5].id, 6U);
}

}  // namespace
}  // namespace ferry::tools
