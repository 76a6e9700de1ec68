#include "transports/ofi/ofi_transport.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/api/check_options.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi_transport_state.h"
#include "transports/ofi/options.h"
#include "transports/ofi/provider.h"

namespace ferry::transport {

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
      .max_attachment_bytes =
          endpoint_->info->tx_attr->iov_limit >= 2 ? options.attachment_bytes : 0,
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

StatusOr<std::unique_ptr<Transport>> CreateOfiTransport(const TransportOptions& options) {
  FERRY_RETURN_IF_ERROR(CheckOptions(options));
  const size_t completions =
      OperationSlots(options) + options.receive_buffers + DeferredCompletions(options);
  StatusOr<std::unique_ptr<Endpoint>> endpoint = OpenEndpoint(options, completions);
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

}  // namespace ferry::transport
