// Transfer: a large message on its way between nodes, as one of its two daemons sees it, and its
// fragments (transfers.h).
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/block_plan.h"
#include "internode/delivery/directory.h"
#include "internode/registration/pinned_memory.h"
#include "internode/registration/registrations.h"
#include "internode/staging/copier.h"
#include "internode/staging/staging_depot.h"
#include "transports/api/transport.h"

namespace ferry::progress {

enum class TransferId : uint64_t {};
enum class FragmentId : uint64_t {};

// The resource or event that the next fragment of a transfer waits for.
enum class Want : uint8_t { kNothing, kSlot, kBlock, kMemory, kArrival };

struct Transfer {
  Job* job = nullptr;
  ServedRank* rank = nullptr;  // null once its memory is not touched any more
  uint32_t here = 0;           // the same rank's number,
  uint32_t peer = 0;           // and that of the other one
  uint32_t request = 0;        // of the rank here
  uint32_t generation = 0;
  uint32_t send_request = 0;  // of the sending rank; the two name the message
  uint32_t send_generation = 0;

  // Where the message lies here: at `mapped`, where the NIC reaches it once it is claimed; or, with
  // copies through staging blocks, at `address` in the rank's process or in a region of device
  // memory, which is at `device` if this process has imported it.
  ServedRegion* region = nullptr;  // in use for as long as `rank` is
  std::byte* mapped = nullptr;
  Claim claim;             // on its memory,
  PinnedMemory reached;    // or that itself, which is in no region
  Stage* stage = nullptr;  // of the job; null where it is `mapped`
  uint64_t address = 0;
  uint32_t device_region = 0;  // its number
  std::byte* device = nullptr;
  std::optional<engine::BlockPlan> plan;  // how to cut it, if one end is in device memory

  uint64_t size_bytes = 0;
  uint64_t begun_bytes = 0;
  uint64_t done_bytes = 0;
  uint32_t under_way = 0;  // fragments
  uint32_t lent = 0;       // of these, fragments in blocks that the peer may read
  Want wants = Want::kNothing;
  bool has_turn = false;             // its rank's turn has come: it need not wait for a block
  bool stopped = false;              // begins no more fragments
  ErrorCode error = ErrorCode::kOk;  // the first
  uint64_t heard_ns = 0;             // when the peer, or this daemon, last did something for it
  uint64_t begun_ns = 0;
};

struct Fragment {
  FragmentId self{};
  TransferId transfer{};
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  StagingBlock* block = nullptr;  // null: straight from or to memory that the NIC reaches
  uint64_t begun_ns = 0;
};

// The name of a Want, for people to read; null: kNothing.
const char* NameOfWant(Want want);

// How the transfer's device memory here and the network meet, for people to read; empty: it lies in
// no device memory.
std::string WayOf(const Transfer& transfer);

// Note where the message lies: in a region of its rank, at that offset, or in the private memory of
// the rank's process. kUnsupported; kPermissionDenied: no process of the daemon reaches that
// memory.
ErrorCode LieIn(ServedRegion* region, uint64_t offset, Transfer* transfer);
void UseRegion(ServedRegion* region, Transfer* transfer);
ErrorCode LieInPrivate(uint64_t address, Transfer* transfer);
// Returns the range of the next fragment, of at most `longest_bytes`. The first fragment is short
// if it goes through a staging block, so that the next step starts early.
engine::Block NextRange(const Transfer& transfer, uint64_t longest_bytes);
// The RMA read or write of a fragment, without the peer's address.
transport::RmaRequest RmaOf(const Transfer& transfer, const Fragment& fragment);
// Submits the copy of a fragment between the rank's memory and `local`, in a staging block.
void SubmitCopy(CopyTask::Direction direction, const Transfer& transfer, Fragment* fragment,
                std::byte* local);

// Record an event that has just ended, while the job is traced: a NIC's part of a fragment, a copy,
// or a whole transfer.
void TracePiece(const Transfer& transfer, const Fragment& fragment, TraceKind kind,
                ErrorCode error);
void TraceCopy(const Transfer& transfer, const Fragment& fragment, TraceKind kind,
               const CopyTask& task);
void TraceWhole(const Transfer& transfer, TraceKind kind, ErrorCode error);

}  // namespace ferry::progress
