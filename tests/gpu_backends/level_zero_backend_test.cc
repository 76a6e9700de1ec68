// The Level Zero backend beside the conformance suite: its description of devices, lists of the
// application's, and everything that can go wrong, from a missing loader to a lost device. The
// loader is the distribution's, the driver tests/fixtures/level_zero's.
#include "gpu_backends/level_zero/level_zero_backend.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <level_zero/ze_api.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shm/atomic.h"
#include "tests/gpu_backends/level_zero_children.h"
#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kSize = 100'000;
constexpr auto kAtLeast = WaitCondition::kGreaterOrEqual;
constexpr int kOutOfHostMemory = 0x70000002;
constexpr int kDeviceLost = 0x70000001;
constexpr int kUnsupportedFeature = 0x78000003;
constexpr int kUnknown = 0x7ffffffe;

// Copies that were appended to lists of a group of queues; the first has only copy engines.
uint64_t CopiesOfGroup(uint32_t group) {
  void* const driver = dlopen(kSoftwareDriver, RTLD_NOW | RTLD_NOLOAD);
  auto* const copies =
      reinterpret_cast<uint64_t (*)(uint32_t)>(dlsym(driver, "ferry_fixture_copies_of_group"));
  const uint64_t count = copies(group);
  dlclose(driver);
  return count;
}

bool Fault(const std::string& call, int error) {
  return SetFaults(call + ":1:" + std::to_string(error));
}

class LevelZeroBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<GpuBackend>> created = CreateLevelZeroBackend({});
    if (created.status().code() == ErrorCode::kNotFound) {
      GTEST_SKIP() << created.status().ToString();
    }
    ASSERT_TRUE(created.ok()) << created.status().ToString();
    backend_ = std::move(*created);
  }
  void TearDown() override {
    EXPECT_TRUE(SetFaults(""));
    backend_.reset();
  }

  void* Device(uint64_t size_bytes = kSize) {
    return Must(backend_->AllocateDevice(0, size_bytes));
  }
  std::unique_ptr<Stream> NewStream() { return Must(backend_->CreateStream(0)); }
  std::unique_ptr<Event> NewEvent() { return Must(backend_->CreateEvent(0)); }
  uint64_t* Word() {  // 0
    void* const word = Must(backend_->AllocatePinned(8));
    std::memset(word, 0, 8);
    return static_cast<uint64_t*>(word);
  }
  // Checks that copies still work, there and back.
  void ExpectWorks() {
    void* const device = Device();
    std::vector<uint8_t> sent(kSize, 7);
    std::vector<uint8_t> received(kSize);
    const std::unique_ptr<Stream> stream = NewStream();
    EXPECT_TRUE(stream->CopyAsync(device, sent.data(), kSize).ok());
    EXPECT_TRUE(stream->CopyAsync(received.data(), device, kSize).ok());
    const Status status = stream->Synchronize();
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(backend_->Free(device).ok());
  }

  std::unique_ptr<GpuBackend> backend_;
};

// ---- Loaders and drivers ----

TEST(LevelZeroLoaderTest, SaysWhichLoaderIsMissing) {
  const Status status = CreateLevelZeroBackend({.library = "/nonexistent/libze.so"}).status();
  ExpectFails(status, ErrorCode::kNotFound, "/nonexistent/libze.so");
}

TEST(LevelZeroLoaderTest, SaysWhatALibraryLacks) {
  const Status status = CreateLevelZeroBackend({.library = "libm.so.6"}).status();
  ExpectFails(status, ErrorCode::kUnsupported, "zeMemGetAllocProperties");
}

TEST(LevelZeroLoaderTest, NoDriverIsNotFound) {
  const std::string said =
      SaidByChild("describe", {"ZE_ENABLE_ALT_DRIVERS=/nonexistent/driver.so"});
  EXPECT_EQ(said.find("not found: "), 0u) << said;
  EXPECT_NE(said.find("no driver"), std::string::npos) << said;
}

