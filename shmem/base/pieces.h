// What the checking mode (checks.h) knows of the symmetric heaps (0: that in host memory; else the
// number of a space): which pieces the program has been given, byte by byte, and which of them it
// has given back. All PEs' are alike.
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

// "the symmetric heap", "space 2".
std::string HeapName(int heap);

// Of a heap that begins.
void ForgetPieces(int heap);
// The program has these bytes from now on; also in place of others that began there.
void NotePiece(const char* call, int heap, uint64_t offset, uint64_t bytes);
void NoteFreed(const char* call, int heap, uint64_t offset);

// Why the program may not use these bytes of the heap, as "lie ..."; empty: it may. `bytes` is not
// 0.
std::string FindPieceFault(int heap, uint64_t offset, uint64_t bytes);
// Those that the program has, of all heaps.
std::vector<Piece> LivePieces();

}  // namespace ferry::shmem
