// Numbers in sentences: "1 rank", "2 ranks". Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry {

// `plural`, where that is not `noun` with an s: "processes".
inline std::string Counted(int64_t count, std::string_view noun, std::string_view plural = {}) {
  std::string text = std::to_string(count) + " ";
  text += count == 1 || plural.empty() ? noun : plural;
  return count == 1 || !plural.empty() ? text : text + "s";
}

}  // namespace ferry
