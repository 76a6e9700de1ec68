#include "transports/rails/rail_set.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace ferry::transport {
namespace {

Status OnRail(size_t rail, const Status& status) {
  return Status(status.code(), "rail " + std::to_string(rail) + ": " + status.message());
}

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

// ---- RailMemory ----

StatusOr<std::unique_ptr<Registration>> RailMemory::Prepare(void* base, uint64_t bytes,
                                                            const PrepareOne& prepare) const {
  auto prepared = std::make_unique<RailsRegistration>();
  prepared->base = static_cast<std::byte*>(base);
  prepared->bytes = bytes;
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    StatusOr<std::unique_ptr<Registration>> part = prepare(*rails_[rail]);
    if (!part.ok()) {
      return OnRail(rail, part.status());
    }
    prepared->of_rail[rail] = std::move(*part);
  }
  return std::unique_ptr<Registration>(std::move(prepared));
}

StatusOr<MemoryRegion> RailMemory::Adopt(std::unique_ptr<Registration> registration) {
  std::unique_ptr<RailsRegistration> own(static_cast<RailsRegistration*>(registration.release()));
  RailRegion region;
  region.base = own->base;
  region.bytes = own->bytes;
  while (region.key == 0 || by_key_.contains(region.key)) {
    if (getrandom(&region.key, sizeof(region.key), 0) != sizeof(region.key)) {
      return StatusFromErrno(errno, "getrandom");
    }
  }
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    StatusOr<MemoryRegion> part = rails_[rail]->AdoptMemory(std::move(own->of_rail[rail]));
    if (!part.ok()) {
      while (rail-- > 0) {  // nothing uses them yet, so they go at once
        static_cast<void>(rails_[rail]->DeregisterMemory(region.handles[rail]));
      }
      return OnRail(rail, part.status());
    }
    region.handles[rail] = part->handle;
    region.keys[rail] = {part->key, part->remote_base};
  }
  const MemoryRegion result{regions_.Insert(), region.key, /*remote_base=*/0};
  by_key_.emplace(region.key, result.handle);
  *regions_.Find(result.handle) = std::move(region);
  return result;
}

StatusOr<std::unique_ptr<Registration>> RailMemory::Release(RegionHandle handle) {
  RailRegion* region = regions_.Find(handle);
  if (region == nullptr) {
    return Status(ErrorCode::kNotFound, "ReleaseMemory: no such region");
  }
  if (region->users != 0) {
    return Status(ErrorCode::kWouldBlock,
                  "ReleaseMemory: " + std::to_string(region->users) +
                      " operations still use the region; Poll and try again");
  }
  if (region->leaving == nullptr) {
    region->leaving = std::make_unique<RailsRegistration>();
    by_key_.erase(region->key);
  }
  // A rail may still hold an operation reported as failed; the other rails' registrations then wait
  // for it.
  Status held;
  for (size_t rail = 0; rail < rails_.size(); rail++) {
    if (region->leaving->of_rail[rail] != nullptr) {
      continue;
    }
    StatusOr<std::unique_ptr<Registration>> part =
        rails_[rail]->ReleaseMemory(region->handles[rail]);
    if (part.ok()) {
      region->leaving->of_rail[rail] = std::move(*part);
    } else {
      held = OnRail(rail, part.status());
    }
  }
  FERRY_RETURN_IF_ERROR(held);
  std::unique_ptr<Registration> released = std::move(region->leaving);
  regions_.Erase(handle);
  return released;
}

RailRegion* RailMemory::Find(RegionHandle handle) {
  RailRegion* region = regions_.Find(handle);
  return region == nullptr || region->leaving != nullptr ? nullptr : region;
}

RailRegion* RailMemory::FindByKey(uint64_t key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : regions_.Find(found->second);
}

// ---- RailSet ----

// ---------------------------------------------------------------------------------------- set-up

