#include "daemon/control/why_follower.h"

#include <algorithm>

namespace ferry::daemon {
namespace {

constexpr uint32_t kMaxQuestions =
    64;  // for one answer: all ranks of a job may have been asked for

std::string ChainText(const control::RankWait& wait) {
  std::string text;
  for (int i = 0; i < wait.chain_size(); ++i) {
    text += (i == 0   ? "rank "
             : i == 1 ? " waits for rank "
                      : ", which waits for rank ") +
            std::to_string(wait.chain(i));
  }
  return text;
}

// Adds the ranks that `next`, of the chain's last one, knows of. True: a circle closes.
bool Append(const control::RankWait& next, control::RankWait* wait) {
  for (int i = 1; i < next.chain_size(); ++i) {
    const uint32_t rank = next.chain(i);
    const bool known =
        std::find(wait->chain().begin(), wait->chain().end(), rank) != wait->chain().end();
    wait->add_chain(rank);
    if (known) {
      return true;
    }
  }
  return false;
}

}  // namespace

const StatusOr<control::RankWait>& WhyFollower::Ask(const std::string& job_id, uint32_t rank) {
  const auto found = answers_.find({job_id, rank});
  if (found != answers_.end()) {
    return found->second;
  }
  StatusOr<control::RankWait> answer =
      Status(ErrorCode::kLimitExceeded, "too many nodes were asked already");
  if (is_one_silent_) {
    answer = Status(ErrorCode::kTimeout, "it was not asked, since another one did not answer");
  } else if (asked_ < kMaxQuestions) {
    ++asked_;
    answer = asker_.Ask(job_id, rank);
    is_one_silent_ = answer.status().code() == ErrorCode::kTimeout;
  }
  return answers_.emplace(std::pair(job_id, rank), std::move(answer)).first->second;
}

void WhyFollower::Follow(const std::string& job_id, control::RankWait* wait) {
  while (wait->leaves_node() && wait->chain_size() != 0) {
    const uint32_t last = wait->chain(wait->chain_size() - 1);
    const StatusOr<control::RankWait>& next = Ask(job_id, last);
    if (!next.ok()) {
      wait->add_troubles("the ferryd of rank " + std::to_string(last) +
                         "'s node was asked what it waits for: " + next.status().message());
      return;
    }
    if (next->chain_size() == 0 || next->chain(0) != last) {
      return;  // no correct daemon answers so
    }
    const bool circle = Append(*next, wait);
    wait->set_leaves_node(next->leaves_node() && !circle);
    wait->set_end(next->end());
    wait->set_verdict(ChainText(*wait) +
                      (circle ? ": a circle over several nodes. If it is there still when asked "
                                "again, it is a deadlock"
                              : ", which " + next->end()));
    if (next->chain_size() == 1 && next->leaves_node()) {
      return;  // nor so: that rank is its own
    }
  }
}

}  // namespace ferry::daemon
