// Two peers of a GreetingTransport, between whom datagrams get lost, come twice, late and in any
// order, while strangers greet both, and say what they like. Neither hears what the other did not
// say, nor anything twice, out of order or behind a gap, nor a stranger; every post ends once.
//
// A third, which knows a secret, sends messages that no correct peer sends: no receiver gets wrong
// memory.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "transports/greeting/greeting_transport.h"
#include "transports/greeting/greeting_wire.h"

namespace ferry::fuzz {
namespace {

using namespace transport;  // NOLINT(google-build-using-namespace): all of the two headers

constexpr uint32_t kMaxSteps = 256;
constexpr size_t kMostKept = 32;
using Datagram = std::vector<std::byte>;

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

// Reliable datagrams, which go where the test takes them.
class Datagrams final : public Transport {
 public:
  explicit Datagrams(std::byte name) : address_(8, name) {
    description_.provider = "datagrams";
    capabilities_.max_message_bytes = 4096;
  }
  std::deque<Datagram> said;
  std::deque<Datagram> heard;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return {}; }
  StatusOr<PeerId> AddPeer(std::span<const std::byte>, uint64_t) override {
    return PeerId{++next_};
  }
  Status RemovePeer(PeerId) override { return {}; }
  void FailPeer(PeerId, ErrorCode) override {}
  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void*, uint64_t, Access) override {
    return Status(ErrorCode::kUnsupported, "none");
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration>) override {
    return Status(ErrorCode::kUnsupported, "none");
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle) override {
    return Status(ErrorCode::kNotFound, "none");
  }
  ErrorCode SendMessage(PeerId, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context, uint64_t) override {
    if (is_full) {
      return ErrorCode::kWouldBlock;
    }
    Datagram& datagram = said.emplace_back(header.begin(), header.end());
    datagram.insert(datagram.end(), payload.begin(), payload.end());
    done_.push_back(context);
    return ErrorCode::kOk;
  }
  ErrorCode SendMessageFrom(PeerId, std::span<const std::byte>, const Attachment&, uint64_t,
                            uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Write(const RmaRequest&, Placement, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Read(const RmaRequest&, uint64_t) override { return ErrorCode::kUnsupported; }
  int Poll(CompletionSink& sink, int, uint64_t) override {
    int events = 0;
    for (std::deque<uint64_t> done = std::exchange(done_, {}); const uint64_t context : done) {
      sink.OnComplete(context, ErrorCode::kOk);
      ++events;
    }
    for (std::deque<Datagram> come = std::exchange(heard, {}); const Datagram& datagram : come) {
      sink.OnReceive(kUnknownPeer, datagram);
      ++events;
    }
    return events;
  }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }

  bool is_full = false;

 private:
  Capabilities capabilities_;
  Description description_;
  Statistics statistics_;
  std::vector<std::byte> address_;
  std::deque<uint64_t> done_;
  uint64_t next_ = 0;
};

class Peer final : private CompletionSink {
 public:
  explicit Peer(std::byte name) {
    auto below = std::make_unique<Datagrams>(name);
    below_ = below.get();
    auto made = CreateGreetingTransport(std::move(below), {.hello_ns = 1'000, .probe_ns = 10'000});
    Check(made.ok());
    transport_ = std::move(*made);
  }
  void Know(const Peer& other) { peer_ = *transport_->AddPeer(other.transport_->Address()); }
  // By which others greet it.
  Secret secret() const {
    return ReadGreetingAddress(below_->Describe().provider, transport_->Address())->secret;
  }
  Datagrams& below() { return *below_; }
  void Connect(uint64_t now_ns) { transport_->Connect(peer_, now_ns); }
  void Say(uint64_t now_ns) {
    const uint64_t number = said_ + 1;
    const auto bytes = std::as_bytes(std::span<const uint64_t, 1>(&number, 1));
    if (transport_->SendMessage(peer_, bytes, {}, number, now_ns) == ErrorCode::kOk) {
      said_ = number;
      Check(open_.insert(number).second);
    }
  }
  void Poll(uint64_t now_ns) { transport_->Poll(*this, 64, now_ns); }
  void Fail() { transport_->FailPeer(peer_, ErrorCode::kLinkDown); }
  uint64_t said() const { return said_; }
  uint64_t heard() const { return heard_; }
  bool has_open() const { return !open_.empty(); }
  void set_may_be_lied_to() { may_be_lied_to_ = true; }

 private:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    Check(sender == peer_);
    if (may_be_lied_to_) {
      return;
    }
    uint64_t number = 0;
    Check(message.size() == sizeof(number));
    std::memcpy(&number, message.data(), sizeof(number));
    Check(number == ++heard_);
  }
  void OnComplete(uint64_t context, ErrorCode) override { Check(open_.erase(context) == 1); }
  void OnConnectionEnded(PeerId peer, bool) override {
    Check(peer == peer_ && !std::exchange(is_lost_, true));
  }

  Datagrams* below_ = nullptr;
  std::unique_ptr<Transport> transport_;
  PeerId peer_{};
  uint64_t said_ = 0;
  uint64_t heard_ = 0;
  bool is_lost_ = false;
  bool may_be_lied_to_ = false;
  std::set<uint64_t> open_;
};

class Conversation {
 public:
  Conversation() {
    peers_[0].Know(peers_[1]);
    peers_[1].Know(peers_[0]);
  }

