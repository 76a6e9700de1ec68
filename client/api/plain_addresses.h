// Which addresses surely lie in memory that CPUs reach: the question of every call that names a
// buffer, so the answer takes about a nanosecond.
//
// Once a GPU vendor's library is in use here, the program may have memory of its own that only
// streams reach, and no list of it. Then only addresses are plain where drivers never put any: in
// the program's image, its heap of brk, the calling thread's stack. Others have to be asked about
// each time: what is returned to the kernel may become a device's without anybody's notice.
//
// Calling thread: IsPlain from any; the changes one at a time. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/api/address_hull.h"
#include "shm/atomic.h"

namespace ferry::client {

// Whether an address lies in the image, the heap or the stack. About 2 ns.
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
  // False does not say that CPUs do not reach it.
  bool IsPlain(const void* pointer) const {
    return (!MayHaveVendor() && !by_stream_.Contains(pointer)) || program_.Contains(pointer);
  }
  // Around all memory that only streams reach, and that Ferry knows, or knew.
  const AddressHull& by_stream() const { return by_stream_; }
  // Whether the program may have memory that Ferry does not know: a vendor's library is in use, or
  // some library has been loaded that nobody has looked at.
  bool MayHaveVendor() const {
    // Pairs with Watch. The dynamic linker stores a word there.
    const void* const* const word = word_.load(std::memory_order_acquire);
    return shm::LoadRelaxed(*word) != nullptr;
  }

  // Before anybody is told of that memory: so who has its address finds it here.
  void AddByStream(const void* base, uint64_t size_bytes) { by_stream_.Add(base, size_bytes); }
  // From now on MayHaveVendor says whether this word, which stays, is not null; null: it is true.
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
