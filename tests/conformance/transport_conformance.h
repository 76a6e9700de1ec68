// What every transport must do. A transport's test includes this header once and instantiates
// TransportConformance with one TransportUnderTest per provider.
//
// Deadlines are tested with time that the test passes in; real time only bounds a hang.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/conformance/transport_peer.h"
#include "tests/conformance/transport_peer_process.h"
#include "transports/api/transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::transport {

struct TransportUnderTest {
  std::string name;      // of the test: letters and digits
  std::string provider;  // for TransportOptions
  CreateFunction create;
};
inline void PrintTo(const TransportUnderTest& transport, std::ostream* out) {
  *out << transport.provider;
}

inline constexpr uint64_t kPatience = 30'000'000'000;  // before a test calls it a hang

// Keeps all that Poll reports.
class Recorder : public CompletionSink {
 public:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    senders.push_back(sender);
    messages.emplace_back(message.begin(), message.end());
  }
  void OnComplete(uint64_t context, ErrorCode code) override { results[context].push_back(code); }

  // The result of an operation that must have ended exactly once.
  ErrorCode ResultOf(uint64_t context) {
    const std::vector<ErrorCode>& codes = results[context];
    EXPECT_EQ(codes.size(), 1U) << "context " << context;
    return codes.empty() ? ErrorCode::kInternal : codes.front();
  }

  std::vector<PeerId> senders;
  std::vector<std::vector<std::byte>> messages;
  std::map<uint64_t, std::vector<ErrorCode>> results;
};

// One transport with its recorder, and memory registered for all access.
struct Node {
  explicit Node(size_t memory_bytes) : memory(memory_bytes) {}

  int Poll(uint64_t now_ns = MonotonicNs()) { return transport->Poll(recorder, 64, now_ns); }

  std::vector<std::byte> memory;
  Recorder recorder;
  MemoryRegion region;
  std::unique_ptr<Transport> transport;
};

inline std::vector<std::byte> Pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::byte& value : data) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<std::byte>(seed >> 24);
  }
  return data;
}

class TransportConformance : public testing::TestWithParam<TransportUnderTest> {
 protected:
  TransportOptions Options() const {
    TransportOptions options;
    options.provider = GetParam().provider;
    return options;
  }

  std::unique_ptr<Node> MakeNode(const TransportOptions& options, size_t memory_bytes = 4096) {
    auto node = std::make_unique<Node>(memory_bytes);
    StatusOr<std::unique_ptr<Transport>> transport = GetParam().create(options);
    EXPECT_TRUE(transport.ok()) << transport.status().ToString();
    node->transport = std::move(*transport);
    StatusOr<MemoryRegion> region = node->transport->RegisterMemory(
        node->memory.data(), node->memory.size(), Access::kRemoteRead | Access::kRemoteWrite);
    EXPECT_TRUE(region.ok()) << region.status().ToString();
    node->region = *region;
    return node;
  }

  // Two nodes of this process that know each other.
  void Connect(const TransportOptions& options, size_t memory_bytes = 4096) {
    a_ = MakeNode(options, memory_bytes);
    b_ = MakeNode(options, memory_bytes);
    b_of_a_ = *a_->transport->AddPeer(b_->transport->Address());
    a_of_b_ = *b_->transport->AddPeer(a_->transport->Address());
  }

  // Polls a_, and b_ if there is one, until `done`; sleeps when nothing happens, so as to leave the
  // processor to a provider's own threads.
  void PollUntil(const std::function<bool()>& done) {
    const uint64_t give_up_ns = MonotonicNs() + kPatience;
    while (!done()) {
      int events = a_->Poll();
      events += b_ != nullptr ? b_->Poll() : 0;
      if (events == 0) {
        SleepOnBoth();
        ASSERT_LT(MonotonicNs(), give_up_ns) << "nothing happens; " << a_->transport->LastError();
      }
    }
  }

