// Accepting and posting operations.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>

#include "transports/api/accounting.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi_transport_state.h"

namespace ferry::transport {

// Null, with `*code` set, if nothing may be posted to the peer.
Peer* OfiTransport::Usable(PeerId id, ErrorCode* code) {
  Peer* peer = peers_.Find(id);
  if (peer == nullptr || peer->removed) {
    *code = ErrorCode::kNotFound;
    return nullptr;
  }
  *code = peer->failure;
  return peer->failure == ErrorCode::kOk ? peer : nullptr;
}

ErrorCode OfiTransport::SendMessage(PeerId id, std::span<const std::byte> header,
                                    std::span<const std::byte> payload, uint64_t context,
                                    uint64_t now_ns) {
  return StartMessage(id, header, payload, nullptr, context, now_ns);
}

ErrorCode OfiTransport::SendMessageFrom(PeerId id, std::span<const std::byte> header,
                                        const Attachment& attachment, uint64_t context,
                                        uint64_t now_ns) {
  if (attachment.bytes > capabilities_.max_attachment_bytes) {
    return ErrorCode::kInvalidArgument;
  }
  return StartMessage(id, header, {}, &attachment, context, now_ns);
}

ErrorCode OfiTransport::StartMessage(PeerId id, std::span<const std::byte> header,
                                     std::span<const std::byte> payload,
                                     const Attachment* attachment, uint64_t context,
                                     uint64_t now_ns) {
  operations_.OnCall(now_ns);
  const uint64_t limit = options_.receive_buffer_bytes;
  if (header.size() > limit || payload.size() > limit - header.size()) {
    return ErrorCode::kInvalidArgument;
  }
  Region* region = nullptr;
  if (attachment != nullptr) {
    region = regions_.Find(attachment->region);
    if (region == nullptr || !region->Contains(attachment->data, attachment->bytes)) {
      return ErrorCode::kInvalidBuffer;
    }
  }
  ErrorCode code = ErrorCode::kOk;
  Peer* peer = Usable(id, &code);
  if (peer == nullptr) {
    return code;
  }
  Operation* op = nullptr;
  code = operations_.Accept(peer, region, context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  op->kind = Operation::Kind::kMessage;
  op->local = arena_->base() + operations_.IndexOf(op) * cell_bytes_;
  op->descriptor = arena_->descriptor();
  op->attachment = nullptr;
  op->attachment_bytes = 0;
  if (attachment != nullptr) {
    op->attachment = static_cast<const std::byte*>(attachment->data);
    op->attachment_bytes = attachment->bytes;
  }
  op->bytes = op->remaining = header.size() + payload.size() + op->attachment_bytes;
  CopyBytes(header, op->local);
  CopyBytes(payload, op->local + header.size());
  return Start(op);
}

ErrorCode OfiTransport::StartRma(Operation::Kind kind, const RmaRequest& request,
                                 Placement placement, uint64_t now_ns) {
  operations_.OnCall(now_ns);
  if (request.bytes == 0) {
    return ErrorCode::kInvalidArgument;
  }
  Region* region = regions_.Find(request.region);
  if (region == nullptr || !region->Contains(request.local, request.bytes)) {
    return ErrorCode::kInvalidBuffer;
  }
  ErrorCode code = ErrorCode::kOk;
  Peer* peer = Usable(request.peer, &code);
  if (peer == nullptr) {
    return code;
  }
  Operation* op = nullptr;
  code = operations_.Accept(peer, region, request.context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  op->kind = kind;
  op->placement = placement;
  op->local = static_cast<std::byte*>(request.local);
  op->descriptor = region->descriptor;
  op->remote_address = request.remote_address;
  op->key = request.key;
  op->bytes = op->remaining = request.bytes;
  return Start(op);
}

// Posts or queues an accepted operation, unless the provider refuses it for good.
ErrorCode OfiTransport::Start(Operation* op) {
  const ErrorCode code = PostOrQueue(op);
  if (code != ErrorCode::kOk) {
    statistics_.errors++;
    operations_.Finish(op);
  }
  return code;
}

// Calls the provider for the current fragment. Returns 0, -FI_EAGAIN or another negative error.
ssize_t OfiTransport::PostFragment(Operation* op) {
  queue_empty_ = false;
  if (op->kind == Operation::Kind::kMessage) {
    return PostMessage(op);
  }
  const fi_addr_t to = op->peer->address;
  PostContext* context = op;
  const uint64_t length = std::min(op->remaining, fragment_bytes_);
  const iovec local{op->local, length};
  const fi_rma_iov remote{op->remote_address, length, op->key};
  const fi_msg_rma message{&local, &op->descriptor, 1, to, &remote, 1, context, 0};
  if (op->kind == Operation::Kind::kRead) {
    return fi_readmsg(ep_, &message, FI_COMPLETION);
  }
  const uint64_t placed = op->placement == Placement::kRemote ? FI_DELIVERY_COMPLETE : 0;
  return fi_writemsg(ep_, &message, FI_COMPLETION | placed);
}

ssize_t OfiTransport::PostMessage(Operation* op) {
  const fi_addr_t to = op->peer->address;
  PostContext* context = op;
  const uint64_t copied = op->bytes - op->attachment_bytes;
  if (op->attachment == nullptr) {
    return fi_send(ep_, op->local, copied, op->descriptor, to, context);
  }
  const iovec parts[] = {{op->local, copied},
                         {const_cast<std::byte*>(op->attachment), op->attachment_bytes}};
  void* descriptors[] = {op->descriptor, op->region->descriptor};
  return fi_sendv(ep_, parts, descriptors, 2, to, context);
}

// PostFragment, with its bookkeeping.
ssize_t OfiTransport::Post(Operation* op) {
  const ssize_t error = PostFragment(op);
  if (error == 0) {
    op->held = true;
    op->peer->held++;
  } else if (error == -FI_EAGAIN) {
    statistics_.eagain++;
  } else {
    last_error_ = static_cast<int>(-error);
    last_provider_error_ = 0;
  }
  return error;
}

// kOk means posted, or queued to be posted. Queued operations are never overtaken.
ErrorCode OfiTransport::PostOrQueue(Operation* op) {
  const ssize_t error = op->peer->queue.empty() ? Post(op) : -FI_EAGAIN;
  if (error == -FI_EAGAIN) {
    operations_.Enqueue(op);
    return ErrorCode::kOk;
  }
  return error == 0 ? ErrorCode::kOk : OperationError(static_cast<int>(-error));
}

}  // namespace ferry::transport
