// Constants that are recognised by their address, in a process with several objects that have them.
//
// The dynamic linker binds the common blocks of this library to those of one object (binding.h). A
// library that was opened by dlopen without RTLD_GLOBAL, such as a module that f2py has made, has
// blocks of its own, which the linker binds its references to. Their addresses are found here: in
// the symbol tables of all loaded objects.
//
// An object that calls MPI has its references to the procedures bound at its start, or at the first
// call of each. Procedures that take such constants are indirect functions (STT_GNU_IFUNC), so that
// the linker runs code of this library at that moment, which notes that there may be another
// object. So calls need not ask the linker. An object that hands its constants to another one,
// which calls MPI for it, has to be opened before that one's first call.
//
// Any thread. After a new binding, one call waits for the linker's lock; no other call waits or
// allocates.
#pragma once

#include <atomic>
#include <cstdint>

namespace ferry::fortran {

enum class Sentinel {
  kBottom,
  kInPlace,
  kBufferAutomatic,
  kStatusIgnore,
  kStatusesIgnore,
  kErrcodesIgnore,
  kUnweighted,
  kWeightsEmpty,
  kArgvNull,
  kArgvsNull,
};
inline constexpr int kSentinels = 10;

// Bindings so far. Hidden, so that it is reached without a relocation: the linker may run
// NoteBinding early.
extern __attribute__((visibility("hidden"))) std::atomic<uint32_t> bindings;
// How many there were at the last look, if it found no blocks of another object; else another
// number.
extern __attribute__((visibility("hidden"))) std::atomic<uint32_t> clean_bindings;

// Pairs with LookAgain: it looks at what was loaded before this.
inline void NoteBinding() { bindings.fetch_add(1); }

// Returns true if there are blocks of other objects, or there may be. A thread sees at least its
// own binding, so the two are equal only after a look that came later.
inline bool MayBeOthers() {
  return bindings.load(std::memory_order_relaxed) != clean_bindings.load(std::memory_order_relaxed);
}

// Returns true if another object than the one that this library is bound to has this constant at
// that address.
bool IsOfOtherObject(const void* address, Sentinel sentinel);

}  // namespace ferry::fortran

// Defines a procedure of Fortran that takes such constants: its body follows.
#define FERRY_BOUND_PROCEDURE(result, symbol, parameters)                                    \
  static result own_##symbol parameters;                                                     \
  extern "C" {                                                                               \
  __attribute__((used)) static decltype(&own_##symbol) bind_##symbol() asm("bind_" #symbol); \
  static decltype(&own_##symbol) bind_##symbol() {                                           \
    ferry::fortran::NoteBinding();                                                           \
    return own_##symbol;                                                                     \
  }                                                                                          \
  FERRY_SHOWN result symbol parameters __attribute__((ifunc("bind_" #symbol)));              \
  }                                                                                          \
  static result own_##symbol parameters
