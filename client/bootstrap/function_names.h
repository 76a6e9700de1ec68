// The functions to which addresses of this process belong, found in a signal handler: without
// memory, locks or the loader's lists, from the symbol tables of the files that are loaded
// (System V ABI, ELF-64: .symtab, else .dynsym).
//
// Async-signal-safe; any thread, one at a time. Blocks on the file system only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry::client {

// An address in a program or library.
struct CodePlace {
  static constexpr size_t kNameBytes = 128;

  uintptr_t address = 0;
  const char* file = nullptr;  // path of the program or library; null: in none
  uint64_t offset = 0;         // of the address, as the file counts
  char name[kNameBytes] = {};  // of the function as the linker knows it, cut to fit; "": unknown
};

// Fills in what is known of the places whose `address` is set. `own_program` is the path by which
// the program itself is read.
void FindFunctions(std::span<CodePlace> places, const char* own_program);

}  // namespace ferry::client