  void Step(FuzzInput& input) {
    now_ns_ += 1 + input.Below(16);
    const uint32_t which = input.Below(2);
    Peer& peer = peers_[which];
    switch (input.Below(12)) {
      case 0:
        peer.Connect(now_ns_);
        break;
      case 1:
      case 2:
        peer.Say(now_ns_);
        break;
      case 3:
        GreetAsStranger(input, peer);
        break;
      case 4:
        peer.below().is_full = input.Below(4) == 1;
        break;
      case 5:
        now_ns_ += 20'000;
        break;
      case 6:
        Rare(input, which);
        break;
      default:
        Carry(input, which);
        peer.Poll(now_ns_);
    }
  }
  void End() {
    for (Peer& peer : peers_) {
      peer.below().is_full = false;
      for (int i = 0; i < 4; ++i) {
        peer.Poll(now_ns_ += 1'000'000);
      }
      Check(!peer.has_open());
    }
    Check(is_lied_ ||
          (peers_[0].heard() <= peers_[1].said() && peers_[1].heard() <= peers_[0].said()));
  }

 private:
  // To peer `which`: what the other one has said, as the network pleases.
  void Carry(FuzzInput& input, uint32_t which) {
    std::deque<Datagram>& said = peers_[1 - which].below().said;
    std::deque<Datagram>& heard = peers_[which].below().heard;
    for (uint32_t count = 1 + input.Below(4); count > 0 && !said.empty(); --count) {
      const uint32_t fate = input.Below(32);
      const size_t at = fate == 1 ? input.Below(kMostKept) % said.size() : 0;
      Datagram datagram = said[at];
      if (fate != 2) {  // 2: it comes again
        said.erase(said.begin() + static_cast<ptrdiff_t>(at));
      }
      old_.push_back({which, datagram});
      if (old_.size() > kMostKept) {
        old_.pop_front();
      }
      if (fate != 3) {  // 3: it is lost
        heard.push_back(std::move(datagram));
      }
    }
  }
  // He knows how greetings look, and one's address but for the secret.
  void GreetAsStranger(FuzzInput& input, Peer& peer) {
    Envelope envelope;
    envelope.kind = input.Below(8);
    envelope.name = input.Below(4);
    envelope.number = input.Below(4);
    envelope.heard = input.Below(4);
    for (std::byte& byte : envelope.secret) {
      byte = static_cast<std::byte>(input.Take<uint8_t>());
    }
    if (input.Below(8) == 1) {
      input.Spoil(&envelope);
    }
    peer.below().heard.push_back(Written(input, envelope, peers_[1].below().Address(),
                                         [](const GreetingBody&) { return Secret(); }));
  }
  template <typename Prove>
  static Datagram Written(FuzzInput& input, const Envelope& envelope,
                          const std::vector<std::byte>& address, Prove prove) {
    GreetingBody body;
    body.nonce = input.Below(4);
    body.name = input.Below(4);
    body.address_bytes = static_cast<uint32_t>(address.size());
    std::copy(address.begin(), address.end(), body.address.begin());
    body.proof = prove(body);
    if (input.Below(4) == 1) {
      input.Spoil(&body);
    }
    Datagram datagram(sizeof(envelope) + sizeof(body));
    std::memcpy(datagram.data(), &envelope, sizeof(envelope));
    std::memcpy(datagram.data() + sizeof(envelope), &body, sizeof(body));
    if (input.Below(4) == 1) {
      datagram.resize(input.Below(200) % datagram.size());
    }
    return datagram;
  }
  void Rare(FuzzInput& input, uint32_t which) {
    switch (input.Below(8)) {
      case 0:
        peers_[which].Fail();
        break;
      case 1:  // something old comes once more
        if (!old_.empty()) {
          const auto& [to, datagram] = old_[input.Below(kMostKept) % old_.size()];
          peers_[to].below().heard.push_back(datagram);
        }
        break;
      case 2:  // from the right one, but nothing that it says: he knows the secrets
        if (!old_.empty()) {
          is_lied_ = true;
          peers_[0].set_may_be_lied_to();
          peers_[1].set_may_be_lied_to();
          auto [to, datagram] = old_[input.Below(kMostKept) % old_.size()];
          Envelope envelope;
          std::memcpy(&envelope, datagram.data(), sizeof(envelope));
          envelope.kind = 1 + input.Below(7);
          envelope.number = input.Take<uint32_t>();
          const bool greets = envelope.kind == static_cast<uint32_t>(GreetingKind::kHello);
          const Secret secret = peers_[greets ? to : 1 - to].secret();
          const uint64_t asked_nonce = greets ? 0 : NonceOf(to);
          peers_[to].below().heard.push_back(Written(
              input, envelope, peers_[1 - to].below().Address(),
              [&](const GreetingBody& body) { return GreetingProof(secret, asked_nonce, body); }));
        }
        break;
      default:
        peers_[which].Poll(now_ns_);
    }
  }

  // As that peer has said in a greeting that is kept; else 0.
  uint64_t NonceOf(uint32_t which) const {
    for (const auto& [to, datagram] : old_) {
      Envelope envelope;
      GreetingBody body;
      if (to == which || datagram.size() != sizeof(envelope) + sizeof(body)) {
        continue;
      }
      std::memcpy(&envelope, datagram.data(), sizeof(envelope));
      std::memcpy(&body, datagram.data() + sizeof(envelope), sizeof(body));
      if (envelope.kind <= static_cast<uint32_t>(GreetingKind::kWelcome)) {
        return body.nonce;
      }
    }
    return 0;
  }

  std::array<Peer, 2> peers_{Peer{std::byte{1}}, Peer{std::byte{2}}};
  std::deque<std::pair<uint32_t, Datagram>> old_;  // to whom, and what
  uint64_t now_ns_ = 1;
  bool is_lied_ = false;
};

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::fuzz::Conversation conversation;
  for (uint32_t step = 0; step < ferry::fuzz::kMaxSteps && !input.empty(); ++step) {
    conversation.Step(input);
  }
  conversation.End();
  return 0;
}
