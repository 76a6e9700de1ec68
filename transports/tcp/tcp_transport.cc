#include "transports/tcp/tcp_transport.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/api/check_options.h"
#include "transports/tcp/tcp_transport_state.h"

namespace ferry::transport {
namespace {

// The PCI address of the interface's device; empty if it has none.
std::string PciAddressOf(const std::string& interface) {
  std::error_code error;
  const std::filesystem::path device =
      std::filesystem::read_symlink("/sys/class/net/" + interface + "/device", error);
  const std::string name = device.filename();
  return std::ranges::count(name, ':') == 2 ? name : "";
}

}  // namespace

// ------------------------------------------------------------------------------------------ set-up

TcpTransport::TcpTransport(const TransportOptions& options, UniqueFd epoll,
                           std::unique_ptr<TcpAcceptor> acceptor, std::unique_ptr<TcpCells> cells,
                           const LocalAddress& local)
    : state_(options, std::move(cells)),
      connections_(state_, std::move(epoll), std::move(acceptor), reader_, writer_),
      writer_(state_, connections_, reader_),
      reader_(state_, connections_, writer_),
      address_(sizeof(TcpAddress)),
      capabilities_{.wait_fd = true,
                    .progress_needs_poll = true,
                    .receive_names_peer = true,
                    .pins = false,
                    .max_message_bytes = options.receive_buffer_bytes,
                    .max_attachment_bytes = options.attachment_bytes,
                    .lands_in_place = true} {
  const TcpAddress own = connections_.acceptor().AddressFor(0);
  std::memcpy(address_.data(), &own, sizeof(own));
  description_ = {.provider = kTcpProvider,
                  .fabric = local.network,
                  .domain = local.interface,
                  .version = "protocol " + std::to_string(kTcpVersion),
                  .address = TcpAddressText(own),
                  .pci_address = PciAddressOf(local.interface),
                  .source_address = options.source_address};
}

std::string TcpTransport::LastError() const { return state_.last_error; }

std::vector<std::byte> TcpTransport::AddressFor(uint64_t guest) const {
  const TcpAddress address = connections_.acceptor().AddressFor(guest);
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
      TcpCells::Create(TcpState::OperationSlots(options) * TcpState::CellBytes(options));
  FERRY_RETURN_IF_ERROR(cells.status());
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(
      options, std::move(epoll), std::move(*acceptor), std::move(*cells), *local));
}

// -------------------------------------------------------------------------------- peers and memory

StatusOr<PeerId> TcpTransport::AddPeer(std::span<const std::byte> bytes, uint64_t guest) {
  const std::optional<TcpAddress> address = ParseTcpAddress(bytes);
  if (!address || address->family != connections_.acceptor().endpoint().family) {
    return Status(ErrorCode::kInvalidArgument,
                  "AddPeer: these " + std::to_string(bytes.size()) +
                      " bytes are no address of provider ferry-tcp in the family of " +
                      description_.address +
                      "; do both nodes use the same provider and address family?");
  }
  TcpRemote* remote = connections_.RemoteOf(TcpIdentity::Of(guest, *address), *address);
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
  const PeerId id = state_.peers.Insert();
  TcpPeer* peer = state_.peers.Find(id);
  peer->id = id;
  peer->remote = remote;
  connections_.AddName(remote, peer);
  return id;
}

Status TcpTransport::RemovePeer(PeerId id) {
  TcpPeer* peer = state_.peers.Find(id);
  if (peer == nullptr) {
    return Status(ErrorCode::kNotFound, "RemovePeer: no such peer");
  }
  FailPeer(id, ErrorCode::kCancelled);
  TcpRemote* remote = peer->remote;
  connections_.RemoveName(remote, peer);
  state_.peers.Erase(id);
  connections_.ForgetIfUnused(remote);
  return Status();
}

void TcpTransport::FailPeer(PeerId id, ErrorCode code) {
  TcpPeer* peer = state_.peers.Find(id);
  if (peer == nullptr) {
    return;
  }
  assert(code != ErrorCode::kOk);
  const bool had_failed = std::exchange(peer->failure, code) != ErrorCode::kOk;
  peer->remote->failures++;
  state_.operations.ForAllOf(peer, [&](TcpOperation* op) {
    connections_.LetGo(op);
    state_.operations.End(op, code);
  });
  TcpRemote* remote = peer->remote;
  const bool all_failed = std::ranges::all_of(
      remote->names, [](const TcpPeer* name) { return name->failure != ErrorCode::kOk; });
  for (TcpStream* stream : {remote->stream, remote->called}) {
    if (stream == nullptr) {
      continue;
    }
    if (all_failed) {
      connections_.CloseStream(stream);
    } else if (!had_failed) {  // else what comes now is for its other names
      TcpReader::CutLanding(stream);
    }
  }
}

