// Holds host steps while a vendor's stream has them: the vendor gets one pointer in place of step
// and argument, since its callbacks have another form.
//
// An abandoned stream may run its steps long after its driver is gone, or never. So held steps
// belong to the process.
//
// Calling thread: any.
#pragma once

#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// Holds a step. Pass the result to RunHostStep or DropHostStep, once.
void* HoldHostStep(HostStep step, void* argument);
// Calls the step and forgets it. For drivers whose host_steps_hold() is false: ignores the step's
// result.
void RunHostStep(void* held);
// Forgets the step without a call.
void DropHostStep(void* held);

}  // namespace ferry::gpu
