// The plain types of the GPU backend interface: what a device is, what a pointer points to, and how
// an allocation travels to another process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::gpu {

// The access to memory without a stream, through its address or through a mapping of its exported
// descriptor. Where both are false, the memory moves by CopyAsync only.
struct DirectAccess {
  bool cpu = false;      // loads and stores of any process that maps it
  bool network = false;  // a NIC, once the memory is registered with it
  bool operator==(const DirectAccess&) const = default;
};

// The executor of WriteValue64 and WaitValue64 of a device's streams.
enum class StreamWords : uint8_t {
  kNative,  // the device, by operations of the vendor's
  kKernel,  // the device, by Ferry's small kernels
  kHelper,  // a thread of this process
};

struct DeviceInfo {
  std::string name;
  std::string pci_address;   // "0000:3b:00.0"; empty if the device is not on a PCI bus
  int numa_node = -1;        // -1: unknown
  uint64_t total_bytes = 0;  // the most that AllocateDevice can ever hand out at once
  uint64_t free_bytes = 0;   // free at the time of asking; 0: unknown, or none
  DirectAccess direct;       // for all its memory, also where it is imported
  StreamWords stream_words = StreamWords::kHelper;
  bool ipc = false;      // ExportIpc and ImportIpc work
  bool dmabuf = false;   // ExportDmabuf may
  bool managed = false;  // AllocateManaged works
  // Kernels see what CPUs store in registered host memory while they run, and change its words by
  // operations that are atomic to CPUs, too.
  bool host_words = false;
  bool host_atomics = false;
  bool on_cpus = false;            // kernels run on the machine's CPUs: an emulated device
  bool kernels = false;            // Ferry's own kernels run there
  std::string no_kernels_because;  // why they do not, for people
};

enum class PointerKind : uint8_t {
  kUnknown,  // nothing this backend knows: ordinary host memory, another backend's, or no memory
  kDevice,   // device memory, allocated here or imported; `direct` says who may touch it
  kPinned,   // host memory that devices reach: AllocatePinned or RegisterHostMemory
  kManaged,  // migrates between host and device: CPUs and streams reach it
};

// The answer of Identify about a pointer. `base` and `size_bytes` describe the whole allocation
// around it. Only `kind` means anything when it is kUnknown.
struct PointerInfo {
  PointerKind kind = PointerKind::kUnknown;
  int device = -1;  // -1 for host memory, and where managed memory has no home
  void* base = nullptr;
  uint64_t size_bytes = 0;
  // Never given again by this backend, so a cache keyed by it cannot mistake new memory at an old
  // address for the old memory. 0: the vendor gives none.
  uint64_t allocation_id = 0;
  DirectAccess direct;  // that of its device; both for kPinned
  // Not ok: the vendor's own call failed, so that kUnknown memory may be anything.
  Status failure;
};

// Addresses of an allocation that are backed by one piece of memory.
struct MemoryPiece {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  // The program has mapped it to addresses that it had reserved: a buffer may run on into the
  // mapping behind it. Other processes are given none of it: what a vendor's handle of it names, if
  // there is one, differs between releases.
  bool is_mapping = false;
};

// One exported allocation. The descriptor travels by SCM_RIGHTS, the other fields as they are; the
// receiver builds an IpcHandle from both and imports it.
struct IpcHandle {
  UniqueFd fd;                       // owned; invalid where the vendor's handle holds none
  std::array<uint8_t, 64> opaque{};  // the vendor's own handle; all zero where `fd` says it all
  uint64_t offset_bytes = 0;         // of the exported pointer within the allocation
  uint64_t size_bytes = 0;           // of the whole allocation
  uint64_t allocation_id = 0;        // the exporter's; with the exporter's identity, a cache key
  int32_t device = -1;               // the exporter's ordinal of the device
};

// Device memory as a Linux dma-buf, for NICs and other drivers.
struct Dmabuf {
  UniqueFd fd;
  uint64_t offset_bytes = 0;  // of the exported pointer in it
};

}  // namespace ferry::gpu
