// Limits what the clients of a gRPC server send and hold. gRPC 1.51 bounds little of it before it
// has taken a connection's bytes in: header blocks without end (CVE-2023-33953), calls that are
// begun and reset again and again (CVE-2023-44487), empty frames, calls that count only once the
// client has acknowledged gRPC's settings (RFC 9113, section 6.5.3). So this class looks at the
// bytes before gRPC gets them (byte_sieve.h).
//
// - A connection ends when its client writes what no gRPC client does: a header block that does
//   not fit into one small frame, more open calls than the server allows, a request larger than
//   any.
// - Frames that clients write seldom have an allowance, of the connection and of its caller's
//   connections together, and so have new connections; once it is spent the bytes wait, with all
//   that comes behind them on that connection.
// - Calls, and the bytes of unanswered requests, have places, by caller. A call that its client
//   resets or leaves keeps its place for a while, as the server has work with it still.
//
// No client of Ferry comes near any of these (docs/operations.md has the figures).
//
// One thread at a time; nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "daemon/grpc/http2_frames.h"

namespace ferry::daemon {

// The most calls that a connection may have open; a client that has more waits with them. Each
// takes memory, and many of them a thread, for as long as it lasts.
inline constexpr int kCallsOfConnection = 128;
// The longest request that the servers read, and the longest answer that a daemon takes from
// another. The jobs with the most ranks and nodes need two thirds of it.
inline constexpr int kMostMessageBytes = 512 << 10;

namespace http2 {

// Reads the frames of one direction of a connection, however their bytes are cut into pieces.
class FrameReader {
 public:
  // `ahead`: bytes before the first frame.
  explicit FrameReader(size_t ahead) : skip_(ahead) {}

  // Takes bytes up to the next frame's header, and returns how many. If they complete that header,
  // has_header() becomes true, and the header's bytes are taken only by Pass.
  size_t Read(std::span<const std::byte> bytes);
  bool has_header() const { return complete_; }
  const FrameHeader& header() const { return header_; }
  // Takes the rest of that header: the bytes from the number that Read has returned on.
  size_t Pass();

 private:
  size_t skip_;
  std::array<char, kFrameHeaderBytes> bytes_{};
  size_t taken_ = 0;   // of a header
  size_t coming_ = 0;  // the rest of it, while it is complete
  bool complete_ = false;
  FrameHeader header_;
};

}  // namespace http2

// Grants so many events a second, and as many at once as come together in `burst_ns`.
class Allowance {
 public:
  constexpr explicit Allowance(uint64_t per_second, uint64_t burst_ns = 2'000'000'000)
      : cost_ns_(1'000'000'000 / per_second), burst_ns_(burst_ns) {}
  bool Has(uint64_t now_ns) const { return spent_until_ns_ + cost_ns_ <= now_ns + burst_ns_; }
  void Take(uint64_t now_ns) {
    spent_until_ns_ = (spent_until_ns_ > now_ns ? spent_until_ns_ : now_ns) + cost_ns_;
  }
  bool full(uint64_t now_ns) const { return spent_until_ns_ <= now_ns; }

 private:
  uint64_t cost_ns_;
  uint64_t burst_ns_;
  uint64_t spent_until_ns_ = 0;
};

// The allowances and places that all connections of one caller share.
class Http2Caller {
 public:
  explicit Http2Caller(uint64_t most_calls) : most_calls_(most_calls) {}
  // Returns true if this record may be forgotten once the caller has no connection.
  bool IsFresh(uint64_t now_ns);

 private:
  friend class Http2Guard;
  bool HasPlace(uint64_t now_ns);
  // Keeps, for a while, the place of a call that is no longer open and whose request had so many
  // bytes.
  void KeepPlace(uint64_t request_bytes, uint64_t now_ns);
  void Forget(uint64_t now_ns);

  const uint64_t most_calls_;
  struct Gone {
    uint64_t until_ns;
    uint64_t request_bytes;
  };
  uint64_t calls_ = 0;          // open ones, and those that keep their place
  std::deque<Gone> gone_;       // the latter
  uint64_t request_bytes_ = 0;  // of all those calls
  // The guard that may hold more such bytes than there are places for, among those that hold some:
  // so requests that all wait for one another's end do get there.
  const void* first_ = nullptr;
  Allowance asides_{30'000};
  Allowance connections_{1'000, 4'000'000'000};
};

class Http2Guard {
 public:
  explicit Http2Guard(std::shared_ptr<Http2Caller> caller) : caller_(std::move(caller)) {}
  ~Http2Guard() { Leave(0); }
  Http2Guard(const Http2Guard&) = delete;
  Http2Guard& operator=(const Http2Guard&) = delete;

  // How many of the next bytes of the client the server may get.
  struct Verdict {
    size_t may_pass = 0;            // the first so many; the others are to be shown again later
    const char* refusal = nullptr;  // why the connection must end
  };
  Verdict OnClientSaid(std::span<const std::byte> bytes, uint64_t now_ns);
  // Returns true once the client has sent the preface and settings of HTTP/2, and may go on.
  bool greeted() const { return greeted_; }
  void OnServerSaid(std::span<const std::byte> bytes);
  // The connection has ended: the calls that it leaves keep their places for a while.
  void Leave(uint64_t now_ns);

 private:
  enum class Fate { kPass, kWait, kEnd };
  Fate OnFrame(const http2::FrameHeader& frame, uint64_t now_ns);
  Fate OnGreeting(const http2::FrameHeader& frame, uint64_t now_ns);
  Fate OnFields(const http2::FrameHeader& frame, uint64_t now_ns);
  Fate OnData(const http2::FrameHeader& frame, uint64_t now_ns);
  Fate OnAside(const http2::FrameHeader& frame, uint64_t now_ns);
  Fate End(const char* why);
  bool TakeAside(uint64_t now_ns);
  // Returns how many bytes the call's request had.
  uint64_t CloseCall(uint32_t stream);

  const std::shared_ptr<Http2Caller> caller_;
  http2::FrameReader client_{http2::kClientPreface.size()};
  http2::FrameReader server_{0};
  std::map<uint32_t, uint64_t> open_;  // by stream: the bytes of its request
  uint32_t last_stream_ = 0;
  uint64_t request_bytes_ = 0;
  Allowance asides_{1'000};
  size_t preface_ = 0;  // what has come of it
  bool greeted_ = false;
  bool server_spoke_ = false;
  bool acknowledged_ = false;  // its settings
  const char* refusal_ = nullptr;
};

}  // namespace ferry::daemon
