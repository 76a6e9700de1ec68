// Memory that a program allocates itself, by the calls of one vendor's library, with which it is
// linked as users' programs are. Ferry hears nothing of this.
//
// Calling thread: any. What fails ends the program, and says what.
#pragma once

#include <cstddef>
#include <span>

namespace ferry::vendor_memory {

// One of the vendor's ways to allocate.
struct Kind {
  const char* name;
  bool is_host;  // CPUs reach it
  void* (*allocate)(size_t bytes);
  void (*free)(void* pointer, size_t bytes);
};

const char* VendorName();
// Begins the vendor's library as programs do. Called once, by the main thread; others call
// UseDevice.
void Begin();
// Makes the device the calling thread's own.
void UseDevice(int device);
int DeviceCount();
std::span<const Kind> Kinds();
// The kind of that name, or null.
const Kind* FindKind(const char* name);
// Copies between any two kinds of memory, by the vendor's call, and waits.
void Copy(void* to, const void* from, size_t bytes);

// Ends the program with a message unless `ok`.
void Require(bool ok, const char* what);

}  // namespace ferry::vendor_memory
