#include "transports/tcp/tcp_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shm/word_copy.h"

namespace ferry::transport {
namespace {

// Data of which more than this is missing is read to its place, by a system call of its own if need
// be; copying less from the read buffer costs no more than that call.
constexpr uint64_t kInPlaceBytes = 16 << 10;
// The most that is read along behind such data: more would be copied that could go to its place.
constexpr size_t kBehindBytes = 16 << 10;
// One stream is read for so long in one turn.
constexpr uint64_t kMostReadBytes = 1 << 20;

constexpr size_t kHeaderBytes = sizeof(FrameHeader);
constexpr size_t kTrailerBytes = sizeof(FrameTrailer);

// In place of data that cannot be read.
alignas(64) constexpr std::array<std::byte, 16 << 10> kZeros{};

}  // namespace

TcpStream::TcpStream(UniqueFd fd, TcpRemote* remote, bool called, const Limits& limits)
    : fd_(std::move(fd)),
      remote_(remote),
      limits_(limits),
      held_(std::make_unique_for_overwrite<std::byte[]>(kHeaderBytes + limits.head_bytes)),
      called_(called) {}

void TcpStream::Close() {
  shutdown(fd_.get(), SHUT_RDWR);  // a child that was forked meanwhile may have it, too
  fd_.Reset();
  state_ = State::kClosed;
}

void TcpStream::Break(int error, bool by_peer) {
  if (!broken_) {
    broken_ = true;
    broken_by_peer_ = by_peer;
    error_ = error;
  }
}

TcpStream::Read TcpStream::ReadWelcome(TcpWelcome* welcome) {
  const ssize_t count =
      recv(fd(), held_.get() + held_bytes_, sizeof(*welcome) - held_bytes_, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Read::kDrained;
  }
  if (count <= 0) {
    Break(count == 0 ? 0 : errno, /*by_peer=*/true);
    return Read::kEnded;
  }
  held_bytes_ += static_cast<size_t>(count);
  if (held_bytes_ < sizeof(*welcome)) {
    return Read::kDrained;
  }
  held_bytes_ = 0;
  std::memcpy(welcome, held_.get(), sizeof(*welcome));
  return Read::kMore;
}

// ---- Reading ----

TcpStream::Read TcpStream::ReadFrames(FrameReader& reader, ReadBuffer& buffer, uint32_t* frames) {
  if (!unread_.empty()) {
    unread_ = Take(reader, unread_, frames);
    if (closed() || broken_) {
      return Read::kEnded;
    }
    if (!unread_.empty()) {
      return Read::kUnread;
    }
    if (buffer == nullptr) {
      buffer = std::move(own_buffer_);
    }
    own_buffer_.reset();
  }
  for (uint64_t read_bytes = 0; *frames > 0 && read_bytes < kMostReadBytes;) {
    size_t asked = 0;
    size_t in_place = 0;
    const ssize_t count = Receive(buffer, &asked, &in_place);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return Read::kDrained;
    }
    if (count < 0 && errno == EFAULT && in_place != 0) {
      to_ = nullptr;  // what has come stays in the socket, and is dropped
      unplaced_ = true;
      continue;
    }
    if (count <= 0) {
      Break(count == 0 ? 0 : errno, /*by_peer=*/true);
      return Read::kEnded;
    }
    const auto bytes = static_cast<size_t>(count);
    read_bytes += bytes;
    received_bytes_ += bytes;
    const size_t placed = std::min(bytes, in_place);
    missing_ -= placed;
    fits_ -= placed;
    to_ += to_ != nullptr ? placed : 0;
    phase_ = phase_ == Phase::kData && missing_ == 0 ? Phase::kTrailer : phase_;
    const std::span<const std::byte> left = Take(reader, {buffer.get(), bytes - placed}, frames);
    if (closed() || broken_) {
      return Read::kEnded;
    }
    if (!left.empty()) {
      unread_ = left;
      own_buffer_ = std::move(buffer);
      return Read::kUnread;
    }
    if (in_place == 0) {
      ask_bytes_ = std::exchange(is_long_, false) ? kInPlaceBytes
                   : bytes == asked               ? kReadBufferBytes
                                                  : ask_bytes_;
    }
    if (bytes < asked) {
      return Read::kDrained;  // the next look enters the kernel: pass on what came first
    }
  }
  return Read::kMore;
}

