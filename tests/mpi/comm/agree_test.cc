#include "client/mpi/comm/agree.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

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
    arrived_.wait(lock, [&] { return !box.empty(); });
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
  EXPECT_EQ(Broadcast(team, &value, sizeof(value)).error_class, MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(Synchronise(team).error_class, MPI_ERR_PROC_ABORTED);
}

}  // namespace
}  // namespace ferry::mpi
