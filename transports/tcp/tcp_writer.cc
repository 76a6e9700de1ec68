#include "transports/tcp/tcp_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_connections.h"
#include "transports/tcp/tcp_reader.h"

namespace ferry::transport {
namespace {

// Gathered frames go when there is so much of them: by then a system call costs less than the
// copying, and the peer may begin.
constexpr uint64_t kGatherBytes = 32 << 10;
// A head up to this long is copied to its header even if it leaves at once: one piece is cheaper.
constexpr size_t kCopyBytes = 512;

constexpr size_t kMostFrames = 32;
constexpr uint64_t kMostBatchBytes = 4 << 20;
constexpr int kMostWrites = 8;  // of one stream in one turn
// More streams than this that are blocked are left alone until epoll tells.
constexpr size_t kMostTried = 4;

uint64_t IdOf(const TcpOperation& op, size_t index) {
  return uint64_t{op.generation} << 32 | index;
}

}  // namespace

// Frames that go by one sendmsg.
struct TcpWriter::Batch {
  struct Entry {
    OutFrame* frame;
    TcpOperation* op;  // null: the next one of the replies
  };
  std::array<Entry, kMostFrames> entries;
  size_t count = 0;
  std::array<iovec, kMostFrames * kPiecesOfFrame> pieces;
  size_t piece_count = 0;
  uint64_t bytes = 0;

