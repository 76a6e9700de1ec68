#include "daemon/peers/peer_turns.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace ferry::daemon {
namespace {

class PeerTurnsTest : public testing::Test {
 protected:
  void Say(const std::string& peer, const std::string& what) {
    turns_.Add(peer, [this, text = peer + what + " "] { heard_ += text; });
  }
  void Run() {
    while (!posted_.empty()) {
      const PeerTurns::Work work = std::move(posted_.front());
      posted_.pop_front();
      work();
    }
  }

  std::deque<PeerTurns::Work> posted_;  // the control thread's
  std::string heard_;
  PeerTurns turns_{[this](PeerTurns::Work work) { posted_.push_back(std::move(work)); }};
};

TEST_F(PeerTurnsTest, OneThatSaysMuchDoesNotKeepOthersWaiting) {
  for (int i = 1; i <= 4; ++i) {
    Say("a", std::to_string(i));
  }
  Say("b", "1");
  Say("c", "1");
  Say("b", "2");
  Run();
  EXPECT_EQ(heard_, "a1 b1 c1 a2 b2 a3 a4 ");
  EXPECT_TRUE(turns_.empty());
}

TEST_F(PeerTurnsTest, OtherWorkOfTheThreadComesBetween) {
  Say("a", "1");
  Say("a", "2");
  posted_.push_back([this] { heard_ += "beat "; });
  Run();
  EXPECT_EQ(heard_, "a1 beat a2 ");
}

TEST_F(PeerTurnsTest, WhoHasBeenHeardMaySpeakAgain) {
  turns_.Add("a", [this] { Say("a", "2"); });
  Run();
  EXPECT_EQ(heard_, "a2 ");
}

TEST_F(PeerTurnsTest, TheLastWorkMayEndIt) {
  auto owned = std::make_unique<PeerTurns>(
      [this](PeerTurns::Work work) { posted_.push_back(std::move(work)); });
  owned->Add("a", [&] { owned.reset(); });
  Run();
  EXPECT_EQ(owned, nullptr);
}

}  // namespace
}  // namespace ferry::daemon
