// A GPU backend beside the bare calls of the vendor's library, in the same run and by turns.
//
//   gpu info|copies|calls|kernels|rings|bare_ping_pong REPETITIONS
//
// on device 0 of the backend that FERRY_GPU_BACKEND and the other options name. info says which
// that is, in a line "gpu BACKEND|VERSION|DEVICE", and reads no repetitions. bare_ping_pong needs
// no backend of Ferry's: two processes write to each other's device memory by the vendor's copies
// and tell of it by a flag in shared memory; it prints "bare_ping_pong SIZE MICROSECONDS" one way.
// The lines of the others: copies.h, calls.h, rings.h.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/gpu/bare_gpu.h"
#include "benchmarks/gpu/calls.h"
#include "benchmarks/gpu/copies.h"
#include "benchmarks/gpu/kernels.h"
#include "benchmarks/gpu/peers.h"
#include "benchmarks/gpu/rings.h"
#include "benchmarks/gpu/turns.h"
#include "config/environment.h"
#include "gpu_backends/loader/loader.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

constexpr uint64_t kLargestBytes = 4ULL << 20;
constexpr uint64_t kExportedBytes = 1ULL << 20;
constexpr int kRounds = 8;  // of one batch of the ping-pong

config::Options ReadOptions() {
  return TakeValue(config::OptionsFromEnvironment(config::ProcessEnvironment()));
}

void PrintInfo() {
  const auto backend = TakeValue(gpu::OpenBackend(ReadOptions()));
  const gpu::DeviceInfo info = TakeValue(backend->GetDeviceInfo(0));
  std::printf("gpu %s|%s|%s\n", std::string(backend->name()).c_str(), backend->version().c_str(),
              info.name.c_str());
}

// Null, with a note on standard error, where there is nothing to compare with.
std::unique_ptr<BareGpu> OpenPeer(const gpu::GpuBackend& backend, const config::Options& options) {
  StatusOr<std::unique_ptr<BareGpu>> bare = OpenBareGpu(backend.name(), options);
  if (!bare.ok()) {
    std::fprintf(stderr, "gpu: without bare calls: %s\n", bare.status().ToString().c_str());
    return nullptr;
  }
  return std::move(*bare);
}

void RunCopies(int repetitions) {
  const config::Options options = ReadOptions();
  const auto backend = TakeValue(gpu::OpenBackend(options));
  const std::unique_ptr<BareGpu> bare = OpenPeer(*backend, options);
  MeasureCopies(*backend, bare.get(), repetitions);
}

void RunKernels(int repetitions) {
  const auto backend = TakeValue(gpu::OpenBackend(ReadOptions()));
  MeasureKernels(*backend, repetitions);
}

// The child exports memory, which the parent imports.
void RunCalls(int repetitions) {
  PeerProcess peer = PeerProcess::Fork();
  const config::Options options = ReadOptions();
  const auto backend = TakeValue(gpu::OpenBackend(options));
  if (peer.is_child()) {
    void* memory = TakeValue(backend->AllocateDevice(0, kExportedBytes));
    peer.Send(TakeValue(backend->ExportIpc(memory)));
    (void)peer.Receive();  // asleep until the parent has measured
    CheckStatus(backend->Free(memory));
    return;
  }
  const std::unique_ptr<BareGpu> bare = OpenPeer(*backend, options);
  MeasureCalls(*backend, bare.get(), peer.Receive(), repetitions);
  peer.Send({});
}

