#include "tools/display/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "config/environment.h"

namespace ferry::tools {
namespace {

constexpr char kPlain[] = "\033[0m";
constexpr char kBold[] = "\033[1m";
constexpr char kRed[] = "\033[31m";
constexpr char kGreen[] = "\033[32m";
constexpr char kYellow[] = "\033[33m";

struct Word {
  std::string_view text;
  const char* colour;
};

// States of daemons, jobs, ranks, links and findings.
constexpr Word kWords[] = {
    {"ok", kGreen},       {"serving", kGreen},     {"joined", kGreen}, {"running", kGreen},
    {"up", kGreen},       {"draining", kYellow},   {"waits", kYellow}, {"joins", kYellow},
    {"warning", kYellow}, {"connecting", kYellow}, {"cut", kYellow},   {"absent", kYellow},
    {"problem", kRed},    {"stopped", kRed},       {"died", kRed},     {"failed", kRed},
    {"aborted", kRed},    {"unreachable", kRed},   {"deadlock", kRed}, {"trouble", kRed},
};

std::string Painted(const char* colour, const std::string& text) { return colour + text + kPlain; }

}  // namespace

Terminal TerminalOf(int fd, const char* const* environment) {
  Terminal terminal;
  if (isatty(fd) != 1) {
    return terminal;
  }
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    terminal.width = size.ws_col;
  }
  const bool unwanted = !config::FindVariable(environment, "NO_COLOR").value_or("").empty();
  const std::string_view kind = config::FindVariable(environment, "TERM").value_or("");
  terminal.colours = !unwanted && !kind.empty() && kind != "dumb";
  return terminal;
}

std::string Coloured(const std::string& text, const Terminal& terminal) {
  if (!terminal.colours) {
    return text;
  }
  const std::string_view first = std::string_view(text).substr(0, text.find_first_of(" :"));
  for (const Word& word : kWords) {
    if (word.text == first) {
      return Painted(word.colour, text);
    }
  }
  return text;
}

std::string Bold(const std::string& text, const Terminal& terminal) {
  return terminal.colours ? Painted(kBold, text) : text;
}

}  // namespace ferry::tools
