#include "daemon/control/port_probe.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "common/net_address.h"

namespace ferry::daemon {
namespace {

struct Attempt {
  explicit Attempt(boost::asio::io_context& context)
      : resolver(context), socket(context), limit(context) {}
  boost::asio::ip::tcp::resolver resolver;
  boost::asio::ip::tcp::socket socket;
  boost::asio::steady_timer limit;
};

}  // namespace

void ProbePort(boost::asio::io_context& context, const std::string& address,
               std::chrono::milliseconds limit, std::function<void(bool refused)> done) {
  const StatusOr<HostPort> where = ParseHostPort(address);
  if (!where.ok()) {
    return done(false);
  }
  auto attempt = std::make_shared<Attempt>(context);
  attempt->limit.expires_after(limit);
  attempt->limit.async_wait([attempt](const boost::system::error_code& error) {
    if (!error) {
      attempt->resolver.cancel();
      attempt->socket.close();
    }
  });
  attempt->resolver.async_resolve(
      where->host, std::to_string(where->port),
      [attempt, done = std::move(done)](const boost::system::error_code& error,
                                        const auto& addresses) {
        if (error || addresses.empty()) {
          attempt->limit.cancel();
          return done(false);
        }
        attempt->socket.async_connect(addresses.begin()->endpoint(),
                                      [attempt, done](const boost::system::error_code& connected) {
                                        attempt->limit.cancel();
                                        done(connected == boost::asio::error::connection_refused);
                                      });
      });
}

}  // namespace ferry::daemon
