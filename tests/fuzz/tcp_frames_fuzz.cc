// A peer of a TcpTransport, which has proved itself, sends any frames: it writes nowhere but in
// memory whose key it has, every operation ends once, and the next connection works.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "tests/fuzz/fuzz_input.h"
#include "tests/transports/tcp/raw_tcp_peer.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::fuzz {
namespace {

using transport::FrameHeader;
using transport::FrameKind;
using transport::FrameTrailer;
using transport::MemoryRegion;
using transport::RawTcpPeer;

constexpr size_t kRegion = 40'000;
constexpr size_t kGuard = 4096;
constexpr std::byte kUntouched{0x5a};

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

// Memory of which only the middle may change.
class Guarded {
 public:
  Guarded() : bytes_(kRegion + 2 * kGuard, kUntouched) {}
  std::byte* base() { return bytes_.data() + kGuard; }
  void CheckGuards() const {
    for (size_t i = 0; i < kGuard; i++) {
      Check(bytes_[i] == kUntouched && bytes_[kGuard + kRegion + i] == kUntouched);
    }
  }

 private:
  std::vector<std::byte> bytes_;
};

class Sink : public transport::CompletionSink {
 public:
  void OnReceive(transport::PeerId, std::span<const std::byte> message) override {
    Check(message.size() <= 2000 + kRegion);
  }
  transport::Landing OnHead(transport::PeerId, std::span<const std::byte> header,
                            uint64_t bytes) override {
    Check(header.size() <= 1000 && bytes <= kRegion);
    if (place == nullptr || landing) {
      return {};
    }
    landing = true;
    return {place, fits, 1};
  }
  void OnLanded(uint64_t, ErrorCode) override {
    Check(landing);
    landing = false;
  }
  void OnComplete(uint64_t context, ErrorCode) override { Check(open.erase(context) == 1); }

  std::byte* place = nullptr;
  uint64_t fits = 0;
  bool landing = false;
  std::map<uint64_t, bool> open;  // operations
};

class Target {
 public:
  explicit Target(FuzzInput& input) : input_(input) {
    transport::TransportOptions options;
    options.max_outstanding = 8;
    options.max_outstanding_per_peer = 8;
    options.receive_buffer_bytes = 1000;
    options.attachment_bytes = kRegion;
    options.fragment_bytes = 10'000;
    transport_ = std::move(*transport::CreateTcpTransport(options));
    readable_ =
        *transport_->RegisterMemory(memory_.base(), kRegion, transport::Access::kRemoteRead);
    writable_ =
        *transport_->RegisterMemory(written_.base(), kRegion, transport::Access::kRemoteWrite);
    Connect();
  }

  void Step() {
    if (raw_->ended()) {  // it has sent what is no frame
      Connect();
    }
    switch (input_.Below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        SendFrame();
        break;
      case 4:
      case 5:
        Post();
        break;
      case 6:
        sink_.place = input_.Below(3) == 0 ? nullptr : landed_.base();
        sink_.fits = input_.Take<uint16_t>() % kRegion;
        break;
      case 7:
        Answer();
        break;
      case 8:
        Rare();
        break;
      default:
        Poll();
        break;
    }
  }

  // The peer goes; then another one is served.
  void End() {
    raw_->Close();
    for (int i = 0; i < 1000 && !sink_.open.empty(); i++) {
      now_ns_ += 100'000'000;
      Poll();
    }
    Check(sink_.open.empty());
    memory_.CheckGuards();
    written_.CheckGuards();
    landed_.CheckGuards();
    for (size_t i = 0; i < kRegion; i++) {
      Check(memory_.base()[i] == kUntouched);
    }
    Connect();
  }

 private:
  void Connect() {
    raw_ = std::make_unique<RawTcpPeer>(transport_->Address());
    const transport::TcpHello hello = raw_->Hello();
    if (!peer_) {
      const transport::TcpAddress address = RawTcpPeer::AddressOf(hello);
      peer_ = *transport_->AddPeer(std::as_bytes(std::span(&address, 1)));
    }
    Check(raw_->Send(hello));
    for (int i = 0; i < 3; i++) {
      Poll();
    }
    raw_->Drain();
    const auto welcome = raw_->Take<transport::TcpWelcome>();
    Check(welcome && welcome->answer == transport::TcpAnswer::kWelcome);
  }

  void Poll() {
    for (int i = 0; i < 20; i++) {
      transport_->Poll(sink_, 4, now_ns_);
    }
    Check(transport_->NextPollNs(now_ns_) >= now_ns_);
    raw_->Drain();
  }

