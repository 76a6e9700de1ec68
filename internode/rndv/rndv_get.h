// The receiving side of large messages from other nodes: fetches them where the rank wants them.
//
// From a heap, a fragment is an RMA read of a part of the source; from private or device memory, of
// a block that the sender's daemon staged and announced (rndv_staged.h). Into a heap, the read goes
// straight to its place, once that is registered; so it does into private memory that the home
// reaches. Into other private memory, it goes to a staging block and a copy worker writes it out;
// into device memory that only streams reach, to a staging block from which a stream takes it.
// PipelineRules say how long each fragment from a heap to device memory is. A parked message
// (delivery.h) is copied from the daemon's memory.
//
// Every rendezvous get ends in one kRndvGetDone for the receiving rank and one WireResult for the
// sender's daemon, when nothing of it is under way any more. After an error the contents of the
// destination are undefined; a NIC that has been given up on may still write there until the region
// is removed.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "internode/delivery/outbound.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/transfers.h"
#include "shm/layout/transfer_layout.h"

namespace ferry::progress {

// What a rendezvous get is for if not for a receive: a long operation of one_sided.h.
struct OneSidedEnd {
  bool is_get = false;
  uint16_t answer = 0;    // a get: of the rank here, as AwaitedAnswer
  uint32_t ring_get = 0;  // not 0: a get of its rings, as RingTransfer::request
  // A put: the rank's word that is changed then.
  uint8_t signal = 0;  // shm::SignalUpdate
  uint32_t signal_region = 0;
  uint64_t signal_offset = 0;
  uint64_t signal_value = 0;
};

struct RndvGet : Transfer {
  static constexpr bool kReceiving = true;
  static constexpr TraceKind kTraceKind = TraceKind::kRndvGet;

  std::optional<OneSidedEnd> one_sided;
  CountedUse use;  // of NodeUse::puts_fetched

  Incoming::Kind kind = Incoming::Kind::kHeap;
  ParkedBytes parked;           // kParked: the message
  IncomingId arriving{};        // kArriving: the note of it, until all of it is there
  uint64_t remote_address = 0;  // kHeap
  uint64_t key = 0;
  std::vector<WireBlock> announced;  // kPrivate: to be read, in order
  uint32_t reading = 0;              // fragments that are being read
  uint32_t announcing = 0;           // the most that were, or were to be, at a time
  bool is_kept = false;              // `mapped` is private, and stays registered (private_memory.h)
  bool is_direct = false;            // `mapped` is the NIC's name of device memory
  bool asked = false;  // its memory is registered, if it needs that; kPrivate: so was kRndvGet
};

struct RndvGetFragment : Fragment {
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t remote_block = 0;  // kPrivate
  bool owes_block = false;    // it is to be given back
};

class RndvGets : public Transfers<RndvGets, RndvGet, RndvGetFragment> {
 public:
  // All outlive this.
  RndvGets(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
           Registrations& registrations, const PrivateMemory& private_memory,
           const PipelineRules& rules, uint64_t timeout_ns);

  // Begins what a rank's kRndvGet asks for. An error text when no correct rank writes such a
  // command.
  std::optional<std::string> Start(ServedRank& rank, const shm::RndvGetCommand& command,
                                   uint64_t now_ns);
  // The same for what a daemon has announced to another, into memory of `rank`. `on_one_sided_end`
  // hears of its end, before the sender's daemon.
  void StartOneSided(ServedRank& rank, uint32_t source, Incoming::Kind kind, const WireRts& rts,
                     const shm::Location& destination, uint64_t size_bytes, const OneSidedEnd& end,
                     uint64_t now_ns);
  // Returns how the operation has ended.
  std::function<ErrorCode(const RndvGet& rndv_get, ServedRank& rank)> on_one_sided_end;
  // Where the data of a pushed message may go, fragment `fragment` of the rendezvous get that waits
  // for it. False: none does, or not for memory of this process.
  struct Place {
    std::byte* to = nullptr;
    uint64_t bytes = 0;
    FragmentId fragment{};
  };
  bool TakePlace(ServedRank& rank, IncomingId id, uint64_t now_ns, Place* place);
  // It is there, or will not be.
  void OnPlaced(FragmentId id, ErrorCode code, uint64_t now_ns);
  // The same for a message that is held by the rank's delivery: it is parked now, or forgotten.
  void OnArrived(ServedRank& rank, IncomingId id, ErrorCode code, uint64_t now_ns);
  // The sender's daemon staged a block, for a rendezvous get of `rank` from `source`.
  void OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block, uint64_t now_ns);
  void OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on where a slot, a staging block or registered memory was wanting.
  void Advance(uint64_t now_ns);
  // Ends the rendezvous gets whose source has been silent for too long.
  void CheckDeadlines(uint64_t now_ns);
  // Fails those that need that rank.
  void FailWith(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns);
  void FailBetween(const ServedRank* rank, uint32_t source, ErrorCode error, uint64_t now_ns);

  // The job is about to go.
  void Drop(Job& job);

  uint32_t reads() const { return slots_.under_way(); }

 private:
  friend class Transfers<RndvGets, RndvGet, RndvGetFragment>;

  static bool MayBegin(const RndvGet& rndv_get);
  static SlotFlow& FlowOf(const RndvGet& rndv_get);
  ErrorCode BeginFragment(TransferId id, RndvGet& rndv_get, uint64_t now_ns);
  void OnEnd(const RndvGet& rndv_get, ServedRank* rank, uint64_t now_ns);
  static const char* NameOfWant(const RndvGet& rndv_get);

  void Begin(TransferId id, RndvGet& rndv_get, ErrorCode error, uint64_t now_ns);
  ErrorCode FindDestination(shm::Location where, RndvGet* rndv_get) const;
  static ErrorCode FindSource(const shm::TransferLayout& transfer, RndvGet* rndv_get);
  ErrorCode HoldRegion(RndvGet& rndv_get, uint64_t now_ns);
  ErrorCode LieStaged(ServedRegion* region, uint64_t offset, RndvGet* rndv_get) const;
  ErrorCode Ask(TransferId id, RndvGet& rndv_get, uint64_t now_ns);
  ErrorCode BeginParked(TransferId id, RndvGet& rndv_get, uint64_t now_ns);
  static uint32_t LongestBlock(const RndvGet& rndv_get);
  static bool HasNextFragment(const RndvGet& rndv_get);
  static void PlanFragment(const RndvGet& rndv_get, RndvGetFragment* fragment);
  void GiveBack(const RndvGet& rndv_get, RndvGetFragment* fragment, uint64_t now_ns);
  void EndFragment(RndvGetFragment& fragment, ErrorCode error, uint64_t now_ns);

  transport::Transport& transport_;
  Outbound& outbound_;
  StagingDepot& depot_;
  Registrations& registrations_;
  const PrivateMemory& private_memory_;
  const PipelineRules rules_;
  const uint64_t timeout_ns_;
  uint64_t seen_changes_ = 0;  // of the registrations
};

}  // namespace ferry::progress