TEST(LevelZeroLoaderTest, NoGpuIsNotFound) {
  for (const char* options : {"devices0", "npu"}) {
    const std::string said = SaidByChild("describe", {FixtureOptions(options)});
    EXPECT_EQ(said.find("not found: "), 0u) << said;
    EXPECT_NE(said.find("no GPU"), std::string::npos) << said;
  }
}

TEST(LevelZeroLoaderTest, AnotherVersionIsUnsupported) {
  const std::string old = SaidByChild("describe", {FixtureOptions("version0")});
  EXPECT_NE(old.find("version 0.9"), std::string::npos) << old;
  const std::string later = SaidByChild("describe", {FixtureOptions("version2")});
  EXPECT_NE(later.find("version 2.0"), std::string::npos) << later;
}

TEST(LevelZeroLoaderTest, WordsAreNativeOnlyWhereTheyWork) {
  const auto described = [](const char* options) {
    return SaidByChild("describe", {FixtureOptions(options)});
  };
  EXPECT_NE(described("words,imports").find("words by the device"), std::string::npos);
  EXPECT_NE(described("words").find("words by a helper"), std::string::npos);
  EXPECT_NE(described("stuck_words,imports").find("words by a helper"), std::string::npos);
}

// The loader puts handles of its own in front of two drivers' handles.
TEST(LevelZeroLoaderTest, DevicesOfTwoDriversAreNumberedOn) {
  const std::string copy = CopyOfSoftwareDriver(testing::TempDir());
  ASSERT_FALSE(copy.empty());
  const std::string drivers = std::string("ZE_ENABLE_ALT_DRIVERS=") + kSoftwareDriver + "," + copy;
  EXPECT_EQ(SaidByChild("two_drivers", {drivers}), "ok");
  EXPECT_EQ(SaidByChild("two_drivers", {drivers, FixtureOptions("words,imports")}), "ok");
  std::filesystem::remove(copy);
}

// ---- Descriptions ----

TEST_F(LevelZeroBackendTest, DescribesItself) {
  EXPECT_EQ(backend_->name(), "level_zero");
  EXPECT_EQ(backend_->version(), "Level Zero 1.4, driver 0x01020003");
  DeviceInfo info = Must(backend_->GetDeviceInfo(0));
  EXPECT_EQ(info.name, "Level Zero in software 0");
  EXPECT_EQ(info.pci_address, "fe7e:a0:00.1");
  EXPECT_EQ(info.numa_node, -1);
  EXPECT_EQ(info.total_bytes, uint64_t{1} << 30);
  EXPECT_EQ(info.stream_words, StreamWords::kHelper);
  EXPECT_EQ(info.direct, DirectAccess{});
  EXPECT_TRUE(info.ipc);
  EXPECT_TRUE(info.dmabuf);
  EXPECT_TRUE(info.managed);
}

TEST_F(LevelZeroBackendTest, AllocatesMoreThanTheDeviceAllowsAtOnce) {
  void* const memory = Device((uint64_t{1} << 26) + 1);  // relaxed limits
  EXPECT_TRUE(backend_->Free(memory).ok());
}

TEST_F(LevelZeroBackendTest, ManagedMemoryIsReachedByCpuAndStream) {
  void* memory = Must(backend_->AllocateManaged(0, kSize));
  std::memset(memory, 3, kSize);
  std::vector<uint8_t> received(kSize);
  const std::unique_ptr<Stream> stream = NewStream();
  EXPECT_TRUE(stream->CopyAsync(received.data(), memory, kSize).ok());
  EXPECT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(received, std::vector<uint8_t>(kSize, 3));
  EXPECT_EQ(backend_->Identify(memory).kind, PointerKind::kManaged);
  EXPECT_TRUE(backend_->Free(memory).ok());
}

