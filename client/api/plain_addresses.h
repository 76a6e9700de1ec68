// Tells which addresses surely lie in memory that CPUs reach. Every call that names a buffer asks
// this, so the answer takes about a nanosecond.
//
// Once a GPU vendor's library is in use here, the program may have memory of its own that only
// streams reach, and no list of it. Then only addresses are plain where drivers never put any: in
// the program's image, its heap of brk, the calling thread's stack. All other addresses have to be
// asked about each time: memory that was returned to the kernel may become a device's without
// Ferry's notice.
//
// Calling thread: IsPlain from any; the changes one at a time. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/api/address_hull.h"
#include "shm/atomic.h"

namespace ferry::client {

// Tells whether an address lies in the program's image, its heap or the calling thread's stack.
// Takes about 2 ns.
class ProgramAddresses {
 public:
  ProgramAddresses();  // reads a file of /proc
  bool Contains(const void* pointer) const;

 private:
  bool IsOnStack(uintptr_t address) const;

  uintptr_t image_begin_ = 0;
  uintptr_t image_end_ = 0;
  uintptr_t heap_begin_ = UINTPTR_MAX;
};

class PlainAddresses {
 public:
  // True: CPUs reach this address. False: that is unknown; CPUs may still reach it.
  bool IsPlain(const void* pointer) const {
    return (!MayHaveVendor() && !by_stream_.Contains(pointer)) || program_.Contains(pointer);
  }
  // The range around all memory that only streams reach and that Ferry knows, or knew.
  const AddressHull& by_stream() const { return by_stream_; }
  // Returns true if the program may have device memory that Ferry does not know: a vendor's library
  // is in use, or a library has been loaded that Ferry has not looked at yet.
  bool MayHaveVendor() const {
    // Pairs with Watch. The dynamic linker stores a word there.
    const void* const* const word = word_.load(std::memory_order_acquire);
    return shm::LoadRelaxed(*word) != nullptr;
  }

  // Call it before the memory's address is given to any caller, so that each thread with the
  // address finds it here.
  void AddByStream(const void* base, uint64_t size_bytes) { by_stream_.Add(base, size_bytes); }
  // From now on MayHaveVendor returns true if *word is not null. The word stays mapped for the life
  // of the process. A null `word`: MayHaveVendor always returns true.
  void Watch(const void* const* word) {
    word_.store(word == nullptr ? &kAlways : word, std::memory_order_release);
  }

 private:
  static constexpr const void* kNever = nullptr;
  static inline const void* const kAlways = &kNever;

  AddressHull by_stream_;
  std::atomic<const void* const*> word_{&kNever};
  const ProgramAddresses program_;
};

}  // namespace ferry::client
