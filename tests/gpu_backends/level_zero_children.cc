#include "tests/gpu_backends/level_zero_children.h"

#include <dlfcn.h>
#include <level_zero/ze_api.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "common/hex_text.h"
#include "common/own_program.h"
#include "gpu_backends/level_zero/level_zero_backend.h"
#include "shm/atomic.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kSize = 100'000;
constexpr char kRoleFlag[] = "--ferry-level-zero-child";
constexpr auto kAtLeast = WaitCondition::kGreaterOrEqual;

std::string Describe(GpuBackend& backend) {
  StatusOr<DeviceInfo> info = backend.GetDeviceInfo(0);
  if (!info.ok()) {
    return info.status().ToString();
  }
  return info->name + ", words by " +
         (info->stream_words == StreamWords::kNative ? "the device" : "a helper");
}

// The first thing that went wrong; empty if nothing did.
std::string First(std::initializer_list<Status> statuses) {
  for (const Status& status : statuses) {
    if (!status.ok()) {
      return status.ToString();
    }
  }
  return "";
}

// Bytes go to the first driver's device and back, and then to the second's and back; the second
// waits for an event of the first's, and both for a word.
std::string UseTwoDrivers(GpuBackend& backend) {
  if (backend.device_count() != 2) {
    return "there are " + std::to_string(backend.device_count()) + " devices";
  }
  StatusOr<void*> first = backend.AllocateDevice(0, kSize);
  StatusOr<void*> second = backend.AllocateDevice(1, kSize);
  StatusOr<void*> word = backend.AllocatePinned(16);
  StatusOr<std::unique_ptr<Stream>> on_first = backend.CreateStream(0);
  StatusOr<std::unique_ptr<Stream>> on_second = backend.CreateStream(1);
  StatusOr<std::unique_ptr<Event>> event = backend.CreateEvent(0);
  for (const Status& status : {first.status(), second.status(), word.status(), on_first.status(),
                               on_second.status(), event.status()}) {
    if (!status.ok()) {
      return status.ToString();
    }
  }
  if (backend.Identify(*first).device != 0 || backend.Identify(*second).device != 1) {
    return "memory is not of its device";
  }
  auto* const gate = static_cast<uint64_t*>(*word);
  *gate = 0;
  const std::vector<uint8_t> sent(kSize, 5);
  std::vector<uint8_t> between(kSize);
  std::vector<uint8_t> received(kSize);
  std::string failure = First({
      (*on_first)->WaitValue64(gate, 1, kAtLeast),
      (*on_first)->CopyAsync(*first, sent.data(), kSize),
      (*on_first)->CopyAsync(between.data(), *first, kSize),
      (*on_first)->RecordEvent(event->get()),
      (*on_second)->WaitEvent(event->get()),
      (*on_second)->CopyAsync(*second, between.data(), kSize),
      (*on_second)->CopyAsync(received.data(), *second, kSize),
  });
  if (failure.empty() && (*on_second)->Query().code() != ErrorCode::kWouldBlock) {
    failure = "the second stream did not wait for the first";
  }
  shm::StoreRelease(*gate, 1);
  if (failure.empty()) {
    failure = First({(*on_second)->Synchronize(), (*on_first)->Synchronize()});
  }
  if (failure.empty() && received != sent) {
    failure = "the bytes did not come back";
  }
  on_first->reset();
  on_second->reset();
  const std::string freed =
      First({backend.Free(*first), backend.Free(*second), backend.Free(*word)});
  return !failure.empty() ? failure : freed.empty() ? "ok" : freed;
}

// Two streams wait for something that never comes: one still lives when the backend ends, which no
// program does on purpose.
std::string EndWhileWaiting(std::unique_ptr<GpuBackend> backend) {
  StatusOr<void*> word = backend->AllocatePinned(8);
  StatusOr<std::unique_ptr<Stream>> stream = backend->CreateStream(0);
  StatusOr<std::unique_ptr<Stream>> follower = backend->CreateStream(0);
  StatusOr<std::unique_ptr<Event>> event = backend->CreateEvent(0);
  if (!word.ok() || !stream.ok() || !follower.ok() || !event.ok()) {
    return "no streams";
  }
  std::memset(*word, 0, 8);
  const std::string failure = First({
      (*stream)->WaitValue64(static_cast<uint64_t*>(*word), 1, kAtLeast),
      (*stream)->RecordEvent(event->get()),
      (*follower)->WaitEvent(event->get()),
      (*follower)->LaunchHost([] { return Status(); }),
  });
  stream->reset();
  follower->reset();
  event->reset();
  backend.reset();
  return failure.empty() ? "ok" : failure;
}

