// The sending side of receiver-first rendezvous: writes messages of ranks here into receives that
// ranks on other nodes have advertised (adverts.h is the receiving side).
//
// An advert that comes is noted here, and the rank gets a hint. When the rank sends a message by it
// (kPut), the note says where to; without one (withdrawn, or pushed out by others) the message is
// offered like any other. The message is announced in its place, then written a few pieces at a
// time; kPutDone tells the receiver's daemon how it ended, kSendDone the rank.
//
// A note is given back as soon as its receiver asks: a rank that uses it afterwards finds none.
//
// Calling thread: the progress thread. Does not block; allocates for a peer's first advert only.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/slot_map.h"
#include "daemon/registration/registrations.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

enum class PutId : uint64_t {};
enum class PutPieceId : uint64_t {};

class Puts {
 public:
  // All outlive this.
  Puts(transport::Transport& transport, Outbound& outbound, Registrations& registrations)
      : transport_(transport), outbound_(outbound), registrations_(registrations) {}

  // Take the messages of the receivers' daemons.
  void OnAdvert(ServedRank& rank, const PacketHeader& header, const WireAdvert& advert);
  // `source` may be gone.
  void OnWithdraw(Job& job, uint32_t source, uint32_t receiver, const WireReceive& receive,
                  uint64_t now_ns);

  // Carries out a rank's kPut. kOk: it has begun. kNotFound: offer the message instead.
  // kWouldBlock: try again. Else the node is not reachable.
  ErrorCode Start(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  void OnWriteComplete(uint64_t context, ErrorCode code, uint64_t now_ns);

  // Goes on where a slot was wanting.
  void Advance(uint64_t now_ns);
  // Fail those that match; each ends once nothing of it is under way.
  void FailOf(const ServedRank* rank, ErrorCode error, uint64_t now_ns);
  void FailTo(const Job* job, uint32_t destination, ErrorCode error, uint64_t now_ns);
  void FailFrom(const ServedRegion* region, ErrorCode error, uint64_t now_ns);
  // Forgets that rank's adverts, which are worth nothing any more.
  void ForgetNotes(Job& job, uint32_t receiver);

  void Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports);

  // Writes into the trace what has not ended yet.
  void TraceUnfinished();

  bool empty() const { return puts_.empty(); }
  uint32_t writes() const { return writes_; }  // under way
  // Whether Advance could do something without anybody's help.
  bool runnable() const { return !wants_slot_.empty(); }

 private:
  struct Put {
    ServedRank* rank = nullptr;
    uint32_t request = 0;
    uint32_t generation = 0;
    uint32_t destination = 0;  // rank
    WireReceive receive{};
    ServedRegion* region = nullptr;
    Claim claim;  // on the source
    std::byte* source = nullptr;
    uint64_t remote_address = 0;
    uint64_t key = 0;
    uint64_t size_bytes = 0;
    uint64_t begun_bytes = 0;
    uint64_t done_bytes = 0;
    uint32_t under_way = 0;  // pieces
    bool queued = false;     // wants a slot
    bool uncertain = false;  // a piece that failed may still arrive
    ErrorCode error = ErrorCode::kOk;
    uint64_t heard_ns = 0;  // when something of it last ended
    uint64_t begun_ns = 0;
  };
  struct Piece {
    PutPieceId self{};
    PutId put{};
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    uint64_t begun_ns = 0;
  };

  static AdvertNote* FindNote(ServedRank& rank, uint32_t receiver, const WireReceive& receive);
  void Step(PutId id, Put& put, uint64_t now_ns);
  ErrorCode BeginPiece(PutId id, Put& put, uint64_t now_ns);
  void EndIfDone(PutId id, Put& put, uint64_t now_ns);
  void End(PutId id, Put& put, uint64_t now_ns);
  static void Trace(const Put& put, const Piece& piece, ErrorCode error);
  template <typename Predicate>
  void FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches);

  transport::Transport& transport_;
  Outbound& outbound_;
  Registrations& registrations_;
  uint32_t writes_ = 0;  // under way
  SlotMap<PutId, Put> puts_;
  SlotMap<PutPieceId, Piece> pieces_;
  std::deque<uint64_t> wants_slot_;  // ids of puts
};

}  // namespace ferry::daemon
