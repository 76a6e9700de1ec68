// The options of an engine, and the bounds that both ends of a message rely on.
//
// Plain data: any thread.
#pragma once

#include <cstdint>

#include "shm/layout/lane_layout.h"

namespace ferry::engine {

inline constexpr uint32_t kDrainBudget = 32;   // descriptors in one step
inline constexpr uint32_t kRemoteWindow = 64;  // messages to one remote rank before a credit
// Polls that find something in the lane that spoke last, before the others get their turn.
inline constexpr uint32_t kHotStreak = 32;
inline constexpr uint32_t kRoomNoticeEvery = 64;  // consumers look for a waiting producer so often
inline constexpr uint32_t kPushWindow = 1
                                        << 20;  // bytes pushed to one remote rank, and not matched
// A rank whose wish for a direct link was refused asks again after so many times the traffic.
inline constexpr uint32_t kRefusedPatience = 10;

// Serves the rank's messages with other nodes. Each core takes commands from a lane of its own, and
// brings arrivals by one.
enum class Core : uint32_t { kDaemon = 0, kLink = 1 };

// The side that runs the engine.
enum class Runner { kRank, kWorker };

struct EngineOptions {
  uint32_t eager_max_bytes = shm::kCellBytes;  // larger messages are announced by RTS
  uint32_t chunk_bytes = 128 * 1024;
  uint32_t single_chunk_max_bytes = 128 * 1024;  // larger transfers are worth helping with
  // Receives from other nodes of this size or more are announced by an RTR to their source; 0:
  // none.
  uint64_t receiver_first_min_bytes = 0;
  // RTSs by a direct link of this size or less may have their data pushed behind them.
  uint64_t push_max_bytes = 1 << 20;
};

}  // namespace ferry::engine
