// The floods by which a stranger may try to use up a gRPC server's memory, threads or time: frames
// by hand, over as many connections as wanted, again and again.
//
// Any thread; each object belongs to one.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/http2_client.h"

namespace ferry::tests {

struct Http2Flood {
  const char* name;
  std::string start;                            // after the greeting
  std::function<std::string(uint32_t)> repeat;  // for a round, counted from 0
  uint32_t rounds = UINT32_MAX;                 // of a connection; then it hangs up
};

inline std::vector<Http2Flood> Http2Floods() {
  using http2::Frame;
  using http2::FrameType;
  const std::string fields = CallFields("/ferry.control.Launcher/Status");
  const std::string filler(16'000, 'x');
  const auto many = [](const std::string& text, int count = 100) {
    std::string all;
    for (int i = 0; i < count; ++i) {
      all += text;
    }
    return all;
  };
  const auto always = [](std::string text) { return [text](uint32_t) { return text; }; };
  const auto calls = [fields](uint8_t flags, bool reset) {
    return [=](uint32_t round) {
      std::string all;
      for (uint32_t i = 0; i < 32; ++i) {
        all += BeginCall(32 * round + i, fields, flags);
        all += reset ? ResetCall(32 * round + i) : "";
      }
      return all;
    };
  };
  // A field "x" of 300 MB: only its length, as a number of HPACK.
  const std::string huge = std::string("\0\1x\x7f", 4) + "\x81\xb8\x86\x8f\x01";
  // A field of 4 KB that is remembered, then references to it.
  std::string remembered = "\x40";
  http2::AppendString("y", &remembered);
  http2::AppendString(std::string(3'900, 'y'), &remembered);
  const std::string begun = Frame(FrameType::kHeaders, 0, 1, fields);
  const std::string opened = BeginCall(0, fields);
  std::string field;
  http2::AppendField("z", std::string(100, 'z'), &field);
  return {
      {"huge field", Frame(FrameType::kHeaders, 0, 1, fields + huge),
       always(Frame(FrameType::kContinuation, 0, 1, filler))},
      {"endless fields", begun, always(Frame(FrameType::kContinuation, 0, 1, many(field)))},
      {"empty continuations", begun, always(many(Frame(FrameType::kContinuation, 0, 1, {})))},
      {"long number", begun,
       always(Frame(FrameType::kContinuation, 0, 1, "\x7f" + std::string(8'000, '\x80')))},
      {"calls that are reset", {}, calls(0, true)},
      {"finished calls that are reset", {}, calls(http2::kEndStream, true)},
      {"calls that are left", {}, calls(0, false), 4},
      {"fields that are remembered", opened,
       [=](uint32_t round) {
         return BeginCall(round + 1, (round == 0 ? remembered : std::string()) + fields +
                                         std::string(4'000, '\xbe')) +
                ResetCall(round + 1);
       }},
      {"headers of an open call", opened, always(many(BeginCall(0, fields)))},
      {"settings", {}, always(many(Frame(FrameType::kSettings, 0, 0, {})))},
      {"pings", {}, always(many(Frame(FrameType::kPing, 0, 0, "12345678")))},
      {"priorities", {}, always(many(Frame(FrameType::kPriority, 0, 1, std::string(5, '\1'))))},
      {"windows", opened,
       always(many(Frame(FrameType::kWindowUpdate, 0, 1, std::string("\0\0\0\1", 4))))},
      {"resets", opened, always(many(ResetCall(0)))},
      {"empty data", opened, always(many(Frame(FrameType::kData, 0, 1, {})))},
      {"single bytes of data", opened + Frame(FrameType::kData, 0, 1, std::string("\0\0\1\0\0", 5)),
       always(many(Frame(FrameType::kData, 0, 1, "d")))},
      {"frames of no kind", {}, always(many(Frame(static_cast<FrameType>(77), 0, 0, "?")))},
  };
}

// A user's process that floods a server by so many connections, each anew when the server hangs up,
// on a thread of its own, until this goes.
class Http2Flooder {
 public:
  using Connect = std::function<Http2Client()>;
  // As that user, where one is given: then the test must be root's.
  Http2Flooder(Http2Flood flood, size_t connections, Connect connect,
               std::optional<uid_t> user = std::nullopt)
      : flood_(std::move(flood)), connect_(std::move(connect)), thread_([this, connections, user] {
          if (user.has_value()) {  // of this thread alone, unlike setresuid(3)
            syscall(SYS_setresuid, *user, *user, *user);
          }
          Run(connections);
        }) {}
  ~Http2Flooder() {
    over_ = true;
    thread_.join();
  }
  Http2Flooder(const Http2Flooder&) = delete;
  Http2Flooder& operator=(const Http2Flooder&) = delete;

  uint64_t bytes_sent() const { return bytes_; }
  uint64_t hang_ups() const { return hang_ups_; }

 private:
  struct Line {
    std::optional<Http2Client> client;
    std::string unsent;
    uint32_t round = 0;
  };

  void Run(size_t connections) {
    std::vector<Line> lines(connections);
    while (!over_) {
      bool moved = false;
      for (Line& line : lines) {
        moved = Turn(line) || moved;
      }
      if (!moved) {
        poll(nullptr, 0, 1);  // all queues are full
      }
    }
  }
  bool Turn(Line& line) {
    if (!line.client.has_value()) {
      line = {connect_(), Http2Greeting() + flood_.start, 0};
    }
    if (line.unsent.empty() && line.round == flood_.rounds) {
      line.client.reset();
      return true;
    }
    if (line.unsent.empty()) {
      line.unsent = flood_.repeat(line.round++);
    }
    const ssize_t size = line.client->connected() ? line.client->SendSome(line.unsent) : -1;
    if (size < 0) {
      line.client.reset();
      ++hang_ups_;
      return false;
    }
    bytes_ += static_cast<uint64_t>(size);
    line.unsent.erase(0, static_cast<size_t>(size));
    return size > 0;
  }

  const Http2Flood flood_;
  const Connect connect_;
  std::atomic<bool> over_ = false;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> hang_ups_ = 0;
  std::thread thread_;
};

}  // namespace ferry::tests