  void SleepOnBoth() {
    Transport* const b = b_ != nullptr ? b_->transport.get() : a_->transport.get();
    if (a_->transport->PrepareToSleep() && b->PrepareToSleep()) {
      pollfd descriptors[] = {{a_->transport->WaitFd(), POLLIN, 0}, {b->WaitFd(), POLLIN, 0}};
      poll(descriptors, 2, /*timeout_ms=*/1);
    } else {
      sched_yield();
    }
  }

  void AwaitResults(size_t count) {
    PollUntil([&] { return a_->recorder.results.size() >= count; });
  }

  RmaRequest ToB(size_t local_offset, size_t remote_offset, size_t bytes, uint64_t context) {
    return {.peer = b_of_a_,
            .local = a_->memory.data() + local_offset,
            .region = a_->region.handle,
            .remote_address = b_->region.remote_base + remote_offset,
            .key = b_->region.key,
            .bytes = bytes,
            .context = context};
  }

  // A second process that has answered one message, so that the connection stands.
  std::unique_ptr<PeerProcess> ConnectProcess(const TransportOptions& options,
                                              size_t memory_bytes = 4096) {
    a_ = MakeNode(options, memory_bytes);
    auto process = PeerProcess::Start(options.provider, a_->transport->Address());
    EXPECT_NE(process, nullptr);
    b_of_a_ = *a_->transport->AddPeer(process->hello().address);
    const std::vector<std::byte> ping = Pattern(100, 1);
    EXPECT_EQ(a_->transport->SendMessage(b_of_a_, ping, {}, kPing, MonotonicNs()), ErrorCode::kOk);
    PollUntil(
        [&] { return a_->recorder.messages.size() == 1 && a_->recorder.results.size() == 1; });
    EXPECT_EQ(a_->recorder.messages.at(0), ping);
    a_->recorder.results.clear();
    return process;
  }

  RmaRequest ToProcess(const PeerProcess& process, size_t bytes, uint64_t context) {
    return {.peer = b_of_a_,
            .local = a_->memory.data(),
            .region = a_->region.handle,
            .remote_address = process.hello().remote_base,
            .key = process.hello().key,
            .bytes = bytes,
            .context = context};
  }

  // Polls a_ alone with time running a tenth of the timeout a step, past every deadline.
  void PassDeadlines(uint64_t* now_ns, uint64_t timeout_ns) {
    for (int step = 0; step < 12; step++) {
      *now_ns += timeout_ns / 10;
      a_->Poll(*now_ns);
    }
  }

  static constexpr uint64_t kPing = 1'000'000;

  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
  PeerId b_of_a_{};
  PeerId a_of_b_{};
};

// ---------------------------------------------------------------------------------------- set-up

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

// -------------------------------------------------------------------------------------- messages

TEST_P(TransportConformance, DeliversMessagesInOrderUnderBackPressure) {
  TransportOptions options = Options();
  options.max_outstanding = 32;
  options.receive_buffers = 4;
  Connect(options);
  constexpr uint64_t kMessages = 10'000;
  const std::vector<std::byte> payload = Pattern(200, 7);
  uint64_t sent = 0;
  PollUntil([&] {
    while (sent < kMessages) {
      const auto header = std::as_bytes(std::span(&sent, 1));
      const auto body = std::span(payload).first(sent % payload.size());
      const ErrorCode code = a_->transport->SendMessage(b_of_a_, header, body, sent, MonotonicNs());
      if (code != ErrorCode::kOk) {
        EXPECT_EQ(code, ErrorCode::kWouldBlock);
        break;
      }
      sent++;
    }
    return b_->recorder.messages.size() == kMessages && a_->recorder.results.size() == kMessages;
  });
  EXPECT_GT(a_->transport->statistics().would_block, 0U);
  ASSERT_EQ(b_->recorder.messages.size(), kMessages);
  for (uint64_t i = 0; i < kMessages; i++) {
    const std::vector<std::byte>& message = b_->recorder.messages[i];
    uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof(number));
    ASSERT_EQ(number, i);
    ASSERT_EQ(message.size(), sizeof(number) + i % payload.size());
    ASSERT_EQ(a_->recorder.ResultOf(i), ErrorCode::kOk);
  }
  EXPECT_EQ(a_->transport->statistics().messages_sent, kMessages);
  EXPECT_EQ(b_->transport->statistics().messages_received, kMessages);
}

