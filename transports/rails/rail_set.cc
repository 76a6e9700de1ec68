#include "transports/rails/rail_set.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string>

namespace ferry::transport {
namespace {

constexpr uint64_t kRetryIntervalNs = 1'000'000;  // for parked operations, while asleep

std::vector<Transport*> Pointers(const std::vector<std::unique_ptr<Transport>>& rails) {
  std::vector<Transport*> pointers;
  pointers.reserve(rails.size());
  for (const auto& rail : rails) {
    pointers.push_back(rail.get());
  }
  return pointers;
}

}  // namespace

// ---------------------------------------------------------------------------------------- set-up

RailSet::RailSet(const TransportOptions& options, std::vector<std::unique_ptr<Transport>> rails)
    : owned_(std::move(rails)),
      state_{.options = options,
             .rails = Pointers(owned_),
             .memory = RailMemory(Pointers(owned_)),
             .peers = {},
             .operations =
                 std::vector<RailOperation>(options.max_outstanding + OperationReserve(options)),
             .ended = {}},
      messages_(state_),
      striping_(state_, messages_),
      keys_(state_, messages_, striping_) {
  capabilities_ = First().capabilities();
  for (const Transport* rail : state_.rails) {
    capabilities_.wait_fd &= rail->capabilities().wait_fd;
    capabilities_.progress_needs_poll |= rail->capabilities().progress_needs_poll;
    capabilities_.pins |= rail->capabilities().pins;
    capabilities_.reaches_devices &= rail->capabilities().reaches_devices;
    capabilities_.takes_dmabufs &= rail->capabilities().takes_dmabufs;
  }
  for (auto i = static_cast<uint32_t>(state_.operations.size()); i-- > 0;) {
    state_.operations[i].again.reserve(kPostedStripesPerRail * state_.rails.size());
    free_operations_.push_back(i);
  }
  state_.ended.reserve(state_.operations.size());
}

Status RailSet::Open() {
  StatusOr<SecretSource> cookies = SecretSource::Draw();
  FERRY_RETURN_IF_ERROR(cookies.status());
  cookies_ = *cookies;
  address_ = AddressFor(0);
  if (!capabilities_.wait_fd) {
    return Status();
  }
  wait_fd_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (wait_fd_.get() < 0) {
    return StatusFromErrno(errno, "epoll_create1");
  }
  for (const Transport* rail : state_.rails) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(wait_fd_.get(), EPOLL_CTL_ADD, rail->WaitFd(), &event) != 0) {
      return StatusFromErrno(errno, "epoll_ctl for a rail");
    }
  }
  return Status();
}

std::vector<std::byte> RailSet::AddressFor(uint64_t guest) const {
  RailAddress address;
  address.cookie = CookieFor(guest);
  for (const Transport* rail : state_.rails) {
    address.rails.push_back(rail->AddressFor(guest));
  }
  return Encode(address);
}

const Statistics& RailSet::statistics() const {
  Statistics& sum = statistics_;
  sum.eagain = sum.abandoned = 0;
  sum.misfits = First().statistics().misfits;
  sum.errors = failures_ + sum.misfits;
  sum.timeouts = keys_.timeouts();
  for (const Transport* rail : state_.rails) {
    const Statistics& of_rail = rail->statistics();
    sum.eagain += of_rail.eagain;
    sum.abandoned += of_rail.abandoned;
    sum.timeouts += of_rail.timeouts;
  }
  return sum;
}

std::string RailSet::LastError() const {
  if (state_.last_error != nullptr) {
    return state_.last_error;
  }
  for (const Transport* rail : state_.rails) {
    if (std::string error = rail->LastError(); !error.empty()) {
      return error;
    }
  }
  return "";
}

// ----------------------------------------------------------------------------------------- peers

StatusOr<PeerId> RailSet::AddPeer(std::span<const std::byte> address, uint64_t guest) {
  const std::optional<RailAddress> decoded = Decode(address);
  if (!decoded) {
    return Status(ErrorCode::kInvalidArgument,
                  "AddPeer: these " + std::to_string(address.size()) +
                      " bytes are no address of a node with rails; set fabric_rails on all nodes, "
                      "or on none");
  }
  const PeerId id = state_.peers.Insert();
  RailPeer* peer = state_.peers.Find(id);
  peer->id = id;
  peer->cookie = decoded->cookie;
  peer->own_cookie = CookieFor(guest);
  const size_t common = std::min(state_.rails.size(), decoded->rails.size());
  for (; peer->rails < common; peer->rails++) {
    StatusOr<PeerId> of_rail =
        state_.rails[peer->rails]->AddPeer(decoded->rails[peer->rails], guest);
    if (!of_rail.ok()) {
      while (peer->rails-- > 0) {
        static_cast<void>(state_.rails[peer->rails]->RemovePeer(peer->of_rail[peer->rails]));
      }
      state_.peers.Erase(id);
      return of_rail.status();
    }
    peer->of_rail[peer->rails] = *of_rail;
  }
  by_first_rail_[peer->of_rail[0]] = id;
  return id;
}

