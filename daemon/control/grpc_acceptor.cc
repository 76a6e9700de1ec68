#include "daemon/control/grpc_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "common/log.h"

namespace ferry::daemon {

GrpcAcceptor::GrpcAcceptor(boost::asio::io_context& context, std::string socket,
                           const ConnectionLimits& limits)
    : socket_(std::move(socket)),
      refusals_(context),
      acceptor_(context, socket_, limits,
                {.take = [this](UniqueFd fd, const Caller& caller) { Take(std::move(fd), caller); },
                 .refuse = [this](UniqueFd fd, const Caller& caller,
                                  const Status& why) { Refuse(std::move(fd), caller, why); },
                 .make_room = [this] { refusals_.DropOldest(); }}) {}

void GrpcAcceptor::AddTo(grpc::ServerBuilder& builder,
                         std::shared_ptr<grpc::ServerCredentials> credentials, bool insecure,
                         uint64_t greeting_timeout_ms) {
  insecure_ = insecure;
  server_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(std::min<uint64_t>(greeting_timeout_ms, INT_MAX)));
}

void GrpcAcceptor::Stop() {
  acceptor_.Stop();
  refusals_.DropAll();
}

void GrpcAcceptor::Refuse(UniqueFd fd, const Caller& caller, const Status& why) {
  LogLimited(log_limiter_, spdlog::level::warn, "{}: {} pid {} is refused: {}", socket_,
             caller.name, caller.pid, why.message());
  if (insecure_) {
    refusals_.Refuse(std::move(fd), why);
  }
}

void GrpcAcceptor::Take(UniqueFd fd, const Caller& caller) {
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails for a Unix socket
  if (sieve_.has_value()) {
    StatusOr<UniqueFd> bytes = sieve_->Pass(std::move(fd), EarlyCalls(kCallsOfConnection));
    if (!bytes.ok()) {
      acceptor_.Forget(fd.get());
      return Refuse(std::move(fd), caller, ConnectionAcceptor::OutOfDescriptors());
    }
    fd = std::move(*bytes);
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd.Release();
  server_->HandleNewConnection(&connection);
}

}  // namespace ferry::daemon
