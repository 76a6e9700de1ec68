// A rank with RemoteOperations, in one process with the daemon of the test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "client/rma/remote_operations.h"
#include "gpu_backends/api/registry.h"
#include "tests/client/lonely_rank.h"
#include "tests/client/rma/fake_one_sided_daemon.h"

namespace ferry::client {

using shm::OneSidedOperation;
using shm::SignalUpdate;

inline constexpr uint32_t kPeer = 1;  // rank 0 is here, the others elsewhere
inline constexpr uint32_t kOther = 2;
inline constexpr uint32_t kSegment = FakeOneSidedDaemon::kSegment;

// Bytes that depend on the seed and on their place.
inline std::string Text(uint64_t size_bytes, uint64_t seed = 1) {
  std::string text(size_bytes, ' ');
  uint64_t bits = seed * 0x9e3779b97f4a7c15ULL;
  for (char& byte : text) {
    bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(bits >> 56);
  }
  return text;
}

class RemoteOperationsTest : public testing::Test {
 protected:
  // Each look of a wait is followed by what `meanwhile` does; a wait for which it does nothing more
  // fails the test.
  void Wait(bool (*done)(void*), void* argument) {
    for (uint64_t looks = 0; !done(argument) && progress_.poison() == ErrorCode::kOk; ++looks) {
      ASSERT_LT(looks, patience_) << "it waits for ever";
      meanwhile_();
    }
  }
  ErrorCode Put(uint64_t offset, const std::string& data, const Signal& signal = {},
                uint32_t peer = kPeer) {
    return remote_.Put(context_, {peer, kSegment, offset}, data.data(), data.size(), signal);
  }
  ErrorCode Quiet(uint32_t* rank = nullptr) {
    uint32_t ignored = 0;
    return remote_.Quiet(context_, std::nullopt, rank != nullptr ? rank : &ignored);
  }
  ErrorCode QuietOf(OneSidedContext& context, std::optional<uint32_t> with = std::nullopt) {
    uint32_t rank = 0;
    return remote_.Quiet(context, with, &rank);
  }
  ErrorCode FetchAdd(uint64_t offset, uint64_t operand, uint64_t* found,
                     WhenDone when = WhenDone::kAtReturn) {
    return remote_.Atomic(
        context_, {{kPeer, kSegment, offset}, OneSidedOperation::kAdd, 8, operand}, found, when);
  }
  std::string BytesAt(uint64_t offset, uint64_t size_bytes) {
    return {reinterpret_cast<const char*>(daemon_.MemoryOf(kPeer)) + offset, size_bytes};
  }
  static OneSidedOperation OperationOf(const FakeOneSidedDaemon::Taken& taken) {
    return static_cast<OneSidedOperation>(taken.words.operation);
  }
  // They wait for as long as the machine lets others run.
  void LetThreadsCall() {
    progress_.SetThreads(true);
    patience_ = UINT64_MAX;
    meanwhile_ = [] { std::this_thread::yield(); };
  }

  LonelyRank rank_;
  FakeOneSidedDaemon daemon_{rank_.view()};
  std::atomic<uint64_t> carried_on_ = 0;
  uint64_t patience_ = 10'000;
  bool is_pushing_ = false;
  std::function<void()> meanwhile_ = [this] { daemon_.Serve(); };
  gpu::BackendRegistry backends_;
  Memory memory_{1 << 20, &backends_, nullptr};
  Progress progress_{Progress::Parts{.view = rank_.view(),
                                     .peers = &rank_.peers(),
                                     .engine = {},
                                     .own_lane = 0,
                                     .doorbell = -1,  // the daemon of the test never sleeps
                                     .wait_policy = {},
                                     .threads = false}};
  RemoteOperations remote_{{.progress = &progress_,
                            .memory = &memory_,
                            .private_reachable = false,
                            .bounce_buffer_max_bytes = 0,
                            .statistics = shm::Statistics(rank_.view().layout->counters),
                            .wait = [this](bool (*done)(void*), void* argument, uint32_t,
                                           uint64_t) { Wait(done, argument); },
                            .carry_on_by_link = [this](uint32_t, uint64_t) { ++carried_on_; }}};
  OneSidedContext context_;
};

}  // namespace ferry::client