Status RailSet::RemovePeer(PeerId id) {
  RailPeer* peer = state_.peers.Find(id);
  if (peer == nullptr || peer->removed) {
    return Status(ErrorCode::kNotFound, "RemovePeer: no such peer");
  }
  FailPeer(id, ErrorCode::kCancelled);
  for (uint32_t rail = 0; rail < peer->rails; rail++) {
    static_cast<void>(state_.rails[rail]->RemovePeer(peer->of_rail[rail]));
  }
  by_first_rail_.erase(peer->of_rail[0]);
  peer->removed = true;
  ForgetIfIdle(peer);
  return Status();
}

void RailSet::FailPeer(PeerId id, ErrorCode code) {
  RailPeer* peer = state_.peers.Find(id);
  if (peer == nullptr) {
    return;
  }
  assert(code != ErrorCode::kOk);
  peer->failure = code;
  for (uint32_t rail = 0; rail < peer->rails; rail++) {
    state_.rails[rail]->FailPeer(peer->of_rail[rail], code);
  }
  // The rails report the stripes they have; nothing more of these operations is posted.
  for (RailOperation& operation : state_.operations) {
    if (operation.active && operation.kind != RailOperation::Kind::kMessage &&
        operation.request.peer == id) {
      keys_.Drop(operation);
      striping_.Fail(&operation, code);
      striping_.EndIfDone(&operation);
    }
  }
}

PeerId RailSet::PeerOn(PeerId id, size_t rail) {
  const RailPeer* peer = state_.peers.Find(id);
  return peer == nullptr || peer->removed || rail >= peer->rails ? kUnknownPeer
                                                                 : peer->of_rail[rail];
}

// The first probe goes with the next Poll, which knows the time.
ErrorCode RailSet::Reaches(PeerId id, size_t rail) {
  ErrorCode code = ErrorCode::kOk;
  RailPeer* peer = Usable(id, &code);
  return peer == nullptr ? code : messages_.Reaches(peer, rail);
}

void RailSet::Doubt(PeerId id, size_t rail) {
  if (RailPeer* peer = state_.peers.Find(id); peer != nullptr && rail < peer->rails) {
    messages_.Doubt(peer, rail);
  }
}

void RailSet::ForgetIfIdle(RailPeer* peer) {
  if (peer->removed && peer->outstanding == 0) {
    state_.peers.Erase(peer->id);
  }
}

// --------------------------------------------------------------------------------------- accepting

// Extends deadlines, as the rails do their own, by a time without calls: that is no fault of the
// peers.
void RailSet::OnCall(uint64_t now_ns) {
  const uint64_t gap_ns = now_ns - std::min(state_.now_ns, now_ns);
  state_.now_ns = now_ns;
  if (gap_ns > state_.options.post_timeout_ns / 2) {
    keys_.Postpone(gap_ns);
  }
}

// Null, with `*code` set, if nothing may be posted to the peer.
RailPeer* RailSet::Usable(PeerId id, ErrorCode* code) {
  RailPeer* peer = state_.peers.Find(id);
  if (peer == nullptr || peer->removed) {
    *code = ErrorCode::kNotFound;
    return nullptr;
  }
  *code = peer->failure;
  return peer->failure == ErrorCode::kOk ? peer : nullptr;
}

ErrorCode RailSet::Accept(RailPeer* peer, RailOperation** operation) {
  const auto outstanding =
      static_cast<uint32_t>(state_.operations.size() - free_operations_.size());
  if (free_operations_.empty() || peer->outstanding >= PerPeerLimit(state_.options) ||
      !MayHaveOneMore({state_.options.max_outstanding, OperationReserve(state_.options),
                       outstanding, busy_peers_},
                      peer->outstanding)) {
    statistics_.would_block++;
    return ErrorCode::kWouldBlock;
  }
  RailOperation& taken = state_.operations[free_operations_.back()];
  free_operations_.pop_back();
  busy_peers_ += peer->outstanding++ == 0 ? 1 : 0;
  taken.result = ErrorCode::kOk;
  taken.active = true;
  taken.parked = false;
  taken.attached = false;
  taken.next_offset = 0;
  taken.again.clear();
  taken.in_flight = 0;
  taken.on_rail.fill(0);
  *operation = &taken;
  return ErrorCode::kOk;
}

