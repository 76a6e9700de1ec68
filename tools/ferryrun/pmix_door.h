// The place at which ranks of this machine find a PMIx server that is started only when one of them
// knocks: a port of the loopback address. A server costs threads and tens of milliseconds, and
// ranks of Ferry need none.
//
// The first connection starts the server; from then on each connection is passed on to the server's
// own port, byte by byte. Connections of other users are closed: the kernel tells whose they are
// (/proc/net/tcp).
//
// Main thread; nothing blocks but for the start of the server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/event_set.h"

namespace ferry::tools {

class PmixDoor {
 public:
  // `start` starts the server, or returns its port if it runs. It is not called again once it has
  // failed. `events` must outlive this object.
  PmixDoor(EventSet* events, std::function<StatusOr<uint16_t>()> start);
  ~PmixDoor() { Close(); }

  // Opens the port. kSystem: there is no loopback address.
  Status Open();
  uint16_t port() const { return port_; }
  // Closes the port and all connections.
  void Close();

 private:
  struct End {
    UniqueFd fd;
    std::string unsent;  // to this end
  };
  // A connection of a rank, and the one to the server that stands for it.
  struct Relay {
    End ends[2];
  };

  void OnKnock();
  void OnEvents(Relay* relay, int end, uint32_t events);
  bool Pass(End* from, End* to);
  bool Send(End* end);
  void Watch(const Relay& relay);
  void Remove(Relay* relay);

  EventSet* const events_;
  const std::function<StatusOr<uint16_t>()> start_;
  bool failed_ = false;
  uint16_t port_ = 0;
  UniqueFd listener_;
  std::map<Relay*, std::unique_ptr<Relay>> relays_;
};

// Returns the uid that owns the other end of a connection between two processes of this machine, as
// the text of /proc/net/tcp tells it. Numbers are in the host's order. -1: it does not tell.
int64_t OwnerOfPeer(const std::string& table, uint16_t own_port, uint16_t peer_port);

}  // namespace ferry::tools
