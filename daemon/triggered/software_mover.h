// Moves the messages of a matched pair by packets and writes of this daemon.
//
// A send moves when its doorbell has started it, unless it is ready the receiver is clear to send,
// and the messages that it follows have come. A short message goes as a packet with its data, a
// long one is written into the receiver's window by RMA and then announced. A receive's end tells
// the sender of each start, and counts the messages that have come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/triggered/pair.h"
#include "internode/delivery/outbound.h"
#include "internode/registration/pinned_memory.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "internode/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// The parts of a daemon by which its pairs exchange packets and data with other daemons. All that
// it refers to outlives it.
struct PairNetwork {
  transport::Transport& transport;
  progress::Outbound& outbound;
  progress::Registrar& registrar;
  progress::Registrations& registrations;
  const uint64_t timeout_ns;  // of a message, from the moment that it may move
  uint64_t now_ns = 0;
  uint64_t transfer_bytes = 0;  // of long messages on their way, from or to this node

  template <typename Body>
  void Post(const Pair& pair, progress::PacketKind kind, const Body& body) {
    outbound.Post(*pair.rank->job, kind, pair.plan.name.rank, pair.plan.peer, body, now_ns);
  }
};

class SoftwareMover final : public PairMover {
 public:
  // `is_agreed`: the sender of this receive already knows that no NIC moves the messages.
  SoftwareMover(Pair& pair, PairKeeper& keeper, PairNetwork& network, bool is_agreed = false);

  // ---- Packets of the other daemon: about a send,
  void OnWindow(const progress::WirePairWindow& window);
  void OnClear();
  // and of a receive: a message has come, with its data, or it is in the window already.
  void OnMessage(const progress::WirePair& message, bool is_in_window,
                 std::span<const std::byte> data);

  bool is_nic() const override { return false; }
  uint32_t Advance(uint64_t now_ns) override;
  bool IsDue() const override;
  void OnEnd(uint64_t context, ErrorCode code) override;
  bool may_lag() const override { return !pair_->is_send(); }
  void OnFailed() override;
  void Leave() override { pair_ = nullptr; }
  bool TryEnd() override { return !is_writing(); }

 private:
  bool is_writing() const { return write_.rank != nullptr; }
  bool must_tell_place() const { return !pair_->is_send() && !is_told_ && pair_->seen != 0; }
  bool TakeStarts();
  bool TellPlace();
  void MoveIfClear();
  bool Move();
  ErrorCode SendData();
  ErrorCode WriteWindow();
  void Complete(ErrorCode error);
  void NoteTransfer();

  Pair* pair_;  // null: it has left
  PairKeeper& keeper_;
  PairNetwork& network_;
  bool in_transfer_ = false;  // a long message is on its way

  // Of a receive.
  progress::PinnedMemory window_;  // for the other NIC to write
  bool is_told_;                   // the sender knows where its messages go

  // Of a send.
  uint64_t clear_ = 0;  // starts of the receive, and what it has cells for
  bool is_moving_ = false;
  progress::WirePairWindow to_{};
  bool is_to_known_ = false;
  progress::Claim claim_;  // on the message
  // The NIC is at it.
  struct Write {
    progress::ServedRank* rank = nullptr;
    progress::ServedRegion* region = nullptr;
  };
  Write write_;
};

}  // namespace ferry::daemon
