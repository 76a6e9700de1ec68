// Memory that the ranks of a file on one node share: stretches of the file's bytes on their way,
// with the marks of what is in them, and the words by which the ranks keep in step.
//
// The first of these ranks, the leader, has it in its heap, or in a segment of its own; the others
// map it. Units: bytes. Calling thread: that of a collective call of the file. SetUp blocks until
// all ranks of the file have come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/error_code.h"
#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"
#include "mpi/io/file_domains.h"
#include "mpi/io/meeting.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// Stretches are numbered for as long as the file is open. The entries of a stretch stay until all
// ranks have come to one that is kKeptStretches behind it.
inline constexpr uint64_t kKeptStretches = 2 * kStretches;

// The words of a rank about a stretch, once it knows where the stretch is.
struct StretchEntry {
  int64_t low = kNowhere;   // its first byte there
  int64_t high = 0;         // its last one, and 1
  int64_t next = kNowhere;  // its first one behind the stretch
  int32_t error_class = 0;  // of what has failed at this rank by now; then there is no next stretch
  int32_t unused = 0;
};

// The words of one rank. Only that rank writes them; each counts stretches, and publishes what lies
// before it.
struct alignas(128) RankWords {
  uint64_t announced = 0;  // the entries are written
  uint64_t moved = 0;      // this rank's bytes are copied, to the stretch or out of it
  uint64_t carried = 0;    // as an aggregator: the bytes are in the file, or out of it
  uint64_t left = 0;  // an ErrorCode: why this rank may be out of step with the others, for good
  std::array<int64_t, kKeptStretches> ends{};  // as an aggregator: where the bytes of a read end
  std::array<StretchEntry, kKeptStretches> entries{};
};

class NodeBuffer {
 public:
  NodeBuffer() = default;
  // All ranks have left it, unless one has died: then the others may still copy, and the memory is
  // left to them for good.
  ~NodeBuffer();
  NodeBuffer(const NodeBuffer&) = delete;
  NodeBuffer& operator=(const NodeBuffer&) = delete;

  // Makes the memory on all nodes, for stretches of up to `stretch_bytes`. Fails on all ranks, or
  // on none.
  Failure SetUp(Meeting& meeting, const Comm& comm, int64_t stretch_bytes);
  bool is_set_up() const { return base_ != nullptr; }
  // Returns true once SetUp was called: if it has failed here, it may have gone well elsewhere.
  bool was_tried() const { return comm_ != nullptr; }

  int64_t stretch_bytes() const { return stretch_bytes_; }
  // The ranks of the file on this node, in their order; and which of them this process is.
  const std::vector<int>& ranks() const { return ranks_; }
  int self() const { return self_; }
  // Returns the words that the i-th of these ranks writes.
  RankWords& words(int i) const;
  // Return where the bytes of a stretch lie, and where their marks (coverage.h).
  std::byte* bytes(uint64_t stretch) const;
  std::byte* marks(uint64_t stretch) const;
  // Returns kOk, or why one of these ranks is gone, or has left.
  ErrorCode DeathAmongRanks() const;
  // As DeathAmongRanks, for all ranks of the file.
  ErrorCode DeathAmongAll() const;
  // This rank goes through no more stretches: those of the node do not wait for it.
  void Leave(ErrorCode why) const;

 private:
  struct Offer;

  ErrorCode StateOf(int rank) const;
  ErrorCode LeftAmongRanks() const;
  size_t size_bytes() const;
  Failure OfferMemory(Offer* offer);

  const Comm* comm_ = nullptr;
  std::vector<int> ranks_;
  int self_ = 0;
  int64_t stretch_bytes_ = 0;
  WindowMemory memory_;  // the leader's
  std::shared_ptr<std::byte> mapping_;
  std::byte* base_ = nullptr;
};

// The ranks of a communicator on this process's node, in their order.
std::vector<int> RanksOfNode(const Comm& comm);

}  // namespace ferry::mpi
