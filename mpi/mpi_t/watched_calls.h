// Takes hold of a connection's messages and waits, to tell tools of them (events.h): stands before
// the connection's own interfaces (client/api/), and hands all calls on.
//
// Calling thread: as of those interfaces.
#pragma once

namespace ferry::mpi {

// Put the watched interfaces in front of front_end's own, or take them away again. Calls that are
// under way in other threads end as they began. Not twice. WatchCalls only while there is a
// connection.
void WatchCalls();
void UnwatchCalls();

}  // namespace ferry::mpi
