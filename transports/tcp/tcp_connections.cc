#include "transports/tcp/tcp_connections.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "transports/tcp/tcp_reader.h"
#include "transports/tcp/tcp_writer.h"

namespace ferry::transport {
namespace {

// The most connections of peers that AddPeer has not named.
constexpr size_t kMostUnnamed = 1024;

// Until a peer that said kUseOther is asked again, should its own connection not have come.
constexpr uint64_t kUseOtherNs = 1'000'000;
// For so long after a connection of ours has come up, one that the peer began before may arrive.
constexpr uint64_t kCrossingNs = 1'000'000'000;
// For so long the end of a connection may be on its way when its peer connects anew.
constexpr uint64_t kEndingNs = 1'000'000'000;
// After an error of our own, such as that no descriptor is left.
constexpr uint64_t kRetryNs = 10'000'000;
// Reads that empty a socket: as many as it can hold, and more.
constexpr int kMostRestTurns = 64;
constexpr uint64_t kLooksPerSilence = 8;

// Looks at the next byte. More than 0: unread bytes have come; 0: the peer has closed the
// connection.
ssize_t Peek(int fd) {
  std::byte next;
  return recv(fd, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
}

// Says why a connection has ended.
std::string ReasonOf(const TcpStream& stream) {
  const int error = stream.write_error != 0 ? stream.write_error : stream.error();
  switch (error) {
    case 0:
      return "the peer has closed the connection";
    case EPROTO:
      return "the peer has sent what is no frame";
    case EKEYREJECTED:
      return "a process answers there that is not the peer; has it taken its port?";
    case EPROTONOSUPPORT:
      return "the peer does not speak ferry-tcp of version " + std::to_string(kTcpVersion);
    default:
      break;
  }
  const std::string text = std::error_code(error, std::system_category()).message();
  return stream.is_silent ? text +
                                ": the peer's system does not answer what is sent by this "
                                "connection; does a firewall drop its packets?"
                          : text;
}

// Then nothing has gone by it, or ever will: the peer has given it up, perhaps for one of ours that
// crossed it.
bool IsClosedByPeer(int fd) {
  const ssize_t count = Peek(fd);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

// Of a connection that has ended: whether the peer's kernel has taken all that we have written. It
// hands that on, even if it has been told meanwhile that the connection is gone.
bool HasLostNothing(const TcpStream& stream) {
  int untaken = 0;
  return stream.broken_by_peer() && stream.is_between_frames() &&
         ioctl(stream.fd(), SIOCOUTQ, &untaken) == 0 && untaken == 0;
}

}  // namespace

TcpConnections::TcpConnections(TcpState& state, UniqueFd epoll,
                               std::unique_ptr<TcpAcceptor> acceptor, TcpReader& reader,
                               TcpWriter& writer)
    : state_(state),
      epoll_(std::move(epoll)),
      acceptor_(std::move(acceptor)),
      reader_(reader),
      writer_(writer) {}

// ----------------------------------------------------------------------------------------- remotes

TcpRemote* TcpConnections::RemoteOf(const TcpIdentity& identity, const TcpEndpoint& endpoint) {
  std::unique_ptr<TcpRemote>& remote = remotes_[identity];
  if (remote == nullptr) {
    remote = std::make_unique<TcpRemote>();
    remote->identity = identity;
    remote->address = {endpoint};
    unnamed_++;
  }
  return remote.get();
}

void TcpConnections::AddName(TcpRemote* remote, TcpPeer* name) {
  unnamed_ -= remote->names.empty() ? 1 : 0;
  remote->names.push_back(name);
}

void TcpConnections::RemoveName(TcpRemote* remote, TcpPeer* name) {
  std::erase(remote->names, name);
  unnamed_ += remote->names.empty() ? 1 : 0;
}

void TcpConnections::ForgetIfUnused(TcpRemote* remote) {
  if (remote != keeps_remote_ && remote->names.empty() && remote->stream == nullptr &&
      remote->called == nullptr) {
    unnamed_--;
    const TcpIdentity identity = remote->identity;  // of what goes
    remotes_.erase(identity);
  }
}

// -------------------------------------------------------------------------------- what epoll tells

void TcpConnections::Watch(TcpStream* stream, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = stream;
  if (epoll_ctl(epoll_.get(), operation, stream->fd(), &event) != 0) {
    Break(stream, errno);
  }
}

void TcpConnections::WatchOutput(TcpStream* stream, bool watched) {
  if (stream->watched != watched) {
    stream->watched = watched;
    WatchAgain(stream);
  }
}

void TcpConnections::WatchAgain(TcpStream* stream) {
  uint32_t events = 0;
  if (!stream->paused) {
    events |= EPOLLIN;
  }
  if (stream->watched) {
    events |= EPOLLOUT;
  }
  Watch(stream, events, EPOLL_CTL_MOD);
}

// -------------------------------------------------------------------------------------- beginnings

TcpStream* TcpConnections::AddStream(UniqueFd fd, TcpRemote* remote, bool called) {
  const int yes = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  const TcpStream::Limits limits{state_.options.receive_buffer_bytes,
                                 state_.options.attachment_bytes};
  state_.streams.push_back(std::make_unique<TcpStream>(std::move(fd), remote, called, limits));
  return state_.streams.back().get();
}

void TcpConnections::Call(TcpRemote* remote) {
  remote->refusal.clear();
  UniqueFd fd(socket(remote->address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    remote->refusal = state_.last_error = StatusFromErrno(errno, "socket").message();
    remote->retry_ns = state_.now_ns + kRetryNs;
    return;
  }
  // From our own address, so that the packets take its interface.
  const int yes = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
  TcpEndpoint local = acceptor_->endpoint();
  local.port = 0;
  const SocketAddress source = SocketAddressOf(local);
  const SocketAddress target = SocketAddressOf(remote->address);
  TcpStream* stream = AddStream(std::move(fd), remote, /*called=*/false);
  remote->stream = stream;
  setting_up_++;
  Watch(stream, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
  const bool fails =
      bind(stream->fd(), source.get(), source.bytes) != 0 ||
      (connect(stream->fd(), target.get(), target.bytes) != 0 && errno != EINPROGRESS);
  if (fails) {
    Break(stream, errno);
  }  // else epoll tells when it is connected
}

void TcpConnections::OnConnected(TcpStream* stream) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  TcpHello hello;
  hello.guest = stream->remote()->address.guest;
  hello.proof = stream->remote()->address.calls;
  hello.from = acceptor_->endpoint();
  if (getsockopt(stream->fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0) {
    Break(stream, error != 0 ? error : errno);
  } else if (send(stream->fd(), &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT) !=
             static_cast<ssize_t>(sizeof(hello))) {  // an empty socket takes it whole
    Break(stream, errno);
  } else {
    stream->set_state(TcpStream::State::kGreeting);
    Watch(stream, EPOLLIN, EPOLL_CTL_MOD);
  }
}

void TcpConnections::OnWelcome(TcpStream* stream) {
  TcpWelcome welcome;
  const TcpStream::Read read = stream->ReadWelcome(&welcome);
  if (read == TcpStream::Read::kEnded) {
    Break(stream, stream->error());
  }
  if (read != TcpStream::Read::kMore) {
    return;
  }
  if (welcome.magic != kTcpMagic || welcome.version != kTcpVersion) {
    return Break(stream, EPROTONOSUPPORT);
  }
  if (!SameSecret(welcome.proof, stream->remote()->address.answers)) {
    return Break(stream, EKEYREJECTED);
  }
  if (welcome.answer == TcpAnswer::kUseOther) {
    TcpRemote* remote = stream->remote();
    remote->retry_ns = state_.now_ns + kUseOtherNs;
    return CloseStream(stream);
  }
  stream->set_state(TcpStream::State::kUp);
  stream->up_ns = state_.now_ns;
  setting_up_--;
  writer_.MarkDirty(stream);
}

void TcpConnections::Take(TcpAcceptor::Proved proved) {
  const TcpIdentity identity = TcpIdentity::Of(proved.guest, proved.from);
  const auto known = remotes_.find(identity);
  if ((known == remotes_.end() && unnamed_ >= kMostUnnamed) || IsClosedByPeer(proved.fd.get())) {
    return;
  }
  TcpRemote* remote =
      known != remotes_.end() ? known->second.get() : RemoteOf(identity, proved.from);
  TcpWelcome welcome;
  welcome.proof = acceptor_->AddressFor(proved.guest).answers;
  const bool takes = MayTake(remote);
  welcome.answer = takes ? TcpAnswer::kWelcome : TcpAnswer::kUseOther;
  const bool told = send(proved.fd.get(), &welcome, sizeof(welcome), MSG_NOSIGNAL | MSG_DONTWAIT) ==
                    static_cast<ssize_t>(sizeof(welcome));
  if (!takes || !told) {
    return ForgetIfUnused(remote);
  }
  TcpStream* stream = AddStream(std::move(proved.fd), remote, /*called=*/true);
  (IsSelf(*remote) ? remote->called : remote->stream) = stream;
  remote->anew_ns = 0;
  stream->set_state(TcpStream::State::kUp);
  Watch(stream, EPOLLIN, EPOLL_CTL_ADD);
  writer_.MarkDirty(stream);
}

// Returns true if a new connection of the peer's is to be used; then the old one is closed.
bool TcpConnections::MayTake(TcpRemote* remote) {
  TcpStream* old = IsSelf(*remote) ? remote->called : remote->stream;
  if (old == nullptr) {
    return true;
  }
  if (!old->called()) {
    const bool may_cross = !old->up() || state_.now_ns - old->up_ns < kCrossingNs;
    if (may_cross && acceptor_->endpoint() < remote->address) {
      return false;
    }
    if (!old->up()) {  // nothing has gone by it
      keeps_remote_ = remote;
      CloseStream(old);
      keeps_remote_ = nullptr;
      return true;
    }
  }
  // A peer that connects anew has no other connection any more. The end of the old one says if data
  // were lost, so it is awaited for a while. A connection that lives on then is lost.
  keeps_remote_ = remote;
  ReadRest(old);
  const bool lives = old->up() && !old->broken() && !IsClosedByPeer(old->fd());
  remote->anew_ns = lives && remote->anew_ns == 0 ? state_.now_ns : remote->anew_ns;
  const bool may_end = lives && state_.now_ns - remote->anew_ns < kEndingNs;
  if (!may_end && !old->closed()) {
    old->Break(ECONNRESET, /*by_peer=*/!lives && !old->unread);
    EndStream(old);
  }
  keeps_remote_ = nullptr;
  return !may_end;
}

// Reads the bytes that a peer sent before it gave the connection up. Beyond the budget: a socket
// holds little more than one turn reads, and a peer that goes on sending all the same is not read
// to the end.
void TcpConnections::ReadRest(TcpStream* stream) {
  for (int turns = 0; turns < kMostRestTurns && stream->up() && !stream->broken() &&
                      !stream->paused && (stream->unread || Peek(stream->fd()) > 0);
       turns++) {
    reader_.ReadStream(stream, UINT32_MAX);
  }
}

void TcpConnections::ReconnectWaiting() {
  for (TcpPeer& peer : state_.operations.waiting()) {
    if (peer.remote->stream == nullptr && peer.remote->retry_ns <= state_.now_ns) {
      Call(peer.remote);
    }
  }
}

// -------------------------------------------------------------------------------------------- ends

void TcpConnections::Break(TcpStream* stream, int error) {
  stream->Break(error);
  if (!stream->closed() && std::ranges::find(broken_, stream) == broken_.end()) {
    broken_.push_back(stream);
  }
}

// Beyond the budget, if need be: each has an event or two, and a flood of messages must not hold
// them up.
void TcpConnections::EndBroken() {
  while (!broken_.empty()) {
    EndStream(broken_.back());
  }
}

// Ends what was under way by the stream.
void TcpConnections::EndStream(TcpStream* stream) {
  TcpRemote* remote = stream->remote();
  state_.last_error = ReasonOf(*stream) + " (" + TcpAddressText(remote->address) + ")";
  if (remote->stream == stream) {
    for (TcpPeer* name : remote->names) {
      state_.operations.ForAllOf(name, [&](TcpOperation* op) {
        LetGo(op);
        state_.operations.End(op, ErrorCode::kNodeUnreachable);
      });
    }
  }
  if (remote->stream == stream && stream->up()) {
    const bool lossless = HasLostNothing(*stream);
    for (const TcpPeer* name : remote->names) {
      state_.lost.push_back({name->id, lossless});
    }
  } else if (remote->stream == stream) {
    remote->refusal = state_.last_error;
  }
  const bool was_landing = std::exchange(stream->arrival.landing, false);
  const uint64_t context = stream->arrival.landing_context;
  CloseStream(stream);
  if (was_landing) {
    state_.events++;
    state_.sink->OnLanded(context, ErrorCode::kNodeUnreachable);
  }
}

void TcpConnections::CloseStream(TcpStream* stream) {
  if (stream->closed()) {
    return;
  }
  TcpRemote* remote = stream->remote();
  setting_up_ -= stream->up() ? 0 : 1;
  // A forked child may keep the socket open, and with it what epoll watches.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream->fd(), nullptr);
  stream->Close();
  for (const TcpReply& reply : stream->replies) {
    if (reply.region != nullptr) {
      reply.region->users--;
    }
  }
  stream->replies.clear();
  if (stream->arrival.region != nullptr) {
    stream->arrival.region->landing--;
  }
  if (stream->arrival.read != nullptr) {
    stream->arrival.read->landing = nullptr;
  }
  stream->arrival = TcpArrival();
  writer_.Forget(stream);
  reader_.Forget(stream);
  std::erase(broken_, stream);
  const auto own = std::ranges::find(state_.streams, stream, &std::unique_ptr<TcpStream>::get);
  closed_.push_back(std::move(*own));
  state_.streams.erase(own);
  remote->stream = remote->stream == stream ? nullptr : remote->stream;
  remote->called = remote->called == stream ? nullptr : remote->called;
  ForgetIfUnused(remote);
}

void TcpConnections::LetGo(TcpOperation* op) {
  if (op->written) {
    op->written = false;
    state_.written.erase(state_.written.iterator_to(*op));
  }
  if (op->landing != nullptr) {
    op->landing->arrival.read = nullptr;
    op->landing->DropData();
    op->landing = nullptr;
  }
  TcpStream* stream = op->peer->remote->stream;
  if (stream != nullptr && stream->begun == op) {
    stream->begun = nullptr;  // half a frame
    Break(stream, ECANCELED);
  }
  op->held = false;
}

void TcpConnections::EndOverdue() {
  while (TcpOperation* op = state_.operations.EndOverdue(state_.now_ns)) {
    TcpStream* stream = op->peer->remote->stream;
    LetGo(op);
    if (stream != nullptr && !stream->up()) {
      Break(stream, ETIMEDOUT);
    }
  }
}

// Returns true if the kernel of a peer may not have acknowledged all that was sent.
bool TcpConnections::MayWaitForAnswer() const {
  return any_waits_ || state_.written_round >= asked_round_;
}

// Breaks connections that the network swallows although they stand: nothing else tells of them for
// long.
void TcpConnections::CloseSilent() {
  const uint64_t limit_ns = state_.options.silence_timeout_ns;
  if (limit_ns == 0 || state_.now_ns < silence_ns_ || !MayWaitForAnswer()) {
    return;
  }
  silence_ns_ = state_.now_ns + limit_ns / kLooksPerSilence;
  const uint64_t since_round = std::exchange(asked_round_, state_.round);
  any_waits_ = false;
  for (const auto& stream : state_.streams) {
    if (!stream->up() || (stream->round < since_round && !stream->silence.waits())) {
      continue;
    }
    if (stream->silence.IsDead(stream->fd(), state_.now_ns, limit_ns)) {
      stream->is_silent = true;
      Break(stream.get(), ETIMEDOUT);
    }
    any_waits_ |= stream->silence.waits();
  }
}

uint64_t TcpConnections::NextNs(uint64_t now_ns) const {
  uint64_t next_ns = UINT64_MAX;
  if (state_.options.silence_timeout_ns != 0 && MayWaitForAnswer()) {
    next_ns = std::min(next_ns, std::max(now_ns, silence_ns_));
  }
  for (const TcpPeer& peer : state_.operations.waiting()) {
    if (peer.remote->stream == nullptr) {
      next_ns = std::min(next_ns, std::max(now_ns, peer.remote->retry_ns));
    }
  }
  return next_ns;
}

}  // namespace ferry::transport
