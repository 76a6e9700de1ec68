// Asks whether a gRPC server behind a Unix socket accepts connections and answers: connects, greets
// and waits for the answer to an HTTP/2 ping. A refusal in words is an answer, too: a server that
// refuses is awake.
//
// Thread: the control loop's, or any before it starts; nothing blocks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <string>

namespace ferry::daemon {

class SocketProbe {
 public:
  SocketProbe(boost::asio::io_context& context, std::string path);

  // Asks, unless a question waits for its answer.
  void Ask();
  // Whether the last question was answered.
  bool answered() const { return answered_; }
  void Stop();

 private:
  void WaitForAnswer();
  void OnReadable();

  const std::string path_;
  boost::asio::posix::stream_descriptor socket_;  // open while a question waits
  std::string input_;
  bool answered_ = false;
};

}  // namespace ferry::daemon
