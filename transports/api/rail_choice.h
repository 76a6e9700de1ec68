// Chooses which of several NICs takes the next piece of a read or write, or a matched pair.
//
// Pure: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ferry::transport {

struct RailState {
  bool open = false;  // it may take more
  uint64_t load_bytes = 0;
};

// Returns the rail with the least to do, `nearest` first among equals; nothing if none is open.
inline std::optional<size_t> ChooseRail(std::span<const RailState> rails, size_t nearest) {
  std::optional<size_t> best;
  const auto better = [&](size_t a, size_t b) {
    if (rails[a].load_bytes != rails[b].load_bytes) {
      return rails[a].load_bytes < rails[b].load_bytes;
    }
    return a == nearest;
  };
  for (size_t rail = 0; rail < rails.size(); rail++) {
    if (rails[rail].open && (!best || better(rail, *best))) {
      best = rail;
    }
  }
  return best;
}

}  // namespace ferry::transport
