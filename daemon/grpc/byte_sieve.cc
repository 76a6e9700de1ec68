#include "daemon/grpc/byte_sieve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/thread.h"
#include "daemon/sockets/disposal.h"

namespace ferry::daemon {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr size_t kScratchBytes = 16 << 10;
constexpr int kPiecesAtOnce = 4;  // then others have their turn
// Until bytes that may not pass yet are looked at again. Many connections may wait so at a time.
constexpr std::chrono::milliseconds kHold(50);

constexpr std::chrono::seconds kQuiet(2);
constexpr size_t kMuchMemory = 16 << 20;

// Returns a name that no other process can guess, and so take before ferryd does.
std::string RandomText() {
  std::array<uint64_t, 2> words{};
  (void)getrandom(words.data(), sizeof(words), 0);
  char text[33];
  snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
  return text;
}

ssize_t ReceiveBytes(int socket, std::byte* to, size_t size) {
  return recv(socket, to, size, MSG_DONTWAIT);
}

// Receives bytes from a socket that may hold descriptors: -1 and EPROTO if some come next.
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
  // No other thread reads here: these bytes, and no more, are those that were looked at.
  return ahead <= 0 ? ahead : ReceiveBytes(socket, to, static_cast<size_t>(ahead));
}

}  // namespace

// ---- ByteSieve ----

