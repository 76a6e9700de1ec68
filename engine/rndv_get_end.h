// Flags that a core puts into Descriptor::flags of kRndvGetDone, beside the rendezvous get's error.
#pragma once

#include <cstdint>

namespace ferry::engine {

// At one end or both, the data went by staging memory. Without it the network moved it straight
// between the buffers that the two ranks named.
inline constexpr uint8_t kRndvGetStaged = 64;

}  // namespace ferry::engine
