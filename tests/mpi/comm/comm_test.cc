// How ranks agree, and what communicators are made of: numbers, hints, sets of ranks and splits.
#include "mpi/comm/comm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/context_ids.h"
#include "mpi/comm/rank_set.h"
#include "mpi/info/memory_kinds.h"

namespace ferry::mpi {
namespace {

using Ranks = std::vector<int>;

// Messages between threads, each of which is a rank.
class Post {
 public:
  void Put(int from, int to, std::string message) {
    std::lock_guard lock(mutex_);
    boxes_[{from, to}].push_back(std::move(message));
    arrived_.notify_all();
  }
  std::string Take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !box.empty(); })) {
      ADD_FAILURE() << "rank " << to << " waits for rank " << from << ", which sends nothing";
      return {};
    }
    std::string message = std::move(box.front());
    box.pop_front();
    return message;
  }
  bool empty() const {
    for (const auto& [route, box] : boxes_) {
      if (!box.empty()) {
        return false;
      }
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes_;
};

class PostLine : public Line {
 public:
  PostLine(Post* post, int rank) : post_(post), rank_(rank) {}
  Failure Send(int rank, const void* data, size_t size_bytes) override {
    if (rank == failing_rank) {
      return Failure{MPI_ERR_PROC_ABORTED, "gone"};
    }
    post_->Put(rank_, rank, std::string(static_cast<const char*>(data), size_bytes));
    return Failure{};
  }
  Failure Receive(int rank, void* data, size_t size_bytes) override {
    if (rank == failing_rank) {
      return Failure{MPI_ERR_PROC_ABORTED, "gone"};
    }
    std::string message = post_->Take(rank, rank_);
    EXPECT_EQ(message.size(), size_bytes);
    message.copy(static_cast<char*>(data), size_bytes);
    return Failure{};
  }
  int failing_rank = -1;

 private:
  Post* post_;
  int rank_;
};

// Runs `act` as every rank of teams of 1 to 9.
void AsEveryTeam(const std::function<void(const Team&)>& act) {
  for (int size = 1; size <= 9; ++size) {
    SCOPED_TRACE(size);
    Post post;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        PostLine line(&post, rank);
        act(Team{&line, rank, size});
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(post.empty());
  }
}

TEST(AgreeTest, BroadcastsWhatRankZeroHas) {
  AsEveryTeam([](const Team& team) {
    int values[3] = {team.rank, -1, -1};
    if (team.rank == 0) {
      values[1] = 41;
      values[2] = 43;
    }
    EXPECT_TRUE(Broadcast(team, values, sizeof(values)).ok());
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[1], 41);
    EXPECT_EQ(values[2], 43);
  });
}

TEST(AgreeTest, GathersInOrderOfRanks) {
  AsEveryTeam([](const Team& team) {
    int mine[2] = {team.rank, team.rank * team.rank};
    std::vector<int> all(team.rank == 0 ? 2 * team.size : 0, -1);
    EXPECT_TRUE(Gather(team, mine, sizeof(mine), all.data()).ok());
    for (size_t i = 0; i < all.size(); i += 2) {
      EXPECT_EQ(all[i], static_cast<int>(i / 2));
      EXPECT_EQ(all[i + 1], static_cast<int>(i / 2 * (i / 2)));
    }
  });
}

TEST(AgreeTest, GathersToAll) {
  AsEveryTeam([](const Team& team) {
    int mine = 100 + team.rank;
    std::vector<int> all(team.size, -1);
    EXPECT_TRUE(GatherToAll(team, &mine, sizeof(mine), all.data()).ok());
    for (int rank = 0; rank < team.size; ++rank) {
      EXPECT_EQ(all[rank], 100 + rank);
    }
  });
}

