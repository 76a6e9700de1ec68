#include "daemon/grpc/grpc_acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <climits>
#include <string_view>

#include "daemon/grpc/grpc_status.h"
#include "daemon/grpc/http2_frames.h"
#include "daemon/grpc/http2_guard.h"
#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMost = 16;
// So that a user's program whose calls all hang leaves his others some, however few ranks there may
// be.
constexpr uint64_t kLeastCallsOfCaller = 4 * kCallsOfConnection;
constexpr std::chrono::seconds kPatience(1);  // for the first call
constexpr size_t kMostFrameBytes = 16'384;    // that a client may send before it knows better

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) {
      text.push_back(kDigits[bits >> (count - 6) & 0x3F]);
    }
  }
  if (count > 0) {
    text.push_back(kDigits[bits << (6 - count) & 0x3F]);
  }
  return text;
}

std::string PercentEncoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
    } else {
      const auto byte = static_cast<uint8_t>(c);
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 0xF]});
    }
  }
  return encoded;
}

// The header fields of an answer that is nothing but a status.
std::string AnswerFields(const Status& why) {
  const grpc::Status status = ToGrpc(why);
  std::string block;
  http2::AppendField(":status", "200", &block);
  http2::AppendField("content-type", "application/grpc", &block);
  http2::AppendField("grpc-status", std::to_string(status.error_code()), &block);
  http2::AppendField("grpc-message", PercentEncoded(status.error_message()), &block);
  http2::AppendField("grpc-status-details-bin", Base64(status.error_details()), &block);
  return block;
}

}  // namespace

// ---- GrpcRefusals ----

class GrpcRefusals::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(GrpcRefusals& owner, UniqueFd socket, const Status& why)
      : owner_(owner),
        socket_(owner.context_, socket.Release()),
        deadline_(owner.context_, kPatience),
        fields_(AnswerFields(why)) {}
  ~Connection() { Disposal::Instance().CloseSocket(UniqueFd(socket_.release())); }

  void Start() {
    Send(http2::Frame(http2::FrameType::kSettings, 0, 0, {}));
    deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self != nullptr && !error) {
        self->End();
      }
    });
    WaitForInput();
  }

 private:
  void WaitForInput() {
    socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [weak = weak_from_this()](const boost::system::error_code& error) {
                         if (const auto self = weak.lock(); self != nullptr && !error) {
                           self->OnReadable();
                         }
                       });
  }
  void OnReadable() {
    std::array<char, 4096> bytes;
    const ssize_t size = recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      return WaitForInput();  // the call before has read what this one was told of
    }
    if (size <= 0) {
      return End();
    }
    input_.append(bytes.data(), static_cast<size_t>(size));
    if (!TakeFrames()) {
      return End();
    }
    WaitForInput();
  }
  // False if no gRPC client writes so.
  bool TakeFrames() {
    std::string_view rest = input_;
    if (!greeted_) {
      if (rest.size() < http2::kClientPreface.size()) {
        return http2::kClientPreface.starts_with(rest);
      }
      greeted_ = rest.starts_with(http2::kClientPreface);
      rest.remove_prefix(http2::kClientPreface.size());
    }
    while (greeted_ && rest.size() >= http2::kFrameHeaderBytes) {
      const http2::FrameHeader header = http2::ReadFrameHeader(rest);
      const size_t size = http2::kFrameHeaderBytes + header.payload_bytes;
      if (header.payload_bytes > kMostFrameBytes) {
        return false;
      }
      if (rest.size() < size) {
        break;
      }
      const std::string_view payload = rest.substr(http2::kFrameHeaderBytes, header.payload_bytes);
      rest.remove_prefix(size);
      if (header.type == http2::FrameType::kHeaders) {
        Send(http2::Frame(http2::FrameType::kHeaders, http2::kEndStream | http2::kEndHeaders,
                          header.stream, fields_));
      } else if (header.type == http2::FrameType::kPing && (header.flags & http2::kAck) == 0) {
        Send(http2::Frame(http2::FrameType::kPing, http2::kAck, 0, payload));
      }
    }
    input_.erase(0, input_.size() - rest.size());
    return greeted_;
  }
  // If it does not read, the hang-up must do.
  void Send(const std::string& bytes) {
    (void)send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void End() {
    owner_.connections_.remove(shared_from_this());  // its descriptor goes with it
  }

  GrpcRefusals& owner_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer deadline_;
  const std::string fields_;
  bool greeted_ = false;
  std::string input_;  // at most a frame
};