  void SendFrame() {
    constexpr uint64_t kSizes[] = {0, 1, 7, 8, 100, 900, 1000, 1001, 9000, 10'000, 20'000, kRegion};
    FrameHeader frame;
    frame.kind = 1 + input_.Below(7);
    const auto kind = static_cast<FrameKind>(frame.kind);
    const bool has_key = kind == FrameKind::kRead || kind == FrameKind::kWrite;
    const bool is_message = kind == FrameKind::kMessage || kind == FrameKind::kMessageFrom;
    frame.head_bytes = has_key      ? 8
                       : is_message ? static_cast<uint32_t>(kSizes[input_.Below(8)])
                                    : 0;
    frame.data_bytes = has_key || HasData(kind) ? kSizes[input_.Below(std::size(kSizes))] : 0;
    frame.address = input_.Take<uint16_t>();
    frame.id = input_.Below(2) == 0 ? input_.Below(4) : asked_;
    input_.Spoil(&frame);
    Send(frame, input_.Below(4) == 0       ? input_.Take<uint64_t>()
                : kind == FrameKind::kRead ? readable_.key
                                           : writable_.key);
  }
  // The header, and as much as it says of what follows, within reason.
  void Send(const FrameHeader& frame, uint64_t key) {
    std::vector<std::byte> all(sizeof(frame) + std::min<uint64_t>(frame.head_bytes, 2000));
    std::memcpy(all.data(), &frame, sizeof(frame));
    std::memcpy(all.data() + sizeof(frame), &key,
                std::min<size_t>(sizeof(key), all.size() - sizeof(frame)));
    if (HasData(static_cast<FrameKind>(frame.kind))) {
      all.resize(all.size() + std::min<uint64_t>(frame.data_bytes, 50'000), std::byte{1});
      const FrameTrailer trailer =
          input_.Below(8) == 1 ? FrameTrailer::kSpoilt : FrameTrailer::kGood;
      all.resize(all.size() + sizeof(trailer));
      std::memcpy(all.data() + all.size() - sizeof(trailer), &trailer, sizeof(trailer));
    }
    const size_t first = input_.Below(4) == 0 ? input_.Take<uint16_t>() % (all.size() + 1) : 0;
    SendPart(all.data(), first);
    if (first != 0) {
      Poll();
    }
    SendPart(all.data() + first, all.size() - first);
  }
  // Bytes that the socket does not take are left out: the rest is noise all the same.
  void SendPart(const std::byte* data, size_t bytes) {
    if (bytes != 0) {
      (void)send(raw_->fd(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  void Post() {
    const uint64_t context = next_++;
    const uint64_t bytes = 1 + input_.Take<uint16_t>() % (kRegion - 1);
    ErrorCode code = ErrorCode::kOk;
    const transport::RmaRequest request{.peer = *peer_,
                                        .local = local_.data(),
                                        .region = LocalRegion(),
                                        .remote_address = 0,
                                        .key = 1,
                                        .bytes = bytes,
                                        .context = context};
    switch (input_.Below(4)) {
      case 0:
        code = transport_->Read(request, now_ns_);
        break;
      case 1:
        code = transport_->Write(request, transport::Placement::kRemote, now_ns_);
        break;
      case 2:
        code = transport_->Write(request, transport::Placement::kLocal, now_ns_);
        break;
      default:
        code = transport_->SendMessage(*peer_, std::span(local_).first(bytes % 1000), {}, context,
                                       now_ns_);
        break;
    }
    if (code == ErrorCode::kOk) {
      sink_.open.emplace(context, true);
    }
  }
  transport::RegionHandle LocalRegion() {
    if (!own_) {
      own_ = *transport_->RegisterMemory(local_.data(), local_.size(), transport::Access::kLocal);
    }
    return own_->handle;
  }

  // Answers, or nearly, what came last.
  void Answer() {
    raw_->Drain();
    while (const auto frame = raw_->TakeFrame()) {
      const auto kind = static_cast<FrameKind>(frame->kind);
      if (kind == FrameKind::kRead || (kind == FrameKind::kWrite && frame->id != 0)) {
        asked_ = frame->id;
        asked_bytes_ = frame->data_bytes;
      }
    }
    FrameHeader answer;
    const uint32_t which = input_.Below(3);
    answer.kind = static_cast<uint32_t>(which == 0   ? FrameKind::kData
                                        : which == 1 ? FrameKind::kPlaced
                                                     : FrameKind::kRefused);
    answer.id = asked_;
    if (which == 0) {
      answer.data_bytes =
          input_.Below(2) == 0 ? asked_bytes_ : 1 + input_.Take<uint16_t>() % 10'000;
    }
    Send(answer, 0);
  }

  void Rare() {
    switch (input_.Below(6)) {
      case 0:
        if (transport_->DeregisterMemory(writable_.handle).ok()) {
          writable_ = *transport_->RegisterMemory(written_.base(), kRegion,
                                                  transport::Access::kRemoteWrite);
        }
        break;
      case 1:
        transport_->FailPeer(*peer_, ErrorCode::kPeerDied);
        sink_.landing = false;
        Check(transport_->RemovePeer(*peer_).ok());
        peer_.reset();
        raw_->Close();
        Poll();
        Connect();
        break;
      case 2:
        raw_->Close();
        Poll();
        Connect();
        break;
      case 3:
        now_ns_ += 3'000'000'000;
        break;
      case 4:
        (void)transport_->PrepareToSleep();
        break;
      default:
        transport_->Flush(now_ns_);
        break;
    }
  }

  FuzzInput& input_;
  Guarded memory_;
  Guarded written_;
  Guarded landed_;
  std::vector<std::byte> local_ = std::vector<std::byte>(kRegion);
  std::unique_ptr<transport::Transport> transport_;
  MemoryRegion readable_;
  MemoryRegion writable_;
  std::optional<MemoryRegion> own_;
  std::optional<transport::PeerId> peer_;
  std::unique_ptr<RawTcpPeer> raw_;
  Sink sink_;
  uint64_t now_ns_ = 1;
  uint64_t next_ = 1;
  uint64_t asked_ = 0;  // the last id by which the transport has asked, and for how much
  uint64_t asked_bytes_ = 0;
};

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::fuzz::Target target(input);
  for (int step = 0; step < 200 && !input.empty(); step++) {
    target.Step();
  }
  target.End();
  return 0;
}
