#include "tests/conformance/transport_peer.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <deque>

#include "common/clock.h"

namespace ferry::transport {
namespace {

bool ReadAll(void* data, size_t bytes) { return fread(data, 1, bytes, stdin) == bytes; }

void WriteNumber(uint64_t number) { fwrite(&number, sizeof(number), 1, stdout); }

class Echo : public CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte> message) override {
    waiting_.emplace_back(message.begin(), message.end());
  }
  void OnComplete(uint64_t, ErrorCode) override {}

  void Answer(Transport* transport, PeerId peer) {
    while (!waiting_.empty() &&
           transport->SendMessage(peer, waiting_.front(), {}, 0, MonotonicNs()) == ErrorCode::kOk) {
      waiting_.pop_front();
    }
  }

 private:
  std::deque<std::vector<std::byte>> waiting_;
};

// Waits for the transport or the end of standard input. Returns false at the latter.
bool Sleep(Transport* transport) {
  const uint64_t now_ns = MonotonicNs();
  const uint64_t wake_ns = transport->NextPollNs(now_ns);
  pollfd descriptors[] = {{STDIN_FILENO, POLLIN, 0}, {transport->WaitFd(), POLLIN, 0}};
  int timeout_ms = 0;
  if (transport->PrepareToSleep()) {
    timeout_ms = wake_ns == UINT64_MAX ? -1 : static_cast<int>((wake_ns - now_ns) / 1'000'000) + 1;
  }
  poll(descriptors, 2, timeout_ms);
  return descriptors[0].revents == 0;
}

}  // namespace

int RunTransportPeer(int argc, char** argv, const CreateFunction& create) {
  TransportOptions options;
  uint64_t address_bytes = 0;
  if (argc != 2 || !ReadAll(&address_bytes, sizeof(address_bytes)) || address_bytes > 4096) {
    return 2;
  }
  options.provider = argv[1];
  std::vector<std::byte> address(address_bytes);
  std::vector<std::byte> memory(kPeerMemoryBytes);
  StatusOr<std::unique_ptr<Transport>> transport = create(options);
  if (!ReadAll(address.data(), address.size()) || !transport.ok()) {
    return 3;
  }
  Transport* const t = transport->get();
  StatusOr<PeerId> peer = t->AddPeer(address);
  StatusOr<MemoryRegion> region =
      t->RegisterMemory(memory.data(), memory.size(), Access::kRemoteRead | Access::kRemoteWrite);
  if (!peer.ok() || !region.ok()) {
    return 4;
  }
  WriteNumber(t->Address().size());
  fwrite(t->Address().data(), 1, t->Address().size(), stdout);
  WriteNumber(region->key);
  WriteNumber(region->remote_base);
  fflush(stdout);

  Echo echo;
  bool running = true;
  while (running) {
    if (t->Poll(echo, 64, MonotonicNs()) == 0) {
      running = Sleep(t);
    }
    echo.Answer(t, *peer);
  }
  return 0;
}

}  // namespace ferry::transport
