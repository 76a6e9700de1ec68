// What Ferry's library itself says on the standard error of a rank. Its lines begin in a way that
// tells them from the program's own: ferryrun shows once what many ranks say in the same words.
//
// Any thread.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace ferry {

inline constexpr std::string_view kLibraryWords = "libferry: ";

// How words go on that name their rank.
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
