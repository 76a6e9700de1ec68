// A client says anything in HTTP/2's frames, or nearly, to the guard that stands before gRPC, and
// hangs up and comes again; the server answers. However the bytes are cut, no frame is passed on in
// which a header block goes on, and no more calls than the server has places for; what is refused
// stays refused; and a caller who has left, and has kept quiet, is as new.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/grpc/http2_guard.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::daemon {
namespace {

using fuzz::FuzzInput;
using http2::FrameType;

constexpr uint32_t kMaxSteps = 128;
constexpr uint64_t kMostCalls = 8;
constexpr uint64_t kNsPerS = 1'000'000'000;

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Counts what has been passed on, frame by frame.
class Passed {
 public:
  void Add(std::string_view bytes) {
    rest_.append(bytes);
    if (!has_preface_) {
      if (rest_.size() < http2::kClientPreface.size()) {
        return;
      }
      rest_.erase(0, http2::kClientPreface.size());
      has_preface_ = true;
    }
    while (rest_.size() >= http2::kFrameHeaderBytes) {
      const http2::FrameHeader frame = http2::ReadFrameHeader(rest_);
      if (!is_counted_) {
        Count(frame);
        is_counted_ = true;
      }
      const size_t whole = http2::kFrameHeaderBytes + frame.payload_bytes;
      if (rest_.size() < whole) {
        return;
      }
      rest_.erase(0, whole);
      is_counted_ = false;
    }
  }
  // The server has ended that call.
  void End(uint32_t stream) { open_.erase(stream); }

 private:
  void Count(const http2::FrameHeader& frame) {
    Check(frame.type != FrameType::kContinuation);
    if (frame.type == FrameType::kHeaders) {
      open_.insert(frame.stream);
      Check(open_.size() <= static_cast<size_t>(kCallsOfConnection));
    } else if (frame.type == FrameType::kResetStream) {
      open_.erase(frame.stream);
    }
  }

  std::string rest_;
  bool has_preface_ = false;
  bool is_counted_ = false;
  std::set<uint32_t> open_;
};

// One connection.
class Client {
 public:
  explicit Client(std::shared_ptr<Http2Caller> caller) : guard_(std::move(caller)) {}

  // In pieces of so many bytes, but what had to wait is shown again whole.
  void Say(std::string_view text, size_t piece, uint64_t now_ns) {
    waiting_.append(text);
    for (size_t passed = 1; passed != 0 && !waiting_.empty();) {
      const std::string_view shown = std::string_view(waiting_).substr(0, std::max(piece, least_));
      const Http2Guard::Verdict verdict = guard_.OnClientSaid(BytesOf(shown), now_ns);
      passed = verdict.may_pass;
      Check(passed <= shown.size());
      Check(!is_refused_ || (verdict.refusal != nullptr && passed == 0));
      passed_.Add(shown.substr(0, passed));
      waiting_.erase(0, passed);
      least_ = shown.size() - passed;
      is_refused_ = verdict.refusal != nullptr;
      passed = is_refused_ ? 0 : passed;
    }
  }
  void Hear(std::string_view text, std::optional<uint32_t> ended) {
    guard_.OnServerSaid(BytesOf(text));
    if (ended.has_value()) {
      passed_.End(*ended);
    }
  }
  void Leave(uint64_t now_ns) { guard_.Leave(now_ns); }
  bool is_refused() const { return is_refused_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  Http2Guard guard_;
  std::string waiting_;  // what may not pass yet,
  size_t least_ = 0;     // and how much of it has been shown
  Passed passed_;
  bool is_refused_ = false;
};

class GuardFuzz {
 public:
  GuardFuzz() : client_(std::make_unique<Client>(caller_)) {}

  void Step(FuzzInput& input) {
    now_ns_ += uint64_t{input.Below(64)} << input.Below(26);
    if (client_->is_refused() || client_->waiting() > (1 << 16)) {
      ComeAgain(input);
    }
    switch (input.Below(8)) {
      case 0:
        SayFrame(input, static_cast<FrameType>(input.Below(12)));
        break;
      case 1:
        Say(input, input.TakeText(input.Below(64)));  // noise
        break;
      case 2:
        Answer(input);
        break;
      case 3:
        SayFrame(input, FrameType::kResetStream);
        break;
      case 4:
        if (input.Below(16) == 1) {
          ComeAgain(input);
        } else {
          Say(input, {});
        }
        break;
      default:
        SayFrame(input, input.Below(2) == 0 ? FrameType::kHeaders : FrameType::kData);
    }
  }
  void End() {
    client_->Leave(now_ns_);
    client_.reset();
    Check(caller_->IsFresh(now_ns_ + 3'600 * kNsPerS));
  }

 private:
  void Say(FuzzInput& input, std::string_view text) {
    client_->Say(text, input.Below(2) == 0 ? SIZE_MAX : 1 + input.Below(40), now_ns_);
  }
  void ComeAgain(FuzzInput& input) {
    client_->Leave(now_ns_);
    client_ = std::make_unique<Client>(caller_);
    calls_ = 0;
    const std::string greeting =
        std::string(http2::kClientPreface) + http2::Frame(FrameType::kSettings, 0, 0, {});
    if (input.Below(8) != 1) {
      Say(input, greeting);
    }
    if (input.Below(2) == 0) {
      client_->Hear(http2::Frame(FrameType::kSettings, 0, 0, {}), {});
      Say(input, http2::Frame(FrameType::kSettings, http2::kAck, 0, {}));
    }
  }
  void SayFrame(FuzzInput& input, FrameType type) {
    uint32_t stream = 1 + 2 * input.Below(1 + calls_ % 128);
    uint8_t flags = static_cast<uint8_t>(input.Below(4) == 1 ? input.Take<uint8_t>() : 0);
    if (type == FrameType::kHeaders) {
      stream = input.Below(8) == 1 ? stream : 1 + 2 * calls_++;
      flags |= http2::kEndHeaders | (input.Below(2) == 0 ? http2::kEndStream : 0);
    }
    const size_t bytes = input.Below(16) == 1 ? 40 * input.Below(256) : input.Below(64);
    Say(input, http2::Frame(type, flags, stream, std::string(bytes, 'x')));
  }
  void Answer(FuzzInput& input) {
    const uint32_t stream = 1 + 2 * input.Below(1 + calls_ % 128);
    const bool ends = input.Below(4) != 1;
    client_->Hear(http2::Frame(FrameType::kHeaders,
                               http2::kEndHeaders | (ends ? http2::kEndStream : 0), stream, "s"),
                  ends ? std::optional(stream) : std::nullopt);
  }

  const std::shared_ptr<Http2Caller> caller_ = std::make_shared<Http2Caller>(kMostCalls);
  std::unique_ptr<Client> client_;
  uint32_t calls_ = 0;
  uint64_t now_ns_ = kNsPerS;
};

}  // namespace
}  // namespace ferry::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::daemon::GuardFuzz guard;
  for (uint32_t step = 0; step < ferry::daemon::kMaxSteps && !input.empty(); ++step) {
    guard.Step(input);
  }
  guard.End();
  return 0;
}