TEST_P(TransportConformance, DeliversTheLargestMessageAndRefusesALargerOne) {
  Connect(Options());
  const uint64_t limit = a_->transport->capabilities().max_message_bytes;
  std::vector<std::byte> data = Pattern(limit, 3);
  const auto header = std::span(data).first(64);
  const auto payload = std::span(data).subspan(64);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, header, payload, 1, MonotonicNs()), ErrorCode::kOk);
  const std::vector<std::byte> expected = data;
  std::fill(data.begin(), data.end(), std::byte{0});  // ours again since the call returned
  PollUntil([&] { return !b_->recorder.messages.empty() && !a_->recorder.results.empty(); });
  EXPECT_EQ(b_->recorder.messages.at(0), expected);

  const std::vector<std::byte> one_more(1);
  EXPECT_EQ(a_->transport->SendMessage(b_of_a_, data, one_more, 2, MonotonicNs()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(a_->recorder.results.count(2), 0U);
}

TEST_P(TransportConformance, DropsAMessageThatDoesNotFit) {
  TransportOptions small = Options();
  small.receive_buffer_bytes = 512;
  a_ = MakeNode(Options());
  b_ = MakeNode(small);
  b_of_a_ = *a_->transport->AddPeer(b_->transport->Address());
  const std::vector<std::byte> data = Pattern(1000, 17);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 0, MonotonicNs()), ErrorCode::kOk);
  PollUntil([&] { return b_->transport->statistics().errors == 1; });

  // Some providers close the connection over it, and what is sent before they notice is lost.
  const auto fitting = std::span(data).first(512);
  uint64_t context = 0;
  PollUntil([&] {
    if (a_->recorder.results.size() == context + 1) {
      context++;
      EXPECT_EQ(a_->transport->SendMessage(b_of_a_, fitting, {}, context, MonotonicNs()),
                ErrorCode::kOk);
    }
    return !b_->recorder.messages.empty();
  });
  EXPECT_TRUE(std::ranges::equal(b_->recorder.messages.at(0), fitting));
}

TEST_P(TransportConformance, NamesTheSenderWhereItSaysSo) {
  Connect(Options());
  const std::vector<std::byte> data(8);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, MonotonicNs()), ErrorCode::kOk);
  PollUntil([&] { return !b_->recorder.messages.empty(); });
  const bool named = b_->transport->capabilities().receive_names_peer;
  EXPECT_EQ(b_->recorder.senders.at(0), named ? a_of_b_ : kUnknownPeer);
}

TEST_P(TransportConformance, AnswersFromWithinTheCallback) {
  Connect(Options());
  struct Echo : Recorder {
    void OnReceive(PeerId, std::span<const std::byte> message) override {
      EXPECT_EQ(transport->SendMessage(peer, message, {}, 1, MonotonicNs()), ErrorCode::kOk);
    }
    Transport* transport = nullptr;
    PeerId peer{};
  } echo;
  echo.transport = b_->transport.get();
  echo.peer = a_of_b_;
  const std::vector<std::byte> data = Pattern(333, 9);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, MonotonicNs()), ErrorCode::kOk);
  const uint64_t give_up_ns = MonotonicNs() + kPatience;
  while (a_->recorder.messages.empty() && MonotonicNs() < give_up_ns) {
    a_->Poll();
    b_->transport->Poll(echo, 64, MonotonicNs());
  }
  ASSERT_EQ(a_->recorder.messages.size(), 1U);
  EXPECT_EQ(a_->recorder.messages[0], data);
}

// ------------------------------------------------------------------------------ reads and writes

