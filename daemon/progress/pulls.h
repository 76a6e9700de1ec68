// The receiving side of large messages from other nodes: fetches them where the rank wants them.
//
// A pull moves pieces. From a heap, a piece is an RMA read of a part of the source; from private or
// device memory, of a block that the sender's daemon staged and announced (feeds.h). Into a heap,
// the read goes straight to its place, once that is registered; into private memory, it goes to a
// staging block and a copy worker writes it out; into device memory that only streams reach, to a
// staging block from which a stream takes it. A few pieces are under way at a time, so that the
// stages overlap: from a heap to private memory the first is a quarter as long as the others, to
// device memory PipelineRules say how long each is. A parked message (delivery.h) is copied from
// the daemon's memory.
//
// Every pull ends in one kPullDone for the receiving rank and one WireResult for the sender's
// daemon, when nothing of it is under way any more. After an error the contents of the destination
// are undefined; a NIC that has been given up on may still write there until the region is removed.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/slot_map.h"
#include "daemon/registration/registrations.h"
#include "daemon/staging/copier.h"
#include "daemon/staging/staging_depot.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "shm/layout/transfer_layout.h"

namespace ferry::daemon {

enum class PullId : uint64_t {};
enum class PieceId : uint64_t {};

class Pulls {
 public:
  // All outlive this.
  Pulls(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
        Registrations& registrations, const PipelineRules& rules, uint64_t timeout_ns);

  // Begins what a rank's kPull asks for. An error text when no correct rank writes such a command.
  std::optional<std::string> Start(ServedRank& rank, const shm::PullCommand& command,
                                   uint64_t now_ns);
  // The sender's daemon staged a block, for a pull of `rank` from `source`.
  void OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block, uint64_t now_ns);
  void OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on where a slot, a staging block or registered memory was wanting.
  void Advance(uint64_t now_ns);
  // Ends the pulls whose source has been silent for too long.
  void CheckDeadlines(uint64_t now_ns);
  // Fails those that match; each ends once nothing of it is under way.
  void FailOf(const ServedRank* rank, ErrorCode error, uint64_t now_ns);
  void FailFrom(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns);
  void FailInto(const ServedRegion* region, ErrorCode error, uint64_t now_ns);

  // Reports the pulls of `rank`, for people who look.
  void Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports);

  // Writes into the trace what has not ended yet.
  void TraceUnfinished();

  bool empty() const { return pulls_.empty(); }
  uint32_t reads() const { return reads_; }  // under way
  // Whether Advance could do something without anybody's help.
  bool runnable() const { return !wants_slot_.empty(); }

 private:
  enum class Want { kNothing, kSlot, kBlock };

  struct Pull {
    ServedRank* rank = nullptr;
    uint32_t request = 0;
    uint32_t generation = 0;
    uint32_t source = 0;  // rank
    uint32_t send_request = 0;
    uint32_t send_generation = 0;
    Incoming::Kind kind = Incoming::Kind::kHeap;
    std::vector<std::byte> parked;  // kParked: the message
    uint64_t size_bytes = 0;
    // Where to: in `region`, `mapped`, or, for streams, at `address` of it, which is `device` where
    // this process has imported it; or at `address` in the rank's process.
    std::byte* mapped = nullptr;
    std::byte* device = nullptr;
    ServedRegion* region = nullptr;
    uint32_t device_region = 0;  // its number, if streams are to reach it
    Claim claim;                 // on its part
    uint64_t address = 0;
    Stage* stage = nullptr;                 // of the job; null where it is `mapped`
    std::optional<engine::BlockPlan> plan;  // kHeap, into device memory
    // Where from (kHeap).
    uint64_t remote_address = 0;
    uint64_t key = 0;
    // How far.
    std::vector<WireBlock> announced;  // kPrivate: to be read, in order
    uint64_t begun_bytes = 0;
    uint64_t done_bytes = 0;
    uint32_t under_way = 0;   // pieces
    uint32_t reading = 0;     // of these, being read
    uint32_t announcing = 0;  // the most that were, or were to be, at a time
    bool asked = false;       // its memory is registered, if it needs that; kPrivate: so was kPull
    bool queued = false;      // wants a slot, a block or its memory
    bool has_turn = false;    // its rank's turn has come: it need not wait behind the others
    ErrorCode error = ErrorCode::kOk;
    uint64_t heard_ns = 0;  // when the source, or we, last did something
    uint64_t begun_ns = 0;
  };
  struct Piece {
    PieceId self{};
    PullId pull{};
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    uint64_t remote_address = 0;
    uint64_t key = 0;
    uint64_t remote_block = 0;      // kPrivate
    bool owes_block = false;        // it is to be given back
    StagingBlock* block = nullptr;  // into private memory
    std::byte* cell = nullptr;      // kParked, into private memory
    uint64_t begun_ns = 0;
  };

  ErrorCode FindDestination(const shm::TransferLayout& transfer, Pull* pull);
  ErrorCode FindSource(const shm::TransferLayout& transfer, Pull* pull);
  bool Ask(PullId id, Pull& pull, uint64_t now_ns);
  Want BeginParked(PullId id, Pull& pull);
  uint32_t LongestBlock(const Pull& pull) const;
  bool HasNextPiece(const Pull& pull) const;
  Piece NextPiece(const Pull& pull) const;
  Want BeginPiece(PullId id, Pull& pull, uint64_t now_ns);
  void Step(PullId id, Pull& pull, uint64_t now_ns);
  void Resume(std::deque<uint64_t>& queue, uint64_t now_ns);
  void ResumeAll(std::deque<uint64_t>& queue, uint64_t now_ns);
  void Advance(StagingPool& pool, uint64_t now_ns);
  static bool MayBegin(const Pull& pull);
  static StagingBlock* TakeBlock(Pull& pull);
  void WriteOut(Piece& piece, Pull& pull, uint64_t now_ns);
  static void SubmitCopy(Piece& piece, const Pull& pull, std::byte* local);
  void EndPiece(Piece& piece, ErrorCode error, uint64_t now_ns);
  void Fail(PullId id, Pull& pull, ErrorCode error, uint64_t now_ns);
  void EndIfDone(PullId id, Pull& pull, uint64_t now_ns);
  void End(PullId id, Pull& pull, uint64_t now_ns);
  static TraceRecord RecordOf(const Pull& pull, TraceKind kind, uint64_t begin_ns);
  static void Trace(const Pull& pull, const Piece& piece, TraceRecord record, ErrorCode error);
  template <typename Predicate>
  void FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches);

  transport::Transport& transport_;
  Outbound& outbound_;
  StagingDepot& depot_;
  Registrations& registrations_;
  const PipelineRules rules_;
  const uint64_t timeout_ns_;
  uint32_t reads_ = 0;  // under way
  SlotMap<PullId, Pull> pulls_;
  SlotMap<PieceId, Piece> pieces_;
  // Ids of pulls. Those that want a block are among the waiters of their job's staging memory.
  std::deque<uint64_t> wants_slot_;
  std::deque<uint64_t> wants_memory_;
  uint64_t seen_changes_ = 0;  // of the registrations
};

}  // namespace ferry::daemon