void TcpTransport::Connect(PeerId id, uint64_t now_ns) {
  OnCall(now_ns);
  const TcpPeer* peer = state_.peers.Find(id);
  if (peer != nullptr && peer->failure == ErrorCode::kOk && peer->remote->stream == nullptr &&
      peer->remote->retry_ns <= state_.now_ns) {
    connections_.Call(peer->remote);
  }
}

ErrorCode TcpTransport::ConnectionTo(PeerId id, std::string* why) {
  const TcpPeer* peer = state_.peers.Find(id);
  if (peer == nullptr) {
    return ErrorCode::kNotFound;
  }
  const TcpRemote& remote = *peer->remote;
  const bool is_refused = remote.stream == nullptr && !remote.refusal.empty();
  const ErrorCode code = peer->failure != ErrorCode::kOk                   ? peer->failure
                         : remote.stream != nullptr && remote.stream->up() ? ErrorCode::kOk
                         : is_refused ? ErrorCode::kNodeUnreachable
                                      : ErrorCode::kWouldBlock;
  if (why != nullptr && code != ErrorCode::kOk) {
    const bool greets =
        remote.stream != nullptr && remote.stream->state() == TcpStream::State::kGreeting;
    *why = is_refused ? remote.refusal
                      : TcpAddressText(remote.address) +
                            (remote.stream == nullptr ? " has not connected"
                             : greets ? " takes the connection, but does not answer the greeting"
                                      : " does not answer");
  }
  return code;
}

StatusOr<std::unique_ptr<Registration>> TcpTransport::ReleaseMemory(RegionHandle handle) {
  TcpRegion* region = state_.memory.Find(handle);
  if (region == nullptr) {
    return Status(ErrorCode::kNotFound, "ReleaseMemory: no such region");
  }
  if (region->users != 0) {
    return Status(ErrorCode::kWouldBlock, "ReleaseMemory: " + std::to_string(region->users) +
                                              " operations still use the region");
  }
  if (region->landing != 0) {  // peers' writes are refused from here on
    for (const auto& stream : state_.streams) {
      if (stream->arrival.region == region) {
        stream->arrival.region = nullptr;
        stream->DropData();
      }
    }
  }
  return state_.memory.Release(handle);
}

// -------------------------------------------------------------------------------------- operations

