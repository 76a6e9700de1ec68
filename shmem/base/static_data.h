// Global and static data of the program and of its libraries, which are symmetric, too (OpenSHMEM
// 1.5, section 4.1).
//
// The loader maps such data privately. So before main, while there is one thread, their pages are
// moved into memfds, at the addresses that they have: the program notices nothing, and other PEs
// can map them. Each PE's are where its loader put them, and addresses are translated (job.h).
// Moved is the writable data, except for the pages that the loader protects after relocation
// (RELRO), of the program and of the libraries that it was started with; not that of the system
// (/lib, /usr/lib) nor of Ferry. Objects that dlopen loads later stay private.
//
// fork. A child gets a copy of its own, as it would have had: made before the fork, put in place in
// the child before anything else runs there. Processes that posix_spawn, system or popen start run
// nothing before exec and need none. (A child of _Fork or a bare clone shares the data instead.)
#pragma once

#include "common/status.h"
#include "shmem/base/job.h"

namespace ferry::shmem {

// Shares this PE's static data with the others, once, and describes them in its place. Calling
// thread: that of shmem_init, before Region::MeetOthers.
Status OfferStatics(client::FrontEnd* front_end, PlaceLayout* place);
// Maps, after OfferStatics, the local PEs' part of the static data that all PEs have alike, and
// puts them into job.statics. Blocks until all PEs have called it, if some are remote.
Status MeetStatics();
// Unmaps the static data of other PEs.
void ForgetStatics();

}  // namespace ferry::shmem
