// The versions of version.h in words.
#pragma once

#include <string>

#include "common/version.h"

namespace ferry {

// "layout 1, protocol 2": what two parts of Ferry must have in common to talk.
inline std::string WireVersionText(uint32_t layout = kLayoutVersion,
                                   uint32_t protocol = kProtocolVersion) {
  return "layout " + std::to_string(layout) + ", protocol " + std::to_string(protocol);
}

// "0.1.0 (layout 1, protocol 2)".
inline std::string VersionText() {
  return std::string(kFerryVersion) + " (" + WireVersionText() + ")";
}

}  // namespace ferry