class BarePingPong {
 public:
  BarePingPong(PeerProcess& peer, BareGpu& bare)
      : peer_(peer),
        bare_(bare),
        own_(bare.Allocate(PointerKind::kDevice, kLargestBytes)),
        staging_(static_cast<uint8_t*>(bare.Allocate(PointerKind::kPinned, kLargestBytes))) {
    peer_.Send(bare_.Export(own_));
    theirs_ = bare_.Import(peer_.Receive());
    for (uint64_t i = 0; i < kLargestBytes; ++i) {
      staging_[i] = peer_.is_child() ? 0 : Pattern(i);
    }
    bare_.Copy(own_, staging_, kLargestBytes);
    bare_.Wait();
    Meet();
  }
  ~BarePingPong() {
    Meet();  // neither process writes any more
    bare_.CloseImport(theirs_);
    bare_.Free(PointerKind::kDevice, own_);
    bare_.Free(PointerKind::kPinned, staging_);
  }
  BarePingPong(const BarePingPong&) = delete;
  BarePingPong& operator=(const BarePingPong&) = delete;

  void Measure(uint64_t size_bytes, int repetitions) {
    std::vector<double> one_way_ns;
    for (int i = -1; i < repetitions; ++i) {
      const double ns = Time(kRounds, [&] { Round(size_bytes); }) / 2;
      if (i >= 0) {
        one_way_ns.push_back(ns);
      }
    }
    if (!peer_.is_child()) {
      std::printf("bare_ping_pong %" PRIu64 " %.4f\n", size_bytes,
                  MedianOf(std::move(one_way_ns)) / 1e3);
    }
  }

  // The parent's bytes have been in the child's memory, and come from there now.
  void CheckBytes() {
    if (peer_.is_child()) {
      return;
    }
    bare_.Copy(staging_, own_, kLargestBytes);
    bare_.Wait();
    for (uint64_t i = 0; i < kLargestBytes; ++i) {
      if (staging_[i] != Pattern(i)) {
        CheckStatus({ErrorCode::kCorrupt, "what came back is not what was sent"});
      }
    }
  }

 private:
  static uint8_t Pattern(uint64_t i) { return static_cast<uint8_t>(i + (i >> 8) + 1); }

  void Push(uint64_t size_bytes) {
    bare_.Copy(theirs_, own_, size_bytes);
    bare_.Wait();
    peer_.Signal(turn_);
  }
  void Round(uint64_t size_bytes) {
    ++turn_;
    if (peer_.is_child()) {
      peer_.Await(turn_);
      Push(size_bytes);
    } else {
      Push(size_bytes);
      peer_.Await(turn_);
    }
  }
  void Meet() {
    peer_.Signal(++turn_);
    peer_.Await(turn_);
  }

  PeerProcess& peer_;
  BareGpu& bare_;
  void* const own_;
  void* theirs_ = nullptr;
  uint8_t* const staging_;
  uint64_t turn_ = 0;
};

void RunBarePingPong(int repetitions) {
  PeerProcess peer = PeerProcess::Fork();
  const config::Options options = ReadOptions();
  const auto bare = TakeValue(OpenBareGpu(options.gpu_backend, options));
  BarePingPong ping_pong(peer, *bare);
  for (uint64_t size_bytes = 1; size_bytes <= kLargestBytes; size_bytes *= 4) {
    ping_pong.Measure(size_bytes, repetitions);
  }
  ping_pong.CheckBytes();
}

int Main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const int repetitions = argc == 3 ? std::atoi(argv[2]) : 0;
  if (mode == "info" && argc == 2) {
    PrintInfo();
  } else if (mode == "copies" && repetitions > 0) {
    RunCopies(repetitions);
  } else if (mode == "calls" && repetitions > 0) {
    RunCalls(repetitions);
  } else if (mode == "kernels" && repetitions > 0) {
    RunKernels(repetitions);
  } else if (mode == "rings" && repetitions > 0) {
    const config::Options options = ReadOptions();
    MeasureRings(options, TakeValue(gpu::OpenBackend(options))->name(), repetitions);
  } else if (mode == "bare_ping_pong" && repetitions > 0) {
    RunBarePingPong(repetitions);
  } else {
    std::fprintf(stderr,
                 "usage: gpu info | gpu copies|calls|kernels|rings|bare_ping_pong REPETITIONS\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace ferry::bench

int main(int argc, char** argv) { return ferry::bench::Main(argc, argv); }
