// This rank's end of a matched pair of persistent requests (docs/stream_triggered.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/api/front_end.h"
#include "common/error_code.h"
#include "proto/attach_protocol.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/layout/pair_layout.h"
#include "shm/pair_move.h"

namespace ferry::client {

// Memory of either end.
struct PairMemory {
  std::byte* address = nullptr;
  bool by_stream = false;
};

struct SharedStart;  // shared_starts.h

struct Pair {
  enum class Stage { kOffered, kMatched, kFailed };

  uint32_t request = 0;  // its slot
  bool is_send = false;
  uint32_t peer = 0;
  attach::PairKey key{};
  Stage stage = Stage::kOffered;
  ErrorCode error = ErrorCode::kOk;  // kFailed: why

  // This end's own memory. The other end, or the network, reaches the window: the buffer itself, or
  // a block of the heap that stands in for it. Device memory that only streams reach is the window
  // where both ends are here, or the network card reaches it.
  shm::PairLayout* end = nullptr;
  PairMemory buffer;
  PairMemory window;
  // Not 0: the other end is on another node, and the window is device memory of this region, which
  // the network card takes as it is.
  uint32_t nic_region = 0;
  // For a receive from another node: the cells in which short messages may wait. If the network
  // card takes the window, there is one cell, in which they arrive.
  std::byte* cells = nullptr;
  uint32_t cell_count = 0;
  uint64_t cell_bytes = 0;

  // Set once matched.
  shm::SendMode mode = shm::SendMode::kStandard;
  uint64_t size_bytes = 0;               // of each message
  bool local = false;                    // both ends are on this node
  std::shared_ptr<void> peer_memory[2];  // keep peer_end and peer_window mapped
  bool devices_reach = false;            // LetDevicesReach was tried
  shm::PairLayout* peer_end = nullptr;
  uint32_t peer_life = 0;  // the life of the block `peer_end`
  PairMemory peer_window;

  uint64_t starts = 0;            // made or enqueued
  bool in_place = false;          // receive: the last message went into the buffer itself
  QueueHandle queue = 0;          // queue of the last start; 0: the rank started it
  bool wants_wait = false;        // that start has no wait yet
  bool was_enqueued = false;      // streams may still look at `end`
  bool is_listed = false;         // it is in its queue's list `waited`
  SharedStart* shared = nullptr;  // the doorbell shared with others, which its block names
  bool shares = false;            // `shared` counts its next start
  uint64_t* page = nullptr;       // between nodes, in a counter's page of the NIC: a store of 1
                                  // makes the next start, and no other word does
  bool has_no_page = false;       // the offered page could not be mapped
  uint64_t mark = 0;              // of the last call with this pair

  bool has_window_of_its_own() const { return window.address != buffer.address; }
  // Returns both ends of a pair inside the node, once matched.
  shm::PairEnds ends() const { return {end, peer_end, peer_life}; }
  // Returns true if starts are made, or may soon be made, in a page of the NIC.
  bool may_have_page() const {
    return page != nullptr || (!has_no_page && shm::LoadRelaxed(end->page.id) != 0);
  }
  bool uses_cells() const {
    return cells != nullptr && !local &&
           (nic_region != 0 ? size_bytes <= cell_bytes : mode == shm::SendMode::kStandard);
  }
  // Returns the place where the message of the last start arrives: a cell or the window.
  std::byte* Landing() const {
    return uses_cells() ? cells + (starts - 1) % cell_count * cell_bytes : window.address;
  }
  // Returns the number of complete messages; a failure does not undo them.
  uint64_t Done() const { return CountIn(shm::Counter(&end->done).Value()); }
  // Returns the error for which the messages that are not complete never will be.
  ErrorCode Failure() const { return OutcomeOf(UINT64_MAX); }
  bool IsUnderWay() const { return Done() < starts; }
  // Returns the outcome of the last start: kOk if its message came, even if the partner, which was
  // done, has freed its request since; else Failure().
  ErrorCode Outcome() const { return OutcomeOf(starts); }
  // Returns the error for which the pair cannot be started again; kOk if the next message has come
  // ahead of its start.
  ErrorCode FailureOfNext() const { return OutcomeOf(starts + 1); }
  // Returns true while the request belongs to a queue: its start or its wait is not over.
  bool IsEnqueued() const {
    return queue != 0 && (wants_wait || (IsUnderWay() && Failure() == ErrorCode::kOk));
  }

 private:
  static uint64_t CountIn(uint64_t done) {
    return done >= shm::kCounterFailure ? done - shm::kCounterFailure : done;
  }
  // Returns kOk if message `number` is complete, or may still be. It looks at the word once:
  // between two looks the message may come and the pair end.
  ErrorCode OutcomeOf(uint64_t number) const {
    const uint64_t done = shm::Counter(&end->done).Value();
    if (CountIn(done) >= number) {
      return ErrorCode::kOk;
    }
    if (error != ErrorCode::kOk) {
      return error;
    }
    return done < shm::kCounterFailure ? ErrorCode::kOk
                                       : static_cast<ErrorCode>(shm::LoadRelaxed(end->done.error));
  }
};

}  // namespace ferry::client
