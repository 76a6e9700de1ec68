// The socket at which a TcpTransport listens, and its strangers: the connections that have not yet
// proved that they come from a peer.
//
// Any process that reaches the port can connect to it, so strangers cost little: there are few of
// them at a time, each has a few seconds and one Hello, and nothing is read beyond it. A further
// one takes the place of the one that has waited longest. But peers that connect at the same moment
// all get to send their Hello: while all strangers are young, further ones wait in the kernel's
// backlog.
//
// Thread: the one that owns the transport. Nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/secret.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_frame.h"

namespace ferry::transport {

class TcpAcceptor {
 public:
  static constexpr size_t kMostStrangers = 64;  // as many links as a rank may have, by default
  static constexpr uint64_t kPatienceNs = 5'000'000'000;
  // Long enough for a Hello, and so short that silent strangers in the whole backlog hold a peer up
  // for a second or so, within its patience.
  static constexpr uint64_t kYoungNs = 50'000'000;

  struct Proved {
    UniqueFd fd;
    uint64_t guest = 0;
    TcpEndpoint from;  // as its Hello says
  };

  // Listens at `local`, at the port of the options, with fresh secrets. Registers its sockets with
  // `epoll`: `tag` is the listener's, those of the strangers follow it. Errors: kAlreadyExists
  // (port), kInvalidArgument (address), kSystem.
  static StatusOr<std::unique_ptr<TcpAcceptor>> Open(const TransportOptions& options,
                                                     const TcpEndpoint& local, int epoll,
                                                     uint64_t tag);

  const TcpEndpoint& endpoint() const { return endpoint_; }
  // Returns the address for the peer with this guest number. Any thread.
  TcpAddress AddressFor(uint64_t guest) const;
  bool Owns(uint64_t tag) const { return tag - tag_ <= kMostStrangers; }

  // Reads what has come for the tag, which is ours: accepts connections, or reads the Hello of a
  // stranger. Calls `take` with those that have proved themselves.
  void OnReadable(uint64_t tag, uint64_t now_ns, const std::function<void(Proved)>& take);

  // Closes the strangers whose time is over, and listens again after a pause.
  void Advance(uint64_t now_ns);
  // Returns when Advance is due; UINT64_MAX: never.
  uint64_t NextNs() const;
  // Gives all strangers this much more time: the owner has not called for so long, which is no
  // fault of theirs.
  void Postpone(uint64_t ns);

 private:
  struct Stranger {
    UniqueFd fd;
    size_t bytes = 0;
    TcpHello hello;
    uint64_t deadline_ns = 0;
  };

  TcpAcceptor(UniqueFd listener, const TcpEndpoint& endpoint, const SecretSource& secrets,
              int epoll, uint64_t tag);
  Stranger* FindPlace(uint64_t now_ns);
  Stranger* Accept(uint64_t now_ns);
  void PauseUntil(uint64_t ns);
  bool HasFreePlace() const;
  std::optional<Proved> Read(Stranger* stranger);
  Status Watch(int fd, uint64_t tag) const;

  const UniqueFd listener_;
  const TcpEndpoint endpoint_;
  const SecretSource secrets_;
  const int epoll_;
  const uint64_t tag_;
  std::array<Stranger, kMostStrangers> strangers_;
  uint64_t resume_ns_ = 0;     // not 0: listens again then,
  bool awaits_place_ = false;  // or as soon as a place is free
};

}  // namespace ferry::transport
