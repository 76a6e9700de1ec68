// The segments of a rank, for tests of what it does in one process.
#pragma once

#include <gtest/gtest.h>

#include "engine/peer_table.h"
#include "engine/session_view.h"
#include "tests/shm/shared_memory.h"

namespace ferry::client {

// A rank alone on its node, of a job of three.
class LonelyRank {
 public:
  explicit LonelyRank(uint32_t rank = 0) : plan_{rank, 3, 1, 64, 64} {
    engine::InitializeSegments(plan_, 1, session_.base(), inbox_.base());
    StatusOr<engine::SessionView> view = engine::ViewSession(session_.base(), session_.size_bytes(),
                                                             inbox_.base(), inbox_.size_bytes());
    EXPECT_TRUE(view.ok()) << view.status().ToString();
    view_ = *view;
    peers_.by_rank = ZeroedArray<engine::Peer>(plan_.job_size);
    peers_.by_rank[rank].local = true;
    peers_.by_rank[rank].SetInbox(view_.inbox);
    peers_.rank_of_local = {rank};
  }
  const engine::SessionView& view() const { return view_; }
  const engine::PeerTable& peers() const { return peers_; }

 private:
  const engine::SegmentPlan plan_;
  const shm::SharedMemory session_{plan_.session_bytes()};
  const shm::SharedMemory inbox_{plan_.inbox_bytes()};
  engine::SessionView view_;
  engine::PeerTable peers_;
};

}  // namespace ferry::client
