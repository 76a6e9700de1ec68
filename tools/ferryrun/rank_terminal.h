// The terminals of ranks. Where ferryrun's standard output is a terminal, that of each rank is one
// too, so that programs write as they do without ferryrun: each line at once, and with colours.
//
// Such a terminal (pty(7)) passes every byte on as it is, and is no controlling terminal: no key
// and no hang-up makes a signal there. Main thread; nothing blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "common/status.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {

// The kernel has a few thousand terminals for all users of a machine, so larger jobs get none.
inline constexpr uint32_t kMostTerminals = 256;

struct TerminalSize {
  uint16_t rows = 0;  // 0: unknown
  uint16_t columns = 0;

  bool operator==(const TerminalSize&) const = default;
};

// Returns the size of ferryrun's standard output; nothing: it is no terminal.
std::optional<TerminalSize> TerminalOfOutput();

// Makes a terminal of that size. `write` is for the rank; from `read`, ferryrun's end, comes what
// the rank writes, and an error (EIO) once no process has `write` open. kSystem,
// kLimitExceeded: there is none left, or the machine has none.
StatusOr<Pipe> MakeTerminal(const TerminalSize& size);

// Gives the terminal whose `read` this is another size. Another descriptor, or none (-1), stays as
// it is.
void Resize(int fd, const TerminalSize& size);

}  // namespace ferry::tools
