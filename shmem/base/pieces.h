// The checking mode's (checks.h) records of the symmetric heaps (0: that in host memory; else the
// number of a space): the pieces that the program has been given, byte by byte, and those that it
// has given back. They are alike on all PEs.
//
// Calling thread: any. Nothing blocks. `call` stays valid for ever, as the names of functions do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::shmem {

struct Piece {
  int heap = 0;
  uint64_t offset = 0;  // in the heap
  uint64_t bytes = 0;
  const char* given_by = "";
  const char* freed_by = "";
};

// Returns "the symmetric heap", "space 2" and so on.
std::string HeapName(int heap);

// Forgets all pieces of a heap, which begins.
void ForgetPieces(int heap);
// Notes that the program has these bytes from now on; also in place of others that began there.
void NotePiece(const char* call, int heap, uint64_t offset, uint64_t bytes);
void NoteFreed(const char* call, int heap, uint64_t offset);

// Returns why the program may not use these bytes of the heap, as "lie ..."; empty: it may. `bytes`
// is not 0.
std::string FindPieceFault(int heap, uint64_t offset, uint64_t bytes);
// Returns the pieces of all heaps that the program has.
std::vector<Piece> LivePieces();

}  // namespace ferry::shmem
