// The daemons that there are for a user, as JSON and as text. Pure; any thread.
#pragma once

#include <vector>

#include "tools/display/view.h"
#include "tools/ferryctl/choice.h"

namespace ferry::tools {

// One line each: what it serves, or why it does not say.
View ListView(const std::vector<MetDaemon>& daemons, const Terminal& terminal = {});

}  // namespace ferry::tools
