#include "shmem/base/pieces.h"

#include <map>
#include <mutex>
#include <shared_mutex>

namespace ferry::shmem {
namespace {

using PieceMap = std::map<uint64_t, Piece>;  // by offset

struct HeapPieces {
  PieceMap live;
  PieceMap freed;  // freed pieces whose bytes have not been given out again
};
struct Pieces {
  std::shared_mutex mutex;
  std::map<int, HeapPieces> heaps;
};
Pieces& pieces = *new Pieces();

// The last piece that begins at `offset` or before it, or null.
const Piece* FindFrom(const PieceMap& map, uint64_t offset) {
  const auto next = map.upper_bound(offset);
  return next == map.begin() ? nullptr : &std::prev(next)->second;
}

uint64_t EndOf(const Piece& piece) { return piece.offset + piece.bytes; }

std::string Text(const Piece& piece) {
  return "the " + std::to_string(piece.bytes) + " bytes at offset " + std::to_string(piece.offset) +
         " of " + HeapName(piece.heap) + ", which " + piece.given_by + " has returned";
}

// A piece that is given out hides those that were freed there.
void HideFreed(PieceMap& freed, uint64_t offset, uint64_t bytes) {
  auto at = freed.lower_bound(offset);
  if (at != freed.begin() && EndOf(std::prev(at)->second) > offset) {
    --at;
  }
  while (at != freed.end() && at->first < offset + bytes) {
    at = freed.erase(at);
  }
}

}  // namespace

std::string HeapName(int heap) {
  return heap == 0 ? "the symmetric heap" : "space " + std::to_string(heap);
}

void ForgetPieces(int heap) {
  std::lock_guard lock(pieces.mutex);
  pieces.heaps[heap] = {};
}

void NotePiece(const char* call, int heap, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(pieces.mutex);
  HeapPieces& its = pieces.heaps[heap];
  HideFreed(its.freed, offset, bytes);
  its.live[offset] = {.heap = heap, .offset = offset, .bytes = bytes, .given_by = call};
}

void NoteFreed(const char* call, int heap, uint64_t offset) {
  std::lock_guard lock(pieces.mutex);
  HeapPieces& its = pieces.heaps[heap];
  const auto found = its.live.find(offset);
  if (found == its.live.end()) {
    return;
  }
  Piece piece = found->second;
  its.live.erase(found);
  piece.freed_by = call;
  its.freed[offset] = piece;
}

std::string FindPieceFault(int heap, uint64_t offset, uint64_t bytes) {
  std::shared_lock lock(pieces.mutex);
  const auto its = pieces.heaps.find(heap);
  const Piece* const piece =
      its == pieces.heaps.end() ? nullptr : FindFrom(its->second.live, offset);
  if (piece != nullptr && offset < EndOf(*piece)) {
    return bytes <= EndOf(*piece) - offset ? "" : "run past the end of " + Text(*piece);
  }
  const Piece* const freed =
      its == pieces.heaps.end() ? nullptr : FindFrom(its->second.freed, offset);
  if (freed != nullptr && offset < EndOf(*freed)) {
    return "lie in " + Text(*freed) + " and " + freed->freed_by + " has freed";
  }
  if (piece != nullptr) {
    const uint64_t distance = offset - EndOf(*piece);
    return "lie " + (distance == 0 ? "right" : std::to_string(distance) + " bytes") +
           " behind the end of " + Text(*piece);
  }
  return "lie where the program has been given no memory of " + HeapName(heap);
}

std::vector<Piece> LivePieces() {
  std::shared_lock lock(pieces.mutex);
  std::vector<Piece> all;
  for (const auto& [heap, its] : pieces.heaps) {
    for (const auto& [offset, piece] : its.live) {
      all.push_back(piece);
    }
  }
  return all;
}

}  // namespace ferry::shmem