RailSet::RailSet(const TransportOptions& options, std::vector<std::unique_ptr<Transport>> rails)
    : options_(options),
      owned_(std::move(rails)),
      rails_(Pointers(owned_)),
      memory_(rails_),
      operations_(options.max_outstanding + OperationReserve(options)),
      posted_stripes_(operations_.size() * kPostedStripesPerRail * rails_.size()) {
  capabilities_ = First().capabilities();
  for (const Transport* rail : rails_) {
    capabilities_.wait_fd &= rail->capabilities().wait_fd;
    capabilities_.progress_needs_poll |= rail->capabilities().progress_needs_poll;
    capabilities_.pins |= rail->capabilities().pins;
    capabilities_.reaches_devices &= rail->capabilities().reaches_devices;
    capabilities_.takes_dmabufs &= rail->capabilities().takes_dmabufs;
  }
  for (auto i = static_cast<uint32_t>(operations_.size()); i-- > 0;) {
    operations_[i].again.reserve(kPostedStripesPerRail * rails_.size());
    free_operations_.push_back(i);
  }
  for (auto i = static_cast<uint32_t>(posted_stripes_.size()); i-- > 0;) {
    free_posted_stripes_.push_back(i);
  }
  for (std::vector<uint32_t>* list : {&parked_, &resumed_, &asking_, &ended_}) {
    list->reserve(operations_.size());
  }
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
  for (const Transport* rail : rails_) {
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
  for (const Transport* rail : rails_) {
    address.rails.push_back(rail->AddressFor(guest));
  }
  return Encode(address);
}

const Statistics& RailSet::statistics() const {
  Statistics& sum = statistics_;
  sum.eagain = sum.abandoned = 0;
  sum.misfits = First().statistics().misfits;
  sum.errors = failures_ + sum.misfits;
  sum.timeouts = own_timeouts_;
  for (const Transport* rail : rails_) {
    const Statistics& of_rail = rail->statistics();
    sum.eagain += of_rail.eagain;
    sum.abandoned += of_rail.abandoned;
    sum.timeouts += of_rail.timeouts;
  }
  return sum;
}

std::string RailSet::LastError() const {
  if (last_error_ != nullptr) {
    return last_error_;
  }
  for (const Transport* rail : rails_) {
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
  const PeerId id = peers_.Insert();
  RailPeer* peer = peers_.Find(id);
  peer->id = id;
  peer->cookie = decoded->cookie;
  peer->own_cookie = CookieFor(guest);
  const size_t common = std::min(rails_.size(), decoded->rails.size());
  for (; peer->rails < common; peer->rails++) {
    StatusOr<PeerId> of_rail = rails_[peer->rails]->AddPeer(decoded->rails[peer->rails], guest);
    if (!of_rail.ok()) {
      while (peer->rails-- > 0) {
        static_cast<void>(rails_[peer->rails]->RemovePeer(peer->of_rail[peer->rails]));
      }
      peers_.Erase(id);
      return of_rail.status();
    }
    peer->of_rail[peer->rails] = *of_rail;
  }
  by_first_rail_[peer->of_rail[0]] = id;
  return id;
}

Status RailSet::RemovePeer(PeerId id) {
  RailPeer* peer = peers_.Find(id);
  if (peer == nullptr || peer->removed) {
    return Status(ErrorCode::kNotFound, "RemovePeer: no such peer");
  }
  FailPeer(id, ErrorCode::kCancelled);
  for (uint32_t rail = 0; rail < peer->rails; rail++) {
    static_cast<void>(rails_[rail]->RemovePeer(peer->of_rail[rail]));
  }
  by_first_rail_.erase(peer->of_rail[0]);
  peer->removed = true;
  ForgetIfIdle(peer);
  return Status();
}

void RailSet::FailPeer(PeerId id, ErrorCode code) {
  RailPeer* peer = peers_.Find(id);
  if (peer == nullptr) {
    return;
  }
  assert(code != ErrorCode::kOk);
  peer->failure = code;
  for (uint32_t rail = 0; rail < peer->rails; rail++) {
    rails_[rail]->FailPeer(peer->of_rail[rail], code);
  }
  // The rails report the stripes they have; nothing more of these operations is posted.
  for (RailOperation& operation : operations_) {
    if (operation.active && operation.kind != RailOperation::Kind::kMessage &&
        operation.request.peer == id) {
      Fail(&operation, code);
      EndIfDone(&operation);
    }
  }
}

void RailSet::ForgetIfIdle(RailPeer* peer) {
  if (peer->removed && peer->outstanding == 0) {
    peers_.Erase(peer->id);
  }
}

// --------------------------------------------------------------------------------------- accepting

// Extends deadlines, as the rails do their own, by a time without calls: that is no fault of the
// peers.
void RailSet::OnCall(uint64_t now_ns) {
  const uint64_t gap_ns = now_ns - std::min(now_ns_, now_ns);
  now_ns_ = now_ns;
  if (gap_ns > options_.post_timeout_ns / 2) {
    for (const uint32_t index : asking_) {
      operations_[index].deadline_ns += gap_ns;
    }
  }
}

// Null, with `*code` set, if nothing may be posted to the peer.
RailPeer* RailSet::Usable(PeerId id, ErrorCode* code) {
  RailPeer* peer = peers_.Find(id);
  if (peer == nullptr || peer->removed) {
    *code = ErrorCode::kNotFound;
    return nullptr;
  }
  *code = peer->failure;
  return peer->failure == ErrorCode::kOk ? peer : nullptr;
}

ErrorCode RailSet::Accept(RailPeer* peer, RailOperation** operation) {
  const auto outstanding = static_cast<uint32_t>(operations_.size() - free_operations_.size());
  if (free_operations_.empty() || peer->outstanding >= PerPeerLimit(options_) ||
      !MayHaveOneMore(
          {options_.max_outstanding, OperationReserve(options_), outstanding, busy_peers_},
          peer->outstanding)) {
    statistics_.would_block++;
    return ErrorCode::kWouldBlock;
  }
  RailOperation& taken = operations_[free_operations_.back()];
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
  RailRegion* region = memory_.Find(attachment.region);
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
  const uint32_t index = IndexOf(*operation);
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
    memory_.Find(*region)->users++;
  }
  return code;
}

ErrorCode RailSet::StartRma(RailOperation::Kind kind, const RmaRequest& request,
                            Placement placement, uint64_t now_ns) {
  OnCall(now_ns);
  if (request.bytes == 0) {
    return ErrorCode::kInvalidArgument;
  }
  RailRegion* region = memory_.Find(request.region);
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
    Probe(peer);
  }
  operation->kind = kind;
  operation->placement = placement;
  operation->request = request;
  operation->attached = true;
  region->users++;
  if (const RailKeys* keys = peer->keys.Find(request.key); keys != nullptr) {
    operation->keys = *keys;
    Advance(operation);
    return ErrorCode::kOk;
  }
  operation->deadline_ns = now_ns + options_.post_timeout_ns;
  const auto same = std::ranges::find_if(
      asking_, [&](uint32_t index) { return AskSame(operations_[index].request, request); });
  const bool asked = same != asking_.end();
  operation->asked_ns = asked ? operations_[*same].asked_ns : now_ns;
  asking_.push_back(IndexOf(*operation));
  if (!asked) {
    Ask(request);
  }
  return ErrorCode::kOk;
}

