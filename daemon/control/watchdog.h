// Checks again and again that ferryd's threads turn and that it answers calls.
//
// Each tick of a timer of the control loop sends the progress thread a letter, and asks a gRPC
// server of ours as a client would. If both were answered since the tick before, `alive` is called.
// A thread that sleeps wakes for the letter; one that is stuck does not answer, and is named in the
// log, as is the server. Between ticks it costs nothing.
//
// The server is asked by a connection that no stranger can take up (GrpcAcceptor::Dial): a stranger
// that holds all others must not make ferryd seem to stand still.
//
// Thread: the control loop's, or any before that loop starts.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/plane/control_loop.h"
#include "daemon/plane/data_plane.h"

namespace ferry::daemon {

// Asks whether a gRPC server answers: greets, and waits for the answer to an HTTP/2 ping. A refusal
// in words is an answer, too: a server that refuses is awake.
//
// Thread: the control loop's, or any before it starts; nothing blocks.
class ServerProbe {
 public:
  // Makes a connection to the server; fails only for want of descriptors.
  using Dial = std::function<StatusOr<UniqueFd>()>;

  ServerProbe(boost::asio::io_context& context, std::string server, Dial dial);

  // Sends a question, unless one still waits for its answer.
  void Ask();
  // Returns true if the last question was answered.
  bool answered() const { return answered_; }
  void Stop();

 private:
  void WaitForAnswer();
  void OnReadable();

  const std::string server_;
  const Dial dial_;
  boost::asio::posix::stream_descriptor socket_;  // open while a question waits
  std::string input_;
  bool answered_ = false;
};

class Watchdog {
 public:
  // `loop` and `data_plane` must outlive it. `server` names a gRPC server in messages.
  Watchdog(ControlLoop& loop, DataPlane& data_plane, std::string server, ServerProbe::Dial dial)
      : data_plane_(data_plane),
        timer_(loop.context()),
        server_(server),
        probe_(loop.context(), std::move(server), std::move(dial)) {}

  // Calls `alive` on the control loop every `interval`, as long as all is well. Once only.
  void Start(std::chrono::nanoseconds interval, std::function<void()> alive);
  void Stop() {
    timer_.cancel();
    probe_.Stop();
  }

 private:
  void Ask();
  void Tick();

  DataPlane& data_plane_;
  boost::asio::steady_timer timer_;
  const std::string server_;
  ServerProbe probe_;
  std::chrono::nanoseconds interval_{};
  std::function<void()> alive_;
  uint64_t asked_ = 0;
  bool reported_ = false;
  // The number of the last letter that was answered. A letter may be read after this has gone.
  std::shared_ptr<std::atomic<uint64_t>> answered_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace ferry::daemon
