// Tests of libfabric alone; the rest is in tests/conformance.
#include "transports/ofi/ofi_transport.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "transports/ofi/environment.h"
#include "transports/ofi/provider.h"

namespace ferry::transport {
namespace {

Status CreationStatus(const TransportOptions& options) {
  return CreateOfiTransport(options).status();
}

bool Mentions(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(OfiTransportTest, UnavailableProviderIsNamedWithThoseThatAre) {
  TransportOptions options;
  options.provider = "nonesuch";
  const Status status = CreationStatus(options);
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(Mentions(status, "'nonesuch'")) << status.message();
  EXPECT_TRUE(Mentions(status, "tcp;ofi_rxm")) << status.message();
  EXPECT_TRUE(Mentions(status, "sockets")) << status.message();
}

TEST(OfiTransportTest, UnknownDomainIsNamed) {
  TransportOptions options;
  options.provider = "tcp;ofi_rxm";
  options.domain = "nic99";
  const Status status = CreationStatus(options);
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(Mentions(status, "'nic99'")) << status.message();
}

TEST(OfiTransportTest, SourceAddressThatIsNoAddressIsNamed) {
  TransportOptions options;
  options.source_address = "not an address";
  EXPECT_TRUE(Mentions(CreationStatus(options), "'not an address'"));
  options.provider = "tcp;ofi_rxm";
  EXPECT_TRUE(Mentions(CreationStatus(options), "'not an address'"));
}

TEST(OfiTransportTest, ShortNameStandsForTheWholeStack) {
  TransportOptions options;
  options.provider = "tcp";
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(options);
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_EQ((*transport)->Describe().provider, "tcp;ofi_rxm");
}

TEST(OfiTransportTest, AutomaticChoiceIsTheFirstAvailableAndNeverSockets) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_NE((*transport)->Describe().provider, "sockets");
  const std::vector<std::string> available = AvailableProviders();
  EXPECT_NE(std::find(available.begin(), available.end(), (*transport)->Describe().provider),
            available.end());
}

TEST(OfiTransportTest, RejectsOptionsOutOfRange) {
  const auto code_with = [](auto change) {
    TransportOptions options;
    change(&options);
    return CreationStatus(options).code();
  };
  using Options = TransportOptions;
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding = 70'000; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding_per_peer = 300; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->receive_buffers = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->receive_buffer_bytes = 0; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->fragment_bytes = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->post_timeout_ns = 0; }), ErrorCode::kInvalidArgument);
}

TEST(OfiTransportTest, RejectsMoreReceivesThanTheProviderTakes) {
  TransportOptions options;
  options.provider = "tcp;ofi_rxm";
  options.receive_buffers = 100'000;
  const Status status = CreationStatus(options);
  EXPECT_EQ(status.code(), ErrorCode::kLimitExceeded);
  EXPECT_TRUE(Mentions(status, "receive_buffers")) << status.message();
}

TEST(OfiTransportTest, RejectsMemoryThatIsNoRange) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok());
  int value = 0;
  Transport& t = **transport;
  EXPECT_EQ(t.RegisterMemory(nullptr, 8, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(t.RegisterMemory(&value, 0, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(t.RegisterMemory(&value, UINT64_MAX, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(OfiTransportTest, KeysAreNotGuessable) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok());
  if ((*transport)->Describe().provider != "tcp;ofi_rxm") {
    GTEST_SKIP() << "this provider chooses its keys itself";
  }
  int value = 0;
  uint64_t all = 0;
  for (int i = 0; i < 16; i++) {
    all |= (*transport)->RegisterMemory(&value, sizeof(value), Access::kRemoteRead)->key;
  }
  EXPECT_GT(all, uint64_t{1} << 48);
}

TEST(OfiTransportTest, TestsRunInTheRequiredEnvironment) {
  std::vector<std::string> set;
  for (char** entry = environ; *entry != nullptr; entry++) {
    set.emplace_back(*entry);
  }
  for (const EnvironmentVariable& variable : kRequiredEnvironment) {
    const std::string entry = std::string(variable.name) + "=" + variable.value;
    EXPECT_NE(std::find(set.begin(), set.end(), entry), set.end()) << entry;
  }
}

TEST(OfiTransportTest, LeavesSignalHandlersAlone) {
  ASSERT_TRUE(CreateOfiTransport(TransportOptions()).ok());
  for (const int signal : {SIGILL, SIGABRT, SIGINT, SIGTERM}) {  // sanitizers take the others
    struct sigaction action {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << "signal " << signal;
  }
}

}  // namespace
}  // namespace ferry::transport
