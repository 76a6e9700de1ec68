// Poll: what comes from peers, and sleeping.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_transport_state.h"

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

void TcpTransport::OnCall(uint64_t now_ns) {
  const uint64_t gap_ns = operations_.OnCall(now_ns);
  now_ns_ = now_ns;
  if (gap_ns != 0) {
    acceptor_->Postpone(gap_ns);
    for (const auto& stream : streams_) {
      stream->frame_ns += gap_ns;
      stream->up_ns += gap_ns;
    }
  }
}

int TcpTransport::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  OnCall(now_ns);
  sink_ = &sink;
  events_ = 0;
  has_moved_ = false;
  WriteDirty();
  round_++;
  ReportEnded(std::max(1, budget / 2));  // a flood of messages must not hold them up
  ReadStreams(budget);
  WriteDirty();
  EndOverdue();
  EndBroken();
  ReportEnded(budget);
  closed_.clear();
  round_++;
  sink_ = nullptr;
  return events_ == 0 && has_moved_ ? 1 : events_;
}

void TcpTransport::ReportEnded(int budget) {
  while (events_ < budget && !written_.empty()) {
    TcpOperation* op = &written_.front();
    written_.pop_front();
    op->written = false;
    const uint64_t context = op->context;
    CountSuccess(op->kind, op->bytes, &statistics_);
    operations_.Finish(op);
    events_++;
    sink_->OnComplete(context, ErrorCode::kOk);
  }
  OperationTable<TcpOperation>::Ended ended;
  while (events_ < budget && operations_.TakeEnded(&ended)) {
    events_++;
    sink_->OnComplete(ended.context, ended.code);
  }
  while (events_ < budget && !lost_.empty()) {
    const LostPeer lost = lost_.back();
    lost_.pop_back();
    if (peers_.Find(lost.peer) != nullptr) {
      events_++;
      sink_->OnPeerLost(lost.peer, lost.lossless);
    }
  }
}

// ---- Streams ----

