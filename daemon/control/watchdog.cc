#include "daemon/control/watchdog.h"

#include <errno.h>
#include <sys/socket.h>

#include <array>

#include "common/log.h"
#include "daemon/grpc/http2_frames.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMostInput = 16'384;  // a server's greeting is much shorter
constexpr char kPing[] = "ferryd??";   // the eight bytes that come back

}  // namespace

// ---- ServerProbe ----

ServerProbe::ServerProbe(boost::asio::io_context& context, std::string server, Dial dial)
    : server_(std::move(server)), dial_(std::move(dial)), socket_(context) {}

void ServerProbe::Stop() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void ServerProbe::Ask() {
  if (socket_.is_open()) {
    return;
  }
  answered_ = false;
  input_.clear();
  StatusOr<UniqueFd> fd = dial_();
  if (!fd.ok()) {
    // The server's state is unknown for now, and a restart would end all jobs for a trouble that
    // passes.
    spdlog::error("the watchdog cannot try {}: {}", server_, fd.status().message());
    answered_ = true;
    return;
  }
  const std::string greeting = std::string(http2::kClientPreface) +
                               http2::Frame(http2::FrameType::kSettings, 0, 0, {}) +
                               http2::Frame(http2::FrameType::kPing, 0, 0, kPing);
  // A server that has hung up already may have said something before.
  if (send(fd->get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
    return;
  }
  socket_.assign(fd->Release());
  WaitForAnswer();
}

void ServerProbe::WaitForAnswer() {
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (!error && socket_.is_open()) {
                         OnReadable();
                       }
                     });
}

void ServerProbe::OnReadable() {
  std::array<char, 1024> bytes;
  const ssize_t size = recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    return WaitForAnswer();  // the call before has read what this one was told of
  }
  if (size > 0) {
    input_.append(bytes.data(), static_cast<size_t>(size));
    answered_ = input_.find(http2::Frame(http2::FrameType::kPing, http2::kAck, 0, kPing)) !=
                std::string::npos;
  }
  if (size <= 0 || answered_ || input_.size() > kMostInput) {
    return Stop();
  }
  WaitForAnswer();
}

// ---- Watchdog ----

void Watchdog::Start(std::chrono::nanoseconds interval, std::function<void()> alive) {
  interval_ = interval;
  alive_ = std::move(alive);
  Ask();
}

void Watchdog::Ask() {
  if (answered_->load(std::memory_order_relaxed) == asked_) {  // else the last letter still lies
    data_plane_.Probe([answered = answered_, number = ++asked_] {
      answered->store(number, std::memory_order_relaxed);
    });
  }
  probe_.Ask();
  timer_.expires_after(interval_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Tick();
    }
  });
}

void Watchdog::Tick() {
  const bool thread_turns = answered_->load(std::memory_order_relaxed) == asked_;
  if (thread_turns && probe_.answered()) {
    reported_ = false;
    alive_();
  } else if (!std::exchange(reported_, true)) {
    spdlog::error("{} has not answered for {} ms; the watchdog is not fed",
                  thread_turns ? server_ : "the progress thread",
                  std::chrono::duration_cast<std::chrono::milliseconds>(interval_).count());
  }
  Ask();
}

}  // namespace ferry::daemon
