// Tables by which kernels reach the symmetric heaps of their node (ferry/device/shmem.h,
// shmemx_device_prepare). Programs' calls are in operations.h.
//
// A table belongs to a team and a device: it has the device's addresses of each PE's heap and of
// each PE's area, the words of the table's collectives, which lies in the system area of that PE's
// region. While there are tables, a thread watches the other PEs: kernels cannot see deaths in the
// session, so the thread stores them in the areas.
#pragma once

#include "common/status.h"

namespace ferry::shmem {

// Returns ok if there is such a device; else kUnsupported (no GPU backend) or kInvalidArgument. Any
// thread.
Status CheckDevice(int device);
// Writes the present spaces (spaces.h) into all tables. Calling thread: the one that makes or
// destroys a space. Blocks while they are copied to the devices.
void RefillTables(const char* call);
// Blocks until ferryd has carried out all requests of kernels by the tables, which no kernel may
// use any more.
void CompleteDevices();
// Frees all tables; no kernel may use them any more. Calling thread: that of shmem_finalize.
void ForgetDevices();
// Ends the watching thread, for a process that ends without ForgetDevices: libferry goes then.
void EndDeviceWatch();

}  // namespace ferry::shmem