void TcpTransport::ReadStreams(int budget) {
  ready_.assign(unread_.begin(), unread_.end());
  const bool is_direct = streams_.size() <= kDirectStreams && setting_up_ == 0;
  if (!is_direct || must_look_ || ++polls_since_look_ >= kPollsPerLook) {
    Look(!is_direct);
  }
  if (is_direct) {
    for (const auto& stream : streams_) {
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
  for (size_t i = 0; i < ready_.size() && events_ < budget; i++) {
    if (!ready_[i]->closed() && !ready_[i]->broken()) {
      ReadStream(ready_[i], static_cast<uint32_t>(std::min(share, budget - events_)));
    }
  }
}

void TcpTransport::ReadStream(TcpStream* stream, uint32_t frames) {
  if (stream->unread) {
    stream->unread = false;
    std::erase(unread_, stream);
  }
  stream->read_round = round_;
  const uint64_t before_bytes = stream->received_bytes();
  const TcpStream::Read read = stream->ReadFrames(*this, buffer_, &frames);
  has_moved_ |= stream->received_bytes() != before_bytes;
  if (stream->closed()) {
    return;
  }
  if (stream->replies.size() >= most_replies_ && !stream->broken()) {
    Pause(stream);
  } else if (read == TcpStream::Read::kUnread) {  // behind the others
    stream->unread = true;
    unread_.push_back(stream);
  } else if (stream->broken()) {
    Break(stream, stream->error());
  }
}

// Asks epoll. `reads`: streams that have something are to be read now.
void TcpTransport::Look(bool reads) {
  polls_since_look_ = 0;
  must_look_ = false;
  std::array<epoll_event, kMostEvents> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kMostEvents, 0);
  for (int i = 0; i < count; i++) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (acceptor_->Owns(event.data.u64)) {
      acceptor_->OnReadable(event.data.u64, now_ns_,
                            [this](TcpAcceptor::Proved proved) { Take(std::move(proved)); });
      continue;
    }
    auto* stream = static_cast<TcpStream*>(event.data.ptr);
    switch (stream->state()) {
      case TcpStream::State::kConnecting:
        OnConnected(stream);
        break;
      case TcpStream::State::kGreeting:
        OnWelcome(stream);
        break;
      case TcpStream::State::kUp:
        if ((event.events & EPOLLOUT) != 0) {
          stream->blocked = false;
        }
        if (stream->paused && (event.events & (EPOLLERR | EPOLLHUP)) != 0) {
          Break(stream, ECONNRESET);  // it takes no answers any more
        } else if (reads && (event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0 &&
                   !stream->unread && !stream->paused) {
          ready_.push_back(stream);
        }
        break;
      case TcpStream::State::kClosed:
        break;
    }
  }
  acceptor_->Advance(now_ns_);
  CloseStalled();
  CloseSilent();
  ReconnectWaiting();
}

// ---- Frames ----

FrameData TcpTransport::OnFrame(TcpStream& stream, const FrameHeader& frame,
                                std::span<const std::byte> head,
                                std::span<const std::byte> behind) {
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

void TcpTransport::OnFrameData(TcpStream& stream, bool spoilt, bool unplaced) {
  TcpArrival& arrival = stream.arrival;
  const FrameHeader& frame = arrival.frame;
  const bool good = !spoilt && !unplaced;
  switch (static_cast<FrameKind>(frame.kind)) {
    case FrameKind::kMessageFrom:
      if (std::exchange(arrival.landing, false)) {
        events_++;
        sink_->OnLanded(arrival.landing_context, good ? ErrorCode::kOk : ErrorCode::kInvalidBuffer);
      } else if (std::exchange(arrival.is_whole, false) && good) {
        DeliverWhole(stream);
      }
      statistics_.errors += good ? 0 : 1;
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
        Reply(&stream, region != nullptr && good ? FrameKind::kPlaced : FrameKind::kRefused,
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

void TcpTransport::OnMisfit() {
  statistics_.errors++;
  statistics_.misfits++;
}

PeerId TcpTransport::NameOf(const TcpRemote& remote) {
  const auto name = std::ranges::find(remote.names, ErrorCode::kOk, &TcpPeer::failure);
  return name == remote.names.end() ? kUnknownPeer : (*name)->id;
}

void TcpTransport::CountReceived(uint64_t bytes) {
  statistics_.messages_received++;
  statistics_.message_bytes_received += bytes;
}

void TcpTransport::Receive(const TcpStream& stream, std::span<const std::byte> message) {
  CountReceived(message.size());
  events_++;
  sink_->OnReceive(NameOf(*stream.remote()), message);
}

FrameData TcpTransport::OnMessageFrom(TcpStream& stream, const FrameHeader& frame,
                                      std::span<const std::byte> head,
                                      std::span<const std::byte> behind) {
  const TcpRemote* remote = stream.remote();
  const uint64_t failures = remote->failures;
  const Landing landing = sink_->OnHead(NameOf(*remote), head, frame.data_bytes);
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
      statistics_.errors++;
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
void TcpTransport::DeliverWhole(TcpStream& stream) {
  TcpArrival& arrival = stream.arrival;
  std::unique_ptr<std::byte[]> whole = std::move(arrival.whole);
  const size_t capacity = std::exchange(arrival.whole_bytes, 0);
  Receive(stream, {whole.get(), arrival.frame.head_bytes + arrival.frame.data_bytes});
  if (!stream.closed() && capacity <= kMostKeptBytes) {
    arrival.whole = std::move(whole);
    arrival.whole_bytes = capacity;
  }
}

// ---- Reads and writes of peers ----

void TcpTransport::OnRead(TcpStream& stream, const FrameHeader& frame, uint64_t key) {
  TcpRegion* region =
      memory_.FindForPeer(key, frame.address, frame.data_bytes, Access::kRemoteRead);
  if (region == nullptr) {
    Reply(&stream, FrameKind::kRefused, frame.id);
  } else {
    ReplyData(&stream, frame.id, region, region->base + frame.address, frame.data_bytes);
  }
}

FrameData TcpTransport::OnWrite(TcpStream& stream, const FrameHeader& frame, uint64_t key) {
  TcpRegion* region =
      memory_.FindForPeer(key, frame.address, frame.data_bytes, Access::kRemoteWrite);
  stream.arrival.region = region;
  if (region == nullptr) {
    return {};
  }
  region->landing++;
  return {region->base + frame.address, frame.data_bytes};
}

// ---- Answers of peers ----

// The operation of that kind that an answer is for. Null if it has ended.
TcpOperation* TcpTransport::Answered(const TcpStream& stream, uint64_t id) {
  TcpOperation* op = operations_.At(id & UINT32_MAX);
  const bool waits = op != nullptr && op->generation == id >> 32 &&
                     op->state == TcpOperation::State::kPosted && op->held &&
                     op->kind != OperationKind::kMessage && op->peer->remote->stream == &stream;
  return waits ? op : nullptr;
}

FrameData TcpTransport::OnData(TcpStream& stream, const FrameHeader& frame) {
  TcpOperation* op = Answered(stream, frame.id);
  if (op == nullptr) {
    return {};
  }
  if (op->kind != OperationKind::kRead || frame.data_bytes > op->fragment - op->arrived) {
    Break(&stream, EPROTO);
    return {};
  }
  stream.arrival.read = op;
  op->landing = &stream;
  return {op->local + op->arrived, frame.data_bytes};
}

void TcpTransport::OnDataEnd(TcpOperation* op, uint64_t bytes, bool good) {
  op->landing = nullptr;
  op->arrived += bytes;
  if (!good) {
    op->held = false;
    last_error_ = "memory of a read cannot be reached, here or at the peer";
    operations_.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->arrived == op->fragment) {
    EndFragment(op);
  } else if (bytes >= kAnswerBytes) {  // else a peer could keep the memory for as long as it likes
    operations_.RenewDeadline(op, now_ns_);
  }
}

void TcpTransport::OnAnswer(TcpStream& stream, const FrameHeader& frame) {
  TcpOperation* op = Answered(stream, frame.id);
  if (op == nullptr) {
    return;
  }
  if (frame.kind == static_cast<uint32_t>(FrameKind::kRefused)) {
    last_error_ = "the peer refuses the key, the address or the length (" +
                  TcpAddressText(stream.remote()->address) + ")";
    op->held = false;
    operations_.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->kind == OperationKind::kWrite) {
    EndFragment(op);
  } else {
    Break(&stream, EPROTO);
  }
}

// Nothing tells of what lands now, and nothing of it goes to its place any more.
void TcpTransport::CutLanding(TcpStream* stream) {
  if (std::exchange(stream->arrival.landing, false)) {
    stream->DropData();
  }
}

void TcpTransport::DropLanding(uint64_t context) {
  for (const auto& stream : streams_) {
    if (stream->arrival.landing && stream->arrival.landing_context == context) {
      return CutLanding(stream.get());
    }
  }
}

// ---- Sleeping ----

bool TcpTransport::PrepareToSleep() {
  WriteDirty();
  round_++;
  if (!written_.empty() || operations_.AnyEnded() || !unread_.empty() || !broken_.empty() ||
      !lost_.empty()) {
    return false;
  }
  for (TcpStream* stream : dirty_) {
    WatchOutput(stream, true);
  }
  must_look_ = true;
  return true;
}

uint64_t TcpTransport::NextPollNs(uint64_t now_ns) const {
  if (!written_.empty() || operations_.AnyEnded() || !unread_.empty() || !broken_.empty() ||
      !lost_.empty()) {
    return now_ns;
  }
  uint64_t next_ns = acceptor_->NextNs();
  const uint64_t deadline_ns = operations_.NextDeadlineNs();
  // While operations are outstanding, polls often enough not to be taken for a stall.
  if (deadline_ns != UINT64_MAX || !dirty_.empty()) {
    next_ns = std::min({next_ns, deadline_ns, now_ns + options_.post_timeout_ns / 4});
  }
  if (options_.silence_timeout_ns != 0 &&
      std::ranges::any_of(streams_, [](const auto& one) { return MayWaitForAnswer(*one); })) {
    next_ns = std::min(next_ns, std::max(now_ns, silence_ns_));
  }
  for (const TcpPeer& peer : operations_.waiting()) {
    if (peer.remote->stream == nullptr) {
      next_ns = std::min(next_ns, std::max(now_ns, peer.remote->retry_ns));
    }
  }
  return next_ns;
}

}  // namespace ferry::transport
