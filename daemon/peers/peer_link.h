// The state of one link. Private to PeerLinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/peers/link_timing.h"
#include "daemon/peers/node_links.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

struct PeerLink {
  std::string address;
  std::string host;                           // of the address
  std::map<uid_t, uint32_t> wanted;           // by how many jobs of which user
  std::shared_ptr<control::Peer::Stub> stub;  // null between greetings, if none was answered
  uint64_t tls_generation = 0;                // of the certificates that the stub uses
  bool up = false;
  bool is_dormant = false;         // only named so far: not greeted
  uint64_t known = 0;              // incarnation of the daemon that jobs have known there; 0: none
  bool asking = false;             // a Hello or heartbeat is under way
  bool in_line = false;            // waits to be greeted: it has never answered
  std::optional<uid_t> turn;       // whose turn the greeting under way takes
  uint64_t stranger_since_ns = 0;  // when it was first greeted
  uint64_t next_greeting_ns = 0;   // not before, while it has never answered
  bool greet_again = false;        // once it is answered: the peer knows us since
  uint32_t early_greetings = 0;
  std::string token_hash;                      // of the peer's token for us, from its answer
  std::vector<std::function<void()>> when_up;  // questions for which a dormant link was opened
  std::vector<std::function<void(bool refused)>> probes;  // that wait for the one under way
  uint64_t life = 0;
  NodeContact contact;  // the daemon that answers there, once one has
  uint64_t last_heard_ns = 0;
  uint64_t asked_ns = 0;             // when the last heartbeat was sent
  uint64_t spared_ns = 0;            // when the last one of the peer came
  uint64_t answer_ms = 0;            // how long answers to heartbeats take lately
  uint64_t unanswered_since_ns = 0;  // when the first heartbeat without answer was sent; 0: none
  std::string trouble;               // why the last question had no answer

  // Returns true if a caller that shows that token is the daemon that answers at the link's
  // address.
  bool IsFrom(uint64_t incarnation, const std::string& token) const;
  // Takes over what the daemon there has said of itself. `number`: NodeContact::link.
  void Learn(const control::HelloReply& reply, uint64_t number);
  // The daemon there has answered just now; NoteBeatAnswer: the last heartbeat.
  void NoteAnswer();
  void NoteBeatAnswer();
  // A heartbeat has come in the peer's name. With its token, on this life of the link, it shows as
  // much as an answer: the peer lives, and counts on the link.
  void NoteBeatOfPeer(const control::HeartbeatRequest& request, const std::string& token);
  // Returns true if a heartbeat is to be sent at this tick. `links`: so many are open.
  bool IsBeatDue(const LinkTiming& timing, size_t links, uint64_t now_ns) const;
  // Describes the link. A peer whose heartbeat has gone unanswered for longer is silent.
  control::PeerStatus Report(uint64_t silent_after_ns) const;
};

}  // namespace ferry::daemon