ErrorCode RailSet::SendMessage(PeerId id, std::span<const std::byte> header,
                               std::span<const std::byte> payload, uint64_t context,
                               uint64_t now_ns) {
  OnCall(now_ns);
  return StartMessage(id, header.size() + payload.size(), nullptr, context,
                      [&](PeerId to, uint64_t index) {
                        return First().SendMessage(to, header, payload, index, now_ns);
                      });
}

ErrorCode RailSet::SendMessageFrom(PeerId id, std::span<const std::byte> header,
                                   const Attachment& attachment, uint64_t context,
                                   uint64_t now_ns) {
  OnCall(now_ns);
  RailRegion* region = state_.memory.Find(attachment.region);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  Attachment of_rail = attachment;
  of_rail.region = region->handles[0];
  RegionHandle handle = attachment.region;
  return StartMessage(id, header.size() + attachment.bytes, &handle, context,
                      [&](PeerId to, uint64_t index) {
                        return First().SendMessageFrom(to, header, of_rail, index, now_ns);
                      });
}

template <typename Post>
ErrorCode RailSet::StartMessage(PeerId id, uint64_t bytes, RegionHandle* region, uint64_t context,
                                Post&& post) {
  ErrorCode code = ErrorCode::kOk;
  RailPeer* peer = Usable(id, &code);
  if (peer == nullptr) {
    return code;
  }
  RailOperation* operation = nullptr;
  code = Accept(peer, &operation);
  if (code != ErrorCode::kOk) {
    return code;
  }
  operation->kind = RailOperation::Kind::kMessage;
  operation->request = {.peer = id, .bytes = bytes, .context = context};
  const uint32_t index = state_.IndexOf(*operation);
  code = post(peer->of_rail[0], uint64_t{index} << 1);
  if (code != ErrorCode::kOk) {
    operation->active = false;
    failures_ += code == ErrorCode::kWouldBlock ? 0 : 1;
    busy_peers_ -= --peer->outstanding == 0 ? 1 : 0;
    free_operations_.push_back(index);
    return code;
  }
  operation->in_flight = 1;
  if (region != nullptr) {
    operation->attached = true;
    operation->request.region = *region;
    state_.memory.Find(*region)->users++;
  }
  return code;
}

ErrorCode RailSet::StartRma(RailOperation::Kind kind, const RmaRequest& request,
                            Placement placement, uint64_t now_ns) {
  OnCall(now_ns);
  if (request.bytes == 0) {
    return ErrorCode::kInvalidArgument;
  }
  RailRegion* region = state_.memory.Find(request.region);
  if (region == nullptr || !region->Contains(request.local, request.bytes)) {
    return ErrorCode::kInvalidBuffer;
  }
  ErrorCode code = ErrorCode::kOk;
  RailPeer* peer = Usable(request.peer, &code);
  if (peer == nullptr) {
    return code;
  }
  RailOperation* operation = nullptr;
  code = Accept(peer, &operation);
  if (code != ErrorCode::kOk) {
    return code;
  }
  if (!peer->probing) {
    messages_.Probe(peer);
  }
  operation->kind = kind;
  operation->placement = placement;
  operation->request = request;
  operation->attached = true;
  region->users++;
  if (const RailKeys* keys = peer->keys.Find(request.key); keys != nullptr) {
    operation->keys = *keys;
    striping_.Advance(operation);
    return ErrorCode::kOk;
  }
  keys_.Want(operation);
  return ErrorCode::kOk;
}

// ------------------------------------------------------------------------------------------- Poll

void RailSet::Flush(uint64_t now_ns) {
  for (Transport* rail : state_.rails) {
    rail->Flush(now_ns);
  }
}

int RailSet::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  OnCall(now_ns);
  int events = 0;
  first_polled_ =
      (first_polled_ + 1) % state_.rails.size();  // rails left over by the budget take turns
  for (size_t i = 0; i < state_.rails.size() && events < budget; i++) {
    const size_t rail = (first_polled_ + i) % state_.rails.size();
    RailSink rail_sink(*this, rail, sink);
    state_.rails[rail]->Poll(rail_sink, budget - events, now_ns);
    events += rail_sink.handed_on();
  }
  messages_.SendReplies();
  keys_.AskAgain();
  messages_.ProbeAll();
  striping_.AdvanceParked();
  return events + ReportEnded(sink, budget - events);
}