TEST_F(LevelZeroBackendTest, ExportsADmabufOfItsOwn) {
  void* const memory = Device();
  for (int i = 0; i < 2; ++i) {  // the first one's descriptor was closed
    Dmabuf dmabuf = Must(backend_->ExportDmabuf(static_cast<uint8_t*>(memory) + 8));
    EXPECT_EQ(dmabuf.offset_bytes, 8u);
    struct stat about {};
    ASSERT_EQ(fstat(dmabuf.fd.get(), &about), 0);
    EXPECT_GE(static_cast<uint64_t>(about.st_size), kSize);
  }
  EXPECT_TRUE(backend_->Free(memory).ok());
}

// ---- Lists and memory of the application's ----

// An application that uses the loader by itself.
class Application {
 public:
  Application() {
    EXPECT_EQ(Call<decltype(zeInit)>("zeInit")(0), ZE_RESULT_SUCCESS);
    uint32_t count = 1;
    ze_driver_handle_t driver = nullptr;
    EXPECT_EQ(Call<decltype(zeDriverGet)>("zeDriverGet")(&count, &driver), ZE_RESULT_SUCCESS);
    count = 1;
    EXPECT_EQ(Call<decltype(zeDeviceGet)>("zeDeviceGet")(driver, &count, &device_),
              ZE_RESULT_SUCCESS);
    ze_context_desc_t description{};
    description.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
    EXPECT_EQ(Call<decltype(zeContextCreate)>("zeContextCreate")(driver, &description, &context_),
              ZE_RESULT_SUCCESS);
    ze_command_queue_desc_t queue{};
    queue.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    queue.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    EXPECT_EQ(Call<decltype(zeCommandListCreateImmediate)>("zeCommandListCreateImmediate")(
                  context_, device_, &queue, &list_),
              ZE_RESULT_SUCCESS);
    ze_device_mem_alloc_desc_t memory{};
    memory.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    EXPECT_EQ(Call<decltype(zeMemAllocDevice)>("zeMemAllocDevice")(context_, &memory, kSize, 0,
                                                                   device_, &memory_),
              ZE_RESULT_SUCCESS);
  }
  ~Application() {
    EXPECT_EQ(Call<decltype(zeMemFree)>("zeMemFree")(context_, memory_), ZE_RESULT_SUCCESS);
    EXPECT_EQ(Call<decltype(zeCommandListDestroy)>("zeCommandListDestroy")(list_),
              ZE_RESULT_SUCCESS);
    EXPECT_EQ(Call<decltype(zeContextDestroy)>("zeContextDestroy")(context_), ZE_RESULT_SUCCESS);
  }

  ze_command_list_handle_t list() const { return list_; }
  void* memory() const { return memory_; }
  void Copy(void* destination, const void* source) {
    EXPECT_EQ(Call<decltype(zeCommandListAppendMemoryCopy)>("zeCommandListAppendMemoryCopy")(
                  list_, destination, source, kSize, nullptr, 0, nullptr),
              ZE_RESULT_SUCCESS);
  }

 private:
  template <typename Function>
  Function* Call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(loader_, name));
  }

  void* loader_ = dlopen("libze_loader.so.1", RTLD_NOW);
  ze_device_handle_t device_ = nullptr;
  ze_context_handle_t context_ = nullptr;
  ze_command_list_handle_t list_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(LevelZeroBackendTest, KnowsMemoryOfTheApplication) {
  Application application;
  const PointerInfo info = backend_->Identify(static_cast<uint8_t*>(application.memory()) + 5);
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.base, application.memory());
  EXPECT_EQ(info.size_bytes, kSize);
  EXPECT_NE(info.allocation_id, 0u);
}

// Copies of the application's lie before and behind those of Ferry's, and no event between them.
TEST_F(LevelZeroBackendTest, AnAdoptedListKeepsTheOrder) {
  Application application;
  std::unique_ptr<Stream> stream = Must(backend_->AdoptStream(0, application.list()));
  void* const device = Device();
  for (int round = 0; round < 20; ++round) {
    std::vector<uint8_t> sent(kSize, static_cast<uint8_t>(round + 1));
    std::vector<uint8_t> received(kSize);
    bool seen = false;
    application.Copy(application.memory(), sent.data());
    EXPECT_TRUE(stream->CopyAsync(device, application.memory(), kSize).ok());
    application.Copy(received.data(), device);
    EXPECT_TRUE((stream)
                    ->LaunchHost([&] {
                      seen = received == sent;
                      return Status();
                    })
                    .ok());
    const Status status = stream->Synchronize();
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(seen);
  }
  stream.reset();
  EXPECT_TRUE(backend_->Free(device).ok());
}

