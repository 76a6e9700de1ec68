// The front door of a gRPC server: accepts its connections in its place. gRPC's own listener does
// not know who connects, and never accepts again once the process was out of descriptors.
//
// Thread: AddTo belongs to the thread that builds the server; the rest to the control thread, or to
// any before that starts. Nothing blocks.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/control/byte_sieve.h"
#include "daemon/control/connection_acceptor.h"

namespace ferry::daemon {

// Refuses gRPC clients in words: answers each call that a connection makes with one status, as a
// gRPC server would, without being one. It takes a few bytes and one descriptor, so that it works
// where there is nothing left to serve with. A few connections are kept for a moment, until their
// first call has come and was answered; more than that, and the oldest is closed.
//
// Thread: the control thread; nothing blocks. Insecure connections only.
class GrpcRefusals {
 public:
  explicit GrpcRefusals(boost::asio::io_context& context);
  ~GrpcRefusals();

  // `socket` is nonblocking.
  void Refuse(UniqueFd socket, const Status& why);
  // Closes the oldest one, if there is one.
  void DropOldest();
  void DropAll();

 private:
  class Connection;

  boost::asio::io_context& context_;
  std::list<std::shared_ptr<Connection>> connections_;
};

// That may be open at a time; a client that has more waits with them. Each takes memory, and many
// of them a thread, for as long as it lasts.
inline constexpr int kCallsOfConnection = 128;

class GrpcAcceptor {
 public:
  // `socket` names it in messages.
  GrpcAcceptor(boost::asio::io_context& context, std::string socket,
               const ConnectionLimits& limits);

  // Before the server is built. With credentials that are not insecure nobody is refused in words:
  // a caller that has not shown a certificate is told nothing. A connection that has not greeted
  // within `greeting_timeout_ms` ends.
  void AddTo(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials,
             bool insecure, uint64_t greeting_timeout_ms);
  // Before Start, where strangers speak to gRPC: not with TLS, which lets only daemons speak.
  void Sift() { sieve_.emplace(); }
  // Once the server is built; before that gRPC would lose the connections.
  void Start(UniqueFd listener) { acceptor_.Start(std::move(listener)); }
  // Before the server is shut down.
  void Stop();

 private:
  void Take(UniqueFd fd, const Caller& caller);
  void Refuse(UniqueFd fd, const Caller& caller, const Status& why);

  const std::string socket_;
  RateLimiter log_limiter_{10, 1'000'000'000};
  GrpcRefusals refusals_;
  bool insecure_ = true;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::optional<ByteSieve> sieve_;
  ConnectionAcceptor acceptor_;
};

}  // namespace ferry::daemon
