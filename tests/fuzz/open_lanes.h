// Marks all lanes of an inbox as open, so that no producer prefaults them: a fuzzer's input touches
// few of their pages.
#pragma once

#include "engine/session_view.h"

namespace ferry::fuzz {

inline void OpenLanes(const engine::InboxView& inbox) {
  for (uint32_t lane = 0; lane < shm::LaneCount(inbox.local_size); ++lane) {
    inbox.lane(lane)->producer.state = static_cast<uint32_t>(shm::LaneState::kOpen);
  }
}

}  // namespace ferry::fuzz
