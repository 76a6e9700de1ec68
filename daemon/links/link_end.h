// One end of a direct link, as the daemon of its rank knows it: plain data of a job's LinkBook.
//
// Calling thread: the control thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/session/session.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

inline constexpr uint32_t kAnyRank = UINT32_MAX;

enum class LinkState {
  kNone,     // there is none: never was, has ended, or was refused
  kAsked,    // the leader has been asked
  kOpening,  // the rank here makes its end
  kWaiting,  // for the other end
  kUsing,    // the rank here connects
  kUp,
  kEnding,  // the rank here lets go of it
  kBroken,
};
// "up", for people.
const char* LinkStateText(LinkState state);

// A rank here that has asked asks no more until it is told kUse or kRefuse.
enum class LinkWish {
  kNone,      // it has none, or has been answered
  kWaiting,   // for what becomes of the link that is being made
  kDeferred,  // until the link has been returned, or is over
  kTold,      // for the answer of the leader, which has been asked
};

struct LinkEnd {
  using Key = std::array<uint64_t, 2>;

  uint32_t rank = 0;  // here
  uint32_t peer = 0;
  LinkState state = LinkState::kNone;
  uint64_t link = 0;  // the last one's number
  uint64_t since_ns = 0;
  QuotaHold quota;
  bool counted = false;    // against the limits of its rank and of the job
  uint64_t traffic = 0;    // when that was looked at last,
  uint64_t active_ns = 0;  // and when it had changed, or something was under way
  Key receive_key{};       // in packets to the rank here
  std::string peer_address;
  Key send_key{};
  // Use and return.
  uint32_t round = 0;  // of the use that the leader has allowed last
  bool is_returned = false;
  bool is_peer_returned = false;    // the leader alone
  bool is_returning = false;        // taken back, so not to be used again
  LinkWish wish = LinkWish::kNone;  // of the rank here,
  bool is_peer_wanting = false;     // and of the peer (the leader alone)
  // The leader wants another link, but the rank here has not let go of this one yet.
  std::optional<control::LinkNews> next;
  // A break.
  bool is_end_ordered = false;
  bool is_parting = false;
  bool is_parted = false;
  bool is_peer_parted = false;
  uint64_t parted_link = 0;  // the last one of which the peer has said that it is parted
  uint64_t joined_link = 0;  // the last one after which the two were parted, and joined again

  uint32_t asked = 0;  // so often the rank here has asked
  std::string why;     // why the last one was refused, or has ended; may be empty

  // True if the daemon of this end leads (link_book.h).
  bool Leads() const { return rank < peer; }
};

}  // namespace ferry::daemon
