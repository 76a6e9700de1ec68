// Poll: completions of the NIC, posts that the provider had put off, and sleeping.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

#include "transports/api/accounting.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi_transport_state.h"
#include "transports/ofi/options.h"

namespace ferry::transport {
namespace {

constexpr uint64_t kRetryIntervalNs = 1'000'000;  // for posts put off, while asleep
constexpr int kCompletionBatch = 16;

}  // namespace

int OfiTransport::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  operations_.OnCall(now_ns);
  int events = ReadCompletions(sink, budget, now_ns);
  while (operations_.EndOverdue(now_ns) != nullptr) {
  }
  RetryQueues();
  RetryReceives();
  events += ReportEnded(sink, budget - events);
  return events;
}

int OfiTransport::ReadCompletions(CompletionSink& sink, int budget, uint64_t now_ns) {
  std::array<fi_cq_msg_entry, kCompletionBatch> entries;
  std::array<fi_addr_t, kCompletionBatch> sources;
  int events = 0;
  for (int entries_read = 0; entries_read < budget;) {
    const int wanted = std::min(kCompletionBatch, budget - entries_read);
    const ssize_t count = fi_cq_readfrom(endpoint_->completions.get(), entries.data(),
                                         static_cast<size_t>(wanted), sources.data());
    if (count == -FI_EAVAIL) {
      events += ReadError(sink, now_ns);
      entries_read++;
      continue;
    }
    queue_empty_ = count == -FI_EAGAIN;
    if (count <= 0) {
      break;
    }
    for (ssize_t i = 0; i < count; i++) {
      if (IsDeferred(entries[i].op_context)) {
        continue;  // its counter tells
      }
      auto* context = static_cast<PostContext*>(entries[i].op_context);
      if (context->is_receive) {
        OnMessage(static_cast<ReceiveBuffer*>(context), entries[i].len, sources[i], sink);
        events++;
      } else {
        events += OnOperation(static_cast<Operation*>(context), ErrorCode::kOk, sink, now_ns);
      }
    }
    entries_read += static_cast<int>(count);
    if (count < wanted) {
      break;  // the next look enters the kernel: pass on what came first
    }
  }
  return events;
}

int OfiTransport::ReadError(CompletionSink& sink, uint64_t now_ns) {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(endpoint_->completions.get(), &entry, 0) <= 0) {
    return 0;
  }
  last_error_ = entry.err;
  last_provider_error_ = entry.prov_errno;
  if (IsDeferred(entry.op_context)) {
    deferred_->OnError(entry.op_context, OperationError(entry.err));
    return 0;
  }
  auto* context = static_cast<PostContext*>(entry.op_context);
  if (context != nullptr && !context->is_receive) {
    return OnOperation(static_cast<Operation*>(context), OperationError(entry.err), sink, now_ns);
  }
  statistics_.errors++;  // a message that did not fit, or an error of no operation
  statistics_.misfits += context != nullptr && entry.err != FI_ECANCELED ? 1 : 0;
  if (context != nullptr && entry.err != FI_ECANCELED) {
    PostReceiveOrDefer(static_cast<ReceiveBuffer*>(context));
  }
  return 0;
}

void OfiTransport::OnMessage(ReceiveBuffer* buffer, size_t bytes, fi_addr_t source,
                             CompletionSink& sink) {
  statistics_.messages_received++;
  statistics_.message_bytes_received += bytes;
  const bool known = capabilities_.receive_names_peer && source < peer_by_address_.size();
  sink.OnReceive(known ? peer_by_address_[source] : kUnknownPeer, {buffer->data, bytes});
  PostReceiveOrDefer(buffer);
}

// The NIC has let go of a fragment. Returns 1 if that ended an operation, now reported.
int OfiTransport::OnOperation(Operation* op, ErrorCode code, CompletionSink& sink,
                              uint64_t now_ns) {
  op->held = false;
  op->peer->held--;
  if (op->state != Operation::State::kPosted) {
    ForgetIfIdle(op->peer);
    operations_.OnLateEnd(op);
    return 0;
  }
  if (code == ErrorCode::kOk) {
    const uint64_t length = op->kind == Operation::Kind::kMessage
                                ? op->remaining
                                : std::min(op->remaining, fragment_bytes_);
    op->remaining -= length;
    if (op->remaining > 0) {
      op->local += length;
      op->remote_address += length;
      operations_.RenewDeadline(op, now_ns);
      code = PostOrQueue(op);
      if (code == ErrorCode::kOk) {
        return 0;
      }
    }
  }
  if (code == ErrorCode::kOk) {
    CountSuccess(op->kind, op->bytes, &statistics_);
  } else {
    statistics_.errors++;
  }
  operations_.Finish(op);
  sink.OnComplete(op->context, code);
  return 1;
}

// Posts what the provider had put off, each peer's in order.
void OfiTransport::RetryQueues() {
  for (auto next = operations_.waiting().begin(); next != operations_.waiting().end();) {
    Peer& peer = *next++;  // Dequeue may take it off the list
    while (!peer.queue.empty()) {
      Operation* op = &peer.queue.front();
      const ssize_t error = Post(op);
      if (error == -FI_EAGAIN) {
        break;
      }
      if (error == 0) {
        operations_.Dequeue(op);
      } else {
        operations_.End(op, OperationError(static_cast<int>(-error)));
      }
    }
  }
}

int OfiTransport::ReportEnded(CompletionSink& sink, int budget) {
  int events = 0;
  OperationTable<Operation>::Ended ended;
  while (events < budget && operations_.TakeEnded(&ended)) {
    sink.OnComplete(ended.context, ended.code);
    events++;
  }
  return events;
}

ssize_t OfiTransport::PostReceive(ReceiveBuffer* buffer) {
  queue_empty_ = false;
  PostContext* context = buffer;
  return fi_recv(ep_, buffer->data, ReceiveBytes(options_), arena_->descriptor(), FI_ADDR_UNSPEC,
                 context);
}

void OfiTransport::PostReceiveOrDefer(ReceiveBuffer* buffer) {
  if (PostReceive(buffer) != 0) {
    deferred_receives_.push_back(buffer);  // within the capacity reserved
  }
}

void OfiTransport::RetryReceives() {
  while (!deferred_receives_.empty() && PostReceive(deferred_receives_.back()) == 0) {
    deferred_receives_.pop_back();
  }
}

bool OfiTransport::PrepareToSleep() {
  if (!capabilities_.wait_fd || operations_.AnyEnded()) {
    return false;
  }
  if (endpoint_->waits_by_epoll) {
    return queue_empty_;
  }
  fid* queue = &endpoint_->completions->fid;
  return fi_trywait(endpoint_->fabric.get(), &queue, 1) == FI_SUCCESS;
}

uint64_t OfiTransport::NextPollNs(uint64_t now_ns) const {
  if (operations_.AnyEnded()) {
    return now_ns;
  }
  if (operations_.AnyWaiting() || !deferred_receives_.empty()) {
    return now_ns + kRetryIntervalNs;
  }
  const uint64_t deadline_ns = operations_.NextDeadlineNs();
  // While operations are outstanding, polls often enough not to be taken for a stall.
  return deadline_ns == UINT64_MAX ? UINT64_MAX
                                   : std::min(deadline_ns, now_ns + options_.post_timeout_ns / 4);
}

}  // namespace ferry::transport
