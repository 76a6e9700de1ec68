// The terminal that shows a text: how wide it is, and whether it has colours. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::tools {

struct Terminal {
  size_t width = 80;
  bool colours = false;
};

// As wide as the terminal `fd` is, and coloured unless NO_COLOR is set or TERM says that it cannot
// be; the defaults if `fd` is not a terminal.
Terminal TerminalOf(int fd, const char* const* environment);

// A word for a state, such as "serving" or "died", or a sentence that begins with one ("deadlock:
// ..."), in the colour for good, doubtful or bad. Unchanged where there are no colours, or the word
// is none of these.
std::string Coloured(const std::string& text, const Terminal& terminal);
// A title.
std::string Bold(const std::string& text, const Terminal& terminal);

}  // namespace ferry::tools
