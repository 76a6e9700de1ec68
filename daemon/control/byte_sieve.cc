#include "daemon/control/byte_sieve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr size_t kScratchBytes = 64 << 10;
constexpr int kPiecesAtOnce = 16;  // then others have their turn

ssize_t ReceiveBytes(int socket, std::byte* to, size_t size) {
  return recv(socket, to, size, MSG_DONTWAIT);
}

// The same, for a socket that may hold descriptors: -1 and EPROTO if some come next.
ssize_t ReceiveOnlyBytes(int socket, std::byte* to, size_t size) {
  iovec piece{to, size};
  msghdr message{};  // no room for descriptors: that there are some is all that is told
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const ssize_t ahead = recvmsg(socket, &message, MSG_DONTWAIT | MSG_PEEK);
  if (ahead > 0 && (message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EPROTO;
    return -1;
  }
  // Nobody else reads here: these bytes, and no more, are those that were looked at.
  return ahead <= 0 ? ahead : ReceiveBytes(socket, to, static_cast<size_t>(ahead));
}

}  // namespace

// ---- EarlyCalls ----

// Bytes that are not HTTP/2 are read as if they were: gRPC ends such a connection by itself.
bool EarlyCalls::OnClientSaid(std::span<const std::byte> bytes) {
  while (!acknowledged_ && begun_ <= most_ && !bytes.empty()) {
    if (skip_ > 0) {
      const size_t size = std::min(skip_, bytes.size());
      skip_ -= size;
      bytes = bytes.subspan(size);
      continue;
    }
    const size_t size = std::min(header_.size() - header_bytes_, bytes.size());
    std::memcpy(&header_[header_bytes_], bytes.data(), size);
    header_bytes_ += size;
    bytes = bytes.subspan(size);
    if (header_bytes_ == header_.size()) {
      OnFrame(http2::ReadFrameHeader({header_.data(), header_.size()}));
      header_bytes_ = 0;
    }
  }
  return begun_ <= most_;
}

void EarlyCalls::OnFrame(const http2::FrameHeader& header) {
  skip_ = header.payload_bytes;
  if (header.type == http2::FrameType::kHeaders) {
    ++begun_;
  } else if (header.type == http2::FrameType::kSettings && (header.flags & http2::kAck) != 0) {
    acknowledged_ = server_spoke_;
  }
}

// ---- ByteSieve ----

class ByteSieve::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(ByteSieve& sieve, UniqueFd client, UniqueFd server, std::optional<EarlyCalls> calls)
      : sieve_(sieve),
        client_(sieve.context_, client.Release()),
        server_(sieve.context_, server.Release()),
        calls_(calls) {}

  void Start() {
    Pump(to_server_);
    Pump(to_client_);
  }
  void End() {
    if (!client_.is_open()) {
      return;
    }
    Disposal::Instance().CloseSocket(UniqueFd(client_.release()));
    boost::system::error_code ignored;
    server_.close(ignored);
    --sieve_.connections_;
    sieve_.streams_.erase(shared_from_this());
  }

 private:
  struct Direction {
    Descriptor& from;
    Descriptor& to;
    ssize_t (*receive)(int socket, std::byte* to, size_t size);
    std::vector<std::byte> unsent = {};  // what `to` had no room for
    size_t sent = 0;                     // of that
  };

  void Wait(Direction& direction, Descriptor& descriptor, Descriptor::wait_type what) {
    descriptor.async_wait(
        what, [self = shared_from_this(), &direction](const boost::system::error_code& error) {
          if (!error && self->client_.is_open()) {
            self->Pump(direction);
          }
        });
  }

  void Pump(Direction& direction) {
    for (int piece = 0; client_.is_open() && piece < kPiecesAtOnce; ++piece) {
      if (!direction.unsent.empty() && !SendRest(direction)) {
        return;
      }
      if (!MoveOne(direction)) {
        return;
      }
    }
    boost::asio::post(sieve_.context_, [self = shared_from_this(), &direction] {
      if (self->client_.is_open()) {
        self->Pump(direction);
      }
    });
  }

  // False: waits, or is over.
  bool MoveOne(Direction& direction) {
    std::byte* const scratch = sieve_.scratch_.get();
    const ssize_t size = direction.receive(direction.from.native_handle(), scratch, kScratchBytes);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      Wait(direction, direction.from, Descriptor::wait_read);
      return false;
    }
    if (size == 0 && &direction == &to_server_) {
      shutdown(server_.native_handle(), SHUT_WR);  // the server may have something left to say
      return false;
    }
    if (size <= 0 || !MayPass(direction, {scratch, static_cast<size_t>(size)})) {
      End();
      return false;
    }
    direction.unsent.assign(scratch, scratch + size);
    direction.sent = 0;
    return SendRest(direction);
  }

  bool MayPass(const Direction& direction, std::span<const std::byte> bytes) {
    if (!calls_.has_value()) {
      return true;
    }
    if (&direction == &to_server_) {
      return calls_->OnClientSaid(bytes);
    }
    calls_->OnServerSpoke();
    return true;
  }

  bool SendRest(Direction& direction) {
    while (direction.sent < direction.unsent.size()) {
      const ssize_t size =
          send(direction.to.native_handle(), &direction.unsent[direction.sent],
               direction.unsent.size() - direction.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        Wait(direction, direction.to, Descriptor::wait_write);
        return false;
      }
      if (size < 0) {
        End();
        return false;
      }
      direction.sent += static_cast<size_t>(size);
    }
    std::vector<std::byte>().swap(direction.unsent);  // idle connections keep no memory
    return true;
  }

  ByteSieve& sieve_;
  Descriptor client_;
  Descriptor server_;
  std::optional<EarlyCalls> calls_;
  Direction to_server_{client_, server_, ReceiveOnlyBytes};
  Direction to_client_{server_, client_, ReceiveBytes};
};

ByteSieve::ByteSieve()
    : work_(boost::asio::make_work_guard(context_)),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)),
      thread_([this] { context_.run(); }) {
  pthread_setname_np(thread_.native_handle(), "ferry-sieve");
}

ByteSieve::~ByteSieve() {
  boost::asio::post(context_, [this] {
    while (!streams_.empty()) {
      std::shared_ptr<Stream>(*streams_.begin())->End();
    }
    context_.stop();
  });
  thread_.join();
}

StatusOr<UniqueFd> ByteSieve::Pass(UniqueFd&& client, std::optional<EarlyCalls> calls) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return StatusFromErrno(errno, "socketpair for a connection");
  }
  UniqueFd own(ends[0]);
  UniqueFd server(ends[1]);
  ++connections_;
  auto stream = std::make_shared<Stream>(*this, std::move(client), std::move(own), calls);
  boost::asio::post(context_, [this, stream = std::move(stream)] {
    streams_.insert(stream);
    stream->Start();
  });
  return server;
}

}  // namespace ferry::daemon
