// Other hosts that are this machine in truth: ferryrun starts agents there, with private daemons.
#pragma once

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {

// Flags for ferryrun; `hosts` as it takes them, such as "10.99.0.1:2,10.99.0.2:2". Leaves its
// launcher in `folder`.
Words HostsHere(const TempDirectory& folder, const std::string& hosts);

}  // namespace ferry::e2e