  // False: the batch is to end with it.
  bool Add(OutFrame* frame, TcpOperation* op) {
    const uint64_t before = bytes;
    entries[count++] = {frame, op};
    piece_count += AddPieces(*frame, pieces.data() + piece_count, &bytes);
    return bytes - before == frame->bytes() - frame->sent && bytes < kMostBatchBytes;
  }
};

// -------------------------------------------------------------------------------------- operations

void TcpWriter::PrepareFragment(TcpOperation* op) {
  op->generation = std::max(1U, op->generation + 1);  // so that no id is 0
  op->fragment = std::min({op->remaining, state_.options.fragment_bytes, kMostFrameBytes});
  op->arrived = 0;
  const bool is_read = op->kind == OperationKind::kRead;
  FrameHeader frame;
  frame.kind = static_cast<uint32_t>(is_read ? FrameKind::kRead : FrameKind::kWrite);
  frame.head_bytes = kKeyBytes;
  frame.data_bytes = op->fragment;
  frame.address = op->remote_address;
  if (is_read || op->placement == Placement::kRemote) {
    frame.id = IdOf(*op, state_.operations.IndexOf(op));
  }
  std::memcpy(op->cell, &frame, sizeof(frame));
  std::memcpy(op->cell + sizeof(frame), &op->key, kKeyBytes);
  op->out = {.front = op->cell,
             .front_bytes = sizeof(frame) + kKeyBytes,
             .data = is_read ? nullptr : op->local,
             .data_bytes = is_read ? 0 : op->fragment};
}

ErrorCode TcpWriter::Submit(TcpOperation* op, std::span<const std::byte> header,
                            std::span<const std::byte> payload) {
  TcpRemote* remote = op->peer->remote;
  if (remote->stream == nullptr && remote->retry_ns <= state_.now_ns) {
    connections_.Call(remote);
  }
  const auto copy = [&] {
    std::byte* const head = op->cell + sizeof(FrameHeader);
    CopyBytes(header, head);
    CopyBytes(payload, head + header.size());
  };
  TcpStream* stream = remote->stream;
  const bool at_once =
      stream != nullptr && MayWrite(*stream) && !stream->dirty && stream->round != state_.round;
  if (!at_once) {
    copy();
    state_.operations.Enqueue(op);
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
    state_.statistics.errors++;
    state_.operations.Finish(op);
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
  state_.operations.Enqueue(op);
  if (sent != 0) {
    op->held = true;
    stream->begun = op;
  }
  MarkDirty(stream);
  return ErrorCode::kOk;
}

// Returns how much the kernel has taken, or kUnreadable.
uint64_t TcpWriter::WriteAtOnce(TcpStream* stream, TcpOperation* op, bool copied,
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
  stream->round = state_.written_round = state_.round;
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
    state_.last_error = "the memory to be sent cannot be read";
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

// The kernel has the whole frame.
void TcpWriter::OnWritten(TcpOperation* op) {
  op->held = false;
  if (op->out.trailer != FrameTrailer::kGood) {
    state_.operations.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->kind == OperationKind::kMessage) {
    op->written = true;
    state_.written.push_back(*op);
  } else if (op->kind == OperationKind::kWrite && op->placement == Placement::kLocal) {
    EndFragment(op);
  } else {
    op->held = true;  // the peer answers
  }
}

void TcpWriter::EndFragment(TcpOperation* op) {
  op->held = false;
  op->remaining -= op->fragment;
  if (op->remaining == 0) {
    CountSuccess(op->kind, op->bytes, &state_.statistics);
    return state_.operations.End(op, ErrorCode::kOk);
  }
  op->local += op->fragment;
  op->remote_address += op->fragment;
  state_.operations.RenewDeadline(op, state_.now_ns);
  PrepareFragment(op);
  state_.operations.Enqueue(op);
  MarkDirty(op->peer->remote->stream);
}

// ----------------------------------------------------------------------------------------- streams

void TcpWriter::NoteBlocked(TcpStream* stream) {
  state_.statistics.eagain++;
  stream->blocked = true;
}

void TcpWriter::MarkDirty(TcpStream* stream) {
  if (!stream->dirty && !stream->closed()) {
    stream->dirty = true;
    stream->frame_ns = state_.now_ns;
    dirty_.push_back(stream);
  }
}

void TcpWriter::WriteDirty() {
  for (size_t i = 0; i < dirty_.size();) {
    TcpStream* stream = dirty_[i];
    if (!stream->watched || !stream->blocked) {
      WriteOut(stream);
    }
    if (HasOutput(*stream) && !stream->broken()) {
      i++;
      continue;
    }
    stream->dirty = false;
    dirty_[i] = dirty_.back();
    dirty_.pop_back();
    if (!stream->broken()) {  // what waited may have ended by its deadline
      connections_.WatchOutput(stream, false);
    }
  }
  if (dirty_.size() > kMostTried) {
    for (TcpStream* stream : dirty_) {
      connections_.WatchOutput(stream, stream->blocked);
    }
  }
}

bool TcpWriter::MayWrite(const TcpStream& stream) {
  return stream.up() && !stream.broken() && stream.write_error == 0;
}

bool TcpWriter::HasOutput(const TcpStream& stream) {
  return !stream.replies.empty() ||
         (stream.remote()->stream == &stream &&
          std::ranges::any_of(stream.remote()->names,
                              [](const TcpPeer* name) { return !name->queue.empty(); }));
}

void TcpWriter::WriteOut(TcpStream* stream) {
  stream->gathered_bytes = 0;
  size_t most = kMostFrames;
  for (int writes = 0; writes < kMostWrites && MayWrite(*stream); writes++) {
    Batch batch;
    Gather(stream, most, &batch);
    if (batch.count == 0) {
      stream->blocked = false;
      break;
    }
    msghdr message{};
    message.msg_iov = batch.pieces.data();
    message.msg_iovlen = batch.piece_count;
    const ssize_t sent = sendmsg(stream->fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      stream->round = state_.written_round = state_.round;
      state_.has_moved |= stream->blocked || static_cast<uint64_t>(sent) < batch.bytes;
      OnSent(stream, batch, static_cast<uint64_t>(sent));
      most = kMostFrames;
      if (static_cast<uint64_t>(sent) < batch.bytes) {
        NoteBlocked(stream);
        return;
      }
      stream->blocked = false;
      continue;
    }
    if (errno == EAGAIN || errno == EINTR) {
      if (!stream->blocked) {
        NoteBlocked(stream);
      }
      return;
    }
    if (errno != EFAULT) {
      stream->write_error = errno;
      return NoteBlocked(stream);
    }
    if (batch.count > 1) {
      most = 1;  // finds out which
    } else {
      OnUnreadable(stream, batch);
      most = kMostFrames;
    }
  }
  if (stream->watched && !stream->blocked) {
    connections_.WatchOutput(stream, false);
  }
}

// Gathers frames to write. One that has begun goes first; then operations and answers take turns.
void TcpWriter::Gather(TcpStream* stream, size_t most, Batch* batch) {
  TcpRemote* remote = stream->remote();
  auto reply = stream->replies.begin();
  bool goes_on = true;
  if (stream->begun != nullptr) {
    goes_on = batch->Add(&stream->begun->out, stream->begun);
  } else if (stream->reply_begun) {
    goes_on = batch->Add(&reply->out, nullptr);
    ++reply;
  }
  size_t name = remote->stream == stream ? 0 : remote->names.size();
  auto op = name < remote->names.size() ? remote->names[name]->queue.begin()
                                        : decltype(remote->names[0]->queue.begin())();
  const auto next_op = [&]() -> TcpOperation* {
    while (name < remote->names.size()) {
      if (op == remote->names[name]->queue.end()) {
        if (++name < remote->names.size()) {
          op = remote->names[name]->queue.begin();
        }
      } else if (&*op == stream->begun) {
        ++op;
      } else {
        return &*op;
      }
    }
    return nullptr;
  };
  while (goes_on && batch->count < most) {
    TcpOperation* const next = next_op();
    const bool has_reply = reply != stream->replies.end();
    if (next == nullptr && !has_reply) {
      break;
    }
    stream->replies_turn = !stream->replies_turn;
    if (has_reply && (stream->replies_turn || next == nullptr)) {
      goes_on = batch->Add(&reply->out, nullptr);
      ++reply;
    } else {
      goes_on = batch->Add(&next->out, next);
      ++op;
    }
  }
}

void TcpWriter::OnSent(TcpStream* stream, const Batch& batch, uint64_t bytes) {
  for (size_t i = 0; i < batch.count && bytes > 0; i++) {
    const auto [frame, op] = batch.entries[i];
    const uint64_t taken = std::min(bytes, frame->bytes() - frame->sent);
    frame->sent += taken;
    bytes -= taken;
    const bool whole = frame->sent == frame->bytes();
    stream->frame_ns = whole ? state_.now_ns : stream->frame_ns;
    if (op != nullptr) {
      stream->begun = whole ? nullptr : op;
      op->held = true;
      if (whole) {
        state_.operations.Dequeue(op);
        OnWritten(op);
      }
    } else {
      stream->reply_begun = !whole;
      if (whole) {
        OnReplySent(stream);
      }
    }
  }
}

// The first frame of the batch has data that cannot be read: it does not go, or if it has begun,
// goes on as zeros that are marked as such.
void TcpWriter::OnUnreadable(TcpStream* stream, const Batch& batch) {
  const auto [frame, op] = batch.entries[0];
  state_.last_error = "the memory to be sent cannot be read";
  if (frame->sent != 0) {
    frame->trailer = FrameTrailer::kSpoilt;
  } else if (op != nullptr) {
    state_.operations.End(op, ErrorCode::kInvalidBuffer);
  } else {
    const uint64_t id = stream->replies.front().header.id;
    stream->replies.front().region->users--;
    stream->replies.pop_front();
    Reply(stream, FrameKind::kRefused, id);
  }
}

void TcpWriter::WatchDirty() {
  for (TcpStream* stream : dirty_) {
    connections_.WatchOutput(stream, true);
  }
}

void TcpWriter::CloseStalled() {
  for (TcpStream* stream : dirty_) {
    if (state_.now_ns - stream->frame_ns > state_.options.post_timeout_ns && HasOutput(*stream)) {
      connections_.Break(stream, ETIMEDOUT);
    }
  }
}

void TcpWriter::Forget(TcpStream* stream) { std::erase(dirty_, stream); }

// ----------------------------------------------------------------------------------------- answers

void TcpWriter::Reply(TcpStream* stream, FrameKind kind, uint64_t id) {
  TcpReply& reply = stream->replies.emplace_back();
  reply.header.kind = static_cast<uint32_t>(kind);
  reply.header.id = id;
  reply.out.front = reinterpret_cast<const std::byte*>(&reply.header);
  reply.out.front_bytes = sizeof(reply.header);
  MarkDirty(stream);
}

void TcpWriter::ReplyData(TcpStream* stream, uint64_t id, TcpRegion* region, const std::byte* data,
                          uint64_t bytes) {
  Reply(stream, FrameKind::kData, id);
  TcpReply& reply = stream->replies.back();
  const uint64_t now = std::min(bytes, kAnswerBytes);
  reply.header.data_bytes = now;
  reply.out.data = data;
  reply.out.data_bytes = now;
  reply.left = bytes - now;
  reply.region = region;
  region->users++;
}

// The first of the replies has gone. The rest of its data goes behind the other replies.
void TcpWriter::OnReplySent(TcpStream* stream) {
  const TcpReply& sent = stream->replies.front();
  const bool is_spoilt = sent.out.trailer != FrameTrailer::kGood;
  state_.statistics.served_bytes += is_spoilt ? 0 : sent.out.data_bytes;
  if (sent.left != 0 && !is_spoilt) {
    ReplyData(stream, sent.header.id, sent.region, sent.out.data + sent.out.data_bytes, sent.left);
  }
  if (TcpRegion* region = stream->replies.front().region; region != nullptr) {
    region->users--;
  }
  stream->replies.pop_front();
  if (stream->paused && stream->replies.size() <= state_.most_replies / 2) {
    reader_.ReadOn(stream);
  }
}

}  // namespace ferry::transport
