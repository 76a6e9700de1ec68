// The front door of a gRPC server: accepts its connections in its place. gRPC's own listener does
// not know who connects, and never accepts again once the process was out of descriptors.
//
// Thread: AddTo belongs to the thread that builds the server; the rest to the control thread, or to
// any before that starts. Nothing blocks.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/grpc/byte_sieve.h"
#include "daemon/sockets/connection_acceptor.h"

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
  // Closes the oldest connection, if there is one.
  void DropOldest();
  void DropAll();

 private:
  class Connection;

  boost::asio::io_context& context_;
  std::list<std::shared_ptr<Connection>> connections_;
};

class GrpcAcceptor {
 public:
  // `socket` names the listening socket in messages.
  GrpcAcceptor(boost::asio::io_context& context, std::string socket,
               const ConnectionLimits& limits);

  // Adds this acceptor to the builder of the server, which has no TLS of its own. A connection that
  // has not greeted within `greeting_timeout_ms` ends.
  void AddTo(grpc::ServerBuilder& builder, uint64_t greeting_timeout_ms);
  // Passes all connections through a ByteSieve, as a socket needs that strangers reach. Call it
  // before Start. With `tls`, which is asked at each connection, clients have to show a
  // certificate, and no client is refused in words: one that has shown none is told nothing.
  using Tls = std::function<std::shared_ptr<SSL_CTX>()>;
  void Sift(Tls tls = {});
  // Returns the certificate, in PEM form, of the client of a call, which grpc::ServerContext::peer
  // names; empty without TLS. Any thread.
  std::string CertificateOf(const std::string& peer) const;
  // Begins to accept. Call it once the server is built; before that gRPC would lose the
  // connections.
  void Start(UniqueFd listener) { acceptor_.Start(std::move(listener)); }
  // As ConnectionAcceptor::Callers: who may have made a call that is under way.
  std::string Callers() { return acceptor_.Callers(); }
  // Connects ferryd itself to the server, on the way that all connections take, but counted
  // nowhere, so that strangers cannot use it up. kSystem: no descriptor is left.
  StatusOr<UniqueFd> Dial();
  // Stops accepting. Call it before the server is shut down.
  void Stop();

 private:
  void Take(UniqueFd fd, const Caller& caller);
  void HandOver(UniqueFd fd);
  void Refuse(UniqueFd fd, const Caller& caller, const Status& why);

  const std::string socket_;
  const ConnectionLimits limits_;
  RateLimiter log_limiter_{10, 1'000'000'000};
  GrpcRefusals refusals_;
  std::chrono::milliseconds greeting_timeout_{};
  Tls tls_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::optional<ByteSieve> sieve_;
  ConnectionAcceptor acceptor_;
};

}  // namespace ferry::daemon
