// A stranger says anything to a listening TcpTransport: it gets nowhere, unless it has the secret.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/fuzz/fuzz_input.h"
#include "tests/transports/tcp/raw_tcp_peer.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::fuzz {
namespace {

using transport::RawTcpPeer;
using transport::TcpAnswer;
using transport::TcpHello;
using transport::TcpWelcome;

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

struct NoMessages : transport::CompletionSink {
  void OnReceive(transport::PeerId, std::span<const std::byte>) override { std::abort(); }
  void OnComplete(uint64_t, ErrorCode) override { std::abort(); }
};

class Listener {
 public:
  Listener() {
    transport::TransportOptions options;
    options.max_outstanding = 4;
    transport_ = std::move(*transport::CreateTcpTransport(options));
  }
  const std::vector<std::byte>& address() const { return transport_->Address(); }
  void Poll() {
    for (int i = 0; i < 20; i++) {  // it looks for strangers from time to time
      transport_->Poll(sink_, 64, now_ns_);
    }
  }
  void Wait(uint64_t ns) { now_ns_ += ns; }

 private:
  std::unique_ptr<transport::Transport> transport_;
  NoMessages sink_;
  uint64_t now_ns_ = 1;
};

void Run(FuzzInput input) {
  static Listener listener;
  RawTcpPeer peer(listener.address());
  const TcpHello right = peer.Hello(static_cast<uint16_t>(1 + input.Below(4)));
  TcpHello hello = right;
  input.Spoil(&hello);
  const bool is_spoilt = std::memcmp(&hello, &right, sizeof(hello)) != 0;
  const bool has_secret =
      hello.guest == right.guest && hello.proof == right.proof && hello.magic == right.magic;
  const auto* bytes = reinterpret_cast<const std::byte*>(&hello);
  for (size_t sent = 0; sent < sizeof(hello);) {
    const size_t count = std::min<size_t>(1 + input.Below(64), sizeof(hello) - sent);
    if (!peer.Send(bytes + sent, count)) {
      break;
    }
    sent += count;
    if (input.Below(4) == 0) {
      listener.Poll();
    }
    if (input.Below(32) == 1) {
      listener.Wait(uint64_t{1} << (20 + input.Below(13)));
    }
    if (input.Below(32) == 1) {
      break;  // says no more
    }
  }
  if (input.Below(8) == 1) {
    const auto more = input.TakeBytes(256);
    (void)peer.Send(more.data(), more.size());
  }
  listener.Poll();
  peer.Drain();
  const auto welcome = peer.Take<TcpWelcome>();
  Check(!welcome || has_secret);
  Check(!welcome || welcome->version == transport::kTcpVersion);
  peer.Close();
  listener.Poll();

  // A peer that has the secret is welcome after that.
  RawTcpPeer honest(listener.address());
  Check(!is_spoilt || honest.Send(honest.Hello(9)));
  if (is_spoilt) {
    listener.Poll();
    honest.Drain();
    const auto answer = honest.Take<TcpWelcome>();
    Check(answer && answer->answer == TcpAnswer::kWelcome);
  }
  honest.Close();
  listener.Poll();
}

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::Run(ferry::fuzz::FuzzInput(data, size));
  return 0;
}
