// The operations that a stream does by Ferry's own kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// The words by which the host reaches the kernels of streams (gpu_backends/device/control.h): lines
// of pinned memory, since an allocation for each stream would take a page or more.
//
// Thread-safe. Must outlive the work on the streams.
class StreamControls : public std::enable_shared_from_this<StreamControls> {
 public:
  explicit StreamControls(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  ~StreamControls();
  StreamControls(const StreamControls&) = delete;
  StreamControls& operator=(const StreamControls&) = delete;

  // Returns a line of zeroes. It is given back when the last copy of the pointer is gone; the
  // pointer keeps this object alive. Errors as for AllocatePinned.
  StatusOr<std::shared_ptr<uint64_t>> Take();

 private:
  void Give(uint64_t* line);

  const std::shared_ptr<Driver> driver_;
  std::mutex mutex_;
  std::vector<void*> blocks_;
  std::vector<uint64_t*> free_;
};

// The stream's owner makes one call at a time. The object must live until the stream has no work
// any more.
class StreamKernels {
 public:
  StreamKernels(std::shared_ptr<Driver> driver, int device, NativeStream stream,
                std::shared_ptr<StreamControls> controls)
      : driver_(std::move(driver)),
        device_(device),
        stream_(stream),
        controls_(std::move(controls)) {}

  // Loads the device's kernels if need be: may block as Driver::LoadKernels does. kOk: the stream
  // can launch kernels; else why not.
  Status Prepare();
  // Return true if the device's kernels can do that. Only after Prepare has returned kOk.
  bool write_words() const { return powers_.host_words; }
  bool wait_for_words() const { return powers_.host_words && powers_.may_wait; }
  bool move_messages() const { return powers_.host_words && powers_.host_atomics; }

  // Each call enqueues kernels. Prepare has said kOk; the device reaches the words and memory.
  Status WriteWord(uint64_t* word, uint64_t value);
  Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition);
  Status CopyStrided(const StridedCopy& copy);
  Status CopySpread(const SpreadCopy& copy);
  // The operation must be defined for the type. kUnsupported: the device lacks such numbers.
  Status Reduce(const Reduction& reduction);
  // As Stream::LaunchMove.
  Status LaunchMove(const MatchedMove& move);
  // Enqueues a kernel, behind the wait for a round, that closes the pair if the round has failed.
  Status CloseFailedPair(const MatchedMove& move);
  // Launches any kernel; puts its first argument, the stream's control words, in front.
  Status Launch(Kernel kernel, uint64_t threads, std::initializer_list<KernelArgument> arguments) {
    return Launch(kernel, threads, std::span(arguments.begin(), arguments.size()));
  }
  Status Launch(Kernel kernel, uint64_t threads, std::span<const KernelArgument> arguments);

  // Returns true if any kernels have been launched that Abandon would affect.
  bool in_use() const { return control_ != nullptr; }
  // Abandons the stream for good: kernels that wait end, and those behind them do nothing.
  void Abandon();

 private:
  const std::shared_ptr<Driver> driver_;
  const int device_;
  const NativeStream stream_;
  const std::shared_ptr<StreamControls> controls_;
  std::shared_ptr<uint64_t> control_;
  KernelPowers powers_;
};

}  // namespace ferry::gpu
