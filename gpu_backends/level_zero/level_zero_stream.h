// A stream made of an immediate command list.
//
// The commands of a list may overlap: version 1.4 of the specification has no lists that run in
// order. So each command that touches memory stands behind a barrier, which waits for all commands
// before it and holds up all behind it; events are signalled by a barrier, and waits for events
// hold up what is behind them by themselves. A list of the application's gets a barrier behind each
// such command too, for the commands that the application appends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/level_zero/level_zero_context.h"

namespace ferry::gpu {

// An event of Ferry's, recorded at most once.
struct LevelZeroEvent {
  LevelZeroContext* context = nullptr;
  std::shared_ptr<HeldEvent> held;  // with the stream that it is the last mark in
};

// Thread-safe; the application must append nothing of its own at the same time, as the
// specification demands. The context outlives it.
class LevelZeroStream {
 public:
  // `list` is of that context. An adopted one remains the application's.
  LevelZeroStream(LevelZeroContext* context, ze_command_list_handle_t list, bool adopted)
      : context_(context), list_(list), adopted_(adopted) {}
  // Nothing runs on it any more: steps that were not reached are taken now, since nobody else lets
  // go of their arguments. Or Abandon was called: then the list stays, with its events.
  ~LevelZeroStream();
  LevelZeroStream(const LevelZeroStream&) = delete;
  LevelZeroStream& operator=(const LevelZeroStream&) = delete;

  LevelZeroContext& context() const { return *context_; }

  Status Copy(void* destination, const void* source, uint64_t size_bytes);
  Status Record(const LevelZeroEvent& event);
  Status Wait(const LevelZeroEvent& event);
  Status WriteWord(uint64_t* word, uint64_t value);
  Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition);
  // The step runs in a thread of the stream's own, which starts with the first one: it may take as
  // long as it likes. After one that returns false nothing behind it ever runs.
  Status EnqueueStep(HostStep step, void* argument);
  Status Query();

  // Something in the stream will never end. Ends the thread, after a step in progress, and gives up
  // the rest, the context included.
  void Abandon();

 private:
  // Runs in the stream's turn, once the device has signalled `reached` (null: at once), and lets it
  // go on by signalling `passed`.
  struct HostItem {
    ze_event_handle_t reached = nullptr;
    ze_event_handle_t passed = nullptr;
    HostStep step = nullptr;  // null: wait for `foreign` instead, which no device of ours can
    void* argument = nullptr;
    bool taken = false;
    LevelZeroEvent foreign;
  };

  Status BarrierLocked(ze_event_handle_t signal);
  Status MarkLocked(std::shared_ptr<HeldEvent> mark);
  Status EnqueueItemLocked(HostItem item);
  // Appends the signal of one event and the wait for the other.
  Status AppendItemLocked(const HostItem& item);
  Status StartThreadLocked();
  void Main();
  void RunItems();
  // False: the stream ends here.
  bool RunItem(const HostItem& item);
  // Blocks until the event is signalled. False: it never will be, or the stream is given up.
  bool AwaitSignal(ze_event_handle_t event);
  // Of the first item.
  bool TakeStep(const HostItem& item);
  void StopThread();

  LevelZeroContext* const context_;
  const ze_command_list_handle_t list_;
  const bool adopted_;
  bool abandoned_ = false;

  std::mutex mutex_;                 // commands are appended one at a time
  std::shared_ptr<HeldEvent> mark_;  // the last event recorded, or one of Query's
  bool appended_ = false;            // behind the mark, by Ferry

  std::mutex items_mutex_;  // taken after mutex_
  std::condition_variable items_changed_;
  std::deque<HostItem> items_;
  bool stopping_ = false;
  // Of the thread, which nobody joins: it ends by itself where a stream does, long before that is
  // given up.
  bool thread_started_ = false;
  bool thread_runs_ = false;
  std::vector<ze_event_handle_t> passed_;  // the thread's own: the list may still wait for them
};

}  // namespace ferry::gpu