TEST_P(TransportConformance, WritesAndReadsUnalignedDataInFragments) {
  TransportOptions options = Options();
  options.fragment_bytes = (1 << 20) + 3;
  constexpr size_t kBytes = (5 << 20) + 17;
  Connect(options, 2 * kBytes);
  const std::vector<std::byte> data = Pattern(kBytes, 11);
  std::copy(data.begin(), data.end(), a_->memory.begin() + 1);

  ASSERT_EQ(a_->transport->Write(ToB(1, 3, kBytes, 1), Placement::kRemote, MonotonicNs()),
            ErrorCode::kOk);
  AwaitResults(1);
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(b_->memory.data() + 3, data.data(), kBytes), 0);
  EXPECT_EQ(b_->memory[2], std::byte{0});
  EXPECT_EQ(b_->memory[kBytes + 3], std::byte{0});

  ASSERT_EQ(a_->transport->Read(ToB(kBytes - 5, 3, kBytes, 2), MonotonicNs()), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(2), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(a_->memory.data() + kBytes - 5, data.data(), kBytes), 0);
  EXPECT_EQ(a_->transport->statistics().write_bytes, kBytes);
  EXPECT_EQ(a_->transport->statistics().read_bytes, kBytes);
}

TEST_P(TransportConformance, CompletesManyWritesExactlyOnce) {
  constexpr size_t kWrites = 1000;
  constexpr size_t kBytes = 700;
  Connect(Options(), kWrites * kBytes);
  a_->memory = Pattern(a_->memory.size(), 5);
  a_->region = *a_->transport->RegisterMemory(a_->memory.data(), a_->memory.size(), Access::kLocal);
  size_t posted = 0;
  PollUntil([&] {
    while (posted < kWrites &&
           a_->transport->Write(ToB(posted * kBytes, posted * kBytes, kBytes, posted),
                                Placement::kRemote, MonotonicNs()) == ErrorCode::kOk) {
      posted++;
    }
    return a_->recorder.results.size() == kWrites;
  });
  for (size_t i = 0; i < kWrites; i++) {
    ASSERT_EQ(a_->recorder.ResultOf(i), ErrorCode::kOk);
  }
  EXPECT_EQ(a_->memory, b_->memory);
}

