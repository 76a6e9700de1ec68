// Measures requests of kernels through a ring of a device (docs/device_ring.md).
#pragma once

#include <string_view>

#include "config/options.h"

namespace ferry::bench {

// Prints "ring THREADS US RATE" for some numbers of threads of device 0 of that vendor's backend:
// microseconds of one request with its answer, and millions of requests a second of all threads.
// Tickets lie in the device's memory; a thread of this process plays ferryd. Prints nothing where
// the device runs no kernels.
void MeasureRings(const config::Options& options, std::string_view backend, int repetitions);

}  // namespace ferry::bench
