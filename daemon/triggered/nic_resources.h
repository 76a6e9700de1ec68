// The resources that one end of a matched pair holds at its NIC: pinned memory, counters, and the
// page of its trigger's counter (nic_mover.h says what they are for).
//
// The registrar pins the done word, the message of a send, and the *target*, to which the other
// end's NIC writes: a receive's window, or the word that clears a send.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/status.h"
#include "daemon/triggered/counter_page.h"
#include "daemon/triggered/deferred_nics.h"
#include "daemon/triggered/pair.h"
#include "internode/registration/pinned_memory.h"
#include "internode/registration/registrar.h"
#include "transports/api/deferred_work.h"

namespace ferry::daemon {

// The longest write: no transport cuts it (TransportOptions::fragment_bytes), so that both ends
// count alike.
inline constexpr uint64_t kNicChunkBytes = 4ULL << 20;

class NicResources {
 public:
  // `on_settled` is called once, later, unless the pair fails or leaves before: all is pinned and
  // open (kOk), or the NIC cannot.
  NicResources(Pair& pair, DeferredNic& nic, std::function<void(ErrorCode)> on_settled)
      : pair_(&pair), nic_(nic), on_settled_(std::move(on_settled)) {}
  NicResources(const NicResources&) = delete;
  NicResources& operator=(const NicResources&) = delete;

  // Begins to pin.
  void Begin();
  // Gives everything back but the done word. Later writes of others to the target fail.
  void Close();
  // The pair goes: its memory is not touched any more.
  void Leave();
  // The registrar binds the counters of a target that it pins: they stay until it has ended.
  bool is_pinning() const { return target_.is_pinning(); }
  void CancelPinning() { target_.Cancel(); }

  const progress::PinnedMemory& done_word() const { return done_word_; }
  const progress::PinnedMemory& message() const { return message_; }  // of a send
  const progress::PinnedMemory& target() const { return target_; }
  // The target's place; nothing, of a ready send.
  NicPlace TargetPlace() const;

  // A send's: reached by starts and clear-to-sends; of a ready one, once a round needs it, or from
  // the beginning where the rank may be told of its page. A receive's: by starts; it clears.
  const std::optional<transport::NicCounter>& trigger() const { return trigger_; }
  // Opens a ready send's, of its own. Errors of DeferredWork::OpenCounter.
  Status OpenTrigger() { return OpenCounter(&trigger_); }
  CounterPage& page() { return page_; }  // of the trigger
  const CounterPage& page() const { return page_; }
  // Offers the trigger's page to the rank, if it may have it.
  void OfferPage();
  // A send's chunks sent, a receive's arrived.
  transport::NicCounter moved() const { return *moved_; }
  // A receive's clear-to-sends sent.
  transport::NicCounter cleared() const { return *cleared_; }
  // Additions to the done word by the NIC, and to the triggers of followers.
  transport::NicCounter stored() const { return *stored_; }
  // A regular send's starts by a shared doorbell: opened once it is needed.
  StatusOr<transport::NicCounter> Begun();

 private:
  uint64_t bytes() const { return pair_->plan.size_bytes; }
  bool has_target() const { return !pair_->is_send() || !pair_->is_ready(); }
  void Pin(progress::PinnedMemory* memory, progress::PinRequest request);
  void PinTarget();
  void OnPinned(const progress::PinnedMemory& memory);
  ErrorCode OpenCounters();
  Status OpenCounter(std::optional<transport::NicCounter>* counter);
  void CloseTrigger();

  Pair* pair_;  // null: it has left
  DeferredNic& nic_;
  const std::function<void(ErrorCode)> on_settled_;
  progress::PinnedMemory done_word_;
  progress::PinnedMemory message_;
  progress::PinnedMemory target_;
  const std::shared_ptr<uint64_t> word_ = std::make_shared<uint64_t>();  // for what has no bytes
  std::optional<transport::NicCounter> trigger_;
  CounterPage page_;
  std::optional<transport::NicCounter> moved_;
  std::optional<transport::NicCounter> cleared_;
  std::optional<transport::NicCounter> stored_;
  std::optional<transport::NicCounter> begun_;
};

}  // namespace ferry::daemon
