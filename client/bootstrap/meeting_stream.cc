#include "client/bootstrap/meeting_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ferry::client {
namespace {

constexpr std::string_view kWord = "FerryMt1";  // the last letter is the version
constexpr size_t kGreetingBytes = kWord.size() + sizeof(Secret);
constexpr size_t kReadBytes = 1 << 16;
// The longest packet: a short one of a process that has not shown that it knows the secret; else
// the table of a large job.
constexpr size_t kMostUnknownBytes = 4096;
constexpr size_t kMostBytes = size_t{1} << 30;
// In the place of a packet's length: the first one has not opened.
constexpr uint32_t kRefusal = 0;

}  // namespace

void WatchHost(int socket, bool is_watched) {
  const int on = is_watched ? 1 : 0;
  constexpr int kIdleS = 4;
  constexpr int kPauseS = 2;
  constexpr int kQuestions = 3;
  constexpr int kUnacknowledgedMs = 10'000;
  (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleS, sizeof(kIdleS));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kPauseS, sizeof(kPauseS));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kQuestions, sizeof(kQuestions));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs,
                   sizeof(kUnacknowledgedMs));
}

void AddField(std::string_view field, std::string* words) {
  const auto size = static_cast<uint32_t>(field.size());
  words->append(reinterpret_cast<const char*>(&size), sizeof(size));
  words->append(field);
}

std::optional<std::string_view> TakeField(std::string_view* words) {
  uint32_t size = 0;
  if (words->size() < sizeof(size)) {
    return std::nullopt;
  }
  std::memcpy(&size, words->data(), sizeof(size));
  if (words->size() - sizeof(size) < size) {
    return std::nullopt;
  }
  const std::string_view field = words->substr(sizeof(size), size);
  words->remove_prefix(sizeof(size) + size);
  return field;
}

MeetingStream::MeetingStream(UniqueFd socket, Side side, const Secret& key, const Secret& number)
    : socket_(std::move(socket)), side_(side), key_(key) {
  (side == Side::kCaller ? numbers_.caller : numbers_.server) = number;
  if (side == Side::kCaller) {
    output_ = kWord;
    output_.append(reinterpret_cast<const char*>(number.data()), number.size());
  }
}

short MeetingStream::events() const {
  return static_cast<short>(POLLIN | (output_.empty() ? 0 : POLLOUT));
}

void MeetingStream::Append(std::string_view packet) {
  const auto size = static_cast<uint32_t>(packet.size());
  output_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  output_.append(packet);
}

void MeetingStream::Put(std::string_view words) {
  if (out_) {
    Append(out_->Close(words));
  } else {
    waiting_.emplace_back(words);
  }
}

StatusOr<std::string> MeetingStream::Turn() {
  FERRY_RETURN_IF_ERROR(Send());
  StatusOr<std::string> packet = TakePacket();
  if (packet.status().code() == ErrorCode::kWouldBlock) {
    FERRY_RETURN_IF_ERROR(Receive());
    packet = TakePacket();
    FERRY_RETURN_IF_ERROR(Send());  // what the other side's greeting has set free
  }
  if (packet.status().code() == ErrorCode::kWouldBlock && is_closed_) {
    return Status(ErrorCode::kSystem, "the connection was closed");
  }
  return packet;
}

Status MeetingStream::Send() {
  while (sent_bytes_ < output_.size()) {
    const ssize_t size = send(socket_.get(), output_.data() + sent_bytes_,
                              output_.size() - sent_bytes_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return {};
    }
    if (size < 0) {
      // Words of the other side from before its end may have come, and say why.
      is_closed_ = true;
      output_.clear();
      sent_bytes_ = 0;
      return {};
    }
    sent_bytes_ += static_cast<size_t>(size);
  }
  output_.clear();
  sent_bytes_ = 0;
  return {};
}

Status MeetingStream::Receive() {
  std::array<char, kReadBytes> bytes;
  for (;;) {
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return {};
    }
    if (size <= 0) {
      is_closed_ = true;
      return {};
    }
    input_.append(bytes.data(), static_cast<size_t>(size));
    if (static_cast<size_t>(size) < bytes.size() || !is_proven_) {
      return {};
    }
  }
}

Status MeetingStream::Greet() {
  const size_t known = std::min(input_.size(), kWord.size());
  if (std::string_view(input_).substr(0, known) != kWord.substr(0, known)) {
    return {ErrorCode::kCorrupt, "it does not speak Ferry's protocol of such meetings"};
  }
  if (input_.size() < kGreetingBytes) {
    return {ErrorCode::kWouldBlock, ""};
  }
  Secret& number = side_ == Side::kCaller ? numbers_.server : numbers_.caller;
  std::memcpy(number.data(), input_.data() + kWord.size(), number.size());
  input_.erase(0, kGreetingBytes);
  if (side_ == Side::kServer) {
    output_ = kWord;
    output_.append(reinterpret_cast<const char*>(numbers_.server.data()), sizeof(Secret));
  }
  const bool calls = side_ == Side::kCaller;
  in_.emplace(key_, numbers_, calls ? Direction::kToCaller : Direction::kToServer);
  out_.emplace(key_, numbers_, calls ? Direction::kToServer : Direction::kToCaller);
  for (const std::string& words : waiting_) {
    Append(out_->Close(words));
  }
  waiting_.clear();
  return {};
}

StatusOr<std::string> MeetingStream::TakePacket() {
  if (!in_) {
    FERRY_RETURN_IF_ERROR(Greet());
  }
  uint32_t size = 0;
  if (input_.size() < sizeof(size)) {
    return Status(ErrorCode::kWouldBlock, "");
  }
  std::memcpy(&size, input_.data(), sizeof(size));
  if (size == kRefusal) {
    return Status(ErrorCode::kPermissionDenied, "it refuses this process's secret");
  }
  if (size > (is_proven_ ? kMostBytes : kMostUnknownBytes)) {
    return Status(ErrorCode::kCorrupt,
                  "it announces a packet of " + std::to_string(size) + " bytes");
  }
  if (input_.size() - sizeof(size) < size) {
    return Status(ErrorCode::kWouldBlock, "");
  }
  std::optional<std::string> words = in_->Open(std::string_view(input_).substr(sizeof(size), size));
  if (!words) {
    output_.append(reinterpret_cast<const char*>(&kRefusal), sizeof(kRefusal));
    (void)Send().ok();
    return Status(ErrorCode::kPermissionDenied, "it does not know this process's secret");
  }
  input_.erase(0, sizeof(size) + size);
  is_proven_ = true;
  return std::move(*words);
}

}  // namespace ferry::client
