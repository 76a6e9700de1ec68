// Set-up, peers and memory.
#include "transports/tcp/tcp_transport.h"

#include <sys/epoll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "transports/api/check_options.h"
#include "transports/tcp/tcp_transport_state.h"

namespace ferry::transport {
namespace {

constexpr size_t kCacheLine = 64;

// The PCI address of the interface's device; empty if it has none.
std::string PciAddressOf(const std::string& interface) {
  std::error_code error;
  const std::filesystem::path device =
      std::filesystem::read_symlink("/sys/class/net/" + interface + "/device", error);
  const std::string name = device.filename();
  return std::ranges::count(name, ':') == 2 ? name : "";
}

}  // namespace

// ---- Set-up ----

StatusOr<std::unique_ptr<TcpCells>> TcpCells::Create(size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return StatusFromErrno(errno, "mmap of " + std::to_string(bytes) + " bytes for messages");
  }
  return std::unique_ptr<TcpCells>(new TcpCells(static_cast<std::byte*>(base), bytes));
}

TcpCells::~TcpCells() { munmap(base_, bytes_); }

size_t TcpTransport::CellBytes(const TransportOptions& options) {
  const size_t bytes =
      sizeof(FrameHeader) + std::max<size_t>(options.receive_buffer_bytes, kKeyBytes);
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

TcpTransport::TcpTransport(const TransportOptions& options, UniqueFd epoll,
                           std::unique_ptr<TcpAcceptor> acceptor, std::unique_ptr<TcpCells> cells,
                           const LocalAddress& local)
    : options_(options),
      cell_bytes_(CellBytes(options)),
      most_replies_(std::max<size_t>(kMostReplies, size_t{2} * PerPeerLimit(options))),
      epoll_(std::move(epoll)),
      acceptor_(std::move(acceptor)),
      cells_(std::move(cells)),
      address_(sizeof(TcpAddress)),
      capabilities_{.wait_fd = true,
                    .progress_needs_poll = true,
                    .receive_names_peer = true,
                    .pins = false,
                    .max_message_bytes = options.receive_buffer_bytes,
                    .max_attachment_bytes = options.attachment_bytes,
                    .lands_in_place = true},
      operations_({.slots = OperationSlots(options),
                   .outstanding = options.max_outstanding,
                   .outstanding_per_peer = PerPeerLimit(options),
                   .timeout_ns = options.post_timeout_ns},
                  &statistics_) {
  const TcpAddress own = acceptor_->AddressFor(0);
  std::memcpy(address_.data(), &own, sizeof(own));
  description_ = {.provider = kTcpProvider,
                  .fabric = local.network,
                  .domain = local.interface,
                  .version = "protocol " + std::to_string(kTcpVersion),
                  .address = TcpAddressText(own),
                  .pci_address = PciAddressOf(local.interface),
                  .source_address = options.source_address};
}

std::string TcpTransport::LastError() const { return last_error_; }

std::vector<std::byte> TcpTransport::AddressFor(uint64_t guest) const {
  const TcpAddress address = acceptor_->AddressFor(guest);
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return {bytes.begin(), bytes.end()};
}

StatusOr<std::unique_ptr<Transport>> CreateTcpTransport(const TransportOptions& options) {
  FERRY_RETURN_IF_ERROR(CheckOptions(options));
  StatusOr<LocalAddress> local = Resolve(options);
  FERRY_RETURN_IF_ERROR(local.status());
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return StatusFromErrno(errno, "epoll_create1");
  }
  constexpr uint64_t kAcceptorTag = 1;  // all other tags are addresses of streams
  StatusOr<std::unique_ptr<TcpAcceptor>> acceptor =
      TcpAcceptor::Open(options, local->address, epoll.get(), kAcceptorTag);
  FERRY_RETURN_IF_ERROR(acceptor.status());
  StatusOr<std::unique_ptr<TcpCells>> cells =
      TcpCells::Create(TcpTransport::OperationSlots(options) * TcpTransport::CellBytes(options));
  FERRY_RETURN_IF_ERROR(cells.status());
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(
      options, std::move(epoll), std::move(*acceptor), std::move(*cells), *local));
}

// ---- Peers and memory ----

