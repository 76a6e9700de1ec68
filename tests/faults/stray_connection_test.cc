// Strangers connect to a daemon's ports and sockets, say nonsense or nothing, and stay: the job
// goes on as if they were not there.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "common/unique_fd.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

namespace fs = std::filesystem;
using testing::SizeIs;

constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr char kTcpListen[] = "0A";

// The inodes of the sockets that a process holds.
std::set<std::string> SocketsOf(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    const std::string target = fs::read_symlink(entry, ignored);
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(8, target.size() - 9));
    }
  }
  return inodes;
}

// The TCP ports in `path` that listen with one of the sockets.
void FindPorts(const char* path, const std::set<std::string>& sockets,
               std::vector<uint16_t>* ports) {
  std::ifstream table(path);
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    if (state == kTcpListen && sockets.contains(inode)) {
      const std::string port = local.substr(local.find(':') + 1);
      ports->push_back(static_cast<uint16_t>(std::stoul(port, nullptr, 16)));
    }
  }
}

// The TCP ports on which a process listens; an IPv6 socket may serve IPv4 as well.
std::vector<uint16_t> PortsOf(pid_t pid) {
  const std::set<std::string> sockets = SocketsOf(pid);
  std::vector<uint16_t> ports;
  FindPorts("/proc/net/tcp", sockets, &ports);
  FindPorts("/proc/net/tcp6", sockets, &ports);
  return ports;
}

UniqueFd ConnectTo(uint16_t port, const std::string& words) {
  UniqueFd stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(stranger.get(), words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
  return stranger;
}

TEST(StrayConnectionTest, HoldsNobodyUp) {
  e2e::Command job(PrivateJob(4, 2, {}, {kMixed, "300"}));
  ASSERT_TRUE(UnderWay(&job, 4));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  std::vector<UniqueFd> strangers;
  for (const pid_t daemon : daemons) {
    const std::vector<uint16_t> ports = PortsOf(daemon);
    EXPECT_GE(ports.size(), 2U);  // the control plane and the data plane
    for (const uint16_t port : ports) {
      strangers.push_back(ConnectTo(port, ""));
      strangers.push_back(ConnectTo(port, "GET / HTTP/1.0\r\n\r\n"));
      strangers.push_back(ConnectTo(port, std::string(4096, '\xff')));
      strangers.push_back(ConnectTo(port, std::string(100, '\0')));
    }
  }
  const e2e::CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, 4);
}

}  // namespace
}  // namespace ferry::faults