// Operations other than copies take a stream off the copy engine, behind its copies.
TEST_F(LevelZeroBackendTest, CopiesByACopyEngineWhileItOnlyCopies) {
  void* const device = Device();
  uint64_t* const word = Word();
  std::unique_ptr<Stream> stream = NewStream();
  const uint64_t engine = CopiesOfGroup(0);
  const uint64_t others = CopiesOfGroup(1);
  std::vector<uint8_t> sent(kSize, 7);
  std::vector<uint8_t> received(kSize);
  EXPECT_TRUE(stream->CopyAsync(device, sent.data(), kSize).ok());
  std::unique_ptr<Event> event = NewEvent();
  EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
  EXPECT_TRUE(stream->WaitEvent(event.get()).ok());
  EXPECT_TRUE(stream->CopyAsync(received.data(), device, kSize).ok());
  EXPECT_EQ(CopiesOfGroup(0) - engine, 2u);
  EXPECT_EQ(CopiesOfGroup(1), others);
  EXPECT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(received, sent);
  for (int round = 1; round <= 3; ++round) {
    std::fill(sent.begin(), sent.end(), static_cast<uint8_t>(round));
    EXPECT_TRUE(stream->CopyAsync(device, sent.data(), kSize).ok());
    EXPECT_TRUE(stream->WriteValue64(word, static_cast<uint64_t>(round)).ok());
    EXPECT_TRUE(stream->CopyAsync(received.data(), device, kSize).ok());
    EXPECT_TRUE(stream->Synchronize().ok());
    EXPECT_EQ(received, sent);
    EXPECT_EQ(*word, static_cast<uint64_t>(round));
  }
  stream.reset();
  EXPECT_TRUE(backend_->Free(word).ok());
  EXPECT_TRUE(backend_->Free(device).ok());
}

TEST_F(LevelZeroBackendTest, RefusesANullList) {
  ExpectFails(backend_->AdoptStream(0, nullptr).status(), ErrorCode::kInvalidArgument, "");
}

// ---- Errors from every call ----

TEST_F(LevelZeroBackendTest, SaysWhichCallFailsWhileItOpens) {
  for (const char* call :
       {"zeInit", "zeDriverGet", "zeDriverGetApiVersion", "zeDriverGetProperties",
        "zeDriverGetIpcProperties", "zeDriverGetExtensionProperties", "zeDeviceGet",
        "zeDeviceGetSubDevices", "zeDeviceGetProperties", "zeDeviceGetMemoryProperties",
        "zeDeviceGetMemoryAccessProperties", "zeDeviceGetExternalMemoryProperties",
        "zeDeviceGetCommandQueueGroupProperties", "zeContextCreate"}) {
    SCOPED_TRACE(call);
    ASSERT_TRUE(Fault(call, kOutOfHostMemory));
    const Status status = CreateLevelZeroBackend({}).status();
    ExpectFails(status, ErrorCode::kOutOfMemory,
                std::string(call) + ": ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY");
    ASSERT_TRUE(Fault(call, kUnknown));
    ExpectFails(CreateLevelZeroBackend({}).status(), ErrorCode::kSystem, "ZE_RESULT_ERROR_UNKNOWN");
    ASSERT_TRUE(SetFaults(""));
    EXPECT_TRUE(CreateLevelZeroBackend({}).ok());
  }
}

TEST_F(LevelZeroBackendTest, DoesWithoutAPciAddress) {
  ASSERT_TRUE(Fault("zeDevicePciGetPropertiesExt", kUnsupportedFeature));
  std::unique_ptr<GpuBackend> other = Must(CreateLevelZeroBackend({}));
  EXPECT_EQ(other->GetDeviceInfo(0)->pci_address, "");
}