// Runs `act` as each of seven ranks but the one that is `gone`.
void AsThoseLeft(int gone, const std::function<void(const Team&)>& act) {
  constexpr int kSize = 7;
  Post post;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    if (rank == gone) {
      continue;
    }
    threads.emplace_back([&, rank] {
      PostLine line(&post, rank);
      line.failing_rank = gone;
      act(Team{&line, rank, kSize});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(AgreeTest, AllThatAreLeftLearnThatOneIsGone) {
  using Act = std::function<Failure(const Team&)>;
  const std::map<std::string, Act> acts = {
      {"GatherToAll",
       [](const Team& team) {
         std::vector<int> all(static_cast<size_t>(team.size));
         return GatherToAll(team, &team.rank, sizeof(team.rank), all.data());
       }},
      {"JoinToAll",
       [](const Team& team) {
         std::vector<char> all;
         return JoinToAll(team, std::vector<char>(5, 'x'), &all);
       }},
      {"Synchronise", [](const Team& team) { return Synchronise(team); }},
  };
  for (const auto& [name, act] : acts) {
    for (int gone = 0; gone < 7; ++gone) {
      SCOPED_TRACE(name + " without rank " + std::to_string(gone));
      AsThoseLeft(gone, [&act = act](const Team& team) {
        const Failure failure = act(team);
        EXPECT_EQ(failure.error_class, MPI_ERR_PROC_ABORTED) << team.rank;
        EXPECT_EQ(failure.text, "gone") << team.rank;
      });
    }
  }
}

TEST(AgreeTest, WhoStopsAtAFailureLeavesNobodyWaiting) {
  // A broadcast fails only below the one that is gone; the others go on to what follows.
  for (int gone = 0; gone < 7; ++gone) {
    SCOPED_TRACE(gone);
    std::atomic<int> failed_at_once = 0;
    AsThoseLeft(gone, [&](const Team& team) {
      int value = 0;
      if (!Broadcast(team, &value, sizeof(value)).ok()) {
        ++failed_at_once;
        return;
      }
      std::vector<int> all(static_cast<size_t>(team.size));
      const bool gathered = GatherToAll(team, &value, sizeof(value), all.data()).ok();
      EXPECT_FALSE(gathered);
      EXPECT_FALSE(Synchronise(team).ok());
    });
    const int below = gone == 0 ? 6 : std::min(gone & -gone, 7 - gone) - 1;
    EXPECT_EQ(failed_at_once, below);
  }
}

TEST(AgreeTest, AFailureOfOneMemberIsThatOfAll) {
  AsEveryTeam([](const Team& team) {
    int value = 0;
    const Failure own = team.rank == 0 ? Failure{MPI_ERR_ARG, "there is no such thing"} : Failure{};
    const Failure failure = Broadcast(team, &value, sizeof(value), own);
    EXPECT_EQ(failure.error_class, MPI_ERR_ARG);
    EXPECT_EQ(failure.text, "there is no such thing");
  });
  AsEveryTeam([](const Team& team) {
    // The parent of the last rank does not like what that one has made.
    const int last = team.size - 1;
    const bool refuses = last > 0 && team.rank == (last & (last - 1));
    std::string all;
    const Failure failure = MergeToAll(
        team,
        [refuses](std::string_view below) {
          return refuses && below == "last" ? Failure{MPI_ERR_INTERN, "bad"} : Failure{};
        },
        [&] { return std::string(team.rank == last ? "last" : "other"); }, &all);
    EXPECT_EQ(failure.error_class, last > 0 ? MPI_ERR_INTERN : MPI_SUCCESS);
    EXPECT_EQ(failure.text, last > 0 ? "bad" : "");
  });
}

TEST(AgreeTest, ALongSentenceIsCut) {
  AsEveryTeam([](const Team& team) {
    const Failure own =
        team.rank == 0 ? Failure{MPI_ERR_OTHER, std::string(100'000, 'x')} : Failure{};
    const Failure failure = Broadcast(team, nullptr, 0, own);
    EXPECT_EQ(failure.error_class, MPI_ERR_OTHER);
    EXPECT_EQ(failure.text, std::string(team.rank == 0 ? 100'000 : 1024, 'x'));
  });
}

TEST(AgreeTest, TwoExchangeDataOrWhyThereAreNone) {
  for (const int failing : {-1, 0, 1}) {
    SCOPED_TRACE(failing);
    Post post;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        PostLine line(&post, rank);
        const int mine = 10 + rank;
        int theirs = -1;
        const Failure met = rank == failing ? Failure{MPI_ERR_COMM, "refused"} : Failure{};
        const Failure failure =
            Exchange(&line, 1 - rank, rank == 0, &mine, sizeof(mine), &theirs, sizeof(theirs), met);
        EXPECT_EQ(failure.text, failing < 0 ? "" : "refused");
        if (failing < 0) {
          EXPECT_EQ(theirs, 11 - rank);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(post.empty());
  }
}

TEST(AgreeTest, JoinsWhatEachHasInOrderOfRanks) {
  AsEveryTeam([](const Team& team) {
    // Rank r has r bytes, so that the first one has none.
    std::vector<char> mine(team.rank, static_cast<char>('a' + team.rank));
    std::vector<char> all(3, '?');
    EXPECT_TRUE(JoinToAll(team, mine, &all).ok());
    std::string expected;
    for (int rank = 0; rank < team.size; ++rank) {
      expected += std::string(rank, static_cast<char>('a' + rank));
    }
    EXPECT_EQ(std::string(all.begin(), all.end()), expected);
  });
}

TEST(AgreeTest, NobodyLeavesBeforeAllHaveCome) {
  std::vector<std::atomic<int>> arrived(10);
  AsEveryTeam([&](const Team& team) {
    ++arrived[team.size];
    EXPECT_TRUE(Synchronise(team).ok());
    EXPECT_EQ(arrived[team.size], team.size);
  });
}

TEST(AgreeTest, PassesOnWhyAMessageFailed) {
  Post post;
  PostLine line(&post, 0);
  line.failing_rank = 1;
  Team team{&line, 0, 2};
  int value = 0;
  EXPECT_EQ(Gather(team, &value, sizeof(value), &value).error_class, MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(Synchronise(team).error_class, MPI_ERR_PROC_ABORTED);
}

TEST(ContextIdsTest, GivesEachKindOfTrafficAContext) {
  std::set<uint32_t> contexts;
  for (uint32_t number : {kWorldNumber, kSelfNumber, kReservedNumbers}) {
    for (Traffic traffic : {Traffic::kPointToPoint, Traffic::kCollective, Traffic::kAgreement,
                            Traffic::kGroupCreation, Traffic::kLeaders, Traffic::kIdup,
                            Traffic::kPartitioned, Traffic::kFromGroup}) {
      EXPECT_TRUE(contexts.insert(ContextOf(number, traffic)).second);
    }
  }
  EXPECT_GE(*contexts.begin(), kContextsPerCommunicator);
  EXPECT_EQ(ContextOf(kNumberLimit - 1, Traffic::kFromGroup), (uint32_t{1} << 31) - 1);
}

TEST(ContextIdsTest, NoTwoProcessesEverMakeTheSameNumber) {
  std::set<uint32_t> numbers;
  for (int rank = 0; rank < 5; ++rank) {
    ContextIds ids(rank, 5);
    for (uint32_t count : {1u, 3u, 0u, 2u, 1u}) {
      uint32_t first = 0;
      ASSERT_TRUE(ids.Make(count, &first).ok());
      for (uint32_t i = 0; i < count; ++i) {
        EXPECT_GE(first, kReservedNumbers);
        EXPECT_TRUE(numbers.insert(first + i * ids.step()).second);
      }
    }
  }
  EXPECT_EQ(numbers.size(), 35u);
}

TEST(ContextIdsTest, NoTwoThreadsEverMakeTheSameNumber) {
  ContextIds ids(1, 3);
  std::mutex mutex;
  std::set<uint32_t> numbers;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        uint32_t first = 0;
        EXPECT_TRUE(ids.Make(2, &first).ok());
        std::lock_guard lock(mutex);
        numbers.insert(first);
        numbers.insert(first + ids.step());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(numbers.size(), 8000u);
}

TEST(ContextIdsTest, SaysWhenNumbersHaveRunOut) {
  ContextIds ids(2, 4);
  uint32_t first = 0;
  uint32_t all = (kNumberLimit - kReservedNumbers) / 4;
  ASSERT_TRUE(ids.Make(all - 1, &first).ok());
  EXPECT_EQ(ids.Make(2, &first).error_class, MPI_ERR_INTERN);
  ASSERT_TRUE(ids.Make(1, &first).ok());
  EXPECT_LT(first, kNumberLimit);
  Failure failure = ids.Make(1, &first);
  EXPECT_EQ(failure.error_class, MPI_ERR_INTERN);
  EXPECT_NE(failure.text.find(std::to_string(all)), std::string::npos) << failure.text;
  EXPECT_EQ(ContextIds(0, 1).Make(~uint32_t{0}, &first).error_class, MPI_ERR_INTERN);
}

const MemoryKinds kKinds("host");

std::string ValueOf(const std::vector<Info::Entry>& hints, const std::string& key) {
  for (const Info::Entry& hint : hints) {
    if (hint.first == key) {
      return hint.second;
    }
  }
  return "none";
}

TEST(HintsTest, TakeWhatTheProgramPromises) {
  auto hints = WithHints(DefaultHints(), {{"mpi_assert_no_any_tag", "true"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_tag"), "true");
  EXPECT_EQ(ValueOf(hints, "mpi_assert_no_any_source"), "false");
  hints = WithHints(hints, {{"mpi_assert_no_any_tag", "false"}}, kKinds);
  EXPECT_EQ(hints, DefaultHints());
}

TEST(HintsTest, IgnoreKeysThatAreNoHintsAndValuesThatHintsCannotHave) {
  EXPECT_EQ(
      WithHints(DefaultHints(), {{"colour", "true"}, {"mpi_assert_exact_length", "maybe"}}, kKinds),
      DefaultHints());
}

TEST(HintsTest, TakeKindsOfMemoryThatThereAre) {
  const std::string key = "mpi_assert_memory_alloc_kinds";
  EXPECT_EQ(ValueOf(DefaultHints(), key), "none");
  auto hints = WithHints(DefaultHints(), {{key, "system"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "system");
  hints = WithHints(hints, {{key, "cuda:device"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "system");
  hints = WithHints(hints, {{key, "mpi,ferry:device"}}, kKinds);
  EXPECT_EQ(ValueOf(hints, key), "mpi,ferry:device");
  EXPECT_EQ(hints.size(), DefaultHints().size() + 1);
}

RankSet World(int size) { return RankSet::Strided(0, 1, size); }

TEST(RankSetTest, StoresSequencesWithoutTheirMembers) {
  EXPECT_TRUE(World(1 << 30).compact());
  EXPECT_TRUE(RankSet::Of({7, 5, 3}).compact());
  EXPECT_TRUE(RankSet::Of({9, 2}).compact());
  EXPECT_TRUE(RankSet::Of({4}).compact());
  EXPECT_FALSE(RankSet::Of({0, 1, 3}).compact());
}

TEST(RankSetTest, FindsEveryMemberAndNoOther) {
  for (const Ranks& members : {Ranks{}, Ranks{3}, Ranks{0, 1, 2, 3}, Ranks{9, 6, 3}, Ranks{2, 10},
                               Ranks{10, 2}, Ranks{5, 1, 8, 0}, Ranks{0, 2, 4, 7}}) {
    RankSet set = RankSet::Of(members);
    ASSERT_EQ(set.size(), static_cast<int>(members.size()));
    EXPECT_EQ(set.WorldRanks(), members);
    for (int world_rank = -3; world_rank < 15; ++world_rank) {
      auto at = std::find(members.begin(), members.end(), world_rank);
      int expected =
          at == members.end() ? RankSet::kAbsent : static_cast<int>(at - members.begin());
      EXPECT_EQ(set.RankOf(world_rank), expected) << world_rank;
      EXPECT_EQ(set.Contains(world_rank), at != members.end());
    }
  }
}

TEST(RankSetTest, ComparesOrderAndMembers) {
  EXPECT_EQ(Compare(RankSet::Of({1, 2, 3}), RankSet::Strided(1, 1, 3)), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet::Strided(4, 1, 1), RankSet::Strided(4, 9, 1)), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet(), RankSet::Of({})), MPI_IDENT);
  EXPECT_EQ(Compare(RankSet::Of({3, 2, 1}), RankSet::Of({1, 2, 3})), MPI_SIMILAR);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 5, 1})), MPI_SIMILAR);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 1, 6})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(RankSet::Of({0, 1, 5}), RankSet::Of({0, 1, 2})), MPI_UNEQUAL);
  EXPECT_EQ(Compare(World(3), World(4)), MPI_UNEQUAL);
}

// Groups of MPI 5.0's own example in section 7.3.2: the order is that of the first operand.
TEST(RankSetTest, KeepsTheOrderOfTheFirstOperand) {
  RankSet a = RankSet::Of({0, 1, 2, 3});
  RankSet b = RankSet::Of({3, 0, 4});
  EXPECT_EQ(Union(a, b).WorldRanks(), (Ranks{0, 1, 2, 3, 4}));
  EXPECT_EQ(Union(b, a).WorldRanks(), (Ranks{3, 0, 4, 1, 2}));
  EXPECT_EQ(Intersection(a, b).WorldRanks(), (Ranks{0, 3}));
  EXPECT_EQ(Intersection(b, a).WorldRanks(), (Ranks{3, 0}));
  EXPECT_EQ(Difference(a, b).WorldRanks(), (Ranks{1, 2}));
  EXPECT_EQ(Difference(b, a).WorldRanks(), (Ranks{4}));
  EXPECT_TRUE(Difference(a, a).empty());
}

TEST(RankSetTest, AgreesWithSetsByTheBookOnRandomGroups) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    auto draw = [&] {
      Ranks all(12);
      for (int i = 0; i < 12; ++i) {
        all[i] = i;
      }
      std::shuffle(all.begin(), all.end(), random);
      all.resize(random() % 13);
      return all;
    };
    Ranks a = draw();
    Ranks b = draw();
    auto in = [](const Ranks& list, int rank) {
      return std::find(list.begin(), list.end(), rank) != list.end();
    };
    Ranks both;
    Ranks only_a;
    Ranks all = a;
    for (int rank : a) {
      (in(b, rank) ? both : only_a).push_back(rank);
    }
    for (int rank : b) {
      if (!in(a, rank)) {
        all.push_back(rank);
      }
    }
    RankSet set_a = RankSet::Of(a);
    RankSet set_b = RankSet::Of(b);
    EXPECT_EQ(Union(set_a, set_b).WorldRanks(), all);
    EXPECT_EQ(Intersection(set_a, set_b).WorldRanks(), both);
    EXPECT_EQ(Difference(set_a, set_b).WorldRanks(), only_a);
  }
}

TEST(RankSetTest, IncludesAndExcludesByRank) {
  RankSet set = RankSet::Of({10, 20, 30, 50});
  RankSet result;
  ASSERT_TRUE(Include(set, Ranks{3, 0}, &result).ok());
  EXPECT_EQ(result.WorldRanks(), (Ranks{50, 10}));
  ASSERT_TRUE(Include(set, {}, &result).ok());
  EXPECT_TRUE(result.empty());
  ASSERT_TRUE(Exclude(set, Ranks{3, 0}, &result).ok());
  EXPECT_EQ(result.WorldRanks(), (Ranks{20, 30}));
  ASSERT_TRUE(Exclude(set, {}, &result).ok());
  EXPECT_EQ(result, set);
}

TEST(RankSetTest, RefusesRanksThatAreNotThereOrThereTwice) {
  RankSet result;
  Failure failure = Include(World(4), Ranks{1, 4}, &result);
  EXPECT_EQ(failure.error_class, MPI_ERR_RANK);
  EXPECT_NE(failure.text.find("ranks[1] is 4"), std::string::npos) << failure.text;
  EXPECT_EQ(Include(World(4), Ranks{-1}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Include(World(4), Ranks{2, 0, 2}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Exclude(World(4), Ranks{4}, &result).error_class, MPI_ERR_RANK);
  EXPECT_EQ(Exclude(World(4), Ranks{1, 1}, &result).error_class, MPI_ERR_RANK);
}

TEST(RankSetTest, ExpandsRanges) {
  Ranks ranks;
  const RankRange ranges[] = {{1, 9, 4}, {8, 6, -1}, {3, 3, 1}, {0, 0, -5}};
  ASSERT_TRUE(ExpandRanges(World(10), ranges, &ranks).ok());
  EXPECT_EQ(ranks, (Ranks{1, 5, 9, 8, 7, 6, 3, 0}));
  // The last rank of a range need not be hit, nor be in the group.
  const RankRange beyond[] = {{1, 11, 4}};
  ASSERT_TRUE(ExpandRanges(World(10), beyond, &ranks).ok());
  EXPECT_EQ(ranks, (Ranks{1, 5, 9}));
}

TEST(RankSetTest, RefusesRangesThatMakeNoRanks) {
  Ranks ranks;
  auto expand = [&](RankRange range) {
    return ExpandRanges(World(10), std::span(&range, 1), &ranks).error_class;
  };
  EXPECT_EQ(expand({0, 5, 0}), MPI_ERR_ARG);
  EXPECT_EQ(expand({0, 5, -1}), MPI_ERR_ARG);
  EXPECT_EQ(expand({5, 0, 1}), MPI_ERR_ARG);
  EXPECT_EQ(expand({-2, 5, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({0, 10, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({0, 2147483647, 1}), MPI_ERR_RANK);
  EXPECT_EQ(expand({2147483647, -2147483647 - 1, -1}), MPI_ERR_RANK);
  const RankRange twice[] = {{0, 4, 1}, {4, 6, 1}};
  EXPECT_EQ(ExpandRanges(World(10), twice, &ranks).error_class, MPI_ERR_RANK);
}

TEST(RankSetTest, TranslatesRanks) {
  RankSet from = RankSet::Of({4, 2, 7, 0});
  RankSet to = RankSet::Strided(0, 2, 3);
  Ranks translated(5);
  ASSERT_TRUE(TranslateRanks(from, Ranks{0, 1, 2, 3, MPI_PROC_NULL}, to, translated).ok());
  EXPECT_EQ(translated, (Ranks{2, 1, MPI_UNDEFINED, 0, MPI_PROC_NULL}));
  EXPECT_EQ(TranslateRanks(from, Ranks{4}, to, translated).error_class, MPI_ERR_RANK);
  EXPECT_EQ(TranslateRanks(from, Ranks{-7}, to, translated).error_class, MPI_ERR_RANK);
}

}  // namespace
}  // namespace ferry::mpi
