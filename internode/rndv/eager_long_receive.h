// Landings: the data that arrives with RTSs or right behind them, on transports that ask where an
// attachment goes (Capabilities::lands_in_place).
//
// Data that an RTS carries goes straight into cells of the rank's lane, if some are free.
//
// When the head of a pushed message (eager_long_send.h) has come, it is delivered as an RTS whose
// data is arriving (Incoming::Kind::kArriving), and the rank may match it at once. If it has, its
// rendezvous get takes the data straight from the socket. Else the data goes into memory of the
// core, where the message is parked; a rendezvous get that comes meanwhile waits for all of it.
//
// Calling thread: the progress thread, within a poll. Does not block; allocates memory for parked
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/error_code.h"
#include "common/slot_map.h"
#include "internode/delivery/directory.h"
#include "internode/rndv/rndv_get.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class Landings {
 public:
  // Both references outlive this.
  Landings(RndvGets& rndv_gets, transport::Transport& transport)
      : rndv_gets_(rndv_gets), transport_(transport) {}

  // Returns the place for the data of a pushed message from `link` that was delivered to `rank`
  // under that id, once the rank has had the chance to match it. Sets *over_quota if there is none,
  // since the rank has more parked messages than it may.
  transport::Landing Begin(Link& link, ServedRank& rank, IncomingId id, uint64_t now_ns,
                           bool* over_quota);
  // Returns the place for the data that an RTS carries.
  transport::Landing BeginCarried(Link& link, ServedRank& rank, const shm::Descriptor& rts);
  // Called when an RTS that carries its data has been delivered, or cannot be.
  std::function<void(ServedRank& rank, uint32_t source, Delivery::Result result)> on_carried;
  // Returns the place for the data of a message that no rank takes: the transport drops it.
  static transport::Landing Nowhere();
  void OnLanded(uint64_t context, ErrorCode code, uint64_t now_ns);
  // Ends the landings of a link, once the transport uses none of their memory any more (FailPeer).
  void EndOf(const Link& link, ErrorCode error, uint64_t now_ns);
  // Ends the landings of a rank: nothing lands in its memory any more, however slowly its peers go
  // on.
  void FailOf(const ServedRank& rank, ErrorCode error, uint64_t now_ns);

  bool empty() const { return landings_.empty(); }
  bool IsIdleWith(const Link& link);

 private:
  enum class LandingId : uint64_t {};
  struct One {
    const Link* link = nullptr;
    ServedRank* rank = nullptr;  // counts it in `operations`
    enum class Where { kRndvGet, kParked, kCells, kHeld };
    Where where = Where::kRndvGet;
    FragmentId fragment{};          // kRndvGet: of one
    IncomingId parked{};            // kParked
    shm::Descriptor rts{};          // kCells, kHeld
    uint32_t cell = shm::kNoCell;   // kCells: the first
    std::vector<std::byte> held{};  // kHeld
  };
  transport::Landing Add(One one, std::byte* to, uint64_t bytes);
  void End(LandingId id, ErrorCode code, uint64_t now_ns);

  RndvGets& rndv_gets_;
  transport::Transport& transport_;
  SlotMap<LandingId, One> landings_;
};

}  // namespace ferry::progress
