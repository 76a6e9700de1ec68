#include "daemon/grpc/http2_guard.h"

#include <algorithm>
#include <cstring>

namespace ferry::daemon {
namespace {

using http2::FrameHeader;
using http2::FrameType;

// gRPC's own limit of what a call's fields may come to, which it looks at late.
constexpr size_t kMostFieldBytes = 8 << 10;
// The limit for a client that has not acknowledged the server's settings. gRPC applies its own
// limit only from then on, and before takes seventy bytes for each byte that refers to a field it
// remembers.
constexpr size_t kMostEarlyFieldBytes = 1 << 10;
// Of any other frame but data: none that gRPC's clients write has a tenth.
constexpr size_t kMostAsideBytes = 1 << 10;
// gRPC refuses requests of more than half, in words.
constexpr uint64_t kMostRequestBytes = 2 * kMostMessageBytes;
// A user may have as much unanswered, at one door. Protobuf makes up to fifty times as much memory
// of it: an object of a hundred bytes of each part that is empty, and takes two.
constexpr uint64_t kRequestBytesOfCaller = 1 << 20;
// And one of the user's connections, so that calls on it whose requests are half there are not all
// held up by one another. Eight of the longest that daemons send.
constexpr uint64_t kRequestBytesOfConnection = 2 * kRequestBytesOfCaller;
// Of data in smaller pieces, gRPC takes more memory for the piece than for its bytes.
constexpr size_t kSmallPiece = 1 << 10;
// A call that was reset or left gives the server work still, and its client has no need to wait for
// that. So places of such calls become free one after the other, 200 a second. (The ranks of a job
// that is killed leave one each.)
constexpr uint64_t kGoneCallNs = 5'000'000;
// Its request may still be read, which takes nearly half a second for each MiB on a slow machine.
constexpr uint64_t kGoneByteNs = 400;

constexpr char kNoGreeting[] = "it does not greet as a client of HTTP/2";

}  // namespace

// ---- FrameReader ----

namespace http2 {

size_t FrameReader::Read(std::span<const std::byte> bytes) {
  const size_t skipped = std::min(skip_, bytes.size());
  skip_ -= skipped;
  bytes = bytes.subspan(skipped);
  const size_t size = std::min(bytes_.size() - taken_, bytes.size());
  if (size == 0) {
    return skipped;
  }
  std::memcpy(&bytes_[taken_], bytes.data(), size);
  if (taken_ + size < bytes_.size()) {
    taken_ += size;
    return skipped + size;
  }
  coming_ = size;
  complete_ = true;
  header_ = ReadFrameHeader({bytes_.data(), bytes_.size()});
  return skipped;
}

size_t FrameReader::Pass() {
  complete_ = false;
  taken_ = 0;
  skip_ = header_.payload_bytes;
  return coming_;
}

}  // namespace http2

// ---- Http2Caller ----

void Http2Caller::Forget(uint64_t now_ns) {
  while (!gone_.empty() && gone_.front().until_ns <= now_ns) {
    request_bytes_ -= gone_.front().request_bytes;
    gone_.pop_front();
    --calls_;
  }
}

void Http2Caller::KeepPlace(uint64_t request_bytes, uint64_t now_ns) {
  const uint64_t since_ns = gone_.empty() ? now_ns : std::max(gone_.back().until_ns, now_ns);
  ++calls_;
  request_bytes_ += request_bytes;
  gone_.push_back({since_ns + kGoneCallNs + request_bytes * kGoneByteNs, request_bytes});
}

bool Http2Caller::HasPlace(uint64_t now_ns) {
  Forget(now_ns);
  return calls_ < most_calls_;
}

bool Http2Caller::IsFresh(uint64_t now_ns) {
  Forget(now_ns);
  return calls_ == 0 && asides_.full(now_ns) && connections_.full(now_ns);
}

// ---- Http2Guard ----

Http2Guard::Verdict Http2Guard::OnClientSaid(std::span<const std::byte> bytes, uint64_t now_ns) {
  for (size_t i = 0; preface_ < http2::kClientPreface.size() && i < bytes.size(); ++i, ++preface_) {
    if (static_cast<char>(bytes[i]) != http2::kClientPreface[preface_]) {
      return {0, refusal_ = kNoGreeting};
    }
  }
  size_t passed = 0;
  bool any = false;
  while (refusal_ == nullptr && passed < bytes.size()) {
    passed += client_.Read(bytes.subspan(passed));
    if (!client_.has_header()) {
      continue;
    }
    any = true;
    if (const Fate fate = OnFrame(client_.header(), now_ns); fate != Fate::kPass) {
      return {passed, refusal_};
    }
    passed += client_.Pass();
  }
  // Each piece, however small, costs gRPC a read: small ones that end no frame have to be few.
  if (!any && bytes.size() < kSmallPiece) {
    asides_.Take(now_ns);
    caller_->asides_.Take(now_ns);
  }
  return {passed, refusal_};
}

Http2Guard::Fate Http2Guard::End(const char* why) {
  refusal_ = why;
  return Fate::kEnd;
}

Http2Guard::Fate Http2Guard::OnFrame(const FrameHeader& frame, uint64_t now_ns) {
  if (!greeted_) {
    return OnGreeting(frame, now_ns);
  }
  switch (frame.type) {
    case FrameType::kHeaders:
      return OnFields(frame, now_ns);
    case FrameType::kData:
      return OnData(frame, now_ns);
    case FrameType::kContinuation:
    case FrameType::kPushPromise:
      return End("it sends header fields in several frames, or where none belong");
    default:
      return OnAside(frame, now_ns);
  }
}

Http2Guard::Fate Http2Guard::OnGreeting(const FrameHeader& frame, uint64_t now_ns) {
  if (frame.type != FrameType::kSettings || frame.payload_bytes > kMostAsideBytes) {
    return End(kNoGreeting);
  }
  if (!caller_->connections_.Has(now_ns)) {
    return Fate::kWait;
  }
  caller_->connections_.Take(now_ns);
  greeted_ = true;
  return Fate::kPass;
}

Http2Guard::Fate Http2Guard::OnFields(const FrameHeader& frame, uint64_t now_ns) {
  if (frame.payload_bytes > kMostFieldBytes || (frame.flags & http2::kEndHeaders) == 0) {
    return End("the header fields of a call do not fit into one frame of 8 KiB");
  }
  if (frame.payload_bytes > kMostEarlyFieldBytes && !acknowledged_) {
    return End("it sends long header fields before it has acknowledged the settings");
  }
  if (frame.stream <= last_stream_ || frame.stream % 2 == 0) {  // begins no call
    return TakeAside(now_ns) ? Fate::kPass : Fate::kWait;
  }
  if (open_.size() >= kCallsOfConnection) {
    return End("it has more calls open than it may");
  }
  if (!caller_->HasPlace(now_ns)) {
    return Fate::kWait;
  }
  ++caller_->calls_;
  open_.emplace(frame.stream, 0);
  last_stream_ = frame.stream;
  return Fate::kPass;
}

Http2Guard::Fate Http2Guard::OnData(const FrameHeader& frame, uint64_t now_ns) {
  const auto call = open_.find(frame.stream);
  const bool is_last = (frame.flags & http2::kEndStream) != 0;
  if ((call == open_.end() || !is_last) && frame.payload_bytes < kSmallPiece) {
    if (!TakeAside(now_ns)) {
      return Fate::kWait;
    }
  }
  if (call == open_.end()) {
    return Fate::kPass;  // of one that has ended meanwhile: gRPC throws it away
  }
  if (call->second + frame.payload_bytes > kMostRequestBytes) {
    return End("a request has more than 1 MiB");
  }
  caller_->Forget(now_ns);
  const bool fits = caller_->request_bytes_ + frame.payload_bytes <= kRequestBytesOfCaller;
  const bool is_first =
      caller_->first_ == this && request_bytes_ + frame.payload_bytes <= kRequestBytesOfConnection;
  if (!fits && !is_first) {
    return Fate::kWait;
  }
  if (caller_->first_ == nullptr) {
    caller_->first_ = this;
  }
  call->second += frame.payload_bytes;
  request_bytes_ += frame.payload_bytes;
  caller_->request_bytes_ += frame.payload_bytes;
  return Fate::kPass;
}

Http2Guard::Fate Http2Guard::OnAside(const FrameHeader& frame, uint64_t now_ns) {
  if (frame.payload_bytes > kMostAsideBytes) {
    return End("it sends a frame of more than 1 KiB that is neither data nor a call");
  }
  if (!TakeAside(now_ns)) {
    return Fate::kWait;
  }
  if (frame.type == FrameType::kSettings && (frame.flags & http2::kAck) != 0) {
    acknowledged_ = server_spoke_;  // no client can before that
  }
  if (frame.type == FrameType::kResetStream && open_.contains(frame.stream)) {
    caller_->KeepPlace(CloseCall(frame.stream), now_ns);
  }
  return Fate::kPass;
}

bool Http2Guard::TakeAside(uint64_t now_ns) {
  if (!asides_.Has(now_ns) || !caller_->asides_.Has(now_ns)) {
    return false;
  }
  asides_.Take(now_ns);
  caller_->asides_.Take(now_ns);
  return true;
}

void Http2Guard::OnServerSaid(std::span<const std::byte> bytes) {
  server_spoke_ = true;  // its settings come first
  while (!bytes.empty()) {
    bytes = bytes.subspan(server_.Read(bytes));
    if (server_.has_header()) {
      const FrameHeader& frame = server_.header();
      const bool has_end = frame.type == FrameType::kHeaders || frame.type == FrameType::kData;
      if (frame.type == FrameType::kResetStream ||
          (has_end && (frame.flags & http2::kEndStream) != 0)) {
        CloseCall(frame.stream);
      }
      bytes = bytes.subspan(server_.Pass());
    }
  }
}

uint64_t Http2Guard::CloseCall(uint32_t stream) {
  const auto call = open_.find(stream);
  if (call == open_.end()) {
    return 0;
  }
  const uint64_t bytes = call->second;
  caller_->request_bytes_ -= bytes;
  request_bytes_ -= bytes;
  --caller_->calls_;
  open_.erase(call);
  if (request_bytes_ == 0 && caller_->first_ == this) {
    caller_->first_ = nullptr;
  }
  return bytes;
}

void Http2Guard::Leave(uint64_t now_ns) {
  while (!open_.empty()) {
    const uint64_t bytes = CloseCall(open_.begin()->first);
    if (now_ns != 0) {
      caller_->KeepPlace(bytes, now_ns);
    }
  }
}

}  // namespace ferry::daemon
