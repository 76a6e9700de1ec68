// The three versions that two parts of Ferry compare before they talk.
#pragma once

#include <cstdint>

namespace ferry {

inline constexpr char kFerryVersion[] = "0.1.0";

// Layout of everything in shared memory (shm/layout). Bump on any change; tests/shm/layout_test.cc
// holds the literal sizes and offsets.
inline constexpr uint32_t kLayoutVersion = 17;

// The attach socket, the gRPC services and the wire packets between daemons.
inline constexpr uint32_t kProtocolVersion = 12;

}  // namespace ferry
