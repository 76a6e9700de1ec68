// A stream over an immediate command list: Ferry's own, or one of the application's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/level_zero/level_zero_context.h"
#include "gpu_backends/level_zero/level_zero_device.h"

namespace ferry::gpu {

// An event of Ferry's, recorded at most once.
struct LevelZeroEvent {
  LevelZeroContext* context = nullptr;
  std::shared_ptr<HeldEvent> held;  // shared with the streams that refer to it
};

// Thread-safe. The context outlives it.
class LevelZeroStream {
 public:
  // Call it once nothing runs on the stream any more: takes the steps that were not reached, since
  // only a step frees its argument. If Abandon was called, the list stays, with its events.
  virtual ~LevelZeroStream() = default;
  LevelZeroStream(const LevelZeroStream&) = delete;
  LevelZeroStream& operator=(const LevelZeroStream&) = delete;

  virtual LevelZeroContext& context() const = 0;

  virtual Status Copy(void* destination, const void* source, uint64_t size_bytes) = 0;
  // Appends a command by append(list), now or when its turn has come.
  virtual Status Launch(std::function<Status(ze_command_list_handle_t)> append) = 0;
  virtual Status Record(const LevelZeroEvent& event) = 0;
  virtual Status Wait(const LevelZeroEvent& event) = 0;
  virtual Status WriteWord(uint64_t* word, uint64_t value) = 0;
  virtual Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) = 0;
  // The step runs in a thread of the stream's, which starts with the first step, and may take as
  // long as it likes. After a step that returns false nothing behind it ever runs.
  virtual Status EnqueueStep(HostStep step, void* argument) = 0;
  virtual Status Query() = 0;
  // LevelZeroDevice::losses of its device when it was made.
  void SetLossesBefore(uint64_t losses) { losses_before_ = losses; }
  uint64_t losses_before() const { return losses_before_; }

  // For a stream with an operation that will never end. Ends the thread, after a step in progress,
  // and abandons the rest, the context included.
  virtual void Abandon() = 0;

 protected:
  LevelZeroStream() = default;

 private:
  uint64_t losses_before_ = 0;
};

// Makes a stream of a list that Ferry made and will destroy: by LevelZeroDevice::CreateList(true),
// of that device. While the stream only copies, it stays on the copy engine, if there is one. Its
// first command of another kind makes a second list, on which the stream goes on once all copies
// are done.
//
// Lists of one queue of a device hold each other up: one may wait for work in the other. So the
// device is given only work that it can do without the host. The stream's thread appends commands
// behind a step once the step has been taken, and waits for events once the command that signals
// the event has been appended.
std::unique_ptr<LevelZeroStream> MakeOwnStream(LevelZeroDevice* device,
                                               ze_command_list_handle_t list);

// Makes a stream of a list of the application's, which must append nothing of its own at the same
// time as Ferry, as the specification demands.
//
// The application's own commands must come behind steps, too; so here, unlike in Ferry's own lists,
// the device waits for steps.
std::unique_ptr<LevelZeroStream> MakeAdoptedStream(LevelZeroContext* context,
                                                   ze_command_list_handle_t list);

}  // namespace ferry::gpu