TEST_P(TransportConformance, ReportsABadKeyAndGoesOn) {
  Connect(Options());
  RmaRequest request = ToB(0, 0, 64, 1);
  request.key ^= 0x5a5a;
  ASSERT_EQ(a_->transport->Write(request, Placement::kRemote, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(1);
  EXPECT_NE(a_->recorder.ResultOf(1), ErrorCode::kOk);
  EXPECT_FALSE(a_->transport->LastError().empty());
  request.context = 2;
  ASSERT_EQ(a_->transport->Read(request, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_NE(a_->recorder.ResultOf(2), ErrorCode::kOk);

  // With some providers the bad key costs the connection, and whatever is on it; soon there is a
  // new one.
  const uint64_t give_up_ns = MonotonicNs() + kPatience;
  uint64_t context = 2;
  do {
    context++;
    ASSERT_EQ(a_->transport->Write(ToB(0, 0, 64, context), Placement::kRemote, MonotonicNs()),
              ErrorCode::kOk);
    AwaitResults(context);
  } while (a_->recorder.ResultOf(context) == ErrorCode::kNodeUnreachable &&
           MonotonicNs() < give_up_ns);
  EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kOk);
}

TEST_P(TransportConformance, ReportsAnAccessBeyondTheRemoteRegion) {
  Connect(Options());
  ASSERT_EQ(a_->transport->Write(ToB(0, 4000, 200, 1), Placement::kRemote, MonotonicNs()),
            ErrorCode::kOk);
  AwaitResults(1);
  EXPECT_NE(a_->recorder.ResultOf(1), ErrorCode::kOk);
}

TEST_P(TransportConformance, RefusesLocalMemoryOutsideItsRegion) {
  Connect(Options());
  const uint64_t now_ns = MonotonicNs();
  EXPECT_EQ(a_->transport->Write(ToB(4000, 0, 200, 1), Placement::kLocal, now_ns),
            ErrorCode::kInvalidBuffer);
  EXPECT_EQ(a_->transport->Read(ToB(0, 0, 0, 1), now_ns), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
  EXPECT_EQ(a_->transport->Read(ToB(0, 0, 8, 1), now_ns), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).code(), ErrorCode::kNotFound);
}

TEST_P(TransportConformance, RefusesAccessToADeregisteredRegion) {
  Connect(Options());
  ASSERT_TRUE(b_->transport->DeregisterMemory(b_->region.handle).ok());
  ASSERT_EQ(a_->transport->Write(ToB(0, 0, 64, 1), Placement::kRemote, MonotonicNs()),
            ErrorCode::kOk);
  AwaitResults(1);
  EXPECT_NE(a_->recorder.ResultOf(1), ErrorCode::kOk);
}

TEST_P(TransportConformance, KeepsARegionWhileAnOperationUsesIt) {
  Connect(Options());
  ASSERT_EQ(a_->transport->Write(ToB(0, 0, 64, 1), Placement::kRemote, MonotonicNs()),
            ErrorCode::kOk);
  EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).code(), ErrorCode::kWouldBlock);
  AwaitResults(1);
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
  EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
}

// -------------------------------------------------------------------------------- limits, failure

TEST_P(TransportConformance, BoundsWhatIsOutstanding) {
  TransportOptions options = Options();
  options.max_outstanding = 8;
  options.max_outstanding_per_peer = 6;
  Connect(options);
  const PeerId other = *a_->transport->AddPeer(a_->transport->Address());
  const std::vector<std::byte> data(8);
  const auto accepted = [&](PeerId peer, uint64_t context) {
    uint64_t count = 0;
    while (a_->transport->SendMessage(peer, data, {}, context + count, 0) == ErrorCode::kOk) {
      count++;
    }
    return count;
  };
  EXPECT_EQ(accepted(b_of_a_, 0), 6U);
  EXPECT_EQ(accepted(other, 6), 2U);
  AwaitResults(8);
  EXPECT_EQ(accepted(b_of_a_, 8), 6U);
}

TEST_P(TransportConformance, FailPeerEndsItsOperationsOnly) {
  Connect(Options());
  const PeerId other = *a_->transport->AddPeer(a_->transport->Address());
  const std::vector<std::byte> data(8);
  for (uint64_t context = 0; context < 20; context++) {
    ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, context, MonotonicNs()),
              ErrorCode::kOk);
  }
  ASSERT_EQ(a_->transport->SendMessage(other, data, {}, 20, MonotonicNs()), ErrorCode::kOk);
  a_->transport->FailPeer(b_of_a_, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 99, MonotonicNs()),
            ErrorCode::kNodeUnreachable);
  AwaitResults(21);
  for (uint64_t context = 0; context < 20; context++) {
    EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kNodeUnreachable);
  }
  EXPECT_EQ(a_->recorder.ResultOf(20), ErrorCode::kOk);
  PollUntil([&] { return a_->transport->statistics().abandoned == 0; });
  EXPECT_EQ(a_->recorder.results.size(), 21U);
}

TEST_P(TransportConformance, RemovedPeerIsUnknown) {
  Connect(Options());
  const std::vector<std::byte> data(8);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, MonotonicNs()), ErrorCode::kOk);
  ASSERT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
  EXPECT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 2, MonotonicNs()), ErrorCode::kNotFound);
  EXPECT_EQ(a_->transport->RemovePeer(b_of_a_).code(), ErrorCode::kNotFound);
  AwaitResults(1);
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kCancelled);

  // Named anew, it is another peer.
  const PeerId again = *a_->transport->AddPeer(b_->transport->Address());
  EXPECT_NE(again, b_of_a_);
  ASSERT_EQ(a_->transport->SendMessage(again, data, {}, 3, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(3), ErrorCode::kOk);
}

