// Turns of other daemons on the control thread. A daemon may make many calls at once, with
// thousands of news in each: then its next call is looked at only after one call of each other
// daemon, and after other work that waits for the thread.
//
// Thread: the control thread. The owner must outlive what this class has posted.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace ferry::daemon {

class PeerTurns {
 public:
  using Work = std::function<void()>;
  // `post` has the control thread run something later, in the order of the calls.
  explicit PeerTurns(std::function<void(Work)> post) : post_(std::move(post)) {}

  // Runs `work` when it is the peer's turn; the work of one peer stays in order. The amount of work
  // that may wait is limited where calls are let in (http2_guard.h).
  void Add(const std::string& peer, Work work) {
    std::deque<Work>& waiting = waiting_[peer];
    waiting.push_back(std::move(work));
    if (waiting.size() == 1) {
      PostTurn(peer);
    }
  }
  bool empty() const { return waiting_.empty(); }

 private:
  void PostTurn(const std::string& peer) {
    post_([this, peer] { Run(peer); });
  }
  // Runs the work last: its end may be the end of the owner.
  void Run(const std::string& peer) {
    const auto found = waiting_.find(peer);
    const Work work = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) {
      waiting_.erase(found);
    } else {
      PostTurn(peer);
    }
    work();
  }

  const std::function<void(Work)> post_;
  std::map<std::string, std::deque<Work>> waiting_;  // by peer
};

}  // namespace ferry::daemon
