// RndvGets: the receiving side of large messages from other nodes. Fetches them to where the rank
// wants them.
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

// The long operation of one_sided.h for which a rendezvous get was begun, if not for a receive.
struct OneSidedEnd {
  bool is_get = false;
  uint16_t answer = 0;    // a get: of the rank here, as AwaitedAnswer
  uint32_t ring_get = 0;  // not 0: a get of its rings, as RingTransfer::request
  // A put: the rank's word that is changed at its end.
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
  IncomingId arriving{};        // kArriving: its number in the delivery, until it is complete
  uint64_t remote_address = 0;  // kHeap
  uint64_t key = 0;
  std::vector<WireBlock> announced;  // kPrivate: to be read, in order
  uint32_t reading = 0;              // fragments that are being read
  uint32_t announcing = 0;           // the most that were read, or were to be, at a time
  bool is_kept = false;              // `mapped` is private, and stays registered (private_memory.h)
  bool is_direct = false;            // `mapped` is the NIC's name of device memory
  bool asked = false;  // its memory is registered, if it needs that; kPrivate: kRndvGet was sent
};

struct RndvGetFragment : Fragment {
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t remote_block = 0;  // kPrivate
  bool owes_block = false;    // `remote_block` is to be given back
};

class RndvGets : public Transfers<RndvGets, RndvGet, RndvGetFragment> {
 public:
  // All references outlive this.
  RndvGets(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
           Registrations& registrations, const PrivateMemory& private_memory,
           const PipelineRules& rules, uint64_t timeout_ns);

  // Begins the rendezvous get that a rank's kRndvGet asks for. Returns an error text if no correct
  // rank writes such a command.
  std::optional<std::string> Start(ServedRank& rank, const shm::RndvGetCommand& command,
                                   uint64_t now_ns);
  // Begins a rendezvous get for a one-sided operation: fetches data that the other daemon has
  // announced into memory of `rank`. At its end `on_one_sided_end` is called, before the sender's
  // daemon hears of it.
  void StartOneSided(ServedRank& rank, uint32_t source, Incoming::Kind kind, const WireRts& rts,
                     const shm::Location& destination, uint64_t size_bytes, const OneSidedEnd& end,
                     uint64_t now_ns);
  // Called at the end of a one-sided operation's rendezvous get. Returns how the operation has
  // ended.
  std::function<ErrorCode(const RndvGet& rndv_get, ServedRank& rank)> on_one_sided_end;
  // Returns true if data of a put of that peer is being fetched into some of this memory, which the
  // home alone knows.
  bool FetchesPutInto(const Job* job, uint32_t peer, MemoryRange memory);
  // Finds the place for the data of a pushed message, as fragment `place->fragment` of the
  // rendezvous get that waits for it. False: none waits, or its destination is not memory of this
  // process.
  struct Place {
    std::byte* to = nullptr;
    uint64_t bytes = 0;
    FragmentId fragment{};
  };
  bool TakePlace(ServedRank& rank, IncomingId id, uint64_t now_ns, Place* place);
  // The data of that fragment is in its place, or will not come.
  void OnPlaced(FragmentId id, ErrorCode code, uint64_t now_ns);
  // The data of a message that the rank's delivery holds is complete, or will not come: the message
  // is parked now, or forgotten.
  void OnArrived(ServedRank& rank, IncomingId id, ErrorCode code, uint64_t now_ns);
  // The sender's daemon has staged a block for a rendezvous get of `rank` from `source`.
  void OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block, uint64_t now_ns);
  void OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns);
  void OnCopied(const CopyTask& task, uint64_t now_ns);

  // Goes on with transfers that waited for a slot, a staging block or registered memory.
  void Advance(uint64_t now_ns);
  // Ends the rendezvous gets whose source has been silent for too long.
  void CheckDeadlines(uint64_t now_ns);
  // Fail the rendezvous gets that need the rank `source`.
  void FailWith(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns);
  void FailBetween(const ServedRank* rank, uint32_t source, ErrorCode error, uint64_t now_ns);

  // Forgets a job that is about to go.
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
