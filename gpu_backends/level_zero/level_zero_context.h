// A context on one of the Level Zero drivers that the loader knows. It holds what all devices of
// that driver share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/level_zero/level_zero_api.h"
#include "gpu_backends/level_zero/level_zero_events.h"

namespace ferry::gpu {

// Thread-safe, except that commands of one list must not be appended by two threads at once. The
// API outlives it.
class LevelZeroContext {
 public:
  // kUnsupported where the driver's version of the API is not 1.x; else the driver's error.
  static StatusOr<std::unique_ptr<LevelZeroContext>> Open(const LevelZeroApi* api,
                                                          ze_driver_handle_t driver);
  ~LevelZeroContext();
  LevelZeroContext(const LevelZeroContext&) = delete;
  LevelZeroContext& operator=(const LevelZeroContext&) = delete;

  const LevelZeroApi& api() const { return *api_; }
  ze_driver_handle_t driver() const { return driver_; }
  ze_context_handle_t handle() const { return handle_; }
  LevelZeroEvents& events() { return *events_; }
  const std::string& version() const { return version_; }  // the driver's version, for people
  bool has_ipc() const { return has_ipc_; }
  // Returns true if an allocation may be larger than its device's maxMemAllocSize.
  bool has_relaxed_limits() const { return has_relaxed_limits_; }

  // Returns true if the driver has the functions that AppendWrite and AppendWait need, and those
  // that let it reach words in registered memory. A device may still refuse them.
  bool has_words() const {
    return wait_on_memory_ != nullptr && write_to_memory_ != nullptr && has_imports();
  }
  // Returns true if registering makes host memory known to the driver, so that kernels reach it.
  bool has_imports() const { return import_pointer_ != nullptr && release_pointer_ != nullptr; }
  Status AppendWrite(ze_command_list_handle_t list, uint64_t* word, uint64_t value);
  Status AppendWait(ze_command_list_handle_t list, const uint64_t* word, uint64_t value,
                    WaitCondition condition);

  // Registers existing host memory with the driver, so that copies need not pin it each time. Does
  // nothing where the driver cannot: it reaches all host memory, more slowly.
  Status ImportHostMemory(void* pointer, uint64_t size_bytes);
  Status ReleaseHostMemory(void* pointer);

  // Keeps everything until the process ends, since the device still refers to its events or lists.
  void Abandon();

 private:
  LevelZeroContext(const LevelZeroApi* api, ze_driver_handle_t driver)
      : api_(api), driver_(driver) {}
  Status ReadVersion();
  Status ReadProperties();
  void FindExtensions();
  template <typename Function>
  void FindExtension(const char* name, Function* function);

  const LevelZeroApi* const api_;
  const ze_driver_handle_t driver_;
  ze_context_handle_t handle_ = nullptr;
  std::unique_ptr<LevelZeroEvents> events_;
  std::string version_;
  bool has_ipc_ = false;
  bool has_relaxed_limits_ = false;
  bool abandoned_ = false;

  // Extensions are the driver's own functions and take its own handles, not the loader's.
  ze_driver_handle_t own_driver_ = nullptr;
  ZexAppendWaitOnMemory64 wait_on_memory_ = nullptr;
  ZexAppendWriteToMemory write_to_memory_ = nullptr;
  ZexImportExternalPointer import_pointer_ = nullptr;
  ZexReleaseImportedPointer release_pointer_ = nullptr;
};

}  // namespace ferry::gpu
