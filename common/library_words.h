// The lines that Ferry's library itself writes to the standard error of a rank. Their beginning
// tells them from the program's own lines: ferryrun shows once what many ranks say in the same
// words.
//
// Any thread.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace ferry {

inline constexpr std::string_view kLibraryWords = "libferry: ";

// The text that follows in a line that names its rank.
inline std::string RankWords(uint32_t rank) { return "rank " + std::to_string(rank) + ": "; }

// One line, in one write. `rank` below 0: it is not known yet, or not any more.
inline void SayToUser(int rank, std::string_view sentence) {
  std::string line(kLibraryWords);
  line += rank < 0 ? "" : RankWords(static_cast<uint32_t>(rank));
  line += sentence;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace ferry
