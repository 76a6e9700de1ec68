#include "benchmarks/gpu/copies.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

#include "benchmarks/gpu/turns.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

constexpr uint64_t kLargestBytes = 4ULL << 20;
constexpr int kWindow = 16;

// The other end of copies from and to the device.
struct OtherEnd {
  const char* name;
  PointerKind kind;
};
constexpr OtherEnd kOtherEnds[] = {{"pageable", PointerKind::kUnknown},
                                   {"pinned", PointerKind::kPinned},
                                   {"managed", PointerKind::kManaged},
                                   {"device", PointerKind::kDevice}};

// Two buffers that Ferry's backend knows, and two that the vendor alone does.
struct Buffers {
  void* device = nullptr;
  void* other = nullptr;
};

void* AllocateByFerry(gpu::GpuBackend& backend, PointerKind kind) {
  return TakeValue(kind == PointerKind::kPinned    ? backend.AllocatePinned(kLargestBytes)
                   : kind == PointerKind::kManaged ? backend.AllocateManaged(0, kLargestBytes)
                                                   : backend.AllocateDevice(0, kLargestBytes));
}

void PrintFigure(double figure) { figure > 0 ? std::printf(" %.4f", figure) : std::printf(" -"); }

class Copies {
 public:
  Copies(gpu::GpuBackend& backend, BareGpu* bare, int repetitions)
      : backend_(backend),
        bare_(bare),
        repetitions_(repetitions),
        stream_(TakeValue(backend.CreateStream(0))) {}

  void Measure(const OtherEnd& end) {
    std::vector<std::byte> pageable[2];
    Buffers by_ferry{AllocateByFerry(backend_, PointerKind::kDevice), nullptr};
    Buffers by_vendor;
    if (bare_ != nullptr) {
      by_vendor.device = bare_->Allocate(PointerKind::kDevice, kLargestBytes);
    }
    if (end.kind == PointerKind::kUnknown) {
      for (std::vector<std::byte>& memory : pageable) {
        memory.resize(kLargestBytes);
      }
      by_ferry.other = pageable[0].data();
      by_vendor.other = pageable[1].data();
    } else {
      by_ferry.other = AllocateByFerry(backend_, end.kind);
      by_vendor.other = bare_ == nullptr ? nullptr : bare_->Allocate(end.kind, kLargestBytes);
    }
    CheckBytes(by_ferry);
    for (uint64_t size_bytes = 1; size_bytes <= kLargestBytes; size_bytes *= 4) {
      if (end.kind == PointerKind::kDevice) {
        Line("d2d", end.name, size_bytes, by_ferry.other, by_ferry.device, by_vendor.other,
             by_vendor.device);
        continue;
      }
      Line("d2h", end.name, size_bytes, by_ferry.other, by_ferry.device, by_vendor.other,
           by_vendor.device);
      Line("h2d", end.name, size_bytes, by_ferry.device, by_ferry.other, by_vendor.device,
           by_vendor.other);
    }
    Release(end.kind, by_ferry, by_vendor);
  }

 private:
  void Release(PointerKind kind, const Buffers& by_ferry, const Buffers& by_vendor) {
    CheckStatus(backend_.Free(by_ferry.device));
    if (kind != PointerKind::kUnknown) {
      CheckStatus(backend_.Free(by_ferry.other));
    }
    if (bare_ != nullptr) {
      bare_->Free(PointerKind::kDevice, by_vendor.device);
      if (kind != PointerKind::kUnknown) {
        bare_->Free(kind, by_vendor.other);
      }
    }
  }

  void Move(void* destination, const void* source, uint64_t size_bytes) {
    CheckStatus(stream_->CopyAsync(destination, source, size_bytes));
  }

  // The measured copies must move bytes: there and back, through both buffers.
  void CheckBytes(const Buffers& buffers) {
    std::vector<std::byte> sent(kLargestBytes);
    for (uint64_t i = 0; i < kLargestBytes; ++i) {
      sent[i] = static_cast<std::byte>(i + (i >> 8) + 1);
    }
    std::vector<std::byte> received(kLargestBytes);
    Move(buffers.other, sent.data(), kLargestBytes);
    Move(buffers.device, buffers.other, kLargestBytes);
    Move(received.data(), buffers.device, kLargestBytes);
    CheckStatus(stream_->Synchronize());
    if (received != sent) {
      CheckStatus({ErrorCode::kCorrupt, "what came back is not what was copied"});
    }
  }

  TurnTimes Window(int copies, uint64_t size_bytes, void* to, const void* from, void* bare_to,
                   const void* bare_from) {
    return MeasureByTurns(
        repetitions_, bare_ != nullptr,
        [&] {
          return Time(1, [&] {
            for (int i = 0; i < copies; ++i) {
              Move(to, from, size_bytes);
            }
            CheckStatus(stream_->Synchronize());
          });
        },
        [&] {
          return Time(1, [&] {
            for (int i = 0; i < copies; ++i) {
              bare_->Copy(bare_to, bare_from, size_bytes);
            }
            bare_->Wait();
          });
        });
  }

  void Line(const char* direction, const char* memory, uint64_t size_bytes, void* to,
            const void* from, void* bare_to, const void* bare_from) {
    const TurnTimes one = Window(1, size_bytes, to, from, bare_to, bare_from);
    const TurnTimes many = Window(kWindow, size_bytes, to, from, bare_to, bare_from);
    const double moved = static_cast<double>(size_bytes) * kWindow;
    std::printf("copy %s %s %" PRIu64, direction, memory, size_bytes);
    PrintFigure(one.ferry_ns / 1e3);
    PrintFigure(one.bare_ns / 1e3);
    PrintFigure(moved * 1e3 / many.ferry_ns);
    PrintFigure(many.bare_ns > 0 ? moved * 1e3 / many.bare_ns : 0);
    std::printf("\n");
  }

  gpu::GpuBackend& backend_;
  BareGpu* const bare_;
  const int repetitions_;
  const std::unique_ptr<gpu::Stream> stream_;
};

}  // namespace

void MeasureCopies(gpu::GpuBackend& backend, BareGpu* bare, int repetitions) {
  const bool has_managed = TakeValue(backend.GetDeviceInfo(0)).managed;
  Copies copies(backend, bare, repetitions);
  for (const OtherEnd& end : kOtherEnds) {
    if (end.kind != PointerKind::kManaged || has_managed) {
      copies.Measure(end);
    }
  }
}

}  // namespace ferry::bench
