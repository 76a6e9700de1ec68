// A rank's notes on one peer that it sends to: the RTRs it holds, and its last messages.
//
// Pure: a copy of what lies in shared memory (shm::RtrBook); the caller stores what has changed.
// Calling thread: the holder of the rank's lease.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/rendezvous/rtr.h"

namespace ferry::engine {

class SenderSide {
 public:
  static constexpr uint32_t kRtrs = shm::kHeldRtrs;
  static constexpr uint32_t kHistory = shm::kEnvelopeHistory;

  SenderSide() = default;
  explicit SenderSide(const shm::RtrBook& book);

  // An RTR of the peer has come. False: it was dropped. Takes the place of one for the same
  // messages, which can only be outlived; or, without room, of the oldest.
  bool Keep(const Rtr& rtr);
  // A message takes its place in the order of messages to the peer. Returns the RTR to use, if
  // it is `large` and there is one for it. Otherwise drops the one that could be for it: it matches
  // its receive.
  std::optional<Rtr> Send(uint32_t context, int32_t tag, bool large);
  // The peer takes an RTR back; it may be used or dropped already.
  void Withdraw(uint32_t receive, uint32_t generation);

  uint64_t sent() const { return sent_; }
  const shm::SentEnvelope& envelope(uint64_t message) const { return history_[message % kHistory]; }
  uint32_t held() const { return held_; }
  const Rtr& rtr(uint32_t i) const { return rtrs_[i]; }  // i < held(), oldest first

 private:
  void Drop(uint32_t i);

  uint64_t sent_ = 0;
  std::array<shm::SentEnvelope, kHistory> history_{};  // of message n at n % kHistory
  std::array<Rtr, kRtrs> rtrs_{};                      // the first held_, oldest first
  uint32_t held_ = 0;
};

}  // namespace ferry::engine