StatusOr<PeerId> TcpTransport::AddPeer(std::span<const std::byte> bytes, uint64_t guest) {
  const std::optional<TcpAddress> address = ParseTcpAddress(bytes);
  if (!address || address->family != acceptor_->endpoint().family) {
    return Status(ErrorCode::kInvalidArgument,
                  "AddPeer: these " + std::to_string(bytes.size()) +
                      " bytes are no address of provider ferry-tcp in the family of " +
                      description_.address +
                      "; do both nodes use the same provider and address family?");
  }
  TcpRemote* remote = RemoteOf(TcpIdentity::Of(guest, *address), *address);
  const bool is_in_use = std::ranges::any_of(
      remote->names, [](const TcpPeer* name) { return name->failure == ErrorCode::kOk; });
  if (is_in_use && remote->address != *address) {
    return Status(ErrorCode::kInvalidArgument, "AddPeer: this peer has another address, " +
                                                   TcpAddressText(remote->address) +
                                                   ", and nobody has two");
  }
  remote->address = *address;
  if (remote->stream == nullptr) {  // an earlier name of it could not call
    remote->refusal.clear();
  }
  const PeerId id = peers_.Insert();
  TcpPeer* peer = peers_.Find(id);
  peer->id = id;
  peer->remote = remote;
  unnamed_ -= remote->names.empty() ? 1 : 0;
  remote->names.push_back(peer);
  return id;
}

Status TcpTransport::RemovePeer(PeerId id) {
  TcpPeer* peer = peers_.Find(id);
  if (peer == nullptr) {
    return Status(ErrorCode::kNotFound, "RemovePeer: no such peer");
  }
  FailPeer(id, ErrorCode::kCancelled);
  TcpRemote* remote = peer->remote;
  std::erase(remote->names, peer);
  unnamed_ += remote->names.empty() ? 1 : 0;
  peers_.Erase(id);
  ForgetIfUnused(remote);
  return Status();
}

void TcpTransport::FailPeer(PeerId id, ErrorCode code) {
  TcpPeer* peer = peers_.Find(id);
  if (peer == nullptr) {
    return;
  }
  assert(code != ErrorCode::kOk);
  const bool had_failed = std::exchange(peer->failure, code) != ErrorCode::kOk;
  peer->remote->failures++;
  operations_.ForAllOf(peer, [&](TcpOperation* op) {
    LetGo(op);
    operations_.End(op, code);
  });
  TcpRemote* remote = peer->remote;
  const bool all_failed = std::ranges::all_of(
      remote->names, [](const TcpPeer* name) { return name->failure != ErrorCode::kOk; });
  for (TcpStream* stream : {remote->stream, remote->called}) {
    if (stream == nullptr) {
      continue;
    }
    if (all_failed) {
      CloseStream(stream);
    } else if (!had_failed) {  // else what comes now is for its other names
      CutLanding(stream);
    }
  }
}

StatusOr<std::unique_ptr<Registration>> TcpTransport::ReleaseMemory(RegionHandle handle) {
  TcpRegion* region = memory_.Find(handle);
  if (region == nullptr) {
    return Status(ErrorCode::kNotFound, "ReleaseMemory: no such region");
  }
  if (region->users != 0) {
    return Status(ErrorCode::kWouldBlock, "ReleaseMemory: " + std::to_string(region->users) +
                                              " operations still use the region");
  }
  if (region->landing != 0) {  // peers' writes are refused from here on
    for (const auto& stream : streams_) {
      if (stream->arrival.region == region) {
        stream->arrival.region = nullptr;
        stream->DropData();
      }
    }
  }
  return memory_.Release(handle);
}

TcpRemote* TcpTransport::RemoteOf(const TcpIdentity& identity, const TcpEndpoint& endpoint) {
  std::unique_ptr<TcpRemote>& remote = remotes_[identity];
  if (remote == nullptr) {
    remote = std::make_unique<TcpRemote>();
    remote->identity = identity;
    remote->address = {endpoint};
    unnamed_++;
  }
  return remote.get();
}

void TcpTransport::ForgetIfUnused(TcpRemote* remote) {
  if (remote != keeps_remote_ && remote->names.empty() && remote->stream == nullptr &&
      remote->called == nullptr) {
    unnamed_--;
    const TcpIdentity identity = remote->identity;  // of what goes
    remotes_.erase(identity);
  }
}

}  // namespace ferry::transport
