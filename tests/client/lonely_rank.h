// The segments of a rank, for tests of what it does in one process.
#pragma once

#include <gtest/gtest.h>

#include "engine/peer_table.h"
#include "engine/session_view.h"
#include "tests/shm/shared_memory.h"

namespace ferry::client {

// Rank 0 alone on its node, of a job of three.
class LonelyRank {
 public:
  LonelyRank() {
    engine::InitializeSegments(kPlan, 1, session_.base(), inbox_.base());
    StatusOr<engine::SessionView> view = engine::ViewSession(session_.base(), session_.size_bytes(),
                                                             inbox_.base(), inbox_.size_bytes());
    EXPECT_TRUE(view.ok()) << view.status().ToString();
    view_ = *view;
    peers_.by_rank.resize(kPlan.job_size);
    peers_.by_rank[0].local = true;
    peers_.by_rank[0].SetInbox(view_.inbox);
    peers_.rank_of_local = {0};
  }
  const engine::SessionView& view() const { return view_; }
  const engine::PeerTable& peers() const { return peers_; }

 private:
  static constexpr engine::SegmentPlan kPlan{
      .rank = 0, .job_size = 3, .local_size = 1, .request_limit = 64, .unexpected_limit = 64};
  const shm::SharedMemory session_{kPlan.session_bytes()};
  const shm::SharedMemory inbox_{kPlan.inbox_bytes()};
  engine::SessionView view_;
  engine::PeerTable peers_;
};

}  // namespace ferry::client
