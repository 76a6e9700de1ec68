// The commands that streams append to an immediate command list.
//
// The commands of a list may overlap: version 1.4 of the specification has no lists that run in
// order. So each command that touches memory stands behind a barrier, which waits for all commands
// before it and holds up all behind it; events are signalled by a barrier, and waits for events
// hold up what is behind them by themselves. A list of the application's also gets a barrier behind
// each such command, for the commands that the application appends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/level_zero/level_zero_context.h"

namespace ferry::gpu {

// One thread at a time. The context outlives it.
class LevelZeroList {
 public:
  // `list` belongs to that context. An adopted one is the application's.
  LevelZeroList(LevelZeroContext* context, ze_command_list_handle_t list, bool adopted)
      : context_(context), list_(list), adopted_(adopted) {}
  LevelZeroList(const LevelZeroList&) = delete;
  LevelZeroList& operator=(const LevelZeroList&) = delete;

  LevelZeroContext& context() const { return *context_; }

  Status Copy(void* destination, const void* source, uint64_t size_bytes);
  // Appends a command by append(list).
  Status Launch(const std::function<Status(ze_command_list_handle_t)>& append);
  // Signals the event once everything before is done.
  Status Mark(std::shared_ptr<HeldEvent> event);
  Status Wait(ze_event_handle_t event);
  Status WriteWord(uint64_t* word, uint64_t value);
  Status WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition);

  // Returns kOk once all appended commands are done, else kWouldBlock. May append a mark.
  Status Query();
  // Returns the last mark, if nothing was appended behind it; otherwise appends a new one. Null:
  // nothing was ever appended.
  StatusOr<std::shared_ptr<HeldEvent>> LastMark();
  // Destroys the list; nothing may run on it any more.
  void Destroy();

 private:
  Status Barrier(ze_event_handle_t signal);

  LevelZeroContext* const context_;
  const ze_command_list_handle_t list_;
  const bool adopted_;
  std::shared_ptr<HeldEvent> mark_;  // the last one
  bool appended_ = false;            // Ferry has appended behind the mark
};

}  // namespace ferry::gpu