GrpcRefusals::GrpcRefusals(boost::asio::io_context& context) : context_(context) {}

GrpcRefusals::~GrpcRefusals() = default;

void GrpcRefusals::Refuse(UniqueFd socket, const Status& why) {
  if (connections_.size() >= kMost) {
    DropOldest();
  }
  connections_.push_back(std::make_shared<Connection>(*this, std::move(socket), why));
  connections_.back()->Start();
}

void GrpcRefusals::DropOldest() {
  if (!connections_.empty()) {
    connections_.pop_front();
  }
}

void GrpcRefusals::DropAll() { connections_.clear(); }

// ---- GrpcAcceptor ----

GrpcAcceptor::GrpcAcceptor(boost::asio::io_context& context, std::string socket,
                           const ConnectionLimits& limits)
    : socket_(std::move(socket)),
      limits_(limits),
      refusals_(context),
      acceptor_(context, socket_, limits,
                {.take = [this](UniqueFd fd, const Caller& caller) { Take(std::move(fd), caller); },
                 .refuse = [this](UniqueFd fd, const Caller& caller,
                                  const Status& why) { Refuse(std::move(fd), caller, why); },
                 .make_room = [this] { refusals_.DropOldest(); }}) {}

void GrpcAcceptor::AddTo(grpc::ServerBuilder& builder, uint64_t greeting_timeout_ms) {
  greeting_timeout_ = std::chrono::milliseconds(std::min<uint64_t>(greeting_timeout_ms, INT_MAX));
  server_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  // No client of ours compresses, and a few bytes would become half a MiB.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Its pings, which measure the network, and larger windows: no client is far away, and both cost
  // memory and threads where many send much.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // The sieve rations clients' pings. A client that is hung up on because of pings connects again
  // at once, which costs more than they do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(greeting_timeout_.count()));
}

void GrpcAcceptor::Sift(Tls tls) {
  tls_ = std::move(tls);
  // Those who owe a certificate take at most a part of the places that connections have.
  ByteSieve::Limits limits;
  limits.calls_of_caller = std::max(limits_.of_user, kLeastCallsOfCaller);
  limits.unproved = std::clamp<size_t>(limits_.in_all / 2, 1, limits.unproved);
  limits.unproved_of_caller = std::clamp<size_t>(limits_.of_user / 2, 1, limits.unproved_of_caller);
  sieve_.emplace(socket_, limits);
}

std::string GrpcAcceptor::CertificateOf(const std::string& peer) const {
  return sieve_.has_value() ? sieve_->CertificateOf(peer) : "";
}

StatusOr<UniqueFd> GrpcAcceptor::Dial() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return StatusFromErrno(errno, "socketpair for " + socket_);
  }
  UniqueFd own(ends[0]);
  Take(UniqueFd(ends[1]), {"ferryd itself", geteuid(), getegid(), getpid()});
  return own;
}

void GrpcAcceptor::Stop() {
  acceptor_.Stop();
  refusals_.DropAll();
}

void GrpcAcceptor::Refuse(UniqueFd fd, const Caller& caller, const Status& why) {
  LogLimited(log_limiter_, spdlog::level::warn, "{}: {} pid {} is refused: {}", socket_,
             caller.name, caller.pid, why.message());
  if (!tls_) {
    refusals_.Refuse(std::move(fd), why);
  }
}

void GrpcAcceptor::Take(UniqueFd fd, const Caller& caller) {
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails for a Unix socket
  if (!sieve_.has_value()) {
    return HandOver(std::move(fd));
  }
  const int number = fd.get();
  const Status admitted = sieve_->Admit(
      std::move(fd), {.caller = caller.name,
                      .tls = tls_ ? tls_() : nullptr,
                      .greeting_timeout = greeting_timeout_,
                      .ready = [this](UniqueFd server) { HandOver(std::move(server)); }});
  if (!admitted.ok()) {
    acceptor_.Forget(number);
    Refuse(std::move(fd), caller, ConnectionAcceptor::OutOfDescriptors());
  }
}

void GrpcAcceptor::HandOver(UniqueFd fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd.Release();
  server_->HandleNewConnection(&connection);
}

}  // namespace ferry::daemon
