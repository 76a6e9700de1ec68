// Level Zero's events, out of pools that grow.
#pragma once

#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/level_zero/level_zero_api.h"

namespace ferry::gpu {

// Of one context, visible to the host and to all its devices. Thread-safe. The API and the context
// outlive it.
class LevelZeroEvents {
 public:
  LevelZeroEvents(const LevelZeroApi* api, ze_context_handle_t context)
      : api_(api), context_(context) {}
  // Destroys all of them, released or not, unless Abandon was called.
  ~LevelZeroEvents();
  LevelZeroEvents(const LevelZeroEvents&) = delete;
  LevelZeroEvents& operator=(const LevelZeroEvents&) = delete;

  // One that is not signalled. May make a pool.
  StatusOr<ze_event_handle_t> Acquire();
  // Nothing refers to it any more: no command list, no thread.
  void Release(ze_event_handle_t event);
  // The device still refers to some: they stay until the process ends.
  void Abandon();

 private:
  Status CreateLocked(ze_event_handle_t* event);

  const LevelZeroApi* const api_;
  const ze_context_handle_t context_;

  std::mutex mutex_;
  std::vector<ze_event_pool_handle_t> pools_;
  uint32_t created_in_last_ = 0;  // of the last pool's events
  std::vector<ze_event_handle_t> events_;
  std::vector<ze_event_handle_t> free_;
  bool abandoned_ = false;
};

}  // namespace ferry::gpu
