// Accepting operations, and sending or queueing their frames.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_transport_state.h"

namespace ferry::transport {
namespace {

// Gathered frames go when there is so much of them: by then a system call costs less than the
// copying, and the peer may begin.
constexpr uint64_t kGatherBytes = 32 << 10;
// A head up to this long is copied to its header even if it leaves at once: one piece is cheaper.
constexpr size_t kCopyBytes = 512;

uint64_t IdOf(const TcpOperation& op, size_t index) {
  return uint64_t{op.generation} << 32 | index;
}

}  // namespace

// Null, with `*code` set, if nothing may be posted to the peer.
TcpPeer* TcpTransport::Usable(PeerId id, ErrorCode* code) {
  TcpPeer* peer = peers_.Find(id);
  *code = peer == nullptr ? ErrorCode::kNotFound : peer->failure;
  return *code == ErrorCode::kOk ? peer : nullptr;
}

ErrorCode TcpTransport::SendMessage(PeerId id, std::span<const std::byte> header,
                                    std::span<const std::byte> payload, uint64_t context,
                                    uint64_t now_ns) {
  return StartMessage(id, header, payload, nullptr, context, now_ns);
}

ErrorCode TcpTransport::SendMessageFrom(PeerId id, std::span<const std::byte> header,
                                        const Attachment& attachment, uint64_t context,
                                        uint64_t now_ns) {
  if (attachment.bytes > capabilities_.max_attachment_bytes) {
    return ErrorCode::kInvalidArgument;
  }
  return StartMessage(id, header, {}, &attachment, context, now_ns);
}

ErrorCode TcpTransport::StartMessage(PeerId id, std::span<const std::byte> header,
                                     std::span<const std::byte> payload,
                                     const Attachment* attachment, uint64_t context,
                                     uint64_t now_ns) {
  OnCall(now_ns);
  const uint64_t limit = options_.receive_buffer_bytes;
  if (header.size() > limit || payload.size() > limit - header.size()) {
    return ErrorCode::kInvalidArgument;
  }
  TcpRegion* region = nullptr;
  if (attachment != nullptr) {
    region = memory_.Find(attachment->region);
    if (region == nullptr || !region->Contains(attachment->data, attachment->bytes)) {
      return ErrorCode::kInvalidBuffer;
    }
  }
  ErrorCode code = ErrorCode::kOk;
  TcpPeer* peer = Usable(id, &code);
  if (peer == nullptr) {
    return code;
  }
  TcpOperation* op = nullptr;
  code = operations_.Accept(peer, region, context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  const uint64_t head_bytes = header.size() + payload.size();
  const uint64_t data_bytes = attachment != nullptr ? attachment->bytes : 0;
  op->kind = OperationKind::kMessage;
  op->bytes = head_bytes + data_bytes;
  op->cell = cells_->base() + operations_.IndexOf(op) * cell_bytes_;
  FrameHeader frame;
  frame.kind =
      static_cast<uint32_t>(data_bytes != 0 ? FrameKind::kMessageFrom : FrameKind::kMessage);
  frame.head_bytes = static_cast<uint32_t>(head_bytes);
  frame.data_bytes = data_bytes;
  std::memcpy(op->cell, &frame, sizeof(frame));
  op->out = {.front = op->cell,
             .front_bytes = sizeof(frame) + head_bytes,
             .data = data_bytes != 0 ? static_cast<const std::byte*>(attachment->data) : nullptr,
             .data_bytes = data_bytes};
  return Submit(op, header, payload);
}

ErrorCode TcpTransport::StartRma(OperationKind kind, const RmaRequest& request, Placement placement,
                                 uint64_t now_ns) {
  OnCall(now_ns);
  if (request.bytes == 0) {
    return ErrorCode::kInvalidArgument;
  }
  TcpRegion* region = memory_.Find(request.region);
  if (region == nullptr || !region->Contains(request.local, request.bytes)) {
    return ErrorCode::kInvalidBuffer;
  }
  ErrorCode code = ErrorCode::kOk;
  TcpPeer* peer = Usable(request.peer, &code);
  if (peer == nullptr) {
    return code;
  }
  TcpOperation* op = nullptr;
  code = operations_.Accept(peer, region, request.context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  op->kind = kind;
  op->placement = placement;
  op->cell = cells_->base() + operations_.IndexOf(op) * cell_bytes_;
  op->local = static_cast<std::byte*>(request.local);
  op->remote_address = request.remote_address;
  op->key = request.key;
  op->bytes = op->remaining = request.bytes;
  PrepareFragment(op);
  return Submit(op, {}, {});
}

// The frame of the next fragment of a read or a write.
void TcpTransport::PrepareFragment(TcpOperation* op) {
  op->generation = std::max(1U, op->generation + 1);  // so that no id is 0
  op->fragment = std::min({op->remaining, options_.fragment_bytes, kMostFrameBytes});
  op->arrived = 0;
  const bool is_read = op->kind == OperationKind::kRead;
  FrameHeader frame;
  frame.kind = static_cast<uint32_t>(is_read ? FrameKind::kRead : FrameKind::kWrite);
  frame.head_bytes = kKeyBytes;
  frame.data_bytes = op->fragment;
  frame.address = op->remote_address;
  if (is_read || op->placement == Placement::kRemote) {
    frame.id = IdOf(*op, operations_.IndexOf(op));
  }
  std::memcpy(op->cell, &frame, sizeof(frame));
  std::memcpy(op->cell + sizeof(frame), &op->key, kKeyBytes);
  op->out = {.front = op->cell,
             .front_bytes = sizeof(frame) + kKeyBytes,
             .data = is_read ? nullptr : op->local,
             .data_bytes = is_read ? 0 : op->fragment};
}

// Sends the operation's frame, or queues it; `header` and `payload` are those of a message.
ErrorCode TcpTransport::Submit(TcpOperation* op, std::span<const std::byte> header,
                               std::span<const std::byte> payload) {
  TcpRemote* remote = op->peer->remote;
  if (remote->stream == nullptr && remote->retry_ns <= now_ns_) {
    Call(remote);
  }
  const auto copy = [&] {
    std::byte* const head = op->cell + sizeof(FrameHeader);
    CopyBytes(header, head);
    CopyBytes(payload, head + header.size());
  };
  TcpStream* stream = remote->stream;
  const bool at_once =
      stream != nullptr && MayWrite(*stream) && !stream->dirty && stream->round != round_;
  if (!at_once) {
    copy();
    operations_.Enqueue(op);
    if (stream != nullptr && stream->up()) {
      MarkDirty(stream);
      stream->gathered_bytes += op->out.bytes();
      if (!stream->blocked && stream->gathered_bytes >= kGatherBytes) {
        WriteOut(stream);
      }
    }
    return ErrorCode::kOk;
  }
  const bool is_short = header.size() + payload.size() <= kCopyBytes;
  if (is_short) {
    copy();
  }
  const uint64_t sent = WriteAtOnce(stream, op, is_short, header, payload);
  if (sent == kUnreadable) {
    statistics_.errors++;
    operations_.Finish(op);
    return ErrorCode::kInvalidBuffer;
  }
  if (sent == op->out.bytes()) {
    OnWritten(op);
    return ErrorCode::kOk;
  }
  if (!is_short) {
    copy();
  }
  op->out.sent = sent;
  operations_.Enqueue(op);
  if (sent != 0) {
    op->held = true;
    stream->begun = op;
  }
  MarkDirty(stream);
  return ErrorCode::kOk;
}

// Returns how much the kernel has taken, or kUnreadable.
uint64_t TcpTransport::WriteAtOnce(TcpStream* stream, TcpOperation* op, bool copied,
                                   std::span<const std::byte> header,
                                   std::span<const std::byte> payload) {
  std::array<iovec, 3 + kPiecesOfFrame> pieces;
  size_t count = 0;
  const auto add = [&](const std::byte* base, size_t bytes) {
    if (bytes != 0) {
      pieces[count++] = {const_cast<std::byte*>(base), bytes};
    }
  };
  if (copied) {
    add(op->cell, op->out.front_bytes);
  } else {
    add(op->cell, sizeof(FrameHeader));
    add(header.data(), header.size());
    add(payload.data(), payload.size());
  }
  if (op->out.data_bytes != 0) {
    add(op->out.data, op->out.data_bytes);
    add(reinterpret_cast<const std::byte*>(&op->out.trailer), sizeof(op->out.trailer));
  }
  stream->round = round_;
  ssize_t sent = 0;
  if (count == 1) {
    sent = send(stream->fd(), pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
  } else {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    sent = sendmsg(stream->fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (sent < 0 && errno == EFAULT) {
    last_error_ = "the memory to be sent cannot be read";
    return kUnreadable;
  }
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    stream->write_error = errno;
  }
  const auto taken = static_cast<uint64_t>(std::max<ssize_t>(sent, 0));
  if (taken < op->out.bytes()) {
    NoteBlocked(stream);
  }
  return taken;
}

}  // namespace ferry::transport
