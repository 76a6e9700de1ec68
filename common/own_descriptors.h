// Tables of descriptors that a thread has for itself: what it, and the processes that it forks,
// must not have of the others'.
//
// Any thread, for itself. What goes is closed, which may block for as long as its kind of file
// likes. False: not possible (Linux before 5.9).
#pragma once

namespace ferry {

// The calling thread goes on with a copy of its table.
bool OwnDescriptors();
// With `kept` only.
bool OwnDescriptors(int kept);

}  // namespace ferry
