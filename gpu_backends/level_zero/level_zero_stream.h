// A stream over an immediate command list: Ferry's own, or one of the application's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/level_zero/level_zero_context.h"

namespace ferry::gpu {

// An event of Ferry's, recorded at most once.
struct LevelZeroEvent {
  LevelZeroContext* context = nullptr;
  std::shared_ptr<HeldEvent> held;  // with the streams that refer to it
};

// Thread-safe. The context outlives it.
class LevelZeroStream {
 public:
  // Nothing runs on it any more: steps that were not reached are taken now, since nobody else lets
  // go of their arguments. Or Abandon was called: then the list stays, with its events.
  virtual ~LevelZeroStream() = default;
  LevelZeroStream(const LevelZeroStream&) = delete;
  LevelZeroStream& operator=(const LevelZeroStream&) = delete;

  virtual LevelZeroContext& context() const = 0;

  virtual Status Copy(void* destination, const void* source, uint64_t size_bytes) = 0;
  // append(list) appends a command, now or when its turn has come.
  virtual Status Launch(std::function<Status(ze_command_list_handle_t)> append) = 0;
  virtual Status Record(const LevelZeroEvent& event) = 0;
  virtual Status Wait(const LevelZeroEvent& event) = 0;
  virtual Status WriteWord(uint64_t* word, uint64_t value) = 0;
  virtual Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) = 0;
  // The step runs in a thread of the stream's, which starts with the first one: it may take as long
  // as it likes. After one that returns false nothing behind it ever runs.
  virtual Status EnqueueStep(HostStep step, void* argument) = 0;
  virtual Status Query() = 0;

  // Something in the stream will never end. Ends the thread, after a step in progress, and gives up
  // the rest, the context included.
  virtual void Abandon() = 0;

 protected:
  LevelZeroStream() = default;
};

// Makes a stream of a list that Ferry has made, and will destroy.
//
// Lists of one queue of a device hold each other up: what the one waits for the other may be there
// to do. So the device is given only what it can do without the host: commands behind a step are
// appended when the step has been taken, by the stream's thread, and waits for events when what
// signals the event has been appended.
std::unique_ptr<LevelZeroStream> MakeOwnStream(LevelZeroContext* context,
                                               ze_command_list_handle_t list);

// Makes a stream of a list of the application's, which must append nothing of its own at the same
// time as Ferry, as the specification demands.
//
// What the application appends has to come behind steps too: the device waits for these, as it
// does not in Ferry's own lists.
std::unique_ptr<LevelZeroStream> MakeAdoptedStream(LevelZeroContext* context,
                                                   ze_command_list_handle_t list);

}  // namespace ferry::gpu