TEST_F(LevelZeroBackendTest, SaysWhichCallFailsForMemory) {
  void* const memory = Device();
  IpcHandle handle = Must(backend_->ExportIpc(memory));
  const std::vector<std::pair<const char*, std::function<Status()>>> calls = {
      {"zeMemAllocDevice", [&] { return backend_->AllocateDevice(0, kSize).status(); }},
      {"zeMemAllocHost", [&] { return backend_->AllocatePinned(kSize).status(); }},
      {"zeMemAllocShared", [&] { return backend_->AllocateManaged(0, kSize).status(); }},
      {"zeMemGetIpcHandle", [&] { return backend_->ExportIpc(memory).status(); }},
      {"zeMemOpenIpcHandle", [&] { return backend_->ImportIpc(handle).status(); }},
      {"zeMemGetAllocProperties", [&] { return backend_->ExportDmabuf(memory).status(); }},
  };
  for (const auto& [call, run] : calls) {
    SCOPED_TRACE(call);
    ASSERT_TRUE(Fault(call, kUnknown));
    ExpectFails(run(), ErrorCode::kSystem, std::string(call) + ": ZE_RESULT_ERROR_UNKNOWN");
    ASSERT_TRUE(Fault(call, 0x12345));
    ExpectFails(run(), ErrorCode::kSystem, std::string(call) + ": result 0x00012345");
  }
  ASSERT_TRUE(SetFaults(""));
  EXPECT_TRUE(backend_->Free(memory).ok());
  ExpectWorks();
}

TEST_F(LevelZeroBackendTest, SaysThatMemoryWasNotFreed) {
  void* const memory = Device();
  ASSERT_TRUE(Fault("zeMemFree", kUnknown));
  ExpectFails(backend_->Free(memory), ErrorCode::kSystem, "zeMemFree: ZE_RESULT_ERROR_UNKNOWN");
}

TEST_F(LevelZeroBackendTest, MemoryThatItCannotAskAboutIsUnknown) {
  Application application;
  for (const char* call : {"zeMemGetAllocProperties", "zeMemGetAddressRange"}) {
    ASSERT_TRUE(Fault(call, kUnknown));
    EXPECT_EQ(backend_->Identify(application.memory()).kind, PointerKind::kUnknown) << call;
  }
}

TEST_F(LevelZeroBackendTest, SaysWhichCallFailsInAStream) {
  const std::unique_ptr<Event> event = NewEvent();
  const std::unique_ptr<Event> awaited = NewEvent();
  const std::unique_ptr<Stream> other = NewStream();
  EXPECT_TRUE(other->RecordEvent(awaited.get()).ok());
  void* const memory = Device();
  std::vector<uint8_t> host(kSize);
  const std::vector<std::pair<const char*, std::function<Status(Stream&)>>> calls = {
      {"zeCommandListAppendMemoryCopy",
       [&](Stream& stream) { return stream.CopyAsync(memory, host.data(), kSize); }},
      {"zeCommandListAppendBarrier",
       [&](Stream& stream) { return stream.RecordEvent(event.get()); }},
      {"zeCommandListAppendWaitOnEvents",
       [&](Stream& stream) { return stream.WaitEvent(awaited.get()); }},
  };
  for (const auto& [call, run] : calls) {
    SCOPED_TRACE(call);
    std::unique_ptr<Stream> stream = NewStream();
    ASSERT_TRUE(Fault(call, kOutOfHostMemory));
    ExpectFails(run(*stream), ErrorCode::kOutOfMemory, call);
    ASSERT_TRUE(SetFaults(""));
  }
  ASSERT_TRUE(Fault("zeCommandListCreateImmediate", kOutOfHostMemory));
  ExpectFails(backend_->CreateStream(0).status(), ErrorCode::kOutOfMemory,
              "zeCommandListCreateImmediate");
  ASSERT_TRUE(SetFaults(""));
  EXPECT_TRUE(backend_->Free(memory).ok());
  ExpectWorks();
}