bool RailSet::OnReceive(size_t rail, PeerId sender, std::span<const std::byte> bytes,
                        CompletionSink& user) {
  if (const std::optional<RailMessage> message = RailMessageIn(bytes)) {
    OnRailMessage(rail, *message);
    return false;
  }
  if (rail != 0) {
    failures_++;  // all other messages go by the first rail
    return false;
  }
  CountReceived(bytes.size());
  user.OnReceive(NameOf(sender), bytes);
  return true;
}

void RailSet::OnRailMessage(size_t rail, const RailMessage& message) {
  bool is_known = false;
  state_.peers.ForEach([&](PeerId, const RailPeer& peer) { is_known |= peer.HasSent(message); });
  if (!is_known) {
    return;  // a stranger, or a peer that is not known yet, which asks again
  }
  switch (message.kind) {
    case RailMessage::Kind::kAsk:
      keys_.Answer(message);
      break;
    case RailMessage::Kind::kAnswer:
    case RailMessage::Kind::kUnknown:
      keys_.OnAnswer(message);
      break;
    case RailMessage::Kind::kProbe:
      messages_.OnProbe(rail, message);
      break;
    case RailMessage::Kind::kEcho:
      messages_.OnEcho(rail, message);
      break;
  }
}

// Messages between rails have no attachments.
Landing RailSet::OnHead(size_t rail, PeerId sender, std::span<const std::byte> header,
                        uint64_t attachment_bytes, CompletionSink& user) {
  if (rail != 0) {
    return {};  // OnReceive refuses it
  }
  const Landing landing = user.OnHead(NameOf(sender), header, attachment_bytes);
  if (landing.to != nullptr) {
    CountReceived(header.size() + attachment_bytes);
  }
  return landing;
}

PeerId RailSet::NameOf(PeerId first_rail_sender) const {
  const auto found = by_first_rail_.find(first_rail_sender);
  return found == by_first_rail_.end() ? kUnknownPeer : found->second;
}

void RailSet::CountReceived(uint64_t bytes) {
  statistics_.messages_received++;
  statistics_.message_bytes_received += bytes;
}

void RailSet::OnRailComplete(uint64_t context, ErrorCode code) {
  if (context == kRailMessageContext) {
    return;  // a peer that waits for an answer asks again
  }
  const auto index = static_cast<uint32_t>(context >> 1);
  if ((context & kPostedStripeBit) == 0) {
    RailOperation& message = state_.operations[index];
    message.in_flight = 0;
    message.next_offset = message.request.bytes;
    message.result = code;
    if (code != ErrorCode::kOk) {
      state_.last_error = nullptr;
    }
    striping_.EndIfDone(&message);
    return;
  }
  striping_.OnStripeEnd(index, code);
}

int RailSet::ReportEnded(CompletionSink& sink, int budget) {
  int events = 0;
  while (reported_ < state_.ended.size() && events < budget) {
    const uint32_t index = state_.ended[reported_++];
    const RailOperation& operation = state_.operations[index];
    if (operation.result == ErrorCode::kOk) {
      CountSuccess(operation.kind, operation.request.bytes, &statistics_);
    } else {
      failures_++;
    }
    RailPeer* peer = state_.peers.Find(operation.request.peer);
    busy_peers_ -= --peer->outstanding == 0 ? 1 : 0;
    ForgetIfIdle(peer);
    const uint64_t context = operation.request.context;
    const ErrorCode result = operation.result;
    free_operations_.push_back(index);
    sink.OnComplete(context, result);
    events++;
  }
  if (reported_ == state_.ended.size()) {
    state_.ended.clear();
    reported_ = 0;
  }
  return events;
}

// --------------------------------------------------------------------------------------- sleeping

bool RailSet::PrepareToSleep() {
  return state_.ended.empty() &&
         std::ranges::all_of(state_.rails, [](Transport* rail) { return rail->PrepareToSleep(); });
}

uint64_t RailSet::NextPollNs(uint64_t now_ns) const {
  if (!state_.ended.empty()) {
    return now_ns;
  }
  uint64_t next_ns =
      striping_.has_parked() || messages_.has_replies() ? now_ns + kRetryIntervalNs : UINT64_MAX;
  for (const Transport* rail : state_.rails) {
    next_ns = std::min(next_ns, rail->NextPollNs(now_ns));
  }
  return std::min(next_ns, keys_.NextNs());
}

}  // namespace ferry::transport
