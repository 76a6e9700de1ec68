#include "tools/ferryrun/pmix_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "common/net_address.h"
#include "tests/support/patience.h"
#include "tools/ferryrun/pmix_server.h"

namespace ferry::tools {
namespace {

constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0\n"
    "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000   111        0\n"
    "   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0\n"
    "   3: 0200007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0\n";

TEST(PmixDoorTest, KnowsWhoseConnectionItIs) {
  EXPECT_EQ(OwnerOfPeer(kTable, 0x1f90, 0x9c40), 1000);
  EXPECT_EQ(OwnerOfPeer(kTable, 0x1f90, 0x9c41), -1) << "of another address";
  EXPECT_EQ(OwnerOfPeer(kTable, 0x1f91, 0x9c40), -1);
  EXPECT_EQ(OwnerOfPeer("", 1, 2), -1);
}

TEST(PmixDoorTest, ReadsTheAddressOfAServer) {
  EXPECT_EQ(PortOfPmixUri("PMIX_SERVER_URI41=ferryrun-x.0;tcp4://127.0.0.1:49071"), 49071);
  EXPECT_EQ(PortOfPmixUri("x.0;tcp4://127.0.0.1:49071:more"), 49071);
  EXPECT_EQ(PortOfPmixUri("x.0;tcp4://10.0.0.1:49071"), 0);
  EXPECT_EQ(PortOfPmixUri("x.0;tcp4://127.0.0.1:99999"), 0);
}

UniqueFd ConnectTo(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

template <typename Done>
void DispatchUntil(EventSet* events, Done done) {
  const auto end = std::chrono::steady_clock::now() + tests::kPatience;
  while (!done() && std::chrono::steady_clock::now() < end) {
    pollfd waiting{events->fd(), POLLIN, 0};
    poll(&waiting, 1, 10);
    events->Dispatch();
  }
  ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(PmixDoorTest, PassesBytesOnBothWaysAndTheEnd) {
  StatusOr<UniqueFd> server = daemon::ListenTcp({"127.0.0.1", 0}, "port");
  ASSERT_TRUE(server.ok());
  EventSet events;
  int starts = 0;
  PmixDoor door(&events, [&]() -> StatusOr<uint16_t> {
    ++starts;
    return daemon::PortOf(server->get());
  });
  ASSERT_TRUE(door.Open().ok());
  EXPECT_EQ(starts, 0);
  UniqueFd rank = ConnectTo(door.port());
  DispatchUntil(&events, [&] { return starts == 1; });
  UniqueFd accepted(accept(server->get(), nullptr, nullptr));
  // More than sockets hold, so that the door has to wait for its readers.
  const std::string much(8 << 20, 'x');
  for (const auto& [from, to] : {std::pair(&rank, &accepted), std::pair(&accepted, &rank)}) {
    size_t sent = 0;
    size_t heard = 0;
    DispatchUntil(&events, [&] {
      const ssize_t size =
          send(from->get(), much.data() + sent, much.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      sent += size > 0 ? static_cast<size_t>(size) : 0;
      std::array<char, 65536> bytes;
      const ssize_t come = recv(to->get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      heard += come > 0 ? static_cast<size_t>(come) : 0;
      return heard == much.size();
    });
  }
  rank.Reset();
  DispatchUntil(&events, [&] {
    char byte = 0;
    return recv(accepted.get(), &byte, 1, MSG_DONTWAIT) == 0;
  });
}

TEST(PmixDoorTest, AServerThatCannotStartIsTriedOnce) {
  EventSet events;
  int starts = 0;
  PmixDoor door(&events, [&]() -> StatusOr<uint16_t> {
    ++starts;
    return Status(ErrorCode::kNotFound, "none");
  });
  ASSERT_TRUE(door.Open().ok());
  for (int i = 0; i < 3; ++i) {
    UniqueFd rank = ConnectTo(door.port());
    DispatchUntil(&events, [&] {
      char byte = 0;
      return recv(rank.get(), &byte, 1, MSG_DONTWAIT) == 0;
    });
  }
  EXPECT_EQ(starts, 1);
}

}  // namespace
}  // namespace ferry::tools
