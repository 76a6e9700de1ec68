#include "client/shmem/pieces.h"

#include <map>
#include <mutex>
#include <shared_mutex>

namespace ferry::shmem {
namespace {

struct Pieces {
  std::shared_mutex mutex;
  std::map<uint64_t, Piece> live;   // by offset
  std::map<uint64_t, Piece> freed;  // those whose bytes nobody has been given since
};
Pieces& pieces = *new Pieces();

using PieceMap = std::map<uint64_t, Piece>;

// The last piece that begins at `offset` or before it, or null.
const Piece* FindFrom(const PieceMap& map, uint64_t offset) {
  const auto next = map.upper_bound(offset);
  return next == map.begin() ? nullptr : &std::prev(next)->second;
}

uint64_t EndOf(const Piece& piece) { return piece.offset + piece.bytes; }

std::string Text(const Piece& piece) {
  return "the " + std::to_string(piece.bytes) + " bytes at offset " + std::to_string(piece.offset) +
         " of the symmetric heap, which " + piece.given_by + " has returned";
}

// A piece that is given out hides those that were freed there.
void HideFreed(uint64_t offset, uint64_t bytes) {
  auto at = pieces.freed.lower_bound(offset);
  if (at != pieces.freed.begin() && EndOf(std::prev(at)->second) > offset) {
    --at;
  }
  while (at != pieces.freed.end() && at->first < offset + bytes) {
    at = pieces.freed.erase(at);
  }
}

}  // namespace

void ForgetPieces() {
  std::lock_guard lock(pieces.mutex);
  pieces.live.clear();
  pieces.freed.clear();
}

void NotePiece(const char* call, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(pieces.mutex);
  HideFreed(offset, bytes);
  pieces.live[offset] = {.offset = offset, .bytes = bytes, .given_by = call};
}

void NoteFreed(const char* call, uint64_t offset) {
  std::lock_guard lock(pieces.mutex);
  const auto found = pieces.live.find(offset);
  if (found == pieces.live.end()) {
    return;
  }
  Piece piece = found->second;
  pieces.live.erase(found);
  piece.freed_by = call;
  pieces.freed[offset] = piece;
}

std::string FindPieceFault(uint64_t offset, uint64_t bytes) {
  std::shared_lock lock(pieces.mutex);
  const Piece* const piece = FindFrom(pieces.live, offset);
  if (piece != nullptr && offset < EndOf(*piece)) {
    return bytes <= EndOf(*piece) - offset ? "" : "run past the end of " + Text(*piece);
  }
  const Piece* const freed = FindFrom(pieces.freed, offset);
  if (freed != nullptr && offset < EndOf(*freed)) {
    return "lie in " + Text(*freed) + " and " + freed->freed_by + " has freed";
  }
  if (piece != nullptr) {
    const uint64_t distance = offset - EndOf(*piece);
    return "lie " + (distance == 0 ? "right" : std::to_string(distance) + " bytes") +
           " behind the end of " + Text(*piece);
  }
  return "lie where the program has been given no memory of the symmetric heap";
}

std::vector<Piece> LivePieces() {
  std::shared_lock lock(pieces.mutex);
  std::vector<Piece> all;
  for (const auto& [offset, piece] : pieces.live) {
    all.push_back(piece);
  }
  return all;
}

}  // namespace ferry::shmem
