// Host steps while a vendor's stream has them: what the vendor is given in place of step and
// argument, since its callbacks have another form.
//
// A stream that is given up may run its steps long after its driver is gone, or never. So what is
// held belongs to the process.
//
// Calling thread: any.
#pragma once

#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// To be given back to one of the two below, once.
void* HoldHostStep(HostStep step, void* argument);
// Calls the step and forgets it. For drivers whose host_steps_hold() is false: what the step
// returns means nothing.
void RunHostStep(void* held);
// Forgets the step without a call.
void DropHostStep(void* held);

}  // namespace ferry::gpu
