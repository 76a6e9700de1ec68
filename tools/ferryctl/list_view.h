// Shows a user's daemons as JSON and as text. Pure; any thread.
#pragma once

#include <vector>

#include "tools/display/view.h"
#include "tools/ferryctl/choice.h"

namespace ferry::tools {

// One line for each daemon: what it serves, or why it does not answer.
View ListView(const std::vector<MetDaemon>& daemons, const Terminal& terminal = {});

}  // namespace ferry::tools