TEST_P(TransportConformance, APeerWithTwoNamesKeepsTheOther) {
  Connect(Options());
  const PeerId second = *a_->transport->AddPeer(b_->transport->Address());
  const std::vector<std::byte> data(8);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(1);
  ASSERT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
  ASSERT_EQ(a_->transport->SendMessage(second, data, {}, 2, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(2), ErrorCode::kOk);
  PollUntil([&] { return b_->recorder.messages.size() == 2; });
}

TEST_P(TransportConformance, APeerThatWasNeverThereMeetsTheDeadline) {
  TransportOptions options = Options();
  Connect(options);
  b_.reset();
  uint64_t now_ns = 1'000'000'000;
  const std::vector<std::byte> data(8);
  const ErrorCode code = a_->transport->SendMessage(b_of_a_, data, {}, 1, now_ns);
  if (code != ErrorCode::kOk) {  // some providers know at once
    EXPECT_EQ(code, ErrorCode::kNodeUnreachable);
    return;
  }
  PassDeadlines(&now_ns, options.post_timeout_ns);
  const ErrorCode result = a_->recorder.ResultOf(1);
  EXPECT_TRUE(result == ErrorCode::kNodeUnreachable || result == ErrorCode::kTimeout)
      << ErrorCodeText(result);
}

TEST_P(TransportConformance, TimeWithoutPollsIsNotHeldAgainstThePeer) {
  TransportOptions options = Options();
  Connect(options);
  const std::vector<std::byte> data(8);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, 0), ErrorCode::kOk);
  uint64_t now_ns = 10 * options.post_timeout_ns;  // the process was stopped
  const uint64_t give_up_ns = MonotonicNs() + kPatience;
  while (a_->recorder.results.empty() && MonotonicNs() < give_up_ns) {
    a_->Poll(now_ns);
    b_->Poll();
    sched_yield();
  }
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
}

// -------------------------------------------------------------------------------- second process

TEST_P(TransportConformance, WritesToAndReadsFromAnotherProcess) {
  auto process = ConnectProcess(Options(), 2 * kPeerMemoryBytes);
  const std::vector<std::byte> data = Pattern(kPeerMemoryBytes, 13);
  std::copy(data.begin(), data.end(), a_->memory.begin());
  ASSERT_EQ(a_->transport->Write(ToProcess(*process, kPeerMemoryBytes, 1), Placement::kRemote,
                                 MonotonicNs()),
            ErrorCode::kOk);
  AwaitResults(1);
  RmaRequest read = ToProcess(*process, kPeerMemoryBytes, 2);
  read.local = a_->memory.data() + kPeerMemoryBytes;
  ASSERT_EQ(a_->transport->Read(read, MonotonicNs()), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
  EXPECT_EQ(a_->recorder.ResultOf(2), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(a_->memory.data() + kPeerMemoryBytes, data.data(), data.size()), 0);
}

TEST_P(TransportConformance, APeerKilledDuringWritesEndsEachExactlyOnce) {
  TransportOptions options = Options();
  options.post_timeout_ns = 1'000'000'000;
  auto process = ConnectProcess(options, kPeerMemoryBytes);
  uint64_t accepted = 0;
  const auto post_all = [&] {
    ErrorCode code = ErrorCode::kOk;
    while (code == ErrorCode::kOk && accepted < 2000) {
      code = a_->transport->Write(ToProcess(*process, 256 * 1024, accepted), Placement::kRemote,
                                  MonotonicNs());
      accepted += code == ErrorCode::kOk ? 1 : 0;
    }
  };
  PollUntil([&] {
    post_all();
    return a_->recorder.results.size() >= 10;
  });
  process->Kill(SIGKILL);
  post_all();
  PollUntil([&] { return a_->recorder.results.size() == accepted; });
  uint64_t failed = 0;
  for (uint64_t context = 0; context < accepted; context++) {
    const ErrorCode result = a_->recorder.ResultOf(context);
    failed += result == ErrorCode::kOk ? 0 : 1;
    EXPECT_TRUE(result == ErrorCode::kOk || result == ErrorCode::kNodeUnreachable ||
                result == ErrorCode::kTimeout)
        << ErrorCodeText(result);
  }
  EXPECT_GT(failed, 0U);
  EXPECT_EQ(a_->transport->statistics().errors, failed);
}

TEST_P(TransportConformance, APeerKilledWhileIdleMeetsTheDeadline) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  process->Kill(SIGKILL);
  uint64_t now_ns = MonotonicNs();
  const ErrorCode code =
      a_->transport->Write(ToProcess(*process, 64, 1), Placement::kRemote, now_ns);
  if (code != ErrorCode::kOk) {
    EXPECT_EQ(code, ErrorCode::kNodeUnreachable);
    return;
  }
  PassDeadlines(&now_ns, options.post_timeout_ns);
  const ErrorCode result = a_->recorder.ResultOf(1);
  EXPECT_TRUE(result == ErrorCode::kNodeUnreachable || result == ErrorCode::kTimeout)
      << ErrorCodeText(result);
}

