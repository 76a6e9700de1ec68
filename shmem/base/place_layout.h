// The beginning of the memory that each PE shares with the others of its node: its own state, for
// them to read. The system area (boards and the like) and the symmetric heap follow.
//
// Only the PE itself writes to its place; PEs of other nodes write to its remote_lives. The layout
// is libferry_shmem's own: the PEs of a job are of one release, and ferryd never looks at it. Zero
// is the empty state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::shmem {

// The stages of a PE between shmem_init and the end of shmem_finalize.
enum class Life : uint32_t { kStarting, kRunning, kLeaving };

// A stretch of this PE's static data that other PEs reach.
struct StaticLayout {
  uint64_t name_hash;  // of the program or the library that it belongs to
  uint64_t size_bytes;
  uint32_t region;
  uint32_t reserved;
};
static_assert(sizeof(StaticLayout) == 24);

inline constexpr size_t kMostStatics = 64;

// All stretches of static data. PEs of other nodes get a copy.
struct StaticsLayout {
  uint64_t count;
  StaticLayout all[kMostStatics];
};

struct alignas(128) PlaceLayout {
  uint32_t life;  // Life
  uint32_t reserved;
  uint64_t heap_bytes;
  // Offsets in the region. Those of the boards are valid at the first PE of the team.
  uint64_t world_board;  // 0: the world has several nodes
  uint64_t shared_board;
  // A byte for each PE, in which PEs of other nodes store that they are leaving; 0: there are none.
  // It is the first that each PE takes of its system area, so it lies at one offset everywhere.
  uint64_t remote_lives;
  // The first of the active sets whose boards this PE has made, as an offset in the region; 0:
  // none.
  alignas(128) uint64_t active_sets;
  alignas(128) StaticsLayout statics;
};

inline constexpr size_t kPlaceBytes = 4096;
static_assert(sizeof(PlaceLayout) <= kPlaceBytes);
// The symmetric heap begins at a multiple of this on all PEs, in their own address space and in
// those of the local ones: shmem_align can align as far as this.
inline constexpr size_t kHeapAlignment = size_t{256} << 20;
inline constexpr size_t kHeapOffset = kHeapAlignment;
// The size of the system area. Only parts in use take memory.
inline constexpr size_t kSystemBytes = kHeapOffset - kPlaceBytes;

// Precedes the board of an active set.
struct alignas(128) ActiveSetLayout {
  uint64_t next;  // offset in the region; 0: it is the last
  int32_t start;
  int32_t stride;
  int32_t count;
};
static_assert(sizeof(ActiveSetLayout) == 128);

}  // namespace ferry::shmem
