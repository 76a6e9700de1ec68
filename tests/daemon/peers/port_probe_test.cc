// A daemon that is gone, or is just going, is told from one that lives.
#include "daemon/peers/port_probe.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <thread>

namespace ferry::daemon {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

class PortProbeTest : public testing::Test {
 protected:
  // Accepts connections, and closes each; from the `last` one on nothing listens any more.
  void CloseEach(int last) {
    acceptor_.async_accept([this, last](const error_code& error, tcp::socket socket) {
      if (!error) {
        socket.close();
        ++accepted_;
        last == accepted_ ? acceptor_.close() : CloseEach(last);
      }
    });
  }
  // Returns the probe's answer; the test fails if there is none.
  bool IsRefused() {
    std::optional<bool> refused;
    ProbePort(context_, {"127.0.0.1", port_}, std::chrono::seconds(10), [&](bool answer) {
      refused = answer;
      error_code ignored;
      acceptor_.close(ignored);
    });
    context_.run();
    EXPECT_TRUE(refused.has_value());
    return refused.value_or(false);
  }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  const uint16_t port_ = acceptor_.local_endpoint().port();
  int accepted_ = 0;
};

TEST_F(PortProbeTest, NobodyListens) {
  acceptor_.close();
  EXPECT_TRUE(IsRefused());
}

// Its accepted connections go before its listener does.
TEST_F(PortProbeTest, ADaemonThatIsJustDyingIsAskedUntilItIsGone) {
  CloseEach(kMostPortProbes - 1);
  EXPECT_TRUE(IsRefused());
  EXPECT_EQ(accepted_, kMostPortProbes - 1);
}

// Its listener goes with what it has not accepted.
TEST_F(PortProbeTest, AConnectionThatNobodyAcceptsGoesWithTheListener) {
  boost::asio::steady_timer timer(context_, std::chrono::milliseconds(20));
  timer.async_wait([this](const error_code&) { acceptor_.close(); });
  EXPECT_TRUE(IsRefused());
}

// The thread comes only when the time is over, and the daemon gone.
TEST_F(PortProbeTest, AThreadThatComesLateSeesThatTheDaemonIsGone) {
  boost::asio::steady_timer timer(context_, std::chrono::milliseconds(20));
  timer.async_wait([this](const error_code&) {
    acceptor_.close();
    std::this_thread::sleep_for(kPortProbeWord);
  });
  EXPECT_TRUE(IsRefused());
}

// As one that the kernel of a dying daemon has forgotten.
TEST_F(PortProbeTest, AConnectionThatStaysSilentSaysNothingOfTheListener) {
  tcp::socket forgotten(context_);
  acceptor_.async_accept(forgotten, [this](const error_code&) { acceptor_.close(); });
  EXPECT_TRUE(IsRefused());
}

TEST_F(PortProbeTest, WhoClosesEachConnectionLivesForAllThat) {
  CloseEach(-1);
  EXPECT_FALSE(IsRefused());
  EXPECT_EQ(accepted_, kMostPortProbes);
}

TEST_F(PortProbeTest, WhoSaysSomethingLives) {
  tcp::socket greeted(context_);
  acceptor_.async_accept(greeted, [&](const error_code&) {
    boost::asio::write(greeted, boost::asio::buffer("x", 1));
  });
  EXPECT_FALSE(IsRefused());
}

TEST_F(PortProbeTest, WhoSaysNothingForAWhileLives) { EXPECT_FALSE(IsRefused()); }

TEST_F(PortProbeTest, NobodyKnowsAnUnknownHost) {
  std::optional<bool> refused;
  ProbePort(context_, {"no-such-host.invalid", 1}, std::chrono::milliseconds(20),
            [&](bool answer) { refused = answer; });
  context_.run();
  EXPECT_EQ(refused, false);
}

}  // namespace
}  // namespace ferry::daemon