// The device is lost in a copy that runs once all that follows it is in the list.
std::string EndAfterLoss(GpuBackend& backend) {
  StatusOr<void*> word = backend.AllocatePinned(8);
  StatusOr<void*> memory = backend.AllocateDevice(0, kSize);
  StatusOr<std::unique_ptr<Stream>> stream = backend.CreateStream(0);
  StatusOr<std::unique_ptr<Event>> event = backend.CreateEvent(0);
  if (!word.ok() || !memory.ok() || !stream.ok() || !event.ok() ||
      !SetFaults("engine_copy:1:" + std::to_string(ZE_RESULT_ERROR_DEVICE_LOST))) {
    return "no stream";
  }
  std::memset(*word, 0, 8);
  std::vector<uint8_t> host(kSize);
  const std::string failure = First({
      (*stream)->WaitValue64(static_cast<uint64_t*>(*word), 1, kAtLeast),
      (*stream)->CopyAsync(*memory, host.data(), kSize),
      (*stream)->RecordEvent(event->get()),
  });
  if (!failure.empty() || (*stream)->Query().code() != ErrorCode::kWouldBlock) {
    return failure.empty() ? "the stream did not wait" : failure;
  }
  shm::StoreRelease(*static_cast<uint64_t*>(*word), 1);
  const Status lost = (*stream)->Synchronize();
  if (lost.message().find("DEVICE_LOST") == std::string::npos || !SetFaults("")) {
    return "not lost: " + lost.ToString();
  }
  stream->reset();
  return "ok";
}

std::string Export(std::unique_ptr<GpuBackend> backend) {
  StatusOr<void*> memory = backend->AllocateDevice(0, kSize);
  if (!memory.ok()) {
    return memory.status().ToString();
  }
  StatusOr<IpcHandle> handle = backend->ExportIpc(*memory);
  if (!handle.ok()) {
    return handle.status().ToString();
  }
  return HexText(handle->opaque);
}

std::string Play(const std::string& role) {
  StatusOr<std::unique_ptr<GpuBackend>> backend = CreateLevelZeroBackend({});
  if (!backend.ok()) {
    return backend.status().ToString();
  }
  if (role == "describe") {
    return Describe(**backend);
  }
  if (role == "two_drivers") {
    return UseTwoDrivers(**backend);
  }
  if (role == "end_while_waiting") {
    return EndWhileWaiting(std::move(*backend));
  }
  if (role == "end_after_loss") {
    return EndAfterLoss(**backend);
  }
  return role == "export" ? Export(std::move(*backend)) : "no role";
}

}  // namespace

std::string SaidByChild(const std::string& role, const std::vector<std::string>& variables) {
  std::string command = "env";
  for (const std::string& variable : variables) {
    command += " '" + variable + "'";
  }
  command += " '" + OwnProgram() + "' " + kRoleFlag + " " + role;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return "the child did not start";
  }
  std::string said;
  char part[256];
  while (const size_t size = fread(part, 1, sizeof(part), pipe)) {
    said.append(part, size);
  }
  const int ended = pclose(pipe);
  return ended == 0 ? said : said + " (it ended with status " + std::to_string(ended) + ")";
}

bool SetFaults(const std::string& text) {
  void* const driver = dlopen(kSoftwareDriver, RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) {
    return text.empty();
  }
  auto* const set =
      reinterpret_cast<int (*)(const char*)>(dlsym(driver, "ferry_fixture_set_faults"));
  const bool done = set != nullptr && set(text.c_str()) == 0;
  dlclose(driver);
  return done;
}

std::string FixtureOptions(const std::string& options) { return "ZE_FIXTURE=" + options; }

std::string CopyOfSoftwareDriver(const std::string& folder) {
  const std::string path = folder + "/libferry_level_zero_too.so";
  std::error_code error;
  std::filesystem::copy_file(kSoftwareDriver, path,
                             std::filesystem::copy_options::overwrite_existing, error);
  return error ? std::string() : path;
}

bool HandleOfDeadChild(IpcHandle* handle) {
  const std::string said = SaidByChild("export", {FixtureOptions("pid_handles")});
  if (said.size() != 2 * handle->opaque.size()) {
    return false;
  }
  for (size_t i = 0; i < handle->opaque.size(); ++i) {
    handle->opaque[i] = static_cast<uint8_t>(std::stoi(said.substr(2 * i, 2), nullptr, 16));
  }
  handle->size_bytes = kSize;
  handle->device = 0;
  return true;
}

int RunLevelZeroChild(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], kRoleFlag) != 0) {
    return -1;
  }
  const std::string said = Play(argv[2]);
  return fwrite(said.data(), 1, said.size(), stdout) == said.size() ? 0 : 1;
}

}  // namespace ferry::gpu
