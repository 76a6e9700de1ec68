#include "gpu_backends/level_zero/level_zero_streams.h"

namespace ferry::gpu {

StatusOr<NativeStream> LevelZeroStreams::Make(LevelZeroDevice* device) {
  StatusOr<ze_command_list_handle_t> list = device->CreateList(/*copies=*/true);
  FERRY_RETURN_IF_ERROR(list.status());
  std::unique_ptr<LevelZeroStream> stream = MakeOwnStream(device, *list);
  stream->SetLossesBefore(device->losses());
  const std::unique_lock lock(mutex_);
  streams_[*list].stream = std::move(stream);
  return static_cast<NativeStream>(*list);
}

Status LevelZeroStreams::Adopt(LevelZeroDevice* device, NativeStream list) {
  const std::unique_lock lock(mutex_);
  auto [entry, added] = streams_.try_emplace(list);
  if (added) {
    entry->second.stream =
        MakeAdoptedStream(&device->context(), static_cast<ze_command_list_handle_t>(list));
    entry->second.stream->SetLossesBefore(device->losses());
  } else if (&entry->second.stream->context() != &device->context()) {
    return {ErrorCode::kInvalidArgument,
            "AdoptStream: the command list is known as one of another driver's device"};
  } else {
    ++entry->second.uses;
  }
  return {};
}

void LevelZeroStreams::End(NativeStream list) {
  std::unique_ptr<LevelZeroStream> ended;  // its thread ends outside the lock
  const std::unique_lock lock(mutex_);
  const auto entry = streams_.find(list);
  if (entry != streams_.end() && --entry->second.uses == 0) {
    ended = std::move(entry->second.stream);
    streams_.erase(entry);
  }
}

bool LevelZeroStreams::Abandon() {
  for (auto& [list, entry] : streams_) {
    entry.stream->Abandon();
  }
  return streams_.empty();
}

LevelZeroStream* LevelZeroStreams::Find(NativeStream list) const {
  const std::shared_lock lock(mutex_);
  const auto entry = streams_.find(list);
  return entry == streams_.end() ? nullptr : entry->second.stream.get();
}

}  // namespace ferry::gpu
