#include "tools/tune/network_meter.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "common/clock.h"
#include "common/hex_text.h"
#include "common/number_text.h"
#include "tools/tune/curve.h"
#include "transports/loader/loader.h"

namespace ferry::tools {
namespace {

using transport::Access;
using transport::PeerId;
using transport::Transport;

constexpr int kPollBudget = 64;
// While a measurement is under way its threads do not sleep, as in a daemon that moves bytes.
constexpr uint64_t kAwakeNs = 2'000'000;
constexpr int kSleepMs = 20;  // until the server looks whether it is to stop
constexpr size_t kMostAddressBytes = 256;

// Counts what has ended.
class Completions : public transport::CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t, ErrorCode code) override {
    ++ended_;
    error_ = error_ == ErrorCode::kOk ? code : error_;
  }
  uint32_t ended() const { return ended_; }
  ErrorCode error() const { return error_; }

 private:
  uint32_t ended_ = 0;
  ErrorCode error_ = ErrorCode::kOk;
};

template <typename Number>
bool ReadHex(std::string_view text, Number* number) {
  const std::optional<Number> found = NumberIn<Number>(text, 16);
  *number = found.value_or(0);
  return found.has_value();
}

std::string HexNumber(uint64_t number) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return {digits.data(), end};
}

// One endpoint that reads.
class Reader {
 public:
  Reader(Transport* transport, PeerId peer, const ServedMemory& memory, std::byte* bytes,
         const transport::MemoryRegion& region)
      : transport_(transport), peer_(peer), memory_(memory), bytes_(bytes), region_(region) {}

  Status Read(uint64_t size_bytes, uint32_t count) {
    Completions completions;
    uint32_t posted = 0;
    while (completions.ended() < count) {
      if (posted < count) {
        const ErrorCode code = transport_->Read({.peer = peer_,
                                                 .local = bytes_,
                                                 .region = region_.handle,
                                                 .remote_address = memory_.remote_base,
                                                 .key = memory_.key,
                                                 .bytes = size_bytes},
                                                MonotonicNs());
        if (code == ErrorCode::kOk) {
          ++posted;
        } else if (code != ErrorCode::kWouldBlock) {
          return Failure(code);
        }
      }
      if (transport_->Poll(completions, kPollBudget, MonotonicNs()) == 0) {
        std::this_thread::yield();
      }
      if (completions.error() != ErrorCode::kOk) {
        return Failure(completions.error());
      }
    }
    return {};
  }

 private:
  Status Failure(ErrorCode code) const {
    const std::string words = transport_->LastError();
    return {code, "reading over the network: " + std::string(ErrorCodeText(code)) +
                      (words.empty() ? "" : " (" + words + ")")};
  }

  Transport* transport_;
  PeerId peer_;
  const ServedMemory& memory_;
  std::byte* bytes_;
  transport::MemoryRegion region_;
};

}  // namespace

std::string WordFor(const ServedMemory& memory) {
  const auto* address = reinterpret_cast<const uint8_t*>(memory.address.data());
  return HexText({address, memory.address.size()}) + "." + HexNumber(memory.key) + "." +
         HexNumber(memory.remote_base) + "." + HexNumber(memory.size_bytes);
}

StatusOr<ServedMemory> ServedMemoryFrom(std::string_view word) {
  const Status mistake(ErrorCode::kInvalidArgument,
                       "--peer takes the word that `ferryctl tune --serve` prints on the other "
                       "node, not \"" +
                           std::string(word.substr(0, 64)) + "\"");
  ServedMemory memory;
  const size_t end = word.find('.');
  const std::string_view address = word.substr(0, end);
  if (end == word.npos || address.size() % 2 != 0 || address.size() > 2 * kMostAddressBytes) {
    return mistake;
  }
  for (size_t i = 0; i < address.size(); i += 2) {
    uint8_t byte = 0;
    if (!ReadHex(address.substr(i, 2), &byte)) {
      return mistake;
    }
    memory.address.push_back(std::byte{byte});
  }
  word.remove_prefix(end + 1);
  for (uint64_t* number : {&memory.key, &memory.remote_base, &memory.size_bytes}) {
    const size_t dot = std::min(word.find('.'), word.size());
    const bool last = number == &memory.size_bytes;
    if (!ReadHex(word.substr(0, dot), number) || last != (dot == word.size())) {
      return mistake;
    }
    word.remove_prefix(std::min(dot + 1, word.size()));
  }
  return memory;
}

StatusOr<std::unique_ptr<MemoryServer>> MemoryServer::Start(
    const transport::TransportOptions& options, uint64_t size_bytes) {
  StatusOr<std::unique_ptr<Transport>> opened = transport::OpenTransport(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<MemoryServer> server(new MemoryServer(std::move(*opened), size_bytes));
  const StatusOr<transport::MemoryRegion> region =
      server->transport_->RegisterMemory(server->bytes_.data(), size_bytes, Access::kRemoteRead);
  FERRY_RETURN_IF_ERROR(region.status());
  server->memory_ = {server->transport_->Address(), region->key, region->remote_base, size_bytes};
  server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  return server;
}

MemoryServer::~MemoryServer() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void MemoryServer::Serve() {
  Completions ignored;
  uint64_t busy_ns = MonotonicNs();
  while (!stop_) {
    const uint64_t now_ns = MonotonicNs();
    if (transport_->Poll(ignored, kPollBudget, now_ns) > 0) {
      busy_ns = now_ns;
    } else if (now_ns - busy_ns > kAwakeNs && transport_->PrepareToSleep()) {
      pollfd woken{transport_->WaitFd(), POLLIN, 0};
      if (poll(&woken, 1, kSleepMs) > 0) {
        busy_ns = MonotonicNs();  // reads end without an event here
      }
    } else {
      std::this_thread::yield();
    }
  }
}

StatusOr<NetworkCurve> MeasureNetwork(const transport::TransportOptions& options,
                                      const ServedMemory& memory, std::span<const uint64_t> sizes,
                                      uint32_t repetitions) {
  const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest > memory.size_bytes) {
    return Status(ErrorCode::kInvalidArgument,
                  "the other node serves " + std::to_string(memory.size_bytes) +
                      " bytes, less than the " + std::to_string(largest) +
                      " to be read: give both sides the same --sizes");
  }
  std::vector<std::byte> bytes(largest);
  const StatusOr<std::unique_ptr<Transport>> opened = transport::OpenTransport(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  const StatusOr<PeerId> peer = (*opened)->AddPeer(memory.address);
  FERRY_RETURN_IF_ERROR(peer.status());
  const StatusOr<transport::MemoryRegion> region =
      (*opened)->RegisterMemory(bytes.data(), bytes.size(), Access::kLocal);
  FERRY_RETURN_IF_ERROR(region.status());
  Reader reader(opened->get(), *peer, memory, bytes.data(), *region);
  StatusOr<Curve> curve = MeasureCurve(
      sizes, repetitions,
      [&reader](uint64_t size_bytes, uint32_t count) { return reader.Read(size_bytes, count); });
  FERRY_RETURN_IF_ERROR(curve.status());
  return NetworkCurve{std::move(*curve), (*opened)->Describe()};
}

}  // namespace ferry::tools