class ByteSieve::Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `theirs` is the server's end until the client has greeted; invalid if the server has it.
  Stream(ByteSieve& sieve, UniqueFd client, UniqueFd own, UniqueFd theirs,
         std::optional<Guest> guest)
      : sieve_(sieve),
        client_(sieve.context_, client.Release()),
        server_(sieve.context_, own.Release()),
        theirs_(std::move(theirs)),
        guest_(std::move(guest)) {}

  void Start() {
    if (!guest_.has_value()) {
      return Serve();
    }
    guard_.emplace(sieve_.FindCaller(guest_->caller));
    EndUnlessGreeted();
    if (guest_->tls == nullptr) {
      return Serve();
    }
    tls_ = TlsSession::Accept(*guest_->tls, client_.native_handle());
    sieve_.MakeRoomFor(guest_->caller);
    sieve_.unproved_.push_back(this);
    ShakeHands();
  }
  void End() {
    if (!client_.is_open()) {
      return;
    }
    const auto self = shared_from_this();
    tls_.reset();
    Disposal::Instance().CloseSocket(UniqueFd(client_.release()));
    boost::system::error_code ignored;
    server_.close(ignored);
    timer_.cancel();
    greeting_.cancel();
    sieve_.unproved_.remove(this);
    if (!address_.empty()) {
      const std::lock_guard lock(sieve_.mutex_);
      sieve_.certificates_.erase(address_);
    }
    if (guard_.has_value()) {
      guard_->Leave(MonotonicNs());
    }
    --sieve_.connections_;
    sieve_.streams_.erase(self);
    sieve_.GiveBackMemoryLater();
  }
  const std::string& caller() const { return guest_->caller; }

 private:
  struct Direction {
    Descriptor& from;
    Descriptor& to;
    std::vector<std::byte> unsent = {};  // what `to` had no room for
    size_t sent = 0;                     // of that
    std::vector<std::byte> held = {};    // what may not pass yet
  };

  // ---- Greeting ----

  void Refuse(const std::string& why) {
    LogLimited(sieve_.refusals_, spdlog::level::warn, "{}: hangs up on {}: {}", sieve_.socket_,
               guest_->caller, why);
    if (theirs_.valid() && tls_ == nullptr) {
      // A client that expects TLS recognises by these settings that this server speaks HTTP/2
      // without it.
      const std::string settings = http2::Frame(http2::FrameType::kSettings, 0, 0, {});
      (void)send(client_.native_handle(), settings.data(), settings.size(),
                 MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    End();
  }
  void EndUnlessGreeted() {
    greeting_.expires_after(guest_->greeting_timeout);
    greeting_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) {
        self->End();
      }
    });
  }
  void ShakeHands() {
    const StatusOr<TlsSession::Step> step =
        tls_ == nullptr ? Status(ErrorCode::kSystem, "no memory") : tls_->ShakeHands();
    if (!step.ok()) {
      return Refuse("no TLS with it: " + step.status().message());
    }
    if (*step != TlsSession::Step::kDone) {
      return client_.async_wait(
          *step == TlsSession::Step::kRead ? Descriptor::wait_read : Descriptor::wait_write,
          [self = shared_from_this()](const boost::system::error_code& error) {
            if (!error && self->client_.is_open()) {
              self->ShakeHands();
            }
          });
    }
    sieve_.unproved_.remove(this);
    if (!NameOwnEnd()) {
      return End();
    }
    Serve();
  }
  // Gives our end of the pair an address, by which the server tells whose connection it is.
  bool NameOwnEnd() {
    const std::string name = "ferry-peer-" + RandomText();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(&address.sun_path[1], sizeof(address.sun_path) - 1);
    if (bind(server_.native_handle(), reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) != 0) {
      return false;
    }
    address_ = "unix-abstract:" + name;
    const std::lock_guard lock(sieve_.mutex_);
    sieve_.certificates_[address_] = tls_->PeerCertificate();
    return true;
  }
  void Serve() {
    Pump(to_server_);
    if (client_.is_open()) {
      Pump(to_client_);
    }
  }
  void HandOver() {
    greeting_.cancel();
    guest_->ready(std::move(theirs_));
  }

  // ---- Bytes ----

  ssize_t Receive(const Direction& direction, std::byte* to, size_t size) {
    if (&direction == &to_client_) {
      return ReceiveBytes(direction.from.native_handle(), to, size);
    }
    return tls_ != nullptr ? tls_->Receive(to, size)
                           : ReceiveOnlyBytes(direction.from.native_handle(), to, size);
  }
  ssize_t Send(const Direction& direction, std::span<const std::byte> bytes) {
    if (&direction == &to_client_ && tls_ != nullptr) {
      return tls_->Send(bytes);
    }
    return send(direction.to.native_handle(), bytes.data(), bytes.size(),
                MSG_DONTWAIT | MSG_NOSIGNAL);
  }

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
      if (!(direction.held.empty() ? MoveOne(direction) : Sift(direction, TakeHeld(direction)))) {
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
    const ssize_t size = Receive(direction, scratch, kScratchBytes);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      Wait(direction, direction.from, Descriptor::wait_read);
      return false;
    }
    if (size == 0 && &direction == &to_server_ && !theirs_.valid()) {
      shutdown(server_.native_handle(), SHUT_WR);  // the server may have something left to say
      return false;
    }
    if (size <= 0) {
      End();
      return false;
    }
    return Sift(direction, {scratch, scratch + size});
  }

  // Sends on what may pass of the bytes, and holds the rest back for a while.
  bool Sift(Direction& direction, std::vector<std::byte> bytes) {
    if (guard_.has_value() && &direction == &to_client_) {
      guard_->OnServerSaid(bytes);
    } else if (guard_.has_value()) {
      const Http2Guard::Verdict verdict = guard_->OnClientSaid(bytes, MonotonicNs());
      if (verdict.refusal != nullptr) {
        Refuse(verdict.refusal);
        return false;
      }
      if (guard_->greeted() && theirs_.valid()) {
        HandOver();
      }
      const auto rest = bytes.begin() + static_cast<ptrdiff_t>(verdict.may_pass);
      direction.held.assign(rest, bytes.end());
      bytes.erase(rest, bytes.end());
    }
    direction.unsent = std::move(bytes);
    direction.sent = 0;
    if (!SendRest(direction)) {
      return false;
    }
    if (!direction.held.empty()) {
      PumpLater(direction);
    }
    return direction.held.empty();
  }
  static std::vector<std::byte> TakeHeld(Direction& direction) {
    return std::exchange(direction.held, {});
  }
  void PumpLater(Direction& direction) {
    timer_.expires_after(kHold);
    timer_.async_wait(
        [self = shared_from_this(), &direction](const boost::system::error_code& error) {
          if (!error && self->client_.is_open()) {
            self->HasHungUp() ? self->End() : self->Pump(direction);
          }
        });
  }
  // Returns true if the client has hung up; asked while bytes are held, since then no read of its
  // end would tell.
  bool HasHungUp() {
    pollfd ended{client_.native_handle(), POLLRDHUP, 0};
    return poll(&ended, 1, 0) > 0;
  }

  bool SendRest(Direction& direction) {
    while (direction.sent < direction.unsent.size()) {
      const ssize_t size = Send(direction, std::span(direction.unsent).subspan(direction.sent));
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
  UniqueFd theirs_;
  const std::optional<Guest> guest_;
  std::unique_ptr<TlsSession> tls_;
  std::string address_;  // of our end, as the server names it
  std::optional<Http2Guard> guard_;
  boost::asio::steady_timer timer_{sieve_.context_};     // for what is held
  boost::asio::steady_timer greeting_{sieve_.context_};  // its deadline
  Direction to_server_{client_, server_};
  Direction to_client_{server_, client_};
};

ByteSieve::ByteSieve(std::string socket, const Limits& limits)
    : socket_(std::move(socket)),
      limits_(limits),
      work_(boost::asio::make_work_guard(context_)),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)),
      // Without signals: OpenSSL writes to its sockets without saying that it wants no SIGPIPE.
      thread_(MakeThread("ferry-sieve", [this] { context_.run(); })) {}

