#include <algorithm>
#include <cstring>

#include "tests/conformance/transport_conformance.h"

namespace ferry::transport {

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

// Sends numbered messages: each completion posts the next.
class Refill : public Recorder {
 public:
  Refill(Transport* transport, PeerId peer, uint64_t messages)
      : transport_(transport), peer_(peer), messages_(messages) {}

  void Post() {
    const auto number = std::as_bytes(std::span(&next_, 1));
    EXPECT_EQ(transport_->SendMessage(peer_, number, rest_, next_, MonotonicNs()), ErrorCode::kOk);
    next_++;
  }
  void OnComplete(uint64_t, ErrorCode code) override {
    EXPECT_EQ(code, ErrorCode::kOk);
    if (next_ < messages_) {
      Post();
    }
  }

 private:
  Transport* transport_;
  PeerId peer_;
  uint64_t messages_;
  uint64_t next_ = 0;
  std::vector<std::byte> rest_ = std::vector<std::byte>(1000);
};

// More messages than providers have room for, and the next ones come just when room has come for
// those that wait.
TEST_P(TransportConformance, DoesNotOvertakeWhatTheProviderPutOff) {
  constexpr uint64_t kMessages = 8000;
  TransportOptions options = Options();
  options.max_outstanding = options.max_outstanding_per_peer = 4000;
  options.receive_buffer_bytes = 1024;
  Connect(options);
  Refill refill(a_->transport.get(), b_of_a_, kMessages);
  for (uint32_t i = 0; i < options.max_outstanding; i++) {
    refill.Post();
  }
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  while (b_->recorder.messages.size() < kMessages && MonotonicNs() < give_up_ns) {
    a_->transport->Poll(refill, 64, MonotonicNs());
    b_->Poll();
  }
  ASSERT_EQ(b_->recorder.messages.size(), kMessages);
  for (uint64_t i = 0; i < kMessages; i++) {
    ASSERT_EQ(std::memcmp(b_->recorder.messages[i].data(), &i, sizeof(i)), 0) << i;
  }
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

TEST_P(TransportConformance, SendsAttachmentsFromWhereTheyAre) {
  constexpr size_t kMemory = size_t{256} << 10;
  Connect(Options(), kMemory);
  const uint64_t longest = a_->transport->capabilities().max_attachment_bytes;
  if (longest == 0) {
    GTEST_SKIP() << GetParam().provider << " cannot gather";
  }
  std::ranges::copy(Pattern(kMemory, 3), a_->memory.begin());
  const std::vector<std::byte> header = Pattern(100, 1);
  std::vector<std::vector<std::byte>> sent;
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{9000}, longest}) {
    const Attachment attachment{a_->memory.data() + 777, bytes, a_->region.handle};
    ASSERT_EQ(a_->transport->SendMessageFrom(b_of_a_, header, attachment, bytes, MonotonicNs()),
              ErrorCode::kOk);
    std::vector<std::byte>& whole = sent.emplace_back(header);
    whole.insert(whole.end(), a_->memory.data() + 777, a_->memory.data() + 777 + bytes);
  }
  PollUntil([&] { return b_->recorder.messages.size() == 3 && a_->recorder.results.size() == 3; });
  EXPECT_EQ(b_->recorder.messages, sent);
  EXPECT_EQ(a_->recorder.ResultOf(longest), ErrorCode::kOk);
  EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
}

// Long messages may take another way in the network than short ones, which must not pass them.
TEST_P(TransportConformance, ShortMessagesDoNotPassLongOnes) {
  constexpr uint64_t kMessages = 500;
  constexpr size_t kMemory = size_t{64} << 10;
  Connect(Options(), kMemory);
  std::ranges::copy(Pattern(kMemory, 3), a_->memory.begin());
  std::ranges::copy(Pattern(kMemory, 3), b_->memory.begin());
  const Capabilities capabilities = a_->transport->capabilities();
  const uint64_t most_attached = std::min<uint64_t>(capabilities.max_attachment_bytes, kMemory);
  const std::vector<std::byte> payload(capabilities.max_message_bytes - sizeof(uint64_t));
  // By turns none, the longest attachment, a short one, and the longest message without one.
  const auto attached = [&](uint64_t number) {
    return number % 4 == 1 ? most_attached : number % 4 == 2 ? most_attached / 8 : 0;
  };
  const auto copied = [&](uint64_t number) { return number % 4 == 3 ? payload.size() : 0; };
  const auto send_some = [&](Node* node, PeerId peer, uint64_t* sent) {
    while (*sent < kMessages) {
      const auto header = std::as_bytes(std::span(sent, 1));
      const Attachment attachment{node->memory.data(), attached(*sent), node->region.handle};
      const ErrorCode code =
          attachment.bytes != 0
              ? node->transport->SendMessageFrom(peer, header, attachment, *sent, MonotonicNs())
              : node->transport->SendMessage(peer, header, std::span(payload).first(copied(*sent)),
                                             *sent, MonotonicNs());
      if (code != ErrorCode::kOk) {
        EXPECT_EQ(code, ErrorCode::kWouldBlock);
        break;
      }
      ++*sent;
    }
  };
  uint64_t sent_by_a = 0;
  uint64_t sent_by_b = 0;
  PollUntil([&] {
    send_some(a_.get(), b_of_a_, &sent_by_a);
    send_some(b_.get(), a_of_b_, &sent_by_b);
    return a_->recorder.messages.size() == kMessages && b_->recorder.messages.size() == kMessages &&
           a_->recorder.results.size() == kMessages && b_->recorder.results.size() == kMessages;
  });
  for (const Node* node : {a_.get(), b_.get()}) {
    ASSERT_EQ(node->recorder.messages.size(), kMessages);
    for (uint64_t i = 0; i < kMessages; i++) {
      const std::vector<std::byte>& message = node->recorder.messages[i];
      uint64_t number = 0;
      std::memcpy(&number, message.data(), sizeof(number));
      ASSERT_EQ(number, i);
      ASSERT_EQ(message.size(), sizeof(number) + attached(i) + copied(i));
    }
  }
}

TEST_P(TransportConformance, RefusesWrongAttachments) {
  Connect(Options());
  const std::vector<std::byte> header(8);
  const uint64_t longest = a_->transport->capabilities().max_attachment_bytes;
  const auto code_of = [&](const Attachment& attachment) {
    return a_->transport->SendMessageFrom(b_of_a_, header, attachment, 1, MonotonicNs());
  };
  std::byte* const base = a_->memory.data();
  EXPECT_EQ(code_of({base, longest + 1, a_->region.handle}), ErrorCode::kInvalidArgument);
  if (longest != 0) {
    EXPECT_EQ(code_of({base + 1, a_->memory.size(), a_->region.handle}), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(code_of({base, 8, RegionHandle{12345}}), ErrorCode::kInvalidBuffer);
  }
  a_->Poll();
  EXPECT_TRUE(a_->recorder.results.empty());
}

TEST_P(TransportConformance, DropsAMessageThatDoesNotFit) {
  TransportOptions small = Options();
  small.receive_buffer_bytes = 512;
  small.attachment_bytes = 0;
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
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  while (a_->recorder.messages.empty() && MonotonicNs() < give_up_ns) {
    a_->Poll();
    b_->transport->Poll(echo, 64, MonotonicNs());
  }
  ASSERT_EQ(a_->recorder.messages.size(), 1U);
  EXPECT_EQ(a_->recorder.messages[0], data);
}

}  // namespace ferry::transport
