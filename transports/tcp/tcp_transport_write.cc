// Writing what waits: the frames of operations, and answers to peers.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_transport_state.h"

namespace ferry::transport {
namespace {

constexpr size_t kMostFrames = 32;
constexpr uint64_t kMostBatchBytes = 4 << 20;
constexpr int kMostWrites = 8;  // of one stream in one turn
// More streams than this that are blocked are left alone until epoll tells.
constexpr size_t kMostTried = 4;

}  // namespace

// Frames that go by one sendmsg.
struct TcpTransport::Batch {
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

void TcpTransport::NoteBlocked(TcpStream* stream) {
  statistics_.eagain++;
  stream->blocked = true;
}

void TcpTransport::MarkDirty(TcpStream* stream) {
  if (!stream->dirty && !stream->closed()) {
    stream->dirty = true;
    stream->frame_ns = now_ns_;
    dirty_.push_back(stream);
  }
}

void TcpTransport::Flush(uint64_t now_ns) {
  OnCall(now_ns);
  WriteDirty();
  round_++;
}

void TcpTransport::WriteDirty() {
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
      WatchOutput(stream, false);
    }
  }
  if (dirty_.size() > kMostTried) {
    for (TcpStream* stream : dirty_) {
      WatchOutput(stream, stream->blocked);
    }
  }
}

bool TcpTransport::MayWrite(const TcpStream& stream) {
  return stream.up() && !stream.broken() && stream.write_error == 0;
}

bool TcpTransport::HasOutput(const TcpStream& stream) {
  return !stream.replies.empty() ||
         (stream.remote()->stream == &stream &&
          std::ranges::any_of(stream.remote()->names,
                              [](const TcpPeer* name) { return !name->queue.empty(); }));
}

void TcpTransport::WriteOut(TcpStream* stream) {
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
      stream->round = round_;
      has_moved_ |= stream->blocked || static_cast<uint64_t>(sent) < batch.bytes;
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
    WatchOutput(stream, false);
  }
}

// Gathers frames to write. One that has begun goes first; then operations and answers take turns.
void TcpTransport::Gather(TcpStream* stream, size_t most, Batch* batch) {
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

void TcpTransport::OnSent(TcpStream* stream, const Batch& batch, uint64_t bytes) {
  for (size_t i = 0; i < batch.count && bytes > 0; i++) {
    const auto [frame, op] = batch.entries[i];
    const uint64_t taken = std::min(bytes, frame->bytes() - frame->sent);
    frame->sent += taken;
    bytes -= taken;
    const bool whole = frame->sent == frame->bytes();
    stream->frame_ns = whole ? now_ns_ : stream->frame_ns;
    if (op != nullptr) {
      stream->begun = whole ? nullptr : op;
      op->held = true;
      if (whole) {
        operations_.Dequeue(op);
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
void TcpTransport::OnUnreadable(TcpStream* stream, const Batch& batch) {
  const auto [frame, op] = batch.entries[0];
  last_error_ = "the memory to be sent cannot be read";
  if (frame->sent != 0) {
    frame->trailer = FrameTrailer::kSpoilt;
  } else if (op != nullptr) {
    operations_.End(op, ErrorCode::kInvalidBuffer);
  } else {
    const uint64_t id = stream->replies.front().header.id;
    stream->replies.front().region->users--;
    stream->replies.pop_front();
    Reply(stream, FrameKind::kRefused, id);
  }
}

// The kernel has the whole frame.
void TcpTransport::OnWritten(TcpOperation* op) {
  op->held = false;
  if (op->out.trailer != FrameTrailer::kGood) {
    operations_.End(op, ErrorCode::kInvalidBuffer);
  } else if (op->kind == OperationKind::kMessage) {
    op->written = true;
    written_.push_back(*op);
  } else if (op->kind == OperationKind::kWrite && op->placement == Placement::kLocal) {
    EndFragment(op);
  } else {
    op->held = true;  // the peer answers
  }
}

void TcpTransport::EndFragment(TcpOperation* op) {
  op->held = false;
  op->remaining -= op->fragment;
  if (op->remaining == 0) {
    CountSuccess(op->kind, op->bytes, &statistics_);
    return operations_.End(op, ErrorCode::kOk);
  }
  op->local += op->fragment;
  op->remote_address += op->fragment;
  operations_.RenewDeadline(op, now_ns_);
  PrepareFragment(op);
  operations_.Enqueue(op);
  MarkDirty(op->peer->remote->stream);
}

// ---- Answers ----

void TcpTransport::Reply(TcpStream* stream, FrameKind kind, uint64_t id) {
  TcpReply& reply = stream->replies.emplace_back();
  reply.header.kind = static_cast<uint32_t>(kind);
  reply.header.id = id;
  reply.out.front = reinterpret_cast<const std::byte*>(&reply.header);
  reply.out.front_bytes = sizeof(reply.header);
  MarkDirty(stream);
}

// The next [data, data + bytes) of what the read `id` of the peer wants; `region` counts it.
void TcpTransport::ReplyData(TcpStream* stream, uint64_t id, TcpRegion* region,
                             const std::byte* data, uint64_t bytes) {
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
void TcpTransport::OnReplySent(TcpStream* stream) {
  const TcpReply& sent = stream->replies.front();
  const bool is_spoilt = sent.out.trailer != FrameTrailer::kGood;
  statistics_.served_bytes += is_spoilt ? 0 : sent.out.data_bytes;
  if (sent.left != 0 && !is_spoilt) {
    ReplyData(stream, sent.header.id, sent.region, sent.out.data + sent.out.data_bytes, sent.left);
  }
  if (TcpRegion* region = stream->replies.front().region; region != nullptr) {
    region->users--;
  }
  stream->replies.pop_front();
  if (stream->paused && stream->replies.size() <= most_replies_ / 2) {
    ReadOn(stream);
  }
}

}  // namespace ferry::transport
