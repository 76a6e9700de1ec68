#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/transport_conformance.h"

namespace ferry::transport {

TEST_P(TransportConformance, DescribesItself) {
  a_ = MakeNode(Options());
  const Description& description = a_->transport->Describe();
  EXPECT_EQ(description.provider, GetParam().provider);
  EXPECT_FALSE(description.fabric.empty());
  EXPECT_FALSE(description.domain.empty());
  EXPECT_NE(description.address.find("127.0.0.1"), std::string::npos) << description.address;
  EXPECT_FALSE(description.version.empty());
  EXPECT_EQ(a_->transport->capabilities().max_message_bytes, Options().receive_buffer_bytes);
}

TEST_P(TransportConformance, NamesAnAddressThatIsNotOfThisMachine) {
  TransportOptions options = Options();
  options.source_address = "203.0.113.7";
  StatusOr<std::unique_ptr<Transport>> transport = GetParam().create(options);
  ASSERT_FALSE(transport.ok());
  EXPECT_NE(transport.status().message().find("203.0.113.7"), std::string::npos)
      << transport.status().ToString();
}

TEST_P(TransportConformance, NamesThePortInUse) {
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);

  TransportOptions options = Options();
  options.port = ntohs(address.sin_port);
  StatusOr<std::unique_ptr<Transport>> transport = GetParam().create(options);
  EXPECT_EQ(transport.status().code(), ErrorCode::kAlreadyExists);
  EXPECT_NE(transport.status().message().find(std::to_string(options.port)), std::string::npos)
      << transport.status().ToString();
  close(taken);
}

TEST_P(TransportConformance, RefusesAnAddressOfAnotherKind) {
  a_ = MakeNode(Options());
  const std::vector<std::byte> nonsense(3);
  EXPECT_EQ(a_->transport->AddPeer(nonsense).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace ferry::transport
