// One picture of `ferryctl top`, as text and as JSON. Pure; any thread.
#pragma once

#include "tools/display/view.h"
#include "tools/top/rates.h"

namespace ferry::tools {

// As wide as the terminal; numbers that mean trouble have no column if they are zero for all ranks.
View TopView(const control::StatusReply& status, const TopRates& rates,
             const Terminal& terminal = {});

}  // namespace ferry::tools
