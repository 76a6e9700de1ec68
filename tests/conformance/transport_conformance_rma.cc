#include <algorithm>
#include <cstring>

#include "tests/conformance/transport_conformance.h"

namespace ferry::transport {

TEST_P(TransportConformance, WritesAndReadsUnalignedDataInFragments) {
  TransportOptions options = Options();
  options.fragment_bytes = (1 << 20) + 3;
  constexpr size_t kBytes = (5 << 20) + 17;
  Connect(options, 2 * kBytes);
  const std::vector<std::byte> data = Pattern(kBytes, 11);
  std::copy(data.begin(), data.end(), a_->memory.begin() + 1);

  ASSERT_EQ(Write(ToB(1, 3, kBytes, 1)), ErrorCode::kOk);
  EXPECT_EQ(AwaitResult(1), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(b_->memory.data() + 3, data.data(), kBytes), 0);
  EXPECT_EQ(b_->memory[2], std::byte{0});
  EXPECT_EQ(b_->memory[kBytes + 3], std::byte{0});

  ASSERT_EQ(Read(ToB(kBytes - 5, 3, kBytes, 2)), ErrorCode::kOk);
  EXPECT_EQ(AwaitResult(2), ErrorCode::kOk);
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
           Write(ToB(posted * kBytes, posted * kBytes, kBytes, posted)) == ErrorCode::kOk) {
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
  ASSERT_EQ(Write(request), ErrorCode::kOk);
  EXPECT_NE(AwaitResult(1), ErrorCode::kOk);
  EXPECT_FALSE(a_->transport->LastError().empty());
  request.context = 2;
  ASSERT_EQ(Read(request), ErrorCode::kOk);
  EXPECT_NE(AwaitResult(2), ErrorCode::kOk);

  // With some providers the bad key costs the connection, and whatever is on it; soon there is a
  // new one.
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  uint64_t context = 2;
  do {
    context++;
    ASSERT_EQ(Write(ToB(0, 0, 64, context)), ErrorCode::kOk);
    AwaitResults(context);
  } while (a_->recorder.ResultOf(context) == ErrorCode::kNodeUnreachable &&
           MonotonicNs() < give_up_ns);
  EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kOk);
}

TEST_P(TransportConformance, ReportsAnAccessBeyondTheRemoteRegion) {
  Connect(Options());
  ASSERT_EQ(Write(ToB(0, 4000, 200, 1)), ErrorCode::kOk);
  EXPECT_NE(AwaitResult(1), ErrorCode::kOk);
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
  ASSERT_EQ(Write(ToB(0, 0, 64, 1)), ErrorCode::kOk);
  EXPECT_NE(AwaitResult(1), ErrorCode::kOk);
}

TEST_P(TransportConformance, KeepsARegionWhileAnOperationUsesIt) {
  Connect(Options());
  ASSERT_EQ(Write(ToB(0, 0, 64, 1)), ErrorCode::kOk);
  EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).code(), ErrorCode::kWouldBlock);
  EXPECT_EQ(AwaitResult(1), ErrorCode::kOk);
  EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
}

}  // namespace ferry::transport
