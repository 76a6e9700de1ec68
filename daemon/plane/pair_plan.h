// One end of a matched pair of persistent requests whose other end is on another node: what the
// control plane, which has matched them and checked all of it, tells the data plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/session/session.h"
#include "shm/layout/channel_layout.h"

namespace ferry::daemon {

// Bytes of a region. Empty without one.
struct RegionPlace {
  std::shared_ptr<const Region> region;
  uint64_t offset = 0;

  std::byte* address() const { return region->mapping.base() + offset; }
};

struct PairName {
  std::string job_id;
  uint32_t rank = 0;    // whose end it is
  uint64_t number = 0;  // this daemon's number for it, unique for as long as the daemon lives
};

struct PairPlan {
  PairName name;
  uint32_t peer = 0;
  bool is_send = false;
  shm::SendMode mode = shm::SendMode::kStandard;
  uint64_t size_bytes = 0;   // of each message
  uint64_t peer_number = 0;  // the other daemon's number for it
  RegionPlace end;           // its ChannelLayout
  RegionPlace window;        // its memory
  // For a receive whose messages may come before their start: the cells in which they wait, one in
  // each, in turn. 0: none; messages go into the window, once it is clear to send.
  RegionPlace cells;
  uint32_t cell_count = 0;
  uint64_t cell_bytes = 0;

  shm::ChannelLayout* layout() const {
    return reinterpret_cast<shm::ChannelLayout*>(end.address());
  }
};

}  // namespace ferry::daemon
