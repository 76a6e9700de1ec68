// A board: a piece of memory in which the ranks of a communicator that share a node see each other
// while they carry out a collective. Each of them has a place in it.
//
// A member posts into its own place: small data into a line (one cache line, with its stamp),
// larger data into cells, slice by slice. Members that need the data look for the stamp. Rules:
// board.h.
//
// One class of writer per word, as everywhere in shared memory (docs/shm_layout.md). The layout is
// libmpi_abi's own: its ranks are of one release, and ferryd never looks at it. Zero is the empty
// state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::collective {

inline constexpr size_t kBoardLines = 16;
inline constexpr size_t kBoardLineBytes = 48;
inline constexpr size_t kBoardCellBytes = 4096;

// Precedes the data of a post.
struct PostHeader {
  uint64_t stamp;      // which collective and which slice of it; stored last, with release
  uint64_t signature;  // the collective that the member takes it for
};

struct alignas(64) LineLayout {
  PostHeader header;
  std::byte data[kBoardLineBytes];
};
static_assert(sizeof(LineLayout) == 64);

struct alignas(128) CellLayout {
  PostHeader header;
  alignas(64) std::byte data[kBoardCellBytes];
};

// A collective that a member is in, or was in, and its signature there.
struct EnteredLayout {
  uint64_t stamp;  // lowest bit: the member has given up
  uint64_t signature;
};

// One member's place. Only that member writes to it. Cells follow, as many as the board's shape
// says.
struct alignas(128) MemberLayout {
  uint64_t consumed;  // up to this stamp it needs no posts of others any more
  // Stored when the member has waited for long, or has given up. Two, used in turn: a member that
  // has given up, and waits in the next collective, still says why to those that are behind.
  alignas(128) EnteredLayout entered[2];
  uint32_t asleep;  // 1: it may be asleep, and is to be woken
  alignas(128) LineLayout lines[kBoardLines];
};

struct alignas(128) BoardLayout {
  uint32_t sleepers;           // how many members may be asleep; all write it
  alignas(128) uint32_t left;  // how many members have left the board; all write it
};

struct BoardShape {
  int members = 0;
  uint32_t cells = 0;  // of each member

  size_t PlaceBytes() const { return sizeof(MemberLayout) + cells * sizeof(CellLayout); }
  size_t SizeBytes() const {
    return sizeof(BoardLayout) + static_cast<size_t>(members) * PlaceBytes();
  }
};

}  // namespace ferry::collective
