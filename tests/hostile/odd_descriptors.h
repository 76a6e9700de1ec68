// Descriptors of every kind, to be passed to a daemon that wants sealed memfds.
//
// Any thread.
#pragma once

#include "common/unique_fd.h"
#include "tests/hostile/attacker.h"

namespace ferry::hostile {

// May be invalid where the kernel does not have that kind. The attack `linger` passes a TCP socket
// that takes a second to close, `hugepages` a memfd of huge pages.
UniqueFd OddDescriptor(const Attacker& attacker, Dice& dice);

}  // namespace ferry::hostile
