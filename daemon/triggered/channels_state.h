// The state of each channel. Part of channels.cc and channels_nic.cc.
//
// Calling thread: the progress thread.
#pragma once

#include <cstdint>

#include "daemon/triggered/channels.h"
#include "daemon/triggered/starts.h"
#include "shm/counter.h"
#include "shm/layout/channel_layout.h"

namespace ferry::daemon {

// The longest message that one packet takes along.
inline constexpr uint64_t kPacketDataBytes = shm::kCellBytes;

struct Channels::Channel {
  Channel(ServedRank& its_rank, const ChannelPlan& its_plan)
      : rank(&its_rank),
        job(its_rank.job),
        plan(its_plan),
        layout(its_plan.layout()),
        done(&layout->done),
        said(layout,
             {its_plan.end.region->mapping.base(), its_plan.end.region->mapping.size_bytes()}) {}

  ServedRank* const rank;
  Job* const job;
  const ChannelPlan plan;
  shm::ChannelLayout* const layout;
  shm::Counter done;
  Starts said;          // by its rank
  uint64_t starts = 0;  // of those, seen
  uint64_t rounds = 0;  // messages that are over
  ErrorCode error = ErrorCode::kOk;
  // For a receive whose sender has gone: after `last_round` messages it fails with `last_error`.
  uint64_t last_round = UINT64_MAX;
  ErrorCode last_error = ErrorCode::kOk;

  ServedRegion* region = nullptr;  // the window's, where the NIC has to know it
  // Receive: by which the other NIC writes; 0: none.
  uint64_t write_window = 0;
  bool window_told = false;
  // Send.
  Claim claim;                        // on the window
  uint64_t clear = 0;                 // starts of the receive, and what it has cells for
  uint64_t deadline_ns = UINT64_MAX;  // of the message under way
  bool moving = false;                // it has begun
  bool writing = false;               // the NIC is at it
  bool leaving = false;               // it goes once the NIC has let go of it
  bool watched = false;               // it is in watched_
  bool in_transfer = false;           // a long message is on its way
  uint64_t window_key = 0;
  uint64_t window_address = 0;
  bool window_known = false;

  // Whether the NICs move its messages (channels_nic.cc).
  enum class Nic : uint8_t {
    kNo,
    kUndecided,  // once the receive is started, its daemon says so; until then nothing moves
    kOpening,
    kOn,
  };
  Nic nic = Nic::kNo;

  // Its rank has said of a start that has not been seen. The NIC's starts are not seen, but done.
  bool is_armed() const { return error == ErrorCode::kOk && said.IsArmed(starts); }
  uint64_t number() const { return plan.name.channel; }
  bool is_short() const { return plan.size_bytes <= kPacketDataBytes; }
  bool has_cells() const { return plan.cell_count > 1 && plan.mode == shm::SendMode::kStandard; }
};

}  // namespace ferry::daemon
