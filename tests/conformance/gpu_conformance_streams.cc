// Conformance: operations of one stream, several streams, words, failures.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kSize = 1'000'003;
constexpr auto kAtLeast = WaitCondition::kGreaterOrEqual;
constexpr auto kEqual = WaitCondition::kEqual;

Status Fail() { return {ErrorCode::kInternal, "made to fail"}; }

TEST_P(GpuBackendConformance, CopiesFromHostToDeviceToDeviceToHost) {
  const Memory first = Device(kSize);
  const Memory second = Device(kSize);
  const Bytes sent = Pattern(kSize, 3);
  Bytes received(kSize);
  FERRY_EXPECT_OK(stream().CopyAsync(first.data(), sent.data(), kSize));
  FERRY_EXPECT_OK(stream().CopyAsync(second.data(), first.data(), kSize));
  FERRY_EXPECT_OK(stream().CopyAsync(received.data(), second.data(), kSize));
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(received, sent);
}

TEST_P(GpuBackendConformance, CopiesThroughPinnedAndRegisteredMemory) {
  const Memory device = Device(kSize);
  const Memory pinned = Pinned(kSize);
  const Bytes sent = Pattern(kSize, 4);
  std::memcpy(pinned.data(), sent.data(), kSize);
  Bytes received(kSize);
  FERRY_EXPECT_OK(backend().RegisterHostMemory(received.data(), kSize));
  FERRY_EXPECT_OK(stream().CopyAsync(device.data(), pinned.data(), kSize));
  FERRY_EXPECT_OK(stream().CopyAsync(received.data(), device.data(), kSize));
  FERRY_EXPECT_OK(stream().Synchronize());
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(received.data()));
  EXPECT_EQ(received, sent);
}

TEST_P(GpuBackendConformance, CopyMovesJustItsRange) {
  const Memory device = Device(300);
  FERRY_EXPECT_OK(Upload(backend(), device.data(), Bytes(300, 7)));
  FERRY_EXPECT_OK(Upload(backend(), device.bytes() + 101, Bytes(99, 8)));
  Bytes expected(300, 7);
  std::fill(expected.begin() + 101, expected.begin() + 200, uint8_t{8});
  ExpectHolds(device.data(), expected);
}

TEST_P(GpuBackendConformance, CopyRejectsBadRanges) {
  const Memory device = Device(4096);
  Bytes host(8192);
  FERRY_EXPECT_CODE(kInvalidArgument, stream().CopyAsync(nullptr, host.data(), 8));
  FERRY_EXPECT_CODE(kInvalidArgument, stream().CopyAsync(device.data(), nullptr, 8));
  FERRY_EXPECT_CODE(kInvalidArgument, stream().CopyAsync(device.bytes() + 8, device.data(), 16));
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().CopyAsync(device.data(), host.data(), 4097));
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().CopyAsync(host.data(), device.bytes() + 4000, 97));
  // None of that poisoned the stream, and an empty copy is fine.
  FERRY_EXPECT_OK(stream().CopyAsync(nullptr, nullptr, 0));
  FERRY_EXPECT_OK(stream().CopyAsync(device.data(), host.data(), 4096));
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, StreamRunsItsOperationsInOrder) {
  constexpr int kOperations = 200;
  std::vector<int> order;
  for (int i = 0; i < kOperations; ++i) {
    FERRY_EXPECT_OK(stream().LaunchHost([&order, i] {
      order.push_back(i);
      return Status();
    }));
  }
  FERRY_EXPECT_OK(stream().Synchronize());
  ASSERT_EQ(order.size(), static_cast<size_t>(kOperations));
  for (int i = 0; i < kOperations; ++i) {
    EXPECT_EQ(order[i], i);
  }
}

TEST_P(GpuBackendConformance, WordIsWrittenAfterTheCopyBeforeIt) {
  const Memory pinned = Pinned(kSize);
  const Memory word = Pinned(8);
  const Bytes sent = Pattern(kSize, 5);
  FERRY_EXPECT_OK(stream().CopyAsync(pinned.data(), sent.data(), kSize));
  FERRY_EXPECT_OK(stream().WriteValue64(word.words(), 77));
  while (LoadFromCpu(word.words()) != 77) {
    std::this_thread::yield();
  }
  EXPECT_EQ(std::memcmp(pinned.data(), sent.data(), kSize), 0);
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, NewStreamIsIdle) {
  FERRY_EXPECT_OK(stream().Query());
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, CpuReleasesAWaitingStream) {
  const Memory words = Pinned(16);
  FERRY_EXPECT_OK(stream().WaitValue64(words.words(), 5, kAtLeast));
  FERRY_EXPECT_OK(stream().WriteValue64(words.words() + 1, 1));
  FERRY_EXPECT_CODE(kWouldBlock, stream().Query());
  StoreFromCpu(words.words(), 4);  // not yet
  FERRY_EXPECT_CODE(kWouldBlock, stream().Query());
  EXPECT_EQ(LoadFromCpu(words.words() + 1), 0u);
  StoreFromCpu(words.words(), 6);
  FERRY_EXPECT_OK(stream().Synchronize());
  FERRY_EXPECT_OK(stream().Query());
  EXPECT_EQ(LoadFromCpu(words.words() + 1), 1u);
}

