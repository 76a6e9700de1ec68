// Data of RTSs on its way in, on transports that ask where an attachment goes
// (Capabilities::lands_in_place).
//
// Data that an RTS carries goes straight into cells of the rank's lane, if there are some.
//
// When the head of a pushed message (eager_long_send.h) has come, it is delivered as an RTS whose
// data is arriving (Incoming::Kind::kArriving), and the rank may match it at once. If it has, its
// rendezvous get takes the data straight from the socket. Else the data goes into memory of the
// core, where the message is parked; a rendezvous get that comes meanwhile waits for all of it.
//
// Calling thread: the progress thread, within a poll. Does not block; allocates for what is parked.
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
  // Both outlive this.
  Landings(RndvGets& rndv_gets, transport::Transport& transport)
      : rndv_gets_(rndv_gets), transport_(transport) {}

  // Where the data of a message of `link` goes that was delivered to `rank` under that id, once the
  // rank has had the chance to match it. *over_quota: nowhere, for the rank has more parked than it
  // may.
  transport::Landing Begin(Link& link, ServedRank& rank, IncomingId id, uint64_t now_ns,
                           bool* over_quota);
  // The same for an RTS whose data came along.
  transport::Landing BeginCarried(Link& link, ServedRank& rank, const shm::Descriptor& rts);
  // An RTS that came along has been delivered, or cannot be.
  std::function<void(ServedRank& rank, uint32_t source, Delivery::Result result)> on_carried;
  // Of a message that nobody takes.
  static transport::Landing Nowhere();
  void OnLanded(uint64_t context, ErrorCode code, uint64_t now_ns);
  // The transport has let go of all memory for what was to come by that link (FailPeer).
  void EndOf(const Link& link, ErrorCode error, uint64_t now_ns);
  // Nothing lands in memory of that rank any more, however slowly its peers go on.
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
