#include "gpu_backends/driver/parked_streams.h"

#include <algorithm>
#include <utility>

namespace ferry::gpu {

void ParkedStreams::Watch(const std::shared_ptr<StreamState>& stream) {
  std::lock_guard lock(mutex_);
  std::erase_if(live_, [](const std::weak_ptr<StreamState>& known) { return known.expired(); });
  live_.push_back(stream);
}

void ParkedStreams::Park(std::shared_ptr<StreamState> stream) {
  std::lock_guard lock(mutex_);
  parked_.push_back(std::move(stream));
}

bool ParkedStreams::Sweep() {
  std::lock_guard lock(mutex_);
  return SweepLocked();
}

bool ParkedStreams::SweepLocked() {
  const auto works = [this](const StreamState& stream) {
    return driver_.QueryStream(stream.device(), stream.native()).code() == ErrorCode::kWouldBlock;
  };
  std::erase_if(parked_, [&](const std::shared_ptr<StreamState>& stream) {
    if (works(*stream)) {
      return false;
    }
    stream->Drained();
    driver_.DestroyStream(stream->device(), stream->native());
    return true;
  });
  const bool failed_works =
      std::any_of(live_.begin(), live_.end(), [&](const std::weak_ptr<StreamState>& known) {
        const std::shared_ptr<StreamState> stream = known.lock();
        return stream != nullptr && !stream->closed() && !stream->Failure().ok() && works(*stream);
      });
  if (!parked_.empty() || failed_works) {
    return false;
  }
  for (const std::function<Status()>& release : std::exchange(kept_, {})) {
    (void)release();
  }
  return true;
}

Status ParkedStreams::Release(std::function<Status()> release) {
  std::lock_guard lock(mutex_);
  if (SweepLocked()) {
    return release();
  }
  kept_.push_back(std::move(release));
  return {};
}

}  // namespace ferry::gpu
