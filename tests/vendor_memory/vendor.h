// Memory that a program allocates itself, by the calls of one vendor's library, with which it is
// linked as users' programs are. Ferry hears nothing of this.
//
// Calling thread: any. A call that fails ends the program with a message that names it.
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

// ---- Virtual memory: physical memory of device 0 is mapped to addresses that were reserved ----

constexpr size_t kMappingBytes = size_t{2} << 20;  // sizes and addresses are multiples of this,

size_t LeastMappingBytes();  // or of this
std::byte* ReserveAddresses(size_t bytes);
void FreeAddresses(std::byte* begin, size_t bytes);
void* NewMemory(size_t bytes);
// Maps memory of that size, which is mapped nowhere else. Devices reach it.
void MapMemory(std::byte* at, void* memory, size_t bytes);
void UnmapMemory(std::byte* at, size_t bytes);
// Of memory that is mapped nowhere.
void ReleaseMemory(void* memory);

// The kind of it: as PyTorch's expandable segments, more addresses than memory, and mappings side
// by side. A Buffer's first 40 bytes lie in one, the rest in the next.
void* AllocateVirtual(size_t bytes);
void FreeVirtual(void* pointer, size_t bytes);
inline constexpr Kind kVirtualKind = {"virtual", false, AllocateVirtual, FreeVirtual};

// Ends the program with a message unless `ok`.
void Require(bool ok, const char* what);

}  // namespace ferry::vendor_memory