// ------------------------------------------------------------------------------------------- Poll

void RailSet::Flush(uint64_t now_ns) {
  for (Transport* rail : rails_) {
    rail->Flush(now_ns);
  }
}

int RailSet::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  OnCall(now_ns);
  int events = 0;
  first_polled_ = (first_polled_ + 1) % rails_.size();  // rails left over by the budget take turns
  for (size_t i = 0; i < rails_.size() && events < budget; i++) {
    const size_t rail = (first_polled_ + i) % rails_.size();
    RailSink rail_sink(*this, rail, sink);
    rails_[rail]->Poll(rail_sink, budget - events, now_ns);
    events += rail_sink.handed_on();
  }
  SendReplies();
  AskAgain();
  ProbeAll();
  resumed_.swap(parked_);
  for (const uint32_t index : resumed_) {
    operations_[index].parked = false;
    Advance(&operations_[index]);
  }
  resumed_.clear();
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
    RailOperation& message = operations_[index];
    message.in_flight = 0;
    message.next_offset = message.request.bytes;
    message.result = code;
    if (code != ErrorCode::kOk) {
      last_error_ = nullptr;
    }
    EndIfDone(&message);
    return;
  }
  const PostedStripe posted_stripe = posted_stripes_[index];
  free_posted_stripes_.push_back(index);
  RailOperation* operation = &operations_[posted_stripe.operation];
  load_bytes_[posted_stripe.rail] -= posted_stripe.stripe.bytes;
  operation->in_flight--;
  operation->on_rail[posted_stripe.rail]--;
  if (code != ErrorCode::kOk) {
    OnStripeFailed(operation, posted_stripe.stripe, posted_stripe.rail, code);
  }
  Advance(operation);
}

// --------------------------------------------------------------------------------------- sleeping

bool RailSet::PrepareToSleep() {
  return ended_.empty() &&
         std::ranges::all_of(rails_, [](Transport* rail) { return rail->PrepareToSleep(); });
}

uint64_t RailSet::NextPollNs(uint64_t now_ns) const {
  if (!ended_.empty()) {
    return now_ns;
  }
  uint64_t next_ns = parked_.empty() && replies_.empty() ? UINT64_MAX : now_ns + kRetryIntervalNs;
  for (const Transport* rail : rails_) {
    next_ns = std::min(next_ns, rail->NextPollNs(now_ns));
  }
  for (const uint32_t index : asking_) {
    const RailOperation& operation = operations_[index];
    next_ns = std::min({next_ns, operation.deadline_ns,
                        operation.asked_ns + options_.post_timeout_ns / kAsksPerTimeout});
  }
  return next_ns;
}

}  // namespace ferry::transport
