#include "tests/gpu_backends/vendor_scenario.h"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <utility>

#include "shm/atomic.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kBytes = 100'000;

// Runs step by step and remembers what fails.
class Scenario {
 public:
  explicit Scenario(GpuBackend& backend)
      : backend_(backend),
        ordinary_(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}

  std::vector<Status> Run() {
    Note(backend_.GetDeviceInfo(0).status());
    device_ = Take(backend_.AllocateDevice(0, kBytes));
    pinned_ = Take(backend_.AllocatePinned(kBytes));
    managed_ = Take(backend_.AllocateManaged(0, kBytes));
    Identify();
    Note(backend_.RegisterHostMemory(ordinary_, kBytes));
    if (device_ != nullptr) {
      Note(backend_.ExportIpc(device_).status());
    }
    UseStreams();
    // Memory that the vendor does not release must not come back as other memory.
    if (const Status status = backend_.UnregisterHostMemory(ordinary_); status.ok()) {
      munmap(ordinary_, kBytes);
    } else {
      Note(status);
    }
    for (void* pointer : {device_, pinned_, managed_}) {
      if (pointer != nullptr) {
        Note(backend_.Free(pointer));
      }
    }
    return std::move(failures_);
  }

 private:
  void Note(const Status& status) {
    if (!status.ok()) {
      failures_.push_back(status);
    }
  }
  template <typename T>
  T Take(StatusOr<T> made) {
    Note(made.status());
    return made.ok() ? std::move(*made) : T{};
  }

  void Identify() {
    const int on_stack = 0;
    if (backend_.Identify(&on_stack).kind != PointerKind::kUnknown) {
      Note({ErrorCode::kInternal, "Identify takes the stack for memory of its own"});
    }
    if (device_ != nullptr && backend_.Identify(device_).kind != PointerKind::kDevice) {
      Note({ErrorCode::kInternal, "Identify does not know what was allocated"});
    }
  }

  void UseStreams() {
    const std::unique_ptr<Stream> first = Take(backend_.CreateStream(0));
    const std::unique_ptr<Stream> second = Take(backend_.CreateStream(0));
    const std::unique_ptr<Event> event = Take(backend_.CreateEvent(0));
    if (first == nullptr || second == nullptr || event == nullptr || device_ == nullptr ||
        pinned_ == nullptr) {
      return;
    }
    auto* words = static_cast<uint64_t*>(pinned_);
    std::memset(pinned_, 0, kBytes);
    std::memset(ordinary_, 7, kBytes);
    // Failed operations must not keep the streams waiting, nor a copy from memory that was not
    // registered.
    Note(first->WaitValue64(words, 1, WaitCondition::kGreaterOrEqual));
    Note(first->WriteValue64(words + 1, 2));
    shm::StoreRelease(words[0], 1);
    Note(first->CopyAsync(device_, ordinary_, kBytes));
    Note(first->LaunchHost([] { return Status(); }));
    Note(first->RecordEvent(event.get()));
    Note(second->WaitEvent(event.get()));
    Note(second->CopyAsync(static_cast<std::byte*>(pinned_) + 16, device_, kBytes - 16));
    Note(event->Synchronize());
    Note(second->Synchronize());
    Note(first->Synchronize());
    if (failures_.empty()) {
      Note(CheckResult(words));
    }
  }

  Status CheckResult(const uint64_t* words) const {
    const bool right = words[1] == 2 && std::memcmp(static_cast<std::byte*>(pinned_) + 16,
                                                    ordinary_, kBytes - 16) == 0;
    return right ? Status() : Status(ErrorCode::kInternal, "the bytes did not arrive");
  }

  GpuBackend& backend_;
  void* const ordinary_;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  void* managed_ = nullptr;
  std::vector<Status> failures_;
};

}  // namespace

std::vector<Status> UseEverything(GpuBackend& backend) { return Scenario(backend).Run(); }

bool CallsHost(Stream& stream) {
  bool ran = false;
  const Status enqueued = stream.LaunchHost([&ran] {
    ran = true;
    return Status();
  });
  return enqueued.ok() && stream.Synchronize().ok() && ran;
}

std::string Text(const std::vector<Status>& failures) {
  std::string text;
  for (const Status& failure : failures) {
    text += failure.ToString() + "\n";
  }
  return text;
}

bool Mentions(const std::vector<Status>& failures, std::string_view words) {
  return Text(failures).find(words) != std::string::npos;
}

}  // namespace ferry::gpu
