// One picture of `ferryctl top`, as text and as JSON. Pure; any thread.
#pragma once

#include "tools/display/view.h"
#include "tools/top/rates.h"

namespace ferry::tools {

// As wide as the terminal; what is zero for all ranks and means trouble has no column.
View TopView(const control::StatusReply& status, const TopRates& rates,
             const Terminal& terminal = {});

}  // namespace ferry::tools
