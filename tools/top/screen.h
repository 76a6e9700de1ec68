// One picture of `ferryctl top`, as text and as JSON. Pure; any thread.
#pragma once

#include "tools/ferryctl/view.h"
#include "tools/top/rates.h"

namespace ferry::tools {

View TopView(const control::StatusReply& status, const TopRates& rates);

}  // namespace ferry::tools
