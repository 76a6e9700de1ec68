#include "benchmarks/gpu/calls.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "benchmarks/gpu/turns.h"
#include "shm/atomic.h"

namespace ferry::bench {
namespace {

using gpu::PointerKind;

constexpr int kQuick = 256;    // calls in a batch: of queries
constexpr int kEnqueued = 32;  // of operations of streams
constexpr int kSlow = 4;
constexpr uint64_t kCopyBytes = 64;
constexpr uint64_t kAllocationBytes = 1ULL << 20;
constexpr size_t kPageBytes = 4096;
constexpr size_t kGateAt = 16;  // words behind the first

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

class Calls {
 public:
  Calls(gpu::GpuBackend& backend, BareGpu* bare, int repetitions)
      : backend_(backend),
        bare_(bare),
        repetitions_(repetitions),
        stream_(TakeValue(backend.CreateStream(0))),
        other_stream_(TakeValue(backend.CreateStream(0))),
        event_(TakeValue(backend.CreateEvent(0))),
        memory_(TakeValue(backend.AllocateDevice(0, kAllocationBytes))),
        target_(TakeValue(backend.AllocateDevice(0, kAllocationBytes))),
        word_(static_cast<uint64_t*>(TakeValue(backend.AllocatePinned(kPageBytes)))),
        gate_(word_ + kGateAt),
        host_(std::aligned_alloc(kPageBytes, kAllocationBytes)) {
    *word_ = 0;
    *gate_ = 0;
    if (bare_ != nullptr) {
      bare_memory_ = bare_->Allocate(PointerKind::kDevice, kAllocationBytes);
      bare_target_ = bare_->Allocate(PointerKind::kDevice, kAllocationBytes);
      bare_word_ = static_cast<uint64_t*>(bare_->Allocate(PointerKind::kPinned, kPageBytes));
      *bare_word_ = 0;
    }
  }
  ~Calls() {
    Drain();
    CheckStatus(backend_.Free(memory_));
    CheckStatus(backend_.Free(target_));
    CheckStatus(backend_.Free(word_));
    if (bare_ != nullptr) {
      bare_->Free(PointerKind::kDevice, bare_memory_);
      bare_->Free(PointerKind::kDevice, bare_target_);
      bare_->Free(PointerKind::kPinned, bare_word_);
    }
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void MeasurePointers() {
    const void* unknown = host_.get();
    Measure(
        "Identify, own memory", GpuCall::kIdentify, kQuick,
        [&] { (void)backend_.Identify(memory_); }, [&] { bare_->Identify(bare_memory_); });
    Measure(
        "Identify, the vendor's memory", GpuCall::kIdentify, kQuick,
        [&] { (void)backend_.Identify(bare_memory_ == nullptr ? memory_ : bare_memory_); },
        [&] { bare_->Identify(bare_memory_); });
    Measure(
        "Identify, heap", GpuCall::kIdentify, kQuick, [&] { (void)backend_.Identify(unknown); },
        [&] { bare_->Identify(unknown); });
  }

  void MeasureStreams() {
    Measure(
        "CopyAsync, 64 B on the device", GpuCall::kCopy, kEnqueued,
        [&] { CheckStatus(stream_->CopyAsync(target_, memory_, kCopyBytes)); },
        [&] { bare_->Copy(bare_target_, bare_memory_, kCopyBytes); });
    Measure(
        "RecordEvent", GpuCall::kRecordEvent, kEnqueued,
        [&] { CheckStatus(stream_->RecordEvent(event_.get())); }, [&] { bare_->RecordEvent(); });
    Measure(
        "WaitEvent", GpuCall::kWaitEvent, kEnqueued,
        [&] { CheckStatus(other_stream_->WaitEvent(event_.get())); }, [&] { bare_->WaitEvent(); });
    Measure(
        "Event::Query", GpuCall::kQueryEvent, kQuick, [&] { (void)event_->Query(); },
        [&] { bare_->QueryEvent(); });
    Measure(
        "Stream::Query", GpuCall::kQueryStream, kQuick, [&] { (void)stream_->Query(); },
        [&] { bare_->QueryStream(); });
    Measure(
        "WriteValue64", GpuCall::kWriteWord, kEnqueued,
        [&] { CheckStatus(stream_->WriteValue64(word_, 1)); },
        [&] { bare_->WriteWord(bare_word_, 1); });
    Measure(
        "WaitValue64", GpuCall::kWaitWord, kEnqueued,
        [&] { CheckStatus(stream_->WaitValue64(word_, 0, gpu::WaitCondition::kGreaterOrEqual)); },
        [&] { bare_->WaitWord(bare_word_, 0); });
  }

  void MeasureMemory(const gpu::IpcHandle& imported) {
    Measure(
        "AllocateDevice, Free, 1 MiB", GpuCall::kAllocate, kSlow,
        [&] {
          CheckStatus(backend_.Free(TakeValue(backend_.AllocateDevice(0, kAllocationBytes))));
        },
        [&] {
          bare_->Free(PointerKind::kDevice,
                      bare_->Allocate(PointerKind::kDevice, kAllocationBytes));
        });
    Measure(
        "ExportIpc", GpuCall::kExport, kSlow, [&] { TakeValue(backend_.ExportIpc(memory_)); },
        [&] { bare_->Export(bare_memory_); });
    Measure(
        "ImportIpc, CloseIpc", GpuCall::kImport, kSlow,
        [&] { CheckStatus(backend_.CloseIpc(TakeValue(backend_.ImportIpc(imported)))); },
        [&] { bare_->CloseImport(bare_->Import(imported)); });
    Measure(
        "RegisterHostMemory, Unregister..., 1 MiB", GpuCall::kRegister, kSlow,
        [&] {
          CheckStatus(backend_.RegisterHostMemory(host_.get(), kAllocationBytes));
          CheckStatus(backend_.UnregisterHostMemory(host_.get()));
        },
        [&] {
          bare_->Register(host_.get(), kAllocationBytes);
          bare_->Unregister(host_.get());
        });
  }

 private:
  // Lets both streams wait: the time to enqueue is measured, not that until a stream begins to run.
  void Hold() {
    ++gate_value_;
    for (gpu::Stream* stream : {stream_.get(), other_stream_.get()}) {
      const Status held =
          stream->WaitValue64(gate_, gate_value_, gpu::WaitCondition::kGreaterOrEqual);
      if (held.code() != ErrorCode::kUnsupported) {
        CheckStatus(held);
      }
    }
  }
  // Pairs with the streams' wait.
  void Release() { shm::StoreRelease(*gate_, gate_value_); }

  // Everything that a batch has enqueued runs before the next one.
  void Drain() {
    CheckStatus(stream_->Synchronize());
    CheckStatus(other_stream_->Synchronize());
    if (bare_ != nullptr) {
      bare_->Wait();
    }
  }

  template <typename Ferry, typename Bare>
  void Measure(const char* name, GpuCall call, int batch, Ferry&& ferry, Bare&& bare) {
    const char* vendors = bare_ == nullptr ? nullptr : bare_->NameOf(call);
    const TurnTimes times = MeasureByTurns(
        repetitions_, vendors != nullptr,
        [&] {
          if (batch == kEnqueued) {
            Hold();
          }
          const double ns = Time(batch, ferry);
          Release();
          Drain();
          return ns;
        },
        [&] {
          const bool held = batch == kEnqueued && bare_->Hold();
          const double ns = Time(batch, bare);
          if (held) {
            bare_->Release();
          }
          Drain();
          return ns;
        });
    std::printf("call|%s|%s|%.1f|", name, vendors == nullptr ? "-" : vendors, times.ferry_ns);
    vendors == nullptr ? std::printf("-\n") : std::printf("%.1f\n", times.bare_ns);
  }

  gpu::GpuBackend& backend_;
  BareGpu* const bare_;
  const int repetitions_;
  const std::unique_ptr<gpu::Stream> stream_;
  const std::unique_ptr<gpu::Stream> other_stream_;
  const std::unique_ptr<gpu::Event> event_;
  void* const memory_;
  void* const target_;
  uint64_t* const word_;
  uint64_t* const gate_;  // what held streams wait for
  uint64_t gate_value_ = 0;
  const std::unique_ptr<void, FreeDeleter> host_;
  void* bare_memory_ = nullptr;
  void* bare_target_ = nullptr;
  uint64_t* bare_word_ = nullptr;
};

}  // namespace

void MeasureCalls(gpu::GpuBackend& backend, BareGpu* bare, const gpu::IpcHandle& imported,
                  int repetitions) {
  Calls calls(backend, bare, repetitions);
  calls.MeasurePointers();
  calls.MeasureStreams();
  calls.MeasureMemory(imported);
}

}  // namespace ferry::bench
