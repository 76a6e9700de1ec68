#include "benchmarks/gpu/rings.h"

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "benchmarks/gpu/bare_gpu.h"
#include "benchmarks/gpu/turns.h"
#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/hip/hip_backend.h"
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "shm/atomic.h"
#include "shm/mpsc_ring.h"
#include "shm/ring_consumer.h"

namespace ferry::bench {
namespace {

constexpr uint32_t kSlots = 1024;
constexpr uint32_t kMostThreads = 4096;
constexpr uint64_t kRequests = 8192;  // of one launch
constexpr uint64_t kBlockBytes =
    shm::MpscRing::SizeBytes(kSlots) + kMostThreads * sizeof(shm::RingCompletion);

// Null for backends that have no kernels.
std::unique_ptr<gpu::Driver> OpenDriver(const config::Options& options, std::string_view backend) {
  if (backend == "cuda") {
    return TakeValue(gpu::OpenCudaDriver(options.cuda_library));
  }
  if (backend == "hip") {
    return TakeValue(gpu::OpenHipDriver(options.hip_library));
  }
  return backend == "level_zero" ? TakeValue(gpu::OpenLevelZeroDriver(options.level_zero_library))
                                 : nullptr;
}

// A ring, its words, and a thread that answers.
class ServedRing {
 public:
  explicit ServedRing(gpu::Driver& driver)
      : driver_(driver),
        stream_(TakeValue(driver.CreateStream(0))),
        block_(static_cast<uint8_t*>(TakeValue(driver.AllocatePinned(kBlockBytes)))),
        words_(static_cast<uint64_t*>(TakeValue(driver.AllocatePinned(4 * sizeof(uint64_t))))),
        tickets_(TakeValue(driver.AllocateDevice(0, 2 * sizeof(uint64_t)))) {
    std::memset(block_, 0, kBlockBytes);
    std::memset(words_, 0, 4 * sizeof(uint64_t));
    CheckStatus(shm::MpscRing::Initialize(layout(), kSlots));
    layout()->completions = kMostThreads;
    layout()->region = 1;
    layout()->completions_offset = shm::MpscRing::SizeBytes(kSlots);
    CheckStatus(driver_.Copy(0, stream_, tickets_, words_, 2 * sizeof(uint64_t)));
    Finish();
    server_ = std::thread([this] { Serve(); });
  }
  ~ServedRing() {
    stop_ = true;
    server_.join();
    driver_.DestroyStream(0, stream_);
    CheckStatus(driver_.Free(gpu::PointerKind::kPinned, block_));
    CheckStatus(driver_.Free(gpu::PointerKind::kPinned, words_));
    CheckStatus(driver_.Free(gpu::PointerKind::kDevice, tickets_));
  }
  ServedRing(const ServedRing&) = delete;
  ServedRing& operator=(const ServedRing&) = delete;

  // Nanoseconds of a launch of so many threads that make `times` requests each.
  double Ask(uint64_t threads, uint64_t times) {
    const std::array<gpu::KernelArgument, 8> arguments = {
        words_, block_, tickets_, uint64_t{0}, uint64_t{0}, threads, times, words_ + 2};
    const double ns = Time(1, [&] {
      CheckStatus(driver_.Launch(0, stream_, gpu::Kernel::kRingAsk, threads, arguments));
      Finish();
    });
    if (words_[2] != 0) {
      CheckStatus({ErrorCode::kCorrupt, "requests were answered with errors"});
    }
    return ns;
  }

 private:
  shm::MpscRingLayout* layout() { return reinterpret_cast<shm::MpscRingLayout*>(block_); }

  void Finish() {
    Status status;
    while ((status = driver_.QueryStream(0, stream_)).code() == ErrorCode::kWouldBlock) {
      std::this_thread::yield();
    }
    CheckStatus(status);
  }

  void Serve() {
    shm::RingConsumer consumer(layout(), kSlots);
    while (!stop_) {
      shm::RingRequest request{};
      uint64_t ticket = 0;
      if (consumer.Take(&request, &ticket)) {
        auto* const completion =
            reinterpret_cast<shm::RingCompletion*>(block_ + request.completion);
        shm::RingConsumer::Answer(completion, ticket, request.value, ErrorCode::kOk);
      } else {
        std::this_thread::yield();
      }
    }
  }

  gpu::Driver& driver_;
  const gpu::NativeStream stream_;
  uint8_t* const block_;
  uint64_t* const words_;  // of the stream's control, then the failures
  void* const tickets_;
  std::atomic<bool> stop_ = false;
  std::thread server_;
};

}  // namespace

void MeasureRings(const config::Options& options, std::string_view backend, int repetitions) {
  const std::unique_ptr<gpu::Driver> driver = OpenDriver(options, backend);
  if (driver == nullptr || !driver->LoadKernels(0).ok()) {
    return;
  }
  ServedRing ring(*driver);
  for (const uint64_t threads : {1, 64, 1024, 4096}) {
    const uint64_t times = kRequests / threads;
    std::vector<double> launch_ns;
    for (int i = -1; i < repetitions; ++i) {
      const double ns = ring.Ask(threads, times);
      if (i >= 0) {
        launch_ns.push_back(ns);
      }
    }
    const double ns = MedianOf(std::move(launch_ns));
    std::printf("ring %" PRIu64 " %.4f %.4f\n", threads, ns / 1e3 / static_cast<double>(times),
                static_cast<double>(threads * times) * 1e3 / ns);
  }
}

}  // namespace ferry::bench
