// Every order of events, for every small program of two ranks, and for many of three.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "shm/layout/match_layout.h"
#include "tests/engine/rendezvous/rendezvous_model.h"

namespace ferry::engine {
namespace {

// The stress variant tries all programs; the other one tries every so-many-th, and still meets each
// kind.
#ifdef FERRY_STRESS
constexpr uint32_t kEvery = 1;
#else
constexpr uint32_t kEvery = 61;
#endif

struct Totals {
  uint64_t asked = 0;
  uint64_t programs = 0;
  uint64_t states = 0;
  RendezvousModel::Ways ways;
};

// Visits every state that `start` can reach. Returns an empty text, or what went wrong.
std::string Explore(const RendezvousModel& start, Totals* totals) {
  std::unordered_set<std::string> known = {start.Key()};
  std::vector<RendezvousModel> open = {start};
  while (!open.empty()) {
    const RendezvousModel state = std::move(open.back());
    open.pop_back();
    totals->states++;
    const size_t choices = state.Choices();
    for (size_t choice = 0; choice < choices; ++choice) {
      RendezvousModel next = state;
      next.Do(choice);
      if (next.Choices() == 0) {
        next.CheckEnd();
        totals->ways.eager += next.ways().eager;
        totals->ways.read += next.ways().read;
        totals->ways.written += next.ways().written;
        totals->ways.cancelled += next.ways().cancelled;
      }
      if (!next.problem().empty()) {
        return next.problem();
      }
      if (known.insert(next.Key()).second) {
        open.push_back(std::move(next));
      }
    }
  }
  totals->programs++;
  return {};
}

std::string ToText(const std::vector<Script>& scripts) {
  std::string text;
  for (const Script& script : scripts) {
    for (const Action& action : script) {
      switch (action.kind) {
        case Action::Kind::kSend:
          text += action.large ? " SEND" : " send";
          break;
        case Action::Kind::kReceive:
          text += " receive";
          break;
        case Action::Kind::kCancel:
          text += " cancel " + std::to_string(action.receive);
          continue;
      }
      text += "(" + std::to_string(action.peer) + "," + std::to_string(action.tag) + ")";
    }
    text += ";";
  }
  return text;
}

void ExpectRight(const std::vector<Script>& scripts, bool with_cut, Totals* totals) {
  if (totals->asked++ % kEvery != 0) {
    return;
  }
  const std::string problem = Explore(RendezvousModel(scripts, with_cut), totals);
  ASSERT_EQ(problem, "") << ToText(scripts);
}

Action Send(int32_t to, uint32_t which) {
  return {Action::Kind::kSend, to, static_cast<int32_t>(which % 2), which / 2 != 0};
}
constexpr uint32_t kSends = 4;  // two tags, small and large

Action Receive(int32_t from, uint32_t which) {
  return {Action::Kind::kReceive, from, which == 2 ? shm::kAnyTag : static_cast<int32_t>(which)};
}
constexpr uint32_t kReceives = 3;  // two tags and any

Action Cancel(uint32_t receive) { return {Action::Kind::kCancel, 0, 0, false, receive}; }

// The scripts of rank 0, which sends `count` messages to rank 1.
std::vector<Script> AllSenders(uint32_t count) {
  std::vector<Script> all = {{}};
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<Script> longer;
    for (const Script& script : all) {
      for (uint32_t which = 0; which < kSends; ++which) {
        longer.push_back(script);
        longer.back().push_back(Send(1, which));
      }
    }
    all = std::move(longer);
  }
  return all;
}

// The scripts of rank 1, which receives as many, and may cancel one.
std::vector<Script> AllReceivers(uint32_t count, bool with_cancel) {
  std::vector<Script> all = {{}};
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<Script> longer;
    for (const Script& script : all) {
      for (uint32_t which = 0; which < kReceives; ++which) {
        longer.push_back(script);
        longer.back().push_back(Receive(0, which));
      }
    }
    all = std::move(longer);
  }
  if (with_cancel) {
    std::vector<Script> cancelling;
    for (const Script& script : all) {
      for (uint32_t receive = 0; receive < count; ++receive) {
        for (uint32_t place = receive + 1; place <= count; ++place) {
          cancelling.push_back(script);
          cancelling.back().insert(cancelling.back().begin() + place, Cancel(receive));
        }
      }
    }
    all.insert(all.end(), cancelling.begin(), cancelling.end());
  }
  return all;
}

TEST(RendezvousTest, TwoRanksAndThreeMessagesInEveryOrder) {
  Totals totals;
  for (const Script& sender : AllSenders(3)) {
    for (const Script& receiver : AllReceivers(3, true)) {
      ExpectRight({sender, receiver}, false, &totals);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  std::printf("%lu programs, %lu states\n", totals.programs, totals.states);
  EXPECT_GT(totals.ways.eager, 0U);
  EXPECT_GT(totals.ways.read, 0U);
  EXPECT_GT(totals.ways.written, 0U);
  EXPECT_GT(totals.ways.cancelled, 0U);
}

TEST(RendezvousTest, ACutAtEveryStep) {
  Totals totals;
  for (const Script& sender : AllSenders(2)) {
    for (const Script& receiver : AllReceivers(2, true)) {
      ExpectRight({sender, receiver}, true, &totals);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  std::printf("%lu programs, %lu states\n", totals.programs, totals.states);
}

TEST(RendezvousTest, BothSendAndReceive) {
  Totals totals;
  for (const Script& sender : AllSenders(2)) {
    for (const Script& receiver : AllReceivers(2, false)) {
      // Each sends two messages and receives two, one of its own between the other's.
      Script first = {sender[0], Receive(1, 0), sender[1], Receive(1, 2)};
      Script second = {receiver[0], Send(0, 2), receiver[1], Send(0, 3)};
      ExpectRight({first, second}, false, &totals);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  std::printf("%lu programs, %lu states\n", totals.programs, totals.states);
}

// Two ranks send two messages each to the third, which receives from one, the other, or any.
TEST(RendezvousTest, ThreeRanksAndTwoMessagesEach) {
  Totals totals;
  std::mt19937 random(1);
  const std::vector<Script> senders = AllSenders(2);
  for (int i = 0; i < 10 * 61; ++i) {
    std::vector<Script> scripts = {
        senders[random() % senders.size()], {}, senders[random() % senders.size()]};
    for (int r = 0; r < 4; ++r) {
      const int32_t from = std::array<int32_t, 3>{0, 2, shm::kAnySource}[random() % 3];
      scripts[1].push_back(Receive(from, random() % kReceives));
    }
    if (random() % 3 == 0) {
      scripts[1].push_back(Cancel(random() % 4));
    }
    ExpectRight(scripts, false, &totals);
    if (HasFatalFailure()) {
      return;
    }
  }
  std::printf("%lu programs, %lu states\n", totals.programs, totals.states);
  EXPECT_GT(totals.ways.written, 0U);
}

}  // namespace
}  // namespace ferry::engine