TEST_P(GpuBackendConformance, WaitForEqualPassesOnlyOnThatValue) {
  const Memory word = Pinned(8);
  StoreFromCpu(word.words(), 9);
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 8, kEqual));
  FERRY_EXPECT_CODE(kWouldBlock, stream().Query());
  StoreFromCpu(word.words(), 8);
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, WaitPassesAtOnceWhenTheWordIsThere) {
  const Memory word = Pinned(8);
  StoreFromCpu(word.words(), uint64_t{1} << 62);  // how a failed counter looks
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 3, kAtLeast));
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), uint64_t{1} << 62, kEqual));
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, WordsMayLieInRegisteredMemory) {
  alignas(8) static uint64_t words[2];
  FERRY_EXPECT_OK(backend().RegisterHostMemory(words, sizeof(words)));
  FERRY_EXPECT_OK(stream().WaitValue64(&words[0], 1, kAtLeast));
  FERRY_EXPECT_OK(stream().WriteValue64(&words[1], 1));
  StoreFromCpu(&words[0], 1);
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(LoadFromCpu(&words[1]), 1u);
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(words));
}

// A page as a NIC's driver maps it: of a file, which another process has mapped, too.
TEST_P(GpuBackendConformance, StreamsStoreToRegistersOfOtherDevices) {
  constexpr uint64_t kPageBytes = 4096;
  const UniqueFd file(memfd_create("registers", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kPageBytes), 0);
  const auto map = [&] {
    return mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  };
  auto* const page = static_cast<uint64_t*>(map());
  auto* const of_nic = static_cast<uint64_t*>(map());
  ASSERT_NE(page, MAP_FAILED);
  ASSERT_NE(of_nic, MAP_FAILED);
  const Status registered = backend().RegisterIoMemory(page, kPageBytes);
  if (registered.code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << registered.message();
  }
  FERRY_EXPECT_OK(registered);
  FERRY_EXPECT_CODE(kInvalidArgument, backend().RegisterIoMemory(nullptr, kPageBytes));
  FERRY_EXPECT_CODE(kAlreadyExists, backend().RegisterHostMemory(page, kPageBytes));
  for (uint64_t value = 1; value <= 3; ++value) {
    FERRY_EXPECT_OK(stream().WriteValue64(page + 8, value));
    FERRY_EXPECT_OK(stream().Synchronize());
    EXPECT_EQ(LoadFromCpu(of_nic + 8), value);
  }
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(page));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().UnregisterHostMemory(page));
  FERRY_EXPECT_OK(backend().RegisterIoMemory(page, kPageBytes));  // as memory that was never there
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(page));
  munmap(page, kPageBytes);
  munmap(of_nic, kPageBytes);
}

TEST_P(GpuBackendConformance, StreamsReleaseEachOther) {
  constexpr uint64_t kRounds = 50;
  const Memory words = Pinned(16);
  uint64_t* ping = words.words();
  uint64_t* pong = words.words() + 1;
  const std::unique_ptr<Stream> first = NewStream();
  const std::unique_ptr<Stream> second = NewStream();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    FERRY_EXPECT_OK(first->WaitValue64(pong, round - 1, kAtLeast));
    FERRY_EXPECT_OK(first->WriteValue64(ping, round));
    FERRY_EXPECT_OK(second->WaitValue64(ping, round, kAtLeast));
    FERRY_EXPECT_OK(second->WriteValue64(pong, round));
  }
  FERRY_EXPECT_OK(first->Synchronize());
  FERRY_EXPECT_OK(second->Synchronize());
  EXPECT_EQ(LoadFromCpu(pong), kRounds);
}

