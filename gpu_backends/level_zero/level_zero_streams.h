// The streams of a Level Zero driver, by the handles of their command lists: Ferry's own, and
// adopted ones.
//
// Any thread. End and Abandon may wait for the streams' threads; nothing else blocks.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/level_zero/level_zero_device.h"
#include "gpu_backends/level_zero/level_zero_stream.h"

namespace ferry::gpu {

class LevelZeroStreams {
 public:
  // Makes a stream of Ferry's own.
  StatusOr<NativeStream> Make(LevelZeroDevice* device);
  // Takes an application's list, which may be adopted several times. Level Zero has no call to
  // identify a list, so any list is accepted. kInvalidArgument: it is known as one of another
  // driver's device.
  Status Adopt(LevelZeroDevice* device, NativeStream list);
  // Ends a stream of Ferry's own, or one adoption of another. Ignores unknown ones.
  void End(NativeStream list);
  // Gives up what is left, with what is enqueued. Returns true if there was nothing. May wait for
  // the streams' threads, whose steps may still ask for streams: so it takes no lock, and no other
  // thread makes or ends streams meanwhile.
  bool Abandon();

  // Returns what `call` returns for that stream. kInvalidArgument: it is none of these.
  template <typename Call>
  Status On(NativeStream list, Call&& call) const {
    LevelZeroStream* const found = Find(list);
    if (found == nullptr) {
      return {ErrorCode::kInvalidArgument, "Level Zero: this command list is none of its streams"};
    }
    return call(*found);
  }

 private:
  struct Entry {
    std::unique_ptr<LevelZeroStream> stream;
    int uses = 1;
  };

  LevelZeroStream* Find(NativeStream list) const;

  mutable std::shared_mutex mutex_;
  std::map<NativeStream, Entry> streams_;
};

}  // namespace ferry::gpu