// Commands behind a step are appended when the step has been taken.
TEST_F(LevelZeroBackendTest, AFailureBehindAStepReachesWhoWaits) {
  void* const memory = Device();
  std::vector<uint8_t> host(kSize);
  uint64_t* const word = Word();
  const std::unique_ptr<Event> event = NewEvent();
  const std::unique_ptr<Stream> stream = NewStream();
  const std::unique_ptr<Stream> waiter = NewStream();
  bool ran = false;
  EXPECT_TRUE(stream->WaitValue64(word, 1, kAtLeast).ok());
  EXPECT_TRUE(stream->CopyAsync(memory, host.data(), kSize).ok());
  EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
  EXPECT_TRUE(waiter->WaitEvent(event.get()).ok());
  EXPECT_TRUE(waiter
                  ->LaunchHost([&ran] {
                    ran = true;
                    return Status();
                  })
                  .ok());
  ASSERT_TRUE(Fault("zeCommandListAppendMemoryCopy", kOutOfHostMemory));
  shm::StoreRelease(*word, uint64_t{1});
  for (const Status& status :
       {event->Synchronize(), stream->Synchronize(), waiter->Synchronize()}) {
    ExpectFails(status, ErrorCode::kOutOfMemory, "zeCommandListAppendMemoryCopy");
  }
  EXPECT_FALSE(ran);
}

TEST_F(LevelZeroBackendTest, SaysThatThereAreNoEvents) {
  for (const char* call : {"zeEventPoolCreate", "zeEventCreate"}) {
    std::unique_ptr<GpuBackend> fresh = Must(CreateLevelZeroBackend({}));
    std::unique_ptr<Stream> stream = Must(fresh->CreateStream(0));
    ASSERT_TRUE(Fault(call, kOutOfHostMemory));
    std::unique_ptr<Event> event = Must(fresh->CreateEvent(0));
    ExpectFails(stream->RecordEvent(event.get()), ErrorCode::kOutOfMemory, call);
    ASSERT_TRUE(SetFaults(""));
    event.reset();
    stream.reset();
  }
}

// ---- Lost devices ----

TEST_F(LevelZeroBackendTest, ALostDeviceFailsEveryCallAndHangsNone) {
  void* const memory = Device();
  std::vector<uint8_t> host(kSize);
  const std::unique_ptr<Stream> blocked = NewStream();
  uint64_t* const word = Word();
  EXPECT_TRUE(blocked->WaitValue64(word, 1, kAtLeast).ok());
  const std::unique_ptr<Event> event = NewEvent();
  EXPECT_TRUE(blocked->RecordEvent(event.get()).ok());
  const std::unique_ptr<Stream> stream = NewStream();
  ASSERT_TRUE(Fault("zeCommandListAppendMemoryCopy", kDeviceLost));
  ExpectFails(stream->CopyAsync(memory, host.data(), kSize), ErrorCode::kSystem,
              "zeCommandListAppendMemoryCopy: ZE_RESULT_ERROR_DEVICE_LOST");
  ExpectFails(blocked->Synchronize(), ErrorCode::kSystem, "ZE_RESULT_ERROR_DEVICE_LOST");
  ExpectFails(event->Synchronize(), ErrorCode::kSystem, "ZE_RESULT_ERROR_DEVICE_LOST");
  ExpectFails(backend_->AllocateDevice(0, kSize).status(), ErrorCode::kSystem,
              "ZE_RESULT_ERROR_DEVICE_LOST");
  ExpectFails(backend_->CreateStream(0).status(), ErrorCode::kSystem,
              "ZE_RESULT_ERROR_DEVICE_LOST");
}