TEST_P(GpuBackendConformance, ABlockedStreamDoesNotHoldUpAnother) {
  const Memory word = Pinned(8);
  const Memory device = Device(kSize);
  const std::unique_ptr<Stream> blocked = NewStream();
  FERRY_EXPECT_OK(blocked->WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(Upload(backend(), device.data(), Pattern(kSize, 6)));
  ExpectHolds(device.data(), Pattern(kSize, 6));
  FERRY_EXPECT_CODE(kWouldBlock, blocked->Query());
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(blocked->Synchronize());
}

// Windows of messages lie in pinned memory, the application's buffers anywhere.
TEST_P(GpuBackendConformance, CopiesOnTheHostDoNotHoldUpWhoEnqueuesThem) {
  const Memory word = Pinned(8);
  const Memory pinned = Pinned(kSize);
  const Bytes sent = Pattern(kSize, 8);
  Bytes received(kSize);
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(stream().CopyAsync(pinned.data(), sent.data(), kSize));
  FERRY_EXPECT_OK(stream().CopyAsync(received.data(), pinned.data(), kSize));
  EXPECT_EQ(received, Bytes(kSize));
  StoreFromCpu(word.words(), 1);  // would not get here if a copy waited for the stream
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(received, sent);
}

// Registered and other memory share pages.
TEST_P(GpuBackendConformance, CopiesMemoryThatIsRegisteredInPart) {
  constexpr uint64_t kPart = 5000;
  std::vector<uint8_t> buffer(4 * kPart);
  const Memory device = Device(buffer.size());
  FERRY_EXPECT_OK(backend().RegisterHostMemory(buffer.data() + kPart, 100));
  FERRY_EXPECT_OK(backend().RegisterHostMemory(buffer.data() + kPart + 200, kPart));
  const Bytes sent = Pattern(buffer.size(), 6);
  FERRY_EXPECT_OK(Upload(backend(), device.data(), sent));
  // Registered memory may not be unregistered in the middle of a copy, neither whole nor in parts.
  FERRY_EXPECT_OK(stream().CopyAsync(buffer.data(), device.data(), kPart));
  FERRY_EXPECT_OK(stream().CopyAsync(buffer.data() + kPart, device.bytes() + kPart, 100));
  FERRY_EXPECT_OK(
      stream().CopyAsync(buffer.data() + kPart + 100, device.bytes() + kPart + 100, 100));
  FERRY_EXPECT_OK(
      stream().CopyAsync(buffer.data() + kPart + 200, device.bytes() + kPart + 200, kPart));
  FERRY_EXPECT_OK(stream().CopyAsync(buffer.data() + 2 * kPart + 200,
                                     device.bytes() + 2 * kPart + 200, 2 * kPart - 200));
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(Bytes(buffer.begin(), buffer.end()), sent);
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(buffer.data() + kPart));
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(buffer.data() + kPart + 200));
}

TEST_P(GpuBackendConformance, SeveralThreadsShareAStream) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 100;
  uint64_t ran = 0;  // only the stream touches it until it is synchronized
  Stream& shared = stream();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        FERRY_EXPECT_OK(shared.LaunchHost([&ran] {
          ++ran;
          return Status();
        }));
      }
      FERRY_EXPECT_OK(shared.Synchronize());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(ran, kThreads * kEach);
}

TEST_P(GpuBackendConformance, RejectsBadWords) {
  const Memory words = Pinned(16);
  auto* unaligned = reinterpret_cast<uint64_t*>(words.bytes() + 4);
  alignas(8) uint64_t unknown = 0;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().WriteValue64(unaligned, 1));
  FERRY_EXPECT_CODE(kInvalidArgument, stream().WaitValue64(unaligned, 1, kEqual));
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().WriteValue64(&unknown, 1));
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().WaitValue64(&unknown, 1, kEqual));
  FERRY_EXPECT_CODE(kInvalidBuffer, stream().WriteValue64(nullptr, 1));
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, RejectsAnEmptyHostFunction) {
  FERRY_EXPECT_CODE(kInvalidArgument, NewStream()->LaunchHost(nullptr));
}

TEST_P(GpuBackendConformance, FailurePoisonsItsStreamForGood) {
  const Memory word = Pinned(8);
  FERRY_EXPECT_OK(stream().LaunchHost(Fail));
  const Status status = stream().Synchronize();
  FERRY_EXPECT_CODE(kInternal, status);
  EXPECT_EQ(status.message(), "made to fail");
  FERRY_EXPECT_CODE(kInternal, stream().Synchronize());
  FERRY_EXPECT_CODE(kInternal, stream().Query());
  FERRY_EXPECT_CODE(kInternal, stream().WriteValue64(word.words(), 1));
  EXPECT_EQ(LoadFromCpu(word.words()), 0u);
}

TEST_P(GpuBackendConformance, FirstFailureIsTheOneReported) {
  const Memory word = Pinned(8);
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 1, kAtLeast));  // so that all are queued
  FERRY_EXPECT_OK(stream().LaunchHost(Fail));
  FERRY_EXPECT_OK(stream().LaunchHost([] { return Status(ErrorCode::kTimeout, "second"); }));
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_CODE(kInternal, stream().Synchronize());
}

TEST_P(GpuBackendConformance, FailureDoesNotReachOtherStreams) {
  const std::unique_ptr<Stream> failed = NewStream();
  FERRY_EXPECT_OK(failed->LaunchHost(Fail));
  FERRY_EXPECT_CODE(kInternal, failed->Synchronize());
  const Memory device = Device(64);
  FERRY_EXPECT_OK(Upload(backend(), device.data(), Pattern(64, 1)));
}

TEST_P(GpuBackendConformance, DestroyingAStreamAbandonsItsWait) {
  const Memory word = Pinned(8);
  std::unique_ptr<Stream> stream = NewStream();
  FERRY_EXPECT_OK(stream->WaitValue64(word.words(), 1, kAtLeast));
  stream.reset();  // would hang if it waited
  StoreFromCpu(word.words(), 1);
}

}  // namespace
}  // namespace ferry::gpu