ByteSieve::~ByteSieve() {
  boost::asio::post(context_, [this] {
    while (!streams_.empty()) {
      std::shared_ptr<Stream>(*streams_.begin())->End();
    }
    context_.stop();
  });
  thread_.join();
}

// Callers stay known for some time after their last connection, with what they have used up.
std::shared_ptr<Http2Caller> ByteSieve::FindCaller(const std::string& name) {
  if (callers_.size() >= many_callers_) {
    std::erase_if(callers_, [now_ns = MonotonicNs()](const auto& caller) {
      return caller.second.use_count() == 1 && caller.second->IsFresh(now_ns);
    });
    many_callers_ = 2 * callers_.size() + 64;
  }
  std::shared_ptr<Http2Caller>& caller = callers_[name];
  if (caller == nullptr) {
    caller = std::make_shared<Http2Caller>(limits_.calls_of_caller);
  }
  return caller;
}

// Silent connections must not keep out those that would show a certificate.
void ByteSieve::MakeRoomFor(const std::string& caller) {
  const auto of_caller = [&](const Stream* stream) { return stream->caller() == caller; };
  if (static_cast<size_t>(std::count_if(unproved_.begin(), unproved_.end(), of_caller)) >=
      limits_.unproved_of_caller) {
    (*std::find_if(unproved_.begin(), unproved_.end(), of_caller))->End();
  } else if (unproved_.size() >= limits_.unproved) {
    unproved_.front()->End();
  }
}

std::string ByteSieve::CertificateOf(const std::string& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = certificates_.find(peer);
  return found == certificates_.end() ? "" : found->second;
}

// The C library keeps what its arenas had to hold at a time, for good. A moment after connections
// have ended, by when gRPC is done with them, it gives back what it has much of.
void ByteSieve::GiveBackMemoryLater() {
  if (std::exchange(gives_back_, true)) {
    return;
  }
  quiet_.expires_after(kQuiet);
  quiet_.async_wait([this](const boost::system::error_code& error) {
    gives_back_ = false;
    if (!error && mallinfo2().fordblks > kMuchMemory) {
      malloc_trim(0);
    }
  });
}

Status ByteSieve::Take(UniqueFd&& client, std::optional<Guest> guest, UniqueFd* server) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return StatusFromErrno(errno, "socketpair for a connection");
  }
  UniqueFd own(ends[0]);
  UniqueFd theirs(ends[1]);
  if (server != nullptr) {
    *server = std::move(theirs);
  }
  ++connections_;
  auto stream = std::make_shared<Stream>(*this, std::move(client), std::move(own),
                                         std::move(theirs), std::move(guest));
  boost::asio::post(context_, [this, stream = std::move(stream)] {
    streams_.insert(stream);
    stream->Start();
  });
  return {};
}

StatusOr<UniqueFd> ByteSieve::Pass(UniqueFd&& client) {
  UniqueFd server;
  FERRY_RETURN_IF_ERROR(Take(std::move(client), std::nullopt, &server));
  return server;
}

Status ByteSieve::Admit(UniqueFd&& client, Guest guest) {
  return Take(std::move(client), std::move(guest), nullptr);
}

}  // namespace ferry::daemon
