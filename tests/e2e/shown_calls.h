// Reads the calls that the ranks of a job show, as their daemons can: out of the sessions that
// those hold.
#pragma once

#include <cstdint>
#include <string>

#include "shm/call_record.h"
#include "tests/e2e/command.h"

namespace ferry::e2e {

// The calls of a rank of the job. Empty, too, while no daemon of the job has its session.
shm::CallsView ShownCalls(const Command& job, uint32_t rank);
// The phrases of these calls, each on a line.
std::string ShownPhrases(const Command& job, uint32_t rank);
// The totals of a function.
shm::CallTotals ShownTotals(const Command& job, uint32_t rank, shm::CallName name);

}  // namespace ferry::e2e
