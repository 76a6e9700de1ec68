#include "daemon/peers/port_probe.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <utility>

namespace ferry::daemon {
namespace {

using boost::system::error_code;

class PortProbe : public std::enable_shared_from_this<PortProbe> {
 public:
  PortProbe(boost::asio::io_context& context, std::chrono::milliseconds limit,
            std::function<void(bool refused)> done)
      : limit_(limit),
        done_(std::move(done)),
        resolver_(context),
        socket_(context),
        timer_(context) {}

  void Ask(const HostPort& where) {
    EndAfter(limit_);
    resolver_.async_resolve(
        where.host, std::to_string(where.port),
        [self = shared_from_this()](const error_code& error, const auto& addresses) {
          if (error || self->is_over_ || addresses.empty()) {
            return self->End(false);
          }
          self->where_ = addresses.begin()->endpoint();
          self->Connect();
        });
  }

 private:
  void Connect() {
    ++attempt_;
    EndAfter(limit_);
    socket_.async_connect(where_, [self = shared_from_this()](const error_code& error) {
      if (self->is_over_ || error == boost::asio::error::connection_refused) {
        return self->End(true);
      }
      if (error == boost::asio::error::connection_reset) {
        return self->AskAgain();
      }
      error ? self->End(false) : self->AwaitWord();
    });
  }
  void AwaitWord() {
    After(kPortProbeWord, &PortProbe::OnSilence);
    socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                       [self = shared_from_this(), attempt = attempt_](const error_code& error) {
                         if (attempt != self->attempt_) {
                           return;
                         }
                         error_code gone;
                         if (error || self->is_over_ || self->socket_.available(gone) != 0) {
                           return self->End(false);
                         }
                         self->AskAgain();
                       });
  }
  // A connection that was made while the listener closed may be known at this end alone, and never
  // carry a byte: the probe asks once more.
  void OnSilence() {
    if (std::exchange(was_silent_, true)) {
      return End(false);
    }
    error_code ignored;
    socket_.close(ignored);
    Connect();
  }
  // The connection was closed without a byte.
  void AskAgain() {
    error_code ignored;
    socket_.close(ignored);
    if (++asked_ == kMostPortProbes) {
      return End(false);
    }
    timer_.expires_after(kPortProbePause);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) {
        self->Connect();
      }
    });
  }
  void EndAfter(std::chrono::milliseconds limit) { After(limit, &PortProbe::OnLimit); }
  void OnLimit() { End(false); }
  // A thread that comes late finds both an event and the end of the time: the event counts, and has
  // set another end by then.
  void After(std::chrono::milliseconds limit, void (PortProbe::*then)()) {
    timer_.expires_after(limit);
    timer_.async_wait([self = shared_from_this(), then](const error_code& error) {
      if (!error && !self->is_over_ && self->timer_.expiry() <= std::chrono::steady_clock::now()) {
        ((*self).*then)();
      }
    });
  }
  void End(bool refused) {
    if (std::exchange(is_over_, true)) {
      return;
    }
    timer_.cancel();
    resolver_.cancel();
    error_code ignored;
    socket_.close(ignored);
    done_(refused);
  }

  const std::chrono::milliseconds limit_;
  const std::function<void(bool refused)> done_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::ip::tcp::endpoint where_;
  int asked_ = 0;
  int attempt_ = 0;  // to connect: events of earlier attempts are ignored
  bool was_silent_ = false;
  bool is_over_ = false;
};

}  // namespace

void ProbePort(boost::asio::io_context& context, const HostPort& where,
               std::chrono::milliseconds limit, std::function<void(bool refused)> done) {
  std::make_shared<PortProbe>(context, limit, std::move(done))->Ask(where);
}

}  // namespace ferry::daemon
