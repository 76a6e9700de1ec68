#include "transports/ofi/ofi_transport.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/api/check_options.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi_transport_state.h"
#include "transports/ofi/options.h"
#include "transports/ofi/provider.h"

namespace ferry::transport {
namespace {

constexpr uint64_t kRetryIntervalNs = 1'000'000;  // for posts put off, while asleep
constexpr int kCompletionBatch = 16;
// All nine orders of sends, reads and writes: FI_ORDER_STRICT, whose use libfabric 2 warns of.
constexpr uint64_t kStrictOrder = 2 * FI_ORDER_SAS - 1;

// Returns the longest attachment that may follow a message. Messages are passed on as the provider
// completes them. FI_ORDER_SAS says in which order they take receive buffers, and nothing of the
// order in which these are full: where the provider promises no order of completions, a long
// message that it sends by a rendezvous or in parts (ofi_rxm: whatever exceeds its buffer size,
// environment.h) is overtaken by the short ones behind it. So messages remain short there.
uint64_t MostAttached(const fi_info& info, const TransportOptions& options) {
  const bool in_order = (info.rx_attr->comp_order & kStrictOrder) == kStrictOrder;
  return in_order && info.tx_attr->iov_limit >= 2 ? options.attachment_bytes : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------------ set-up

OfiTransport::OfiTransport(const TransportOptions& options, std::unique_ptr<Endpoint> endpoint,
                           std::unique_ptr<Arena> arena)
    : options_(options),
      fragment_bytes_(
          std::min<uint64_t>(options.fragment_bytes, endpoint->info->ep_attr->max_msg_size)),
      cell_bytes_(CellBytes(options)),
      arena_(std::move(arena)),
      endpoint_(std::move(endpoint)),
      ep_(endpoint_->endpoint.get()),
      regions_(endpoint_.get()),
      operations_({.slots = OperationSlots(options),
                   .outstanding = options.max_outstanding,
                   .outstanding_per_peer = PerPeerLimit(options),
                   .timeout_ns = options.post_timeout_ns},
                  &statistics_),
      receives_(options.receive_buffers) {
  capabilities_ = {
      .wait_fd = endpoint_->wait_fd >= 0,
      .progress_needs_poll = endpoint_->waits_by_epoll ||
                             endpoint_->info->domain_attr->data_progress != FI_PROGRESS_AUTO,
      .receive_names_peer = (endpoint_->info->caps & FI_SOURCE) != 0,
      .pins = PinsMemory(*endpoint_->info),
      .max_message_bytes = options.receive_buffer_bytes,
      .max_attachment_bytes = MostAttached(*endpoint_->info, options),
      .reaches_devices = endpoint_->ReachesDevices(),
      .takes_dmabufs = endpoint_->TakesDmabufs(),
  };
  // The arena: a cell for each operation, then one for each receive.
  std::byte* cell = arena_->base() + OperationSlots(options) * cell_bytes_;
  for (ReceiveBuffer& buffer : receives_) {
    buffer.is_receive = true;
    buffer.data = cell;
    cell += ReceiveBytes(options);
  }
  deferred_receives_.reserve(receives_.size());
}

OfiTransport::~OfiTransport() {
  // Registrations may be bound to the endpoint, so they go first; the memory itself goes last.
  regions_.Clear();
  arena_->Deregister();
  if (deferred_ != nullptr) {
    deferred_->Deregister();
  }
  endpoint_->endpoint.reset();
  deferred_.reset();  // its counters hold the domain
  endpoint_.reset();
}

Status OfiTransport::OpenDeferredWork() {
  if (!OfiDeferred::Has(*endpoint_)) {
    return Status();
  }
  StatusOr<std::unique_ptr<OfiDeferred>> deferred =
      OfiDeferred::Create(*endpoint_, options_.deferred_entries, &regions_, this);
  FERRY_RETURN_IF_ERROR(deferred.status());
  deferred_ = std::move(*deferred);
  return Status();
}

Status OfiTransport::PostAllReceives() {
  for (ReceiveBuffer& buffer : receives_) {
    if (const ssize_t error = PostReceive(&buffer); error != 0) {
      return SetUpError(static_cast<int>(error), "fi_recv");
    }
  }
  return Status();
}

std::string OfiTransport::LastError() const {
  if (last_error_ == 0) {
    return "";
  }
  return std::string(OpenedLibfabric().strerror(last_error_)) + " (provider " +
         endpoint_->description.provider + ", its error " + std::to_string(last_provider_error_) +
         ")";
}

StatusOr<std::unique_ptr<Transport>> CreateOfiTransport(const TransportOptions& options) {
  return CreateOfiTransportOfJob(options, {});
}

StatusOr<std::unique_ptr<Transport>> CreateOfiTransportOfJob(const TransportOptions& options,
                                                             const SlingshotWords& slingshot) {
  FERRY_RETURN_IF_ERROR(CheckOptions(options));
  const size_t completions =
      OperationSlots(options) + options.receive_buffers + DeferredCompletions(options);
  StatusOr<std::unique_ptr<Endpoint>> endpoint = OpenEndpoint(options, slingshot, completions);
  FERRY_RETURN_IF_ERROR(endpoint.status());
  FERRY_RETURN_IF_ERROR(CheckLimits(options, *(*endpoint)->info));
  StatusOr<std::unique_ptr<Arena>> arena =
      Arena::Create(**endpoint, OperationSlots(options) * CellBytes(options) +
                                    options.receive_buffers * ReceiveBytes(options));
  FERRY_RETURN_IF_ERROR(arena.status());
  auto transport = std::make_unique<OfiTransport>(options, std::move(*endpoint), std::move(*arena));
  FERRY_RETURN_IF_ERROR(transport->OpenDeferredWork());
  FERRY_RETURN_IF_ERROR(transport->PostAllReceives());
  return std::unique_ptr<Transport>(std::move(transport));
}

// ------------------------------------------------------------------------------------------- peers

StatusOr<PeerId> OfiTransport::AddPeer(std::span<const std::byte> address, uint64_t /*guest*/) {
  if (address.size() != endpoint_->name.size()) {
    return Status(ErrorCode::kInvalidArgument,
                  "AddPeer: an address of provider " + endpoint_->description.provider + " has " +
                      std::to_string(endpoint_->name.size()) + " bytes, this one " +
                      std::to_string(address.size()) +
                      "; do both nodes use the same provider and address family?");
  }
  fi_addr_t fabric_address = FI_ADDR_UNSPEC;
  const int inserted =
      fi_av_insert(endpoint_->addresses.get(), address.data(), 1, &fabric_address, 0, nullptr);
  if (inserted != 1) {
    return Status(
        ErrorCode::kInvalidArgument,
        "AddPeer: provider " + endpoint_->description.provider + " does not accept this address");
  }
  const PeerId id = peers_.Insert();
  Peer* peer = peers_.Find(id);
  peer->id = id;
  peer->address = fabric_address;
  if (fabric_address >= peer_by_address_.size()) {
    peer_by_address_.resize(fabric_address + 1, kUnknownPeer);
  }
  peer_by_address_[fabric_address] = id;
  return id;
}

Status OfiTransport::RemovePeer(PeerId id) {
  Peer* peer = peers_.Find(id);
  if (peer == nullptr || peer->removed) {
    return Status(ErrorCode::kNotFound, "RemovePeer: no such peer");
  }
  FailPeer(id, ErrorCode::kCancelled);
  peer->removed = true;
  if (peer_by_address_[peer->address] == id) {
    peer_by_address_[peer->address] = kUnknownPeer;
  }
  ForgetIfIdle(peer);
  return Status();
}

void OfiTransport::FailPeer(PeerId id, ErrorCode code) {
  Peer* peer = peers_.Find(id);
  if (peer == nullptr) {
    return;
  }
  assert(code != ErrorCode::kOk);
  peer->failure = code;
  operations_.EndAll(peer, code);
}

// The provider may still look up the address of what it holds, so the peer stays until then.
void OfiTransport::ForgetIfIdle(Peer* peer) {
  if (!peer->removed || peer->held != 0) {
    return;
  }
  fi_av_remove(endpoint_->addresses.get(), &peer->address, 1, 0);
  peers_.Erase(peer->id);
}

// ----------------------------------------------------------------------------------------- posting

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

// -------------------------------------------------------------------------------------------- Poll

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
