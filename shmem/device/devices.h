// Tables by which kernels reach the symmetric heaps of their node (ferry/device/shmem.h,
// shmemx_device_prepare). Programs' calls are in operations.h.
//
// A table belongs to a team and a device: it says where the device finds each PE's heap and each
// PE's area, the words of the table's collectives, which lies in the system area of that PE's
// region. While there are tables, a thread watches the other PEs: kernels cannot ask the session
// who has died, so it tells them by words in the areas.
#pragma once

#include "common/status.h"

namespace ferry::shmem {

// Whether there is such a device: kUnsupported without a GPU backend, kInvalidArgument. Any thread.
Status CheckDevice(int device);
// Writes the spaces (spaces.h) that there are by now into all tables. Calling thread: that makes or
// destroys one. Blocks while they are copied to the devices.
void RefillTables(const char* call);
// Blocks until ferryd has done what kernels have asked for by the tables, which no kernel may use
// any more.
void CompleteDevices();
// Frees all tables; no kernel may use them any more. Calling thread: that of shmem_finalize.
void ForgetDevices();
// Ends the thread, for a process that ends without the above: libferry goes then.
void EndDeviceWatch();

}  // namespace ferry::shmem
