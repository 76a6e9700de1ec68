// Takes packets from other daemons apart, checks them, and passes them on.
//
// A packet counts only if its job is known, its key is the one given to the node it names, and its
// source lives on that node; everything else is counted and dropped.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "internode/core/extension.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/rma/one_sided.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_put.h"
#include "internode/rndv/rndv_rtr.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/wire/wire.h"

namespace ferry::progress {

class Arrivals {
 public:
  struct Hooks {
    // Ends the operations of a rank of another node here, before the ranks here hear that it is
    // gone; if it has died, tells them.
    std::function<void(Job&, uint32_t rank, ErrorCode error)> on_ended;
    // The peer has sent its last packet from before the two parted (kParted).
    std::function<void(ServedRank&, uint32_t peer)> on_parted;
    // A node has sent a packet after a cut: so it takes packets again, too. Called before that
    // packet is handled.
    std::function<void(Job&, uint32_t node)> on_returned;
  };

  // All outlive this. `extension` may be null.
  Arrivals(Directory& directory, Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
           Rtrs& rtrs, RndvPuts& puts, OneSided& one_sided, Extension* extension, Hooks hooks)
      : directory_(directory),
        outbound_(outbound),
        rndv_gets_(rndv_gets),
        staged_sends_(staged_sends),
        rtrs_(rtrs),
        rndv_puts_(puts),
        one_sided_(one_sided),
        extension_(extension),
        hooks_(std::move(hooks)) {}

  // A failure that is final.
  struct Trouble {
    Job* job = nullptr;
    ServedRank* rank = nullptr;  // null: the whole job
    ErrorCode error = ErrorCode::kOk;
    std::string text;
    uint32_t source = 0;  // too many messages: of that rank
  };
  // Calls on_trouble(trouble) for each packet of the frame that makes some.
  template <typename Report>
  void OnFrame(std::span<const std::byte> frame, uint64_t now_ns, Report&& on_trouble) {
    while (!frame.empty()) {
      const std::optional<Packet> packet = TakePacket(&frame);
      if (!packet) {
        ++dropped_;  // and all behind it: the beginning of the next is unknown
        return;
      }
      if (const auto trouble = OnPacket(*packet, now_ns)) {
        on_trouble(*trouble);
      }
    }
  }
  // A message of which only the head has come (transport::CompletionSink::OnHead): the part of its
  // frame before it, and its own packet, whose body goes on with data. FindHead returns it only for
  // an RTS from the rank that it names, for a rank that takes it; nothing has been done yet.
  struct Head {
    std::span<const std::byte> before;
    bool is_pushed = false;
    shm::Descriptor rts;
    Link* link = nullptr;
    ServedRank* rank = nullptr;
  };
  std::optional<Head> FindHead(std::span<const std::byte> frame, uint64_t attachment_bytes);
  // Takes the head. A pushed message is delivered now, and *id is its note; of any other the data
  // have to come first.
  std::optional<Trouble> OnHead(const Head& head, IncomingId* id);
  // Returns the failure, if any, that follows from a delivery from a rank of another node.
  static std::optional<Trouble> Judge(ServedRank& rank, uint32_t source, Delivery::Result result);

  // From now on packets are dropped that only daemons send each other: the other nodes are ranks.
  void BelieveRanksOnly() { from_ranks_ = true; }
  // Delivers what arrived for the rank before it was served.
  std::optional<Trouble> DeliverEarly(ServedRank& rank);

  uint64_t dropped() const { return dropped_; }

 private:
  std::optional<Trouble> OnPacket(const Packet& packet, uint64_t now_ns);
  Job* Admit(const PacketHeader& header);
  std::optional<Trouble> Handle(Job& job, const Packet& packet, uint64_t now_ns);
  std::optional<Trouble> HandleMessage(Job& job, const Packet& packet, uint64_t now_ns);
  void HandleReceiverFirst(Job& job, const Packet& packet, uint64_t now_ns);
  void HandleOneSided(Job& job, const Packet& packet, uint64_t now_ns);
  std::optional<Trouble> HandlePut(Job& job, const Packet& packet, uint64_t now_ns);
  std::optional<Trouble> HandleCredit(Job& job, const Packet& packet);
  std::optional<Trouble> HandleMarker(Job& job, const Packet& packet);
  std::optional<Trouble> HandleRetract(Job& job, const Packet& packet);
  std::optional<Trouble> HandleEnded(Job& job, const Packet& packet);
  void HandleResult(Job& job, const Packet& packet, uint64_t now_ns);
  static void CountMessage(Job& job, const shm::Descriptor& descriptor);
  // Records a delivery. Out of line, so that a message costs only a load and a branch while no
  // trace is recorded.
  [[gnu::cold, gnu::noinline]] static void TraceDelivery(const Job& job,
                                                         const shm::Descriptor& descriptor);
  enum class Data { kCarried, kPushed };
  std::optional<Trouble> Deliver(Job& job, const shm::Descriptor& descriptor,
                                 std::span<const std::byte> data, Data is = Data::kCarried);

  Directory& directory_;
  Outbound& outbound_;
  RndvGets& rndv_gets_;
  StagedSends& staged_sends_;
  Rtrs& rtrs_;
  RndvPuts& rndv_puts_;
  OneSided& one_sided_;
  Extension* const extension_;
  const Hooks hooks_;
  bool from_ranks_ = false;
  uint64_t dropped_ = 0;
};

}  // namespace ferry::progress
