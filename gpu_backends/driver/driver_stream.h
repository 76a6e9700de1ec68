// Streams and events of a vendor. The vendor's objects do the work; a StreamState keeps the
// failures and waits that these do not record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "common/status.h"
#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/base/allocation_table.h"
#include "gpu_backends/base/argument_checks.h"
#include "gpu_backends/base/fork_guard.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/driver/move_helper.h"
#include "gpu_backends/driver/page_registrations.h"
#include "gpu_backends/driver/parked_streams.h"
#include "gpu_backends/driver/stream_kernels.h"
#include "gpu_backends/driver/stream_state.h"

namespace ferry::gpu {

// The parts of their backend that streams use; they outlive the streams.
struct StreamSurroundings {
  std::shared_ptr<Driver> driver;
  const ForkGuard& fork_guard;
  const AllocationTable& table;
  const ArgumentChecks& checks;
  const PageRegistrations& registrations;
  ParkedStreams& parked;
  CopyStreams& copies;
  std::shared_ptr<StreamControls> controls;
};

class DriverEvent final : public Event {
 public:
  DriverEvent(const StreamSurroundings& around) : around_(around), body_(new Body) {}
  ~DriverEvent() override;

  Status Query() override;
  Status Synchronize() override;

  // The point last recorded, or null. A wait keeps the point it took.
  std::shared_ptr<Point> Current();
  void SetCurrent(std::shared_ptr<Point> point);
  const Driver* driver() const { return around_.driver.get(); }

 private:
  struct Body {
    std::mutex mutex;
    std::shared_ptr<Point> point;
  };

  const StreamSurroundings& around_;
  std::unique_ptr<Body> body_;  // left alone in a forked child
};

class DriverStream final : public Stream {
 public:
  // `adopted`: the stream is the application's.
  DriverStream(const StreamSurroundings& around, int device, NativeStream native, bool adopted);
  ~DriverStream() override;

  Status CopyAsync(void* destination, const void* source, uint64_t size_bytes) override;
  Status CopyDeviceAsync(void* destination, const void* source, uint64_t size_bytes) override;
  Status CopySpread(const SpreadCopy& copy) override;
  Status Reduce(const Reduction& reduction) override;
  Status RecordEvent(Event* event) override;
  Status WaitEvent(Event* event) override;
  Status WriteValue64(uint64_t* word, uint64_t value) override;
  Status WaitValue64(uint64_t* word, uint64_t value, WaitCondition condition) override;
  Status CopyStrided(const StridedCopy& copy) override;
  Status LaunchMove(const MatchedMove& move) override;
  Status AwaitMove(const MatchedMove& move) override;
  Status LaunchHost(std::function<Status()> function) override;
  Status Query() override;
  Status Synchronize() override;

 private:
  struct Body {
    Body(const StreamSurroundings& around, int device, NativeStream native)
        : state(std::make_shared<StreamState>(around.driver, device, native)),
          kernels(std::make_shared<StreamKernels>(around.driver, device, native, around.controls)),
          helper(std::make_shared<MoveHelper>(around.copies)) {
      state->Keep(kernels);
    }
    const std::shared_ptr<StreamState> state;
    const std::shared_ptr<StreamKernels> kernels;  // with the order held
    const std::shared_ptr<MoveHelper> helper;
    std::mutex order;  // held while an operation is enqueued: places are in the stream's order
  };

  StreamState& state() { return *body_->state; }
  // Enqueues one operation: operation(place), unless the stream has failed.
  template <typename Operation>
  Status Enqueue(Operation&& operation);
  // Copies as one operation, with the order held.
  Status Copy(void* destination, const void* source, uint64_t size_bytes);
  StatusOr<uint64_t> BytesOfMapping(const void* pointer, uint64_t size_bytes) const;
  StatusOr<bool> IsOrdinary(const void* destination, const void* source) const;
  Status Step(std::function<bool()> run);
  Status HostFunction(uint64_t place, std::function<Status()> function);
  Status Write(uint64_t place, uint64_t* word, uint64_t value);
  Status Wait(uint64_t place, const uint64_t* word, uint64_t value, WaitCondition condition);
  StatusOr<std::shared_ptr<Point>> Record(uint64_t place);
  Status Mark(uint64_t place);
  // The means by which words are written and awaited for this stream.
  enum class By { kDevice, kKernel, kStep, kNobody };
  By WritesBy();
  By WaitsBy();
  // Returns true if CPUs reach the word; kInvalidBuffer if they must but do not.
  StatusOr<bool> CpusReach(const uint64_t* word, bool must);
  // Returns true if kernels can move the message: its memory and both ends are this device's, or
  // the host's.
  bool KernelsMove(const MatchedMove& move);
  bool KernelsReachEnds(const MatchedMove& move);
  bool KernelsReach(const void* pointer, uint64_t size_bytes) const;
  bool KernelsReach(const Reduction& reduction) const;
  // Waits until the stream has come to its end. False: it waits for a point or a word that has not
  // come.
  bool Finish();
  // Releases waits that are made by kernels.
  void Abandon();

  const StreamSurroundings& around_;
  const bool adopted_;
  std::unique_ptr<Body> body_;  // left alone in a forked child
};

}  // namespace ferry::gpu