TEST_F(LevelZeroBackendTest, DoesWithoutAStatusOfTheDevice) {
  uint64_t* const word = Word();
  const std::unique_ptr<Stream> stream = NewStream();
  ASSERT_TRUE(SetFaults("zeDeviceGetStatus:1+:" + std::to_string(kUnsupportedFeature)));
  EXPECT_TRUE(stream->WaitValue64(word, 1, kAtLeast).ok());
  EXPECT_EQ(stream->Query().code(), ErrorCode::kWouldBlock);
  shm::StoreRelease(*word, uint64_t{1});
  const Status status = stream->Synchronize();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(LevelZeroBackendTest, ACopyThatFailsOnTheDeviceReachesWhoWaits) {
  void* const memory = Device();
  std::vector<uint8_t> host(kSize);
  const std::unique_ptr<Stream> stream = NewStream();
  ASSERT_TRUE(Fault("engine_copy", kDeviceLost));
  EXPECT_TRUE(stream->CopyAsync(memory, host.data(), kSize).ok());
  ExpectFails(stream->Synchronize(), ErrorCode::kSystem, "ZE_RESULT_ERROR_DEVICE_LOST");
}

// A reset does not bring back what was in its lists.
TEST_F(LevelZeroBackendTest, AStreamOfADeviceThatWasLostAndResetEnds) {
  EXPECT_EQ(SaidByChild("end_after_loss", {FixtureOptions("words,imports")}), "ok");
}

// The list waits for the step to be taken; the application's own commands go on.
TEST_F(LevelZeroBackendTest, AStepThatNobodySignalsFailsAnAdoptedList) {
  Application application;
  std::unique_ptr<Stream> stream = Must(backend_->AdoptStream(0, application.list()));
  ASSERT_TRUE(Fault("zeEventHostSignal", kOutOfHostMemory));
  EXPECT_TRUE(stream->LaunchHost([] { return Status(); }).ok());
  ExpectFails(stream->Synchronize(), ErrorCode::kOutOfMemory, "zeEventHostSignal");
  ASSERT_TRUE(SetFaults(""));
  stream.reset();
  std::vector<uint8_t> received(kSize);
  stream = Must(backend_->AdoptStream(0, application.list()));
  EXPECT_TRUE(stream->CopyAsync(received.data(), application.memory(), kSize).ok());
  EXPECT_TRUE(stream->Synchronize().ok());
}

// ---- Handles of other processes ----

TEST_F(LevelZeroBackendTest, ReportsTheHandleOfADeadProcess) {
  IpcHandle handle;
  ASSERT_TRUE(HandleOfDeadChild(&handle));
  ExpectFails(backend_->ImportIpc(handle).status(), ErrorCode::kInvalidArgument,
              "has the exporting process ended");
}

TEST_F(LevelZeroBackendTest, RefusesAHandleWithoutItsDescriptor) {
  void* const memory = Device();
  IpcHandle handle = Must(backend_->ExportIpc(memory));
  ASSERT_TRUE(handle.fd.valid());
  handle.fd.Reset();
  ExpectFails(backend_->ImportIpc(handle).status(), ErrorCode::kInvalidArgument, "descriptor");
  EXPECT_TRUE(backend_->Free(memory).ok());
}

TEST_F(LevelZeroBackendTest, RefusesAHandleThatIsNone) {
  IpcHandle handle;
  handle.opaque.fill(0x5a);
  handle.size_bytes = kSize;
  ExpectFails(backend_->ImportIpc(handle).status(), ErrorCode::kInvalidArgument,
              "zeMemOpenIpcHandle");
}

// ---- Ends ----

// Ends as a process that is told to: no hang, no crash, whatever still waits.
TEST_F(LevelZeroBackendTest, EndsWhileStreamsWait) {
  EXPECT_EQ(SaidByChild("end_while_waiting", {}), "ok");
  EXPECT_EQ(SaidByChild("end_while_waiting", {FixtureOptions("words,imports")}), "ok");
}

}  // namespace
}  // namespace ferry::gpu

int main(int argc, char** argv) {
  const int child_exit_code = ferry::gpu::RunLevelZeroChild(argc, argv);
  if (child_exit_code >= 0) {
    return child_exit_code;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