TEST_P(TransportConformance, SwallowsTheLateEndOfATimedOutOperation) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  process->Kill(SIGSTOP);
  uint64_t now_ns = MonotonicNs();
  constexpr uint64_t kWrites = 10;
  for (uint64_t context = 0; context < kWrites; context++) {
    ASSERT_EQ(a_->transport->Write(ToProcess(*process, 64, context), Placement::kRemote, now_ns),
              ErrorCode::kOk);
  }
  PassDeadlines(&now_ns, options.post_timeout_ns);
  for (uint64_t context = 0; context < kWrites; context++) {
    EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kTimeout);
  }
  EXPECT_EQ(a_->transport->statistics().abandoned, kWrites);
  EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).code(), ErrorCode::kWouldBlock);

  process->Kill(SIGCONT);
  PollUntil([&] { return a_->transport->statistics().abandoned == 0; });
  EXPECT_EQ(a_->recorder.results.size(), kWrites);
  EXPECT_EQ(a_->recorder.results[0].size(), 1U);
  EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
}

// -------------------------------------------------------------------------------------- sleeping

TEST_P(TransportConformance, SleepsUntilAMessageArrives) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  if (!a_->transport->capabilities().wait_fd) {
    EXPECT_EQ(a_->transport->WaitFd(), -1);
    EXPECT_FALSE(a_->transport->PrepareToSleep());
    GTEST_SKIP() << GetParam().provider << " can only be polled";
  }
  // The peer sleeps between our messages as we do; every message must wake both.
  const uint64_t give_up_ns = MonotonicNs() + kPatience;
  uint64_t sleeps = 0;
  for (size_t round = 0; round < 50; round++) {
    a_->recorder.messages.clear();
    const std::vector<std::byte> data = Pattern(64, static_cast<uint32_t>(round));
    ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, round, MonotonicNs()), ErrorCode::kOk);
    while (a_->recorder.messages.empty() && MonotonicNs() < give_up_ns) {
      if (a_->Poll() == 0 && a_->transport->PrepareToSleep()) {
        pollfd descriptor{a_->transport->WaitFd(), POLLIN, 0};
        ASSERT_EQ(poll(&descriptor, 1, 10'000), 1) << "no wake-up in round " << round;
        sleeps++;
      }
    }
    ASSERT_EQ(a_->recorder.messages.size(), 1U);
    EXPECT_EQ(a_->recorder.messages[0], data);
  }
  EXPECT_GT(sleeps, 0U);
}

TEST_P(TransportConformance, SaysWhenItMustBePolledNext) {
  const TransportOptions options = Options();
  Connect(options);
  EXPECT_EQ(a_->transport->NextPollNs(100), UINT64_MAX);
  const std::vector<std::byte> data(8);
  ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, 1, 100), ErrorCode::kOk);
  EXPECT_LE(a_->transport->NextPollNs(100), 100 + options.post_timeout_ns);
  a_->transport->FailPeer(b_of_a_, ErrorCode::kPeerDied);
  EXPECT_EQ(a_->transport->NextPollNs(100), 100U);
  EXPECT_FALSE(a_->transport->PrepareToSleep());
}

}  // namespace ferry::transport