// Null, with `*code` set, if nothing may be posted to the peer.
TcpPeer* TcpTransport::Usable(PeerId id, ErrorCode* code) {
  TcpPeer* peer = state_.peers.Find(id);
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
  const uint64_t limit = state_.options.receive_buffer_bytes;
  if (header.size() > limit || payload.size() > limit - header.size()) {
    return ErrorCode::kInvalidArgument;
  }
  TcpRegion* region = nullptr;
  if (attachment != nullptr) {
    region = state_.memory.Find(attachment->region);
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
  code = state_.operations.Accept(peer, region, context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  const uint64_t head_bytes = header.size() + payload.size();
  const uint64_t data_bytes = attachment != nullptr ? attachment->bytes : 0;
  op->kind = OperationKind::kMessage;
  op->bytes = head_bytes + data_bytes;
  op->cell = state_.cells->base() + state_.operations.IndexOf(op) * state_.cell_bytes;
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
  return writer_.Submit(op, header, payload);
}

ErrorCode TcpTransport::StartRma(OperationKind kind, const RmaRequest& request, Placement placement,
                                 uint64_t now_ns) {
  OnCall(now_ns);
  if (request.bytes == 0) {
    return ErrorCode::kInvalidArgument;
  }
  TcpRegion* region = state_.memory.Find(request.region);
  if (region == nullptr || !region->Contains(request.local, request.bytes)) {
    return ErrorCode::kInvalidBuffer;
  }
  ErrorCode code = ErrorCode::kOk;
  TcpPeer* peer = Usable(request.peer, &code);
  if (peer == nullptr) {
    return code;
  }
  TcpOperation* op = nullptr;
  code = state_.operations.Accept(peer, region, request.context, now_ns, &op);
  if (code != ErrorCode::kOk) {
    return code;
  }
  op->kind = kind;
  op->placement = placement;
  op->cell = state_.cells->base() + state_.operations.IndexOf(op) * state_.cell_bytes;
  op->local = static_cast<std::byte*>(request.local);
  op->remote_address = request.remote_address;
  op->key = request.key;
  op->bytes = op->remaining = request.bytes;
  writer_.PrepareFragment(op);
  return writer_.Submit(op, {}, {});
}

void TcpTransport::DropLanding(uint64_t context) {
  for (const auto& stream : state_.streams) {
    if (stream->arrival.landing && stream->arrival.landing_context == context) {
      return TcpReader::CutLanding(stream.get());
    }
  }
}

// -------------------------------------------------------------------------------------------- Poll

void TcpTransport::OnCall(uint64_t now_ns) {
  const uint64_t gap_ns = state_.operations.OnCall(now_ns);
  state_.now_ns = now_ns;
  if (gap_ns != 0) {
    connections_.acceptor().Postpone(gap_ns);
    for (const auto& stream : state_.streams) {
      stream->frame_ns += gap_ns;
      stream->up_ns += gap_ns;
    }
  }
}

void TcpTransport::Flush(uint64_t now_ns) {
  OnCall(now_ns);
  writer_.WriteDirty();
  state_.round++;
}

int TcpTransport::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  OnCall(now_ns);
  state_.sink = &sink;
  state_.events = 0;
  state_.has_moved = false;
  writer_.WriteDirty();
  state_.round++;
  ReportEnded(std::max(1, budget / 2));  // a flood of messages must not hold them up
  reader_.ReadStreams(budget);
  writer_.WriteDirty();
  connections_.EndOverdue();
  connections_.EndBroken();
  ReportEnded(budget);
  connections_.FreeClosed();
  state_.round++;
  state_.sink = nullptr;
  return state_.events == 0 && state_.has_moved ? 1 : state_.events;
}

void TcpTransport::ReportEnded(int budget) {
  while (state_.events < budget && !state_.written.empty()) {
    TcpOperation* op = &state_.written.front();
    state_.written.pop_front();
    op->written = false;
    const uint64_t context = op->context;
    CountSuccess(op->kind, op->bytes, &state_.statistics);
    state_.operations.Finish(op);
    state_.events++;
    state_.sink->OnComplete(context, ErrorCode::kOk);
  }
  OperationTable<TcpOperation>::Ended ended;
  while (state_.events < budget && state_.operations.TakeEnded(&ended)) {
    state_.events++;
    state_.sink->OnComplete(ended.context, ended.code);
  }
  while (state_.events < budget && !state_.lost.empty()) {
    const LostPeer lost = state_.lost.back();
    state_.lost.pop_back();
    if (state_.peers.Find(lost.peer) != nullptr) {
      state_.events++;
      state_.sink->OnConnectionEnded(lost.peer, lost.lossless);
    }
  }
}

// ---------------------------------------------------------------------------------------- sleeping

// Returns true if the next Poll has something to do or to report, whatever comes.
bool TcpTransport::HasNews() const {
  return !state_.written.empty() || state_.operations.AnyEnded() || reader_.has_unread() ||
         connections_.any_broken() || !state_.lost.empty();
}

bool TcpTransport::PrepareToSleep() {
  writer_.WriteDirty();
  state_.round++;
  if (HasNews()) {
    return false;
  }
  writer_.WatchDirty();
  reader_.MustLook();
  return true;
}

uint64_t TcpTransport::NextPollNs(uint64_t now_ns) const {
  if (HasNews()) {
    return now_ns;
  }
  uint64_t next_ns = connections_.acceptor().NextNs();
  const uint64_t deadline_ns = state_.operations.NextDeadlineNs();
  // While operations are outstanding, polls often enough not to be taken for a stall.
  if (deadline_ns != UINT64_MAX || writer_.has_dirty()) {
    next_ns = std::min({next_ns, deadline_ns, now_ns + state_.options.post_timeout_ns / 4});
  }
  return std::min(next_ns, connections_.NextNs(now_ns));
}

}  // namespace ferry::transport
