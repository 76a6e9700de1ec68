#include "transports/tcp/tcp_reader.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_connections.h"
#include "transports/tcp/tcp_writer.h"

namespace ferry::transport {
namespace {

// So few streams are read without asking epoll which of them have something: one system call less.
constexpr size_t kDirectStreams = 2;
// After so many of such polls epoll is asked all the same, for peers that connect.
constexpr uint32_t kPollsPerLook = 16;
constexpr int kMostEvents = 64;
// The least part of a poll's budget that one stream gets where there are many.
constexpr int kLeastShare = 8;
// A stream keeps a buffer of at most this for the next message.
constexpr size_t kMostKeptBytes = 128 << 10;

}  // namespace

// ----------------------------------------------------------------------------------------- streams

void TcpReader::ReadStreams(int budget) {
  ready_.assign(unread_.begin(), unread_.end());
  const bool is_direct = state_.streams.size() <= kDirectStreams && !connections_.is_setting_up();
  if (!is_direct || must_look_ || ++polls_since_look_ >= kPollsPerLook) {
    Look(!is_direct);
  }
  if (is_direct) {
    for (const auto& stream : state_.streams) {
      if (stream->up() && !stream->unread && !stream->paused) {
        ready_.push_back(stream.get());
      }
    }
  }
  if (ready_.empty()) {
    return;
  }
  const auto streams = static_cast<int>(ready_.size());
  const int share = std::max(kLeastShare, budget / streams);
  if (share * streams > budget) {  // first those that have waited for longest
    std::ranges::sort(ready_, {}, &TcpStream::read_round);
  }
  for (size_t i = 0; i < ready_.size() && state_.events < budget; i++) {
    if (!ready_[i]->closed() && !ready_[i]->broken()) {
      ReadStream(ready_[i], static_cast<uint32_t>(std::min(share, budget - state_.events)));
    }
  }
}

void TcpReader::ReadStream(TcpStream* stream, uint32_t frames) {
  if (stream->unread) {
    stream->unread = false;
    std::erase(unread_, stream);
  }
  stream->read_round = state_.round;
  const uint64_t before_bytes = stream->received_bytes();
  const TcpStream::Read read = stream->ReadFrames(*this, buffer_, &frames);
  state_.has_moved |= stream->received_bytes() != before_bytes;
  if (stream->closed()) {
    return;
  }
  if (stream->replies.size() >= state_.most_replies && !stream->broken()) {
    Pause(stream);
  } else if (read == TcpStream::Read::kUnread) {  // behind the others
    stream->unread = true;
    unread_.push_back(stream);
  } else if (stream->broken()) {
    connections_.Break(stream, stream->error());
  }
}

// Asks epoll. `reads`: streams that have something are to be read now.
void TcpReader::Look(bool reads) {
  polls_since_look_ = 0;
  must_look_ = false;
  std::array<epoll_event, kMostEvents> events;
  const int count = epoll_wait(connections_.epoll(), events.data(), kMostEvents, 0);
  for (int i = 0; i < count; i++) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (connections_.acceptor().Owns(event.data.u64)) {
      connections_.acceptor().OnReadable(
          event.data.u64, state_.now_ns,
          [this](TcpAcceptor::Proved proved) { connections_.Take(std::move(proved)); });
      continue;
    }
    auto* stream = static_cast<TcpStream*>(event.data.ptr);
    switch (stream->state()) {
      case TcpStream::State::kConnecting:
        connections_.OnConnected(stream);
        break;
      case TcpStream::State::kGreeting:
        connections_.OnWelcome(stream);
        break;
      case TcpStream::State::kUp:
        if ((event.events & EPOLLOUT) != 0) {
          stream->blocked = false;
        }
        if (stream->paused && (event.events & (EPOLLERR | EPOLLHUP)) != 0) {
          connections_.Break(stream, ECONNRESET);  // it takes no answers any more
        } else if (reads && (event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0 &&
                   !stream->unread && !stream->paused) {
          ready_.push_back(stream);
        }
        break;
      case TcpStream::State::kClosed:
        break;
    }
  }
  connections_.acceptor().Advance(state_.now_ns);
  writer_.CloseStalled();
  connections_.CloseSilent();
  connections_.ReconnectWaiting();
}

// It asks for more than it takes.
void TcpReader::Pause(TcpStream* stream) {
  stream->paused = true;
  if (std::exchange(stream->unread, false)) {
    std::erase(unread_, stream);
  }
  connections_.WatchAgain(stream);
}

void TcpReader::ReadOn(TcpStream* stream) {
  stream->paused = false;
  if (stream->keeps_unread()) {
    stream->unread = true;
    unread_.push_back(stream);
  }
  connections_.WatchAgain(stream);
}

void TcpReader::Forget(TcpStream* stream) { std::erase(unread_, stream); }

// ------------------------------------------------------------------------------------------ frames

FrameData TcpReader::OnFrame(TcpStream& stream, const FrameHeader& frame,
                             std::span<const std::byte> head, std::span<const std::byte> behind) {
  stream.arrival.frame = frame;
  uint64_t key = 0;
  switch (static_cast<FrameKind>(frame.kind)) {
    case FrameKind::kMessage:
      Receive(stream, head);
      break;
    case FrameKind::kMessageFrom:
      return OnMessageFrom(stream, frame, head, behind);
    case FrameKind::kRead:
      std::memcpy(&key, head.data(), sizeof(key));
      OnRead(stream, frame, key);
      break;
    case FrameKind::kData:
      return OnData(stream, frame);
    case FrameKind::kWrite:
      std::memcpy(&key, head.data(), sizeof(key));
      return OnWrite(stream, frame, key);
    case FrameKind::kPlaced:
    case FrameKind::kRefused:
      OnAnswer(stream, frame);
      break;
  }
  return {};
}

void TcpReader::OnFrameData(TcpStream& stream, bool spoilt, bool unplaced) {
  TcpArrival& arrival = stream.arrival;
  const FrameHeader& frame = arrival.frame;
  const bool good = !spoilt && !unplaced;
  switch (static_cast<FrameKind>(frame.kind)) {
    case FrameKind::kMessageFrom:
      if (std::exchange(arrival.landing, false)) {
        state_.events++;
        state_.sink->OnLanded(arrival.landing_context,
                              good ? ErrorCode::kOk : ErrorCode::kInvalidBuffer);
      } else if (std::exchange(arrival.is_whole, false) && good) {
        DeliverWhole(stream);
      }
      state_.statistics.errors += good ? 0 : 1;
      break;
    case FrameKind::kData:
      if (TcpOperation* op = std::exchange(arrival.read, nullptr); op != nullptr) {
        OnDataEnd(op, frame.data_bytes, good);
      }
      break;
    case FrameKind::kWrite: {
      TcpRegion* region = std::exchange(arrival.region, nullptr);
      if (region != nullptr) {
        region->landing--;
      }
      if (frame.id != 0) {
        writer_.Reply(&stream, region != nullptr && good ? FrameKind::kPlaced : FrameKind::kRefused,
                      frame.id);
      }
      break;
    }
    case FrameKind::kMessage:
    case FrameKind::kRead:
    case FrameKind::kPlaced:
    case FrameKind::kRefused:
      break;  // have none
  }
}

void TcpReader::OnMisfit() {
  state_.statistics.errors++;
  state_.statistics.misfits++;
}

PeerId TcpReader::NameOf(const TcpRemote& remote) {
  const auto name = std::ranges::find(remote.names, ErrorCode::kOk, &TcpPeer::failure);
  return name == remote.names.end() ? kUnknownPeer : (*name)->id;
}

void TcpReader::CountReceived(uint64_t bytes) {
  state_.statistics.messages_received++;
  state_.statistics.message_bytes_received += bytes;
}

void TcpReader::Receive(const TcpStream& stream, std::span<const std::byte> message) {
  CountReceived(message.size());
  state_.events++;
  state_.sink->OnReceive(NameOf(*stream.remote()), message);
}

FrameData TcpReader::OnMessageFrom(TcpStream& stream, const FrameHeader& frame,
                                   std::span<const std::byte> head,
                                   std::span<const std::byte> behind) {
  const TcpRemote* remote = stream.remote();
  const uint64_t failures = remote->failures;
  const Landing landing = state_.sink->OnHead(NameOf(*remote), head, frame.data_bytes);
  if (stream.closed() || remote->failures != failures) {
    return {};  // whoever has failed the peer meanwhile is told of no landing
  }
  TcpArrival& arrival = stream.arrival;
  if (landing.to != nullptr) {
    CountReceived(head.size() + frame.data_bytes);
    arrival.landing = true;
    arrival.landing_context = landing.context;
    return {landing.to, std::min(landing.bytes, frame.data_bytes)};
  }
  FrameTrailer trailer{};
  if (behind.size() >= frame.data_bytes + sizeof(trailer)) {
    std::memcpy(&trailer, behind.data() + frame.data_bytes, sizeof(trailer));
    if (trailer == FrameTrailer::kGood) {
      Receive(stream, {head.data(), head.size() + frame.data_bytes});
    } else {
      state_.statistics.errors++;
    }
    return {.taken = true};
  }
  const uint64_t bytes = head.size() + frame.data_bytes;
  if (arrival.whole_bytes < bytes) {
    arrival.whole = std::make_unique_for_overwrite<std::byte[]>(bytes);
    arrival.whole_bytes = bytes;
  }
  arrival.is_whole = true;
  CopyBytes(head, arrival.whole.get());
  return {arrival.whole.get() + head.size(), frame.data_bytes};
}

// The sink may close the stream: the memory stays until it returns.
void TcpReader::DeliverWhole(TcpStream& stream) {
  TcpArrival& arrival = stream.arrival;
  std::unique_ptr<std::byte[]> whole = std::move(arrival.whole);
  const size_t capacity = std::exchange(arrival.whole_bytes, 0);
  Receive(stream, {whole.get(), arrival.frame.head_bytes + arrival.frame.data_bytes});
  if (!stream.closed() && capacity <= kMostKeptBytes) {
    arrival.whole = std::move(whole);
    arrival.whole_bytes = capacity;
  }
}

void TcpReader::CutLanding(TcpStream* stream) {
  if (std::exchange(stream->arrival.landing, false)) {
    stream->DropData();
  }
}

// ------------------------------------------------------------------------- peers' reads and writes

void TcpReader::OnRead(TcpStream& stream, const FrameHeader& frame, uint64_t key) {
  TcpRegion* region =
      state_.memory.FindForPeer(key, frame.address, frame.data_bytes, Access::kRemoteRead);
  if (region == nullptr) {
    writer_.Reply(&stream, FrameKind::kRefused, frame.id);
  } else {
    writer_.ReplyData(&stream, frame.id, region, region->base + frame.address, frame.data_bytes);
  }
}

FrameData TcpReader::OnWrite(TcpStream& stream, const FrameHeader& frame, uint64_t key) {
  TcpRegion* region =
      state_.memory.FindForPeer(key, frame.address, frame.data_bytes, Access::kRemoteWrite);
  stream.arrival.region = region;
  if (region == nullptr) {
    return {};
  }
  region->landing++;
  return {region->base + frame.address, frame.data_bytes};
}

// ---------------------------------------------------------------------------------- peers' answers

// The operation of that kind that an answer is for. Null if it has ended.
TcpOperation* TcpReader::Answered(const TcpStream& stream, uint64_t id) {
  TcpOperation* op = state_.operations.At(id & UINT32_MAX);
  const bool waits = op != nullptr && op->generation == id >> 32 &&
                     op->state == TcpOperation::State::kPosted && op->held &&
                     op->kind != OperationKind::kMessage && op->peer->remote->stream == &stream;
  return waits ? op : nullptr;
}

FrameData TcpReader::OnData(TcpStream& stream, const FrameHeader& frame) {
  TcpOperation* op = Answered(stream, frame.id);
  if (op == nullptr) {
    return {};
  }
  if (op->kind != OperationKind::kRead || frame.data_bytes > op->fragment - op->arrived) {
    connections_.Break(&stream, EPROTO);
    return {};
  }
  stream.arrival.read = op;
  op->landing = &stream;
  return {op->local + op->arrived, frame.data_bytes};
}

void TcpReader::OnDataEnd(TcpOperation* op, uint64_t bytes, bool good) {
  op->landing = nullptr;
  op->arrived += bytes;
  if (!good) {
    op->held = false;
    state_.last_error = "memory of a read cannot be reached, here or at the peer";
    state_.operations.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->arrived == op->fragment) {
    writer_.EndFragment(op);
  } else if (bytes >= kAnswerBytes) {  // else a peer could keep the memory for as long as it likes
    state_.operations.RenewDeadline(op, state_.now_ns);
  }
}

void TcpReader::OnAnswer(TcpStream& stream, const FrameHeader& frame) {
  TcpOperation* op = Answered(stream, frame.id);
  if (op == nullptr) {
    return;
  }
  if (frame.kind == static_cast<uint32_t>(FrameKind::kRefused)) {
    state_.last_error = "the peer refuses the key, the address or the length (" +
                        TcpAddressText(stream.remote()->address) + ")";
    op->held = false;
    state_.operations.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->kind == OperationKind::kWrite) {
    writer_.EndFragment(op);
  } else {
    connections_.Break(&stream, EPROTO);
  }
}

}  // namespace ferry::transport