// `*in_place`: so many bytes go, first, to where the data belongs.
ssize_t TcpStream::Receive(ReadBuffer& buffer, size_t* asked, size_t* in_place) {
  if (buffer == nullptr) {
    buffer = std::make_unique_for_overwrite<std::byte[]>(kReadBufferBytes);
  }
  const bool long_data =
      phase_ == Phase::kData && to_ != nullptr && std::min(missing_, fits_) > kInPlaceBytes;
  if (!long_data) {
    *asked = ask_bytes_;
    return recv(fd(), buffer.get(), ask_bytes_, MSG_DONTWAIT);
  }
  *in_place = std::min(missing_, fits_);
  std::array<iovec, 2> pieces{{{to_, *in_place}, {buffer.get(), kBehindBytes}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  *asked = *in_place + kBehindBytes;
  return recvmsg(fd(), &message, MSG_DONTWAIT);
}

std::span<const std::byte> TcpStream::Take(FrameReader& reader, std::span<const std::byte> bytes,
                                           uint32_t* frames) {
  while (!bytes.empty() && *frames > 0 && !closed() && !broken_) {
    switch (phase_) {
      case Phase::kFrame:
        if (!TakeFrame(reader, &bytes, frames)) {
          return {};
        }
        break;
      case Phase::kData:
        TakeData(&bytes);
        break;
      case Phase::kTrailer:
        if (!TakeTrailer(reader, &bytes)) {
          return {};
        }
        --*frames;
        break;
    }
  }
  return bytes;
}

// Copies what is missing of the first `want` bytes. False: they are not there yet.
bool TcpStream::Hold(std::span<const std::byte>* bytes, size_t want) {
  const size_t count = std::min(want - held_bytes_, bytes->size());
  std::memcpy(held_.get() + held_bytes_, bytes->data(), count);
  held_bytes_ += count;
  *bytes = bytes->subspan(count);
  return held_bytes_ == want;
}

// False: more of the frame must come.
bool TcpStream::TakeFrame(FrameReader& reader, std::span<const std::byte>* bytes,
                          uint32_t* frames) {
  if ((held_bytes_ != 0 || bytes->size() < kHeaderBytes) && held_bytes_ < kHeaderBytes &&
      !Hold(bytes, kHeaderBytes)) {
    return false;
  }
  FrameHeader frame;
  std::memcpy(&frame, held_bytes_ != 0 ? held_.get() : bytes->data(), kHeaderBytes);
  const FrameVerdict verdict = Judge(frame, limits_.head_bytes, limits_.attachment_bytes);
  if (verdict == FrameVerdict::kBad) {
    Break(EPROTO);
    return false;
  }
  const bool has_data = HasData(static_cast<FrameKind>(frame.kind));
  is_misfit_ = verdict == FrameVerdict::kMisfit;
  if (is_misfit_) {  // its head is dropped like data
    *bytes = held_bytes_ != 0 ? *bytes : bytes->subspan(kHeaderBytes);
    held_bytes_ = 0;
    missing_ = frame.head_bytes + frame.data_bytes + (has_data ? kTrailerBytes : 0);
    to_ = nullptr;
    phase_ = Phase::kData;
    reader.OnMisfit();
    return true;
  }
  std::span<const std::byte> whole;
  const size_t want = kHeaderBytes + frame.head_bytes;
  if (held_bytes_ == 0 && bytes->size() >= want) {
    whole = bytes->first(want);
    *bytes = bytes->subspan(want);
  } else if (Hold(bytes, want)) {
    whole = {held_.get(), want};
  } else {
    return false;
  }
  const bool was_held = held_bytes_ != 0;
  held_bytes_ = 0;
  if (!has_data) {
    --*frames;
  }
  const FrameData data = reader.OnFrame(*this, frame, whole.subspan(kHeaderBytes),
                                        was_held ? std::span<const std::byte>() : *bytes);
  if (has_data && data.taken) {
    *bytes = bytes->subspan(frame.data_bytes + kTrailerBytes);
    --*frames;
  } else if (has_data) {
    missing_ = frame.data_bytes;
    to_ = data.to;
    fits_ = data.bytes;
    unplaced_ = false;
    is_long_ |= fits_ > 2 * kInPlaceBytes && to_ != nullptr;
    phase_ = Phase::kData;
  }
  return true;
}

void TcpStream::TakeData(std::span<const std::byte>* bytes) {
  const uint64_t count = std::min<uint64_t>(missing_, bytes->size());
  if (to_ != nullptr) {
    const uint64_t fitting = std::min(count, fits_);
    shm::CopyWords(to_, bytes->data(), fitting);
    to_ += fitting;
    fits_ -= fitting;
  }
  missing_ -= count;
  *bytes = bytes->subspan(count);
  if (missing_ == 0) {
    phase_ = is_misfit_ ? Phase::kFrame : Phase::kTrailer;
  }
}

// False: more of it must come.
bool TcpStream::TakeTrailer(FrameReader& reader, std::span<const std::byte>* bytes) {
  if (!Hold(bytes, kTrailerBytes)) {
    return false;
  }
  held_bytes_ = 0;
  FrameTrailer trailer{};
  std::memcpy(&trailer, held_.get(), kTrailerBytes);
  phase_ = Phase::kFrame;
  reader.OnFrameData(*this, trailer != FrameTrailer::kGood, unplaced_);
  return true;
}

// ---- Writing ----

size_t AddPieces(const OutFrame& frame, iovec* pieces, uint64_t* bytes) {
  size_t count = 0;
  uint64_t skip = frame.sent;
  const auto add = [&](const void* base, uint64_t length) {
    if (skip >= length) {
      skip -= length;
      return;
    }
    pieces[count++] = {const_cast<std::byte*>(static_cast<const std::byte*>(base)) + skip,
                       length - skip};
    *bytes += length - skip;
    skip = 0;
  };
  add(frame.front, frame.front_bytes);
  if (frame.data_bytes == 0) {
    return count;
  }
  const bool is_spoilt = frame.trailer != FrameTrailer::kGood;
  const uint64_t data_end = frame.front_bytes + frame.data_bytes;
  if (!is_spoilt) {
    add(frame.data, frame.data_bytes);
  } else if (frame.sent < data_end) {  // the next ones follow when these are sent
    const uint64_t from = std::max(frame.sent, frame.front_bytes);
    const uint64_t length = std::min<uint64_t>(kZeros.size(), data_end - from);
    skip = 0;
    add(kZeros.data(), length);
    if (from + length < data_end) {
      return count;
    }
  } else {
    skip = frame.sent - data_end;
  }
  add(&frame.trailer, sizeof(frame.trailer));
  return count;
}

}  // namespace ferry::transport
