// Turns of other daemons on the control thread. One that says much at a time, in many calls at once
// and thousands of news in each, has the next of its calls looked at only after one of each other
// daemon's, and after whatever else waits for the thread meanwhile.
//
// Thread: the control thread. Whoever owns it outlives what it has posted.
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
  // `post` has the control thread run something later, in the order in which it was asked.
  explicit PeerTurns(std::function<void(Work)> post) : post_(std::move(post)) {}

  // Runs `work` when it is the peer's turn; what one peer adds stays in order. How much may wait is
  // the business of whoever lets its calls in (http2_guard.h).
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
  // The work may be the last that this has, and its end that of the owner: it comes last.
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
