#include "benchmarks/gpu/kernels.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

#include "benchmarks/gpu/bare_gpu.h"
#include "benchmarks/gpu/turns.h"

namespace ferry::bench {
namespace {

constexpr uint64_t kLargestBytes = 4ULL << 20;

struct Blocks {
  uint64_t bytes;
  uint64_t count;
};
constexpr Blocks kBlocks[] = {{4, 64},    {4, 4096},    {64, 64},    {64, 4096},
                              {1024, 64}, {1024, 1024}, {65'536, 16}};

class Kernels {
 public:
  Kernels(gpu::GpuBackend& backend, int repetitions)
      : backend_(backend),
        repetitions_(repetitions),
        stream_(TakeValue(backend.CreateStream(0))),
        source_(static_cast<std::byte*>(TakeValue(backend.AllocateDevice(0, kLargestBytes)))),
        device_(static_cast<std::byte*>(TakeValue(backend.AllocateDevice(0, kLargestBytes)))),
        pinned_(static_cast<std::byte*>(TakeValue(backend.AllocatePinned(kLargestBytes)))) {}
  ~Kernels() {
    stream_.reset();
    for (std::byte* memory : {source_, device_, pinned_}) {
      CheckStatus(backend_.Free(memory));
    }
  }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // False: the device has none, and says why.
  bool Prepare() {
    const Status status = stream_->CopyStrided({source_, device_, 8, 2, 16, true});
    if (status.code() == ErrorCode::kUnsupported) {
      std::printf("none %s\n", TakeValue(backend_.GetDeviceInfo(0)).no_kernels_because.c_str());
      return false;
    }
    CheckStatus(status);
    CheckStatus(stream_->Synchronize());
    return true;
  }

  void Store() {
    Store("device", device_);
    Store("pinned", pinned_);
  }

  void Pack(const Blocks& blocks) {
    const uint64_t stride = 2 * blocks.bytes;
    CheckPacked(blocks);
    const TurnTimes times = ByTurns(
        [&] {
          CheckStatus(stream_->CopyStrided(
              {source_, device_, blocks.bytes, blocks.count, static_cast<int64_t>(stride), true}));
        },
        [&] {
          for (uint64_t i = 0; i < blocks.count; ++i) {
            CheckStatus(
                stream_->CopyAsync(device_ + i * blocks.bytes, source_ + i * stride, blocks.bytes));
          }
        });
    std::printf("pack %" PRIu64 " %" PRIu64 " %.4f %.4f\n", blocks.bytes, blocks.count,
                times.ferry_ns / 1e3, times.bare_ns / 1e3);
  }

 private:
  void Store(const char* where, std::byte* to) {
    for (uint64_t size_bytes = 8; size_bytes <= kLargestBytes; size_bytes *= 4) {
      const TurnTimes times = ByTurns(
          [&] {
            CheckStatus(stream_->CopyStrided({source_, to, size_bytes, 1, 0, true}));
          },
          [&] { CheckStatus(stream_->CopyAsync(to, source_, size_bytes)); });
      std::printf("store %s %" PRIu64 " %.4f %.4f\n", where, size_bytes, times.ferry_ns / 1e3,
                  times.bare_ns / 1e3);
    }
  }

  template <typename First, typename Second>
  TurnTimes ByTurns(First&& first, Second&& second) {
    const auto waited = [this](auto& action) {
      return Time(1, [&] {
        action();
        CheckStatus(stream_->Synchronize());
      });
    };
    return MeasureByTurns(
        repetitions_, true, [&] { return waited(first); }, [&] { return waited(second); });
  }

  // The measured kernels must move the right bytes.
  void CheckPacked(const Blocks& blocks) {
    for (uint64_t i = 0; i < kLargestBytes; ++i) {
      pinned_[i] = static_cast<std::byte>(i + (i >> 8) + 1);
    }
    const std::vector<std::byte> sent(pinned_, pinned_ + kLargestBytes);
    CheckStatus(stream_->CopyAsync(source_, pinned_, kLargestBytes));
    CheckStatus(stream_->CopyStrided({source_, pinned_, blocks.bytes, blocks.count,
                                      static_cast<int64_t>(2 * blocks.bytes), true}));
    CheckStatus(stream_->Synchronize());
    for (uint64_t i = 0; i < blocks.bytes * blocks.count; ++i) {
      if (pinned_[i] != sent[i / blocks.bytes * 2 * blocks.bytes + i % blocks.bytes]) {
        CheckStatus({ErrorCode::kCorrupt, "what was packed is not what lay in the blocks"});
      }
    }
  }

  gpu::GpuBackend& backend_;
  const int repetitions_;
  std::unique_ptr<gpu::Stream> stream_;
  std::byte* const source_;
  std::byte* const device_;
  std::byte* const pinned_;
};

}  // namespace

void MeasureKernels(gpu::GpuBackend& backend, int repetitions) {
  Kernels kernels(backend, repetitions);
  if (!kernels.Prepare()) {
    return;
  }
  kernels.Store();
  for (const Blocks& blocks : kBlocks) {
    kernels.Pack(blocks);
  }
}

}  // namespace ferry::bench
