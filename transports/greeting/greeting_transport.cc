#include "transports/greeting/greeting_transport.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/api/forwarding_transport.h"
#include "transports/greeting/greeting_wire.h"

namespace ferry::transport {
namespace {

static_assert(kGreetingOverheadBytes == sizeof(Envelope));

// The pause before a message for which the transport had no slot is tried again.
constexpr uint64_t kRetryNs = 1'000'000;
constexpr uint64_t kLongestProbePauses = 64;

template <typename T>
std::span<const std::byte> Bytes(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

// This end of the connection to a peer.
struct End {
  std::vector<std::byte> address;  // the peer's, of the transport below
  Secret greets_with{};            // its secret for us
  Secret greeted_with{};           // ours for it
  ErrorCode failure = ErrorCode::kOk;
  bool is_lost = false;
  std::string refusal;  // a greeting could not be sent

  // Drawn here, and told the peer.
  uint64_t nonce = 0;
  Secret hears{};
  // The peer's; 0: it has not been heard.
  uint64_t peer_nonce = 0;
  uint64_t peer_name = 0;
  Secret says{};

  bool calls = false;
  uint64_t hello_ns = 0;  // the next greeting, if it calls and was not answered
  bool owes_welcome = false;
  bool owes_answer = false;
  uint32_t sent = 0, acknowledged = 0, heard = 0;
  uint64_t probe_ns = UINT64_MAX;
  uint64_t probe_pauses = 1;

  bool is_up() const { return peer_nonce != 0 && !is_lost && failure == ErrorCode::kOk; }
};

class GreetingTransport final : public ForwardingTransport, private CompletionSink {
 public:
  GreetingTransport(std::unique_ptr<Transport> below, const GreetingTimes& times,
                    const SecretSource& secrets)
      : ForwardingTransport(*below),
        below_(std::move(below)),
        times_(times),
        secrets_(secrets),
        address_(AddressFor(0)),
        capabilities_(below_->capabilities()) {
    capabilities_.receive_names_peer = true;
    capabilities_.max_message_bytes -= sizeof(Envelope);
    capabilities_.lands_in_place = false;
  }
  ~GreetingTransport() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  std::vector<std::byte> AddressFor(uint64_t guest) const override {
    return WriteGreetingAddress(below_->Describe().provider, SecretFor(guest), below_->Address());
  }
  const Statistics& statistics() const override;

  StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest) override;
  Status RemovePeer(PeerId peer) override;
  void FailPeer(PeerId peer, ErrorCode code) override;
  void Connect(PeerId peer, uint64_t now_ns) override;
  ErrorCode ConnectionTo(PeerId peer, std::string* why) override;

  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override;
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override;
  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override;
  bool PrepareToSleep() override { return lost_.empty() && below_->PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override {
    return lost_.empty() ? std::min(due_ns_, below_->NextPollNs(now_ns)) : now_ns;
  }

 private:
  struct Lost {
    PeerId peer;
    bool lossless;
  };

  // CompletionSink.
  void OnReceive(PeerId sender, std::span<const std::byte> message) override;
  void OnComplete(uint64_t context, ErrorCode code) override;

  static constexpr uint64_t kGreetings = 4;  // purpose of a secret
  Secret SecretFor(uint64_t guest) const { return secrets_.For(guest, kGreetings); }
  End* Find(PeerId peer) {
    const auto found = ends_.find(static_cast<uint64_t>(peer));
    return found == ends_.end() ? nullptr : &found->second;
  }
  // The context of the transport's own messages; those of the user do not have the bit.
  static uint64_t ContextOf(PeerId peer) { return kDirectContext | static_cast<uint64_t>(peer); }
  ErrorCode MayPost(PeerId peer, uint64_t now_ns, End** end);
  Envelope EnvelopeOf(const End& end, GreetingKind kind) const;
  void OnPosted(End* end, uint64_t bytes, uint64_t now_ns);
  bool Say(PeerId peer, End* end, GreetingKind kind);
  void SayDue(PeerId peer, End* end);
  void Advance();
  void DueAt(uint64_t time_ns) { due_ns_ = std::min(due_ns_, time_ns); }

  void OnHello(std::span<const std::byte> body);
  void OnWelcome(PeerId peer, End* end, std::span<const std::byte> body);
  void OnMessage(PeerId peer, End* end, const Envelope& envelope, std::span<const std::byte> body);
  void OnGoodbye(PeerId peer, End* end, const Envelope& envelope);
  bool Learn(PeerId peer, End* end, const GreetingBody& body);
  bool NoteHeard(PeerId peer, End* end, const Envelope& envelope, uint32_t number);
  void Lose(PeerId peer, End* end, bool lossless);

  const std::unique_ptr<Transport> below_;
  const GreetingTimes times_;
  const SecretSource secrets_;
  const std::vector<std::byte> address_;
  Capabilities capabilities_;
  mutable Statistics statistics_;
  Statistics messages_;                     // sent and received by the user
  std::unordered_map<uint64_t, End> ends_;  // by PeerId
  std::vector<Lost> lost_;                  // the user is to hear of it
  std::vector<std::byte> scratch_;
  uint64_t due_ns_ = UINT64_MAX;  // when an end has something to say
  uint64_t now_ns_ = 0;
  CompletionSink* sink_ = nullptr;  // within Poll
  int swallowed_ = 0;               // events of this Poll that are not the user's
};

GreetingTransport::~GreetingTransport() {
  for (auto& [name, end] : ends_) {
    if (end.is_up()) {
      (void)Say(PeerId{name}, &end, GreetingKind::kGoodbye);
    }
  }
}

const Statistics& GreetingTransport::statistics() const {
  statistics_ = below_->statistics();
  statistics_.messages_sent = messages_.messages_sent;
  statistics_.messages_received = messages_.messages_received;
  statistics_.message_bytes_sent = messages_.message_bytes_sent;
  statistics_.message_bytes_received = messages_.message_bytes_received;
  return statistics_;
}

// ---- Peers -------------------------------------------------------------------------------------

StatusOr<PeerId> GreetingTransport::AddPeer(std::span<const std::byte> bytes, uint64_t guest) {
  const std::optional<GreetingAddress> address =
      ReadGreetingAddress(below_->Describe().provider, bytes);
  if (!address) {
    return Status(ErrorCode::kInvalidArgument, "AddPeer: these " + std::to_string(bytes.size()) +
                                                   " bytes are no address of provider " +
                                                   below_->Describe().provider +
                                                   "; do both nodes use the same provider?");
  }
  End end;
  end.address.assign(address->below.begin(), address->below.end());
  end.greets_with = address->secret;
  end.greeted_with = SecretFor(guest);
  FERRY_RETURN_IF_ERROR(DrawRandom(std::as_writable_bytes(std::span<uint64_t, 1>(&end.nonce, 1))));
  FERRY_RETURN_IF_ERROR(DrawRandom(end.hears));
  end.nonce |= 1;  // not 0
  const StatusOr<PeerId> peer = below_->AddPeer(address->below, guest);
  FERRY_RETURN_IF_ERROR(peer.status());
  ends_[static_cast<uint64_t>(*peer)] = std::move(end);
  return *peer;
}

Status GreetingTransport::RemovePeer(PeerId peer) {
  if (Find(peer) != nullptr) {
    FailPeer(peer, ErrorCode::kCancelled);
    ends_.erase(static_cast<uint64_t>(peer));
    std::erase_if(lost_, [peer](const Lost& lost) { return lost.peer == peer; });
  }
  return below_->RemovePeer(peer);
}

void GreetingTransport::FailPeer(PeerId peer, ErrorCode code) {
  if (End* const end = Find(peer); end != nullptr) {
    if (end->is_up()) {
      (void)Say(peer, end, GreetingKind::kGoodbye);
    }
    end->failure = code;
  }
  below_->FailPeer(peer, code);
}

void GreetingTransport::Connect(PeerId peer, uint64_t now_ns) {
  End* const end = Find(peer);
  if (end == nullptr || end->failure != ErrorCode::kOk || end->peer_nonce != 0 || end->calls) {
    return;
  }
  now_ns_ = now_ns;
  end->refusal.clear();
  end->calls = true;
  end->hello_ns = now_ns;
  SayDue(peer, end);
}

ErrorCode GreetingTransport::ConnectionTo(PeerId peer, std::string* why) {
  const End* const end = Find(peer);
  if (end == nullptr) {
    return ErrorCode::kNotFound;
  }
  const std::string who = GreetingAddressText(end->address);
  ErrorCode code = ErrorCode::kWouldBlock;
  std::string text = who + (end->calls ? " does not answer the greeting" : " has not greeted");
  if (end->failure != ErrorCode::kOk) {
    code = end->failure;
  } else if (end->is_lost || !end->refusal.empty()) {
    code = ErrorCode::kNodeUnreachable;
    text = who + ": " + (end->is_lost ? "the connection is lost" : end->refusal);
  } else if (end->is_up()) {
    return ErrorCode::kOk;
  }
  if (why != nullptr) {
    *why = text;
  }
  return code;
}

// ---- Saying ------------------------------------------------------------------------------------

ErrorCode GreetingTransport::MayPost(PeerId peer, uint64_t now_ns, End** found) {
  now_ns_ = now_ns;
  End* const end = Find(peer);
  *found = end;
  if (end == nullptr) {
    return ErrorCode::kNotFound;
  }
  if (end->failure != ErrorCode::kOk) {
    return end->failure;
  }
  if (end->is_lost || !end->refusal.empty()) {
    return ErrorCode::kNodeUnreachable;
  }
  if (end->peer_nonce == 0) {
    Connect(peer, now_ns);
    return ErrorCode::kWouldBlock;
  }
  return ErrorCode::kOk;
}

Envelope GreetingTransport::EnvelopeOf(const End& end, GreetingKind kind) const {
  Envelope envelope;
  envelope.kind = static_cast<uint32_t>(kind);
  envelope.name = kind == GreetingKind::kHello ? 0 : end.peer_name;
  envelope.secret = kind == GreetingKind::kHello ? Secret() : end.says;
  envelope.number = end.sent;
  envelope.heard = end.heard;
  return envelope;
}

ErrorCode GreetingTransport::SendMessage(PeerId peer, std::span<const std::byte> header,
                                         std::span<const std::byte> payload, uint64_t context,
                                         uint64_t now_ns) {
  End* end = nullptr;
  if (const ErrorCode code = MayPost(peer, now_ns, &end); code != ErrorCode::kOk) {
    return code;
  }
  Envelope envelope = EnvelopeOf(*end, GreetingKind::kMessage);
  ++envelope.number;
  ErrorCode code = ErrorCode::kOk;
  if (payload.empty()) {
    code = below_->SendMessage(peer, Bytes(envelope), header, context, now_ns);
  } else {
    scratch_.assign(Bytes(envelope).begin(), Bytes(envelope).end());
    scratch_.insert(scratch_.end(), header.begin(), header.end());
    code = below_->SendMessage(peer, scratch_, payload, context, now_ns);
  }
  if (code == ErrorCode::kOk) {
    OnPosted(end, header.size() + payload.size(), now_ns);
  }
  return code;
}

ErrorCode GreetingTransport::SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                                             const Attachment& attachment, uint64_t context,
                                             uint64_t now_ns) {
  End* end = nullptr;
  if (const ErrorCode code = MayPost(peer, now_ns, &end); code != ErrorCode::kOk) {
    return code;
  }
  Envelope envelope = EnvelopeOf(*end, GreetingKind::kMessage);
  ++envelope.number;
  scratch_.assign(Bytes(envelope).begin(), Bytes(envelope).end());
  scratch_.insert(scratch_.end(), header.begin(), header.end());
  const ErrorCode code = below_->SendMessageFrom(peer, scratch_, attachment, context, now_ns);
  if (code == ErrorCode::kOk) {
    OnPosted(end, header.size() + attachment.bytes, now_ns);
  }
  return code;
}

void GreetingTransport::OnPosted(End* end, uint64_t bytes, uint64_t now_ns) {
  ++end->sent;
  ++messages_.messages_sent;
  messages_.message_bytes_sent += bytes;
  if (end->probe_ns == UINT64_MAX) {
    end->probe_ns = now_ns + times_.probe_ns;
    DueAt(end->probe_ns);
  }
}

// False: the transport had no slot.
bool GreetingTransport::Say(PeerId peer, End* end, GreetingKind kind) {
  const Envelope envelope = EnvelopeOf(*end, kind);
  GreetingBody body;
  std::span<const std::byte> payload;
  if (kind == GreetingKind::kHello || kind == GreetingKind::kWelcome) {
    body.nonce = end->nonce;
    body.name = static_cast<uint64_t>(peer);
    body.secret = end->hears;
    const std::vector<std::byte>& own = below_->Address();
    body.address_bytes = static_cast<uint32_t>(own.size());
    std::copy(own.begin(), own.end(), body.address.begin());
    body.proof = kind == GreetingKind::kHello
                     ? GreetingProof(end->greets_with, 0, body)
                     : GreetingProof(end->greeted_with, end->peer_nonce, body);
    payload = Bytes(body);
  }
  const ErrorCode code =
      below_->SendMessage(peer, Bytes(envelope), payload, ContextOf(peer), now_ns_);
  if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
    OnComplete(ContextOf(peer), code);
    --swallowed_;  // that was none of Poll
  }
  return code != ErrorCode::kWouldBlock;
}

// Sends the packets that are due now, and notes when the next ones are.
void GreetingTransport::SayDue(PeerId peer, End* end) {
  if (end->failure != ErrorCode::kOk || end->is_lost) {
    return;
  }
  if (end->calls && end->peer_nonce == 0 && end->refusal.empty()) {
    if (now_ns_ >= end->hello_ns) {
      const bool is_said = Say(peer, end, GreetingKind::kHello);
      end->hello_ns = now_ns_ + (is_said ? times_.hello_ns : kRetryNs);
    }
    DueAt(end->hello_ns);
  }
  if (end->owes_welcome) {
    end->owes_welcome = !Say(peer, end, GreetingKind::kWelcome);
  }
  if (end->owes_answer) {
    end->owes_answer = !Say(peer, end, GreetingKind::kAnswer);
  }
  if (end->owes_welcome || end->owes_answer) {
    DueAt(now_ns_ + kRetryNs);
  }
  if (now_ns_ >= end->probe_ns) {
    const bool is_said = Say(peer, end, GreetingKind::kProbe);
    end->probe_ns = now_ns_ + (is_said ? times_.probe_ns * end->probe_pauses : kRetryNs);
    end->probe_pauses = std::min(2 * end->probe_pauses, kLongestProbePauses);
  }
  DueAt(end->probe_ns);
}

void GreetingTransport::Advance() {
  if (now_ns_ < due_ns_) {
    return;
  }
  due_ns_ = UINT64_MAX;
  for (auto& [name, end] : ends_) {
    SayDue(PeerId{name}, &end);
  }
}

// ---- Hearing -----------------------------------------------------------------------------------

int GreetingTransport::Poll(CompletionSink& sink, int budget, uint64_t now_ns) {
  now_ns_ = now_ns;
  sink_ = &sink;
  swallowed_ = 0;
  int events = below_->Poll(*this, budget, now_ns) - swallowed_;
  Advance();
  for (; !lost_.empty() && events < budget; ++events) {
    const Lost lost = lost_.front();
    lost_.erase(lost_.begin());
    sink.OnConnectionEnded(lost.peer, lost.lossless);
  }
  sink_ = nullptr;
  return events;
}

void GreetingTransport::OnComplete(uint64_t context, ErrorCode code) {
  if ((context & kDirectContext) == 0) {
    return sink_->OnComplete(context, code);
  }
  ++swallowed_;
  const PeerId peer{context & ~kDirectContext};
  End* const end = Find(peer);
  if (code == ErrorCode::kOk || end == nullptr || end->failure != ErrorCode::kOk) {
    return;
  }
  if (end->peer_nonce != 0) {
    Lose(peer, end, /*lossless=*/false);
  } else if (end->refusal.empty()) {
    const std::string words = below_->LastError();
    end->refusal = words.empty() ? "it cannot be greeted" : words;
  }
}

void GreetingTransport::OnReceive(PeerId /*sender*/, std::span<const std::byte> message) {
  Envelope envelope;
  if (message.size() < sizeof(envelope)) {
    ++swallowed_;
    return;
  }
  std::memcpy(&envelope, message.data(), sizeof(envelope));
  const std::span<const std::byte> body = message.subspan(sizeof(envelope));
  const auto kind = static_cast<GreetingKind>(envelope.kind);
  if (envelope.magic == kGreetingMagic && kind == GreetingKind::kMessage) [[likely]] {
    const PeerId peer{envelope.name};
    End* const end = Find(peer);
    if (end != nullptr && end->failure == ErrorCode::kOk && !end->is_lost &&
        SameSecret(envelope.secret, end->hears)) [[likely]] {
      return OnMessage(peer, end, envelope, body);
    }
  }
  ++swallowed_;
  if (envelope.magic != kGreetingMagic || kind == GreetingKind::kMessage) {
    return;
  }
  if (kind == GreetingKind::kHello) {
    return OnHello(body);
  }
  const PeerId peer{envelope.name};
  End* const end = Find(peer);
  if (end == nullptr || end->failure != ErrorCode::kOk || end->is_lost ||
      !SameSecret(envelope.secret, end->hears)) {
    return;
  }
  switch (kind) {
    case GreetingKind::kWelcome:
      return OnWelcome(peer, end, body);
    case GreetingKind::kProbe:
      if (NoteHeard(peer, end, envelope, end->heard)) {
        end->owes_answer = true;
        SayDue(peer, end);
      }
      return;
    case GreetingKind::kAnswer:
      (void)NoteHeard(peer, end, envelope, end->heard);
      return;
    case GreetingKind::kGoodbye:
      return OnGoodbye(peer, end, envelope);
    default:
      return;
  }
}

// A peer that has not been added yet greets again.
void GreetingTransport::OnHello(std::span<const std::byte> bytes) {
  GreetingBody body;
  if (bytes.size() != sizeof(body)) {
    return;
  }
  std::memcpy(&body, bytes.data(), sizeof(body));
  if (body.address_bytes > body.address.size() || body.nonce == 0) {
    return;
  }
  const std::span<const std::byte> from(body.address.data(), body.address_bytes);
  for (auto& [name, end] : ends_) {
    if (end.failure == ErrorCode::kOk && !end.is_lost && std::ranges::equal(end.address, from) &&
        SameSecret(body.proof, GreetingProof(end.greeted_with, 0, body))) {
      if (Learn(PeerId{name}, &end, body)) {
        end.owes_welcome = true;
        SayDue(PeerId{name}, &end);
      }
      return;
    }
  }
}

void GreetingTransport::OnWelcome(PeerId peer, End* end, std::span<const std::byte> bytes) {
  GreetingBody body;
  if (bytes.size() == sizeof(body)) {
    std::memcpy(&body, bytes.data(), sizeof(body));
    if (body.nonce != 0 &&
        SameSecret(body.proof, GreetingProof(end->greets_with, end->nonce, body))) {
      (void)Learn(peer, end, body);
    }
  }
}

// False: the peer has begun anew, and so has given this connection up. Unless nothing has passed:
// then that was a greeting of an earlier connection, which came late.
bool GreetingTransport::Learn(PeerId peer, End* end, const GreetingBody& body) {
  if (end->peer_nonce == 0 || (end->sent == 0 && end->heard == 0)) {
    end->peer_nonce = body.nonce;
    end->peer_name = body.name;
    end->says = body.secret;
    end->refusal.clear();
  }
  if (end->peer_nonce != body.nonce) {
    Lose(peer, end, /*lossless=*/false);
    return false;
  }
  return true;
}

void GreetingTransport::OnMessage(PeerId peer, End* end, const Envelope& envelope,
                                  std::span<const std::byte> body) {
  if (!NoteHeard(peer, end, envelope, end->heard + 1)) {
    ++swallowed_;
    return;
  }
  ++end->heard;
  ++messages_.messages_received;
  messages_.message_bytes_received += body.size();
  sink_->OnReceive(peer, body);
}

// The peer has said where it is: whether that is `number`, as it must be unless messages are lost.
bool GreetingTransport::NoteHeard(PeerId peer, End* end, const Envelope& envelope,
                                  uint32_t number) {
  if (envelope.number != number) {
    Lose(peer, end, /*lossless=*/false);
    return false;
  }
  if (end->acknowledged != envelope.heard) {
    end->acknowledged = envelope.heard;
    end->probe_pauses = 1;
    end->probe_ns = end->acknowledged == end->sent ? UINT64_MAX : now_ns_ + times_.probe_ns;
    DueAt(end->probe_ns);
  }
  return true;
}

void GreetingTransport::OnGoodbye(PeerId peer, End* end, const Envelope& envelope) {
  Lose(peer, end, envelope.number == end->heard && envelope.heard == end->sent);
}

// Ends a lost connection. Each of the two ends tells the other one, which may not have noticed.
void GreetingTransport::Lose(PeerId peer, End* end, bool lossless) {
  if (std::exchange(end->is_lost, true)) {
    return;
  }
  if (end->peer_nonce != 0) {
    (void)Say(peer, end, GreetingKind::kGoodbye);
  }
  lost_.push_back({peer, lossless});
}

}  // namespace

StatusOr<std::unique_ptr<Transport>> CreateGreetingTransport(std::unique_ptr<Transport> below,
                                                             const GreetingTimes& times) {
  const StatusOr<SecretSource> secrets = SecretSource::Draw();
  FERRY_RETURN_IF_ERROR(secrets.status());
  auto transport = std::make_unique<GreetingTransport>(std::move(below), times, *secrets);
  if (transport->Address().size() > kGreetingAddressBytes) {
    return Status(ErrorCode::kUnsupported, "the addresses of provider " +
                                               transport->Describe().provider +
                                               " are too long for a direct link");
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace ferry::transport
