#include "tools/ferryrun/rank_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace ferry::tools {

std::optional<TerminalSize> TerminalOfOutput() {
  if (isatty(STDOUT_FILENO) != 1) {
    return std::nullopt;
  }
  winsize window{};
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
  return TerminalSize{window.ws_row, window.ws_col};
}

StatusOr<Pipe> MakeTerminal(const TerminalSize& size) {
  Pipe terminal;
  terminal.read.Reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.read.valid() || unlockpt(terminal.read.get()) != 0) {
    return StatusFromErrno(errno, "cannot make a terminal");
  }
  // Not by its path, which may be another one's in this mount namespace.
  terminal.write.Reset(ioctl(terminal.read.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode{};
  if (!terminal.write.valid() || tcgetattr(terminal.write.get(), &mode) != 0) {
    return StatusFromErrno(errno, "cannot open a terminal");
  }
  cfmakeraw(&mode);
  if (tcsetattr(terminal.write.get(), TCSANOW, &mode) != 0) {
    return StatusFromErrno(errno, "cannot set up a terminal");
  }
  Resize(terminal.read.get(), size);
  return terminal;
}

void Resize(int fd, const TerminalSize& size) {
  winsize window{};
  window.ws_row = size.rows;
  window.ws_col = size.columns;
  (void)ioctl(fd, TIOCSWINSZ, &window);
}

}  // namespace ferry::tools
