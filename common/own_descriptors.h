// Gives a thread a table of descriptors of its own, so that it, and the processes that it forks, do
// not hold those of the other threads.
//
// Any thread, for itself. Descriptors that are dropped are closed, which may block for as long as
// their kind of file likes. False: not possible (Linux before 5.9).
#pragma once

namespace ferry {

// The calling thread goes on with a copy of its table.
bool OwnDescriptors();
// The same, with `kept` only.
bool OwnDescriptors(int kept);

}  // namespace ferry
