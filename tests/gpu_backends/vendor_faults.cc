#include "tests/gpu_backends/vendor_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "common/unique_fd.h"
#include "shm/atomic.h"
#include "tests/gpu_backends/skip_without_images.h"
#include "tests/gpu_backends/status_checks.h"
#include "tests/gpu_backends/vendor_scenario.h"

namespace ferry::gpu {
namespace {

using testing::HasSubstr;

// A process with device memory of 4096 bytes that it has exported.
class Exporter {
 public:
  explicit Exporter(const VendorUnderTest& vendor) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_.Reset(ends[0]);
    const UniqueFd theirs(ends[1]);
    std::string program = "tests/gpu_backends/ipc_exporter";
    std::string backend = vendor.exporter;
    std::string library = vendor.library;
    char* arguments[] = {program.data(), backend.data(), library.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
    EXPECT_EQ(posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Exporter() { End(); }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  IpcHandle Handle() {
    IpcHandle handle;
    handle.size_bytes = 4096;
    handle.device = 0;
    EXPECT_EQ(recv(socket_.get(), handle.opaque.data(), handle.opaque.size(), MSG_WAITALL),
              static_cast<ssize_t>(handle.opaque.size()));
    return handle;
  }

  void End() {
    socket_.Reset();
    if (process_ > 0) {
      int status = 0;
      EXPECT_EQ(waitpid(process_, &status, 0), process_);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      process_ = -1;
    }
  }

 private:
  UniqueFd socket_;
  pid_t process_ = -1;
};

class VendorFaults : public testing::TestWithParam<VendorUnderTest> {
 protected:
  void SetUp() override {
    FERRY_SKIP_WITHOUT(Vendor().missing);
    backend_ = Must(Create());
  }

  static const VendorUnderTest& Vendor() { return GetParam(); }
  static StatusOr<std::unique_ptr<GpuBackend>> Create() {
    return Vendor().create(Vendor().library);
  }
  static StandInFaults Inject(const std::string& call, const std::string& count, int error) {
    return {Vendor().library, Fault(call, count, error)};
  }
  static std::string Fault(const std::string& call, const std::string& count, int error) {
    return call + ":" + count + ":" + std::to_string(error);
  }
  // The first device's; fails the test if the backend refuses.
  uint64_t* Pinned() {
    void* pinned = Must(backend_->AllocatePinned(4096));
    std::memset(pinned, 0, 4096);
    return static_cast<uint64_t*>(pinned);
  }
  static std::unique_ptr<Stream> NewStream(GpuBackend& backend) {
    return Must(backend.CreateStream(0));
  }
  static std::unique_ptr<Event> NewEvent(GpuBackend& backend) {
    return Must(backend.CreateEvent(0));
  }
  static void ExpectAllWorks(GpuBackend& backend, const std::string& after) {
    const std::vector<Status> failures = UseEverything(backend);
    EXPECT_TRUE(failures.empty()) << "after " << after << ":\n" << Text(failures);
  }

  std::unique_ptr<GpuBackend> backend_;
};

TEST_P(VendorFaults, EachCallThatFailsIsNamedAndDoesNotLast) {
  for (const std::string& call : Vendor().calls) {
    std::vector<Status> failures;
    {
      const StandInFaults faults = Inject(call, "1+", Vendor().some_error);
      failures = UseEverything(*backend_);
    }
    EXPECT_TRUE(Mentions(failures, call + ": " + Vendor().some_error_name))
        << call << " failed, and all that was told is:\n"
        << Text(failures);
    ExpectAllWorks(*backend_, call);
  }
}

TEST_P(VendorFaults, AnyOneCallMayFail) {
  constexpr int kCalls = 250;  // what it takes to create a backend and use everything
  int noticed = 0;
  for (int number = 1; number <= kCalls; ++number) {
    {
      const StandInFaults faults = Inject("*", std::to_string(number), Vendor().some_error);
      const StatusOr<std::unique_ptr<GpuBackend>> backend = Create();
      noticed += !backend.ok() || !UseEverything(**backend).empty();
    }
    ExpectAllWorks(*backend_, "call " + std::to_string(number));
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_GT(noticed, 30);  // otherwise the calls did not fail
}

TEST_P(VendorFaults, OutOfMemoryIsToldAsSuch) {
  const StandInFaults faults(Vendor().library,
                             Fault(Vendor().allocate_device, "1", Vendor().out_of_memory) + "," +
                                 Fault(Vendor().allocate_pinned, "1", Vendor().out_of_memory));
  EXPECT_EQ(backend_->AllocateDevice(0, 4096).status().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(backend_->AllocatePinned(4096).status().code(), ErrorCode::kOutOfMemory);
}

TEST_P(VendorFaults, ACopyThatFailsUnderWayPoisonsItsStream) {
  void* device = Must(backend_->AllocateDevice(0, 4096));
  uint64_t* pinned = Pinned();
  {
    const StandInFaults faults = Inject(Vendor().copy + ".run", "1", Vendor().device_lost);
    const std::unique_ptr<Stream> stream = NewStream(*backend_);
    const std::unique_ptr<Event> event = NewEvent(*backend_);
    // Held back until everything is enqueued: any call may be the first to report it.
    EXPECT_TRUE(stream->WaitValue64(pinned, 1, WaitCondition::kEqual).ok());
    EXPECT_TRUE(stream->CopyAsync(device, pinned + 8, 2048).ok());
    EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
    shm::StoreRelease(*pinned, 1);
    ExpectFails(stream->Synchronize(), ErrorCode::kSystem, Vendor().device_lost_name);
    EXPECT_FALSE(stream->CopyAsync(device, pinned + 8, 2048).ok());
    EXPECT_FALSE(stream->Query().ok());
    EXPECT_FALSE(event->Synchronize().ok());
  }
  ExpectAllWorks(*backend_, "the failure");
  EXPECT_TRUE(backend_->Free(device).ok());
  EXPECT_TRUE(backend_->Free(pinned).ok());
}

TEST_P(VendorFaults, AKernelThatFailsUnderWayPoisonsItsStream) {
  if (Vendor().launch.empty()) {
    GTEST_SKIP() << "words are the vendor's";
  }
  uint64_t* pinned = Pinned();
  {
    const StandInFaults faults = Inject(Vendor().launch + ".run", "2", Vendor().device_lost);
    const std::unique_ptr<Stream> stream = NewStream(*backend_);
    const std::unique_ptr<Event> event = NewEvent(*backend_);
    EXPECT_TRUE(stream->WaitValue64(pinned, 1, WaitCondition::kEqual).ok());
    EXPECT_TRUE(stream->WriteValue64(pinned + 1, 1).ok());
    EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
    shm::StoreRelease(*pinned, 1);
    const Status status = stream->Synchronize();
    EXPECT_THAT(status.message(), HasSubstr(Vendor().device_lost_name));
    EXPECT_FALSE(event->Synchronize().ok());
    EXPECT_EQ(shm::LoadAcquire(pinned[1]), 0U);
  }
  ExpectAllWorks(*backend_, "the failure");
  EXPECT_TRUE(backend_->Free(pinned).ok());
}

// A waiting kernel must not keep the device busy once its stream is given up, and the operations
// behind it must not run.
TEST_P(VendorFaults, KernelsOfAStreamGivenUpEnd) {
  if (Vendor().launch.empty()) {
    GTEST_SKIP() << "words are the vendor's";
  }
  uint64_t* pinned = Pinned();
  const std::unique_ptr<Event> event = NewEvent(*backend_);
  {
    const std::unique_ptr<Stream> stream = NewStream(*backend_);
    EXPECT_TRUE(stream->WaitValue64(pinned, 1, WaitCondition::kEqual).ok());
    EXPECT_TRUE(stream->WriteValue64(pinned + 1, 1).ok());
    EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
  }
  EXPECT_EQ(event->Query().code(), ErrorCode::kCancelled);
  EXPECT_EQ(shm::LoadAcquire(pinned[1]), 0U);
  EXPECT_TRUE(backend_->Free(pinned).ok());
  EXPECT_EQ(backend_->Identify(pinned).kind, PointerKind::kUnknown);  // no stream uses it any more
}

// A stream waits for a word that will not come; the device goes away.
TEST_P(VendorFaults, ALostDeviceEndsAllWaits) {
  uint64_t* pinned = Pinned();
  {
    const StandInFaults faults = Inject(Vendor().device_info, "1", Vendor().device_lost);
    std::unique_ptr<Stream> stream = NewStream(*backend_);
    std::unique_ptr<Event> event = NewEvent(*backend_);
    ASSERT_TRUE(stream->WaitValue64(pinned, 1, WaitCondition::kEqual).ok());
    ASSERT_TRUE(stream->LaunchHost([] { return Status(); }).ok());
    ASSERT_TRUE(stream->RecordEvent(event.get()).ok());
    Status waited;
    std::thread waiting([&] { waited = stream->Synchronize(); });
    EXPECT_FALSE(backend_->GetDeviceInfo(0).ok());  // the call that loses it
    waiting.join();
    EXPECT_EQ(waited.code(), ErrorCode::kSystem) << waited.ToString();
    EXPECT_FALSE(event->Synchronize().ok());
    EXPECT_FALSE(backend_->AllocateDevice(0, 4096).ok());
    EXPECT_FALSE(backend_->CreateStream(0).ok());
    stream.reset();
    event.reset();
    backend_.reset();  // would hang if it waited
  }
  std::unique_ptr<GpuBackend> again = Must(Create());
  ExpectAllWorks(*again, "the device is back");
}

TEST_P(VendorFaults, MemoryOfAProcessThatIsGoneIsNotImported) {
  Exporter exporter(Vendor());
  const IpcHandle handle = exporter.Handle();
  exporter.End();
  const Status status = backend_->ImportIpc(handle).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(Vendor().open_import + ": "));
  ExpectAllWorks(*backend_, "the import");
}

TEST_P(VendorFaults, ErrorsOfImportsAreTold) {
  Exporter exporter(Vendor());
  const IpcHandle handle = exporter.Handle();
  {
    const StandInFaults faults = Inject(Vendor().open_import, "1+", Vendor().some_error);
    const Status status = backend_->ImportIpc(handle).status();
    EXPECT_THAT(status.message(),
                HasSubstr(Vendor().open_import + ": " + Vendor().some_error_name));
  }
  void* imported = Must(backend_->ImportIpc(handle));
  EXPECT_EQ(backend_->Identify(imported).kind, PointerKind::kDevice);
  const StandInFaults faults = Inject(Vendor().close_import, "1", Vendor().some_error);
  const Status status = backend_->CloseIpc(imported);
  EXPECT_THAT(status.message(), HasSubstr(Vendor().close_import + ": " + Vendor().some_error_name));
  EXPECT_EQ(backend_->CloseIpc(imported).code(), ErrorCode::kInvalidBuffer);
}

TEST_P(VendorFaults, OneHandleIsImportedAsOftenAsOneLikes) {
  Exporter exporter(Vendor());
  const IpcHandle handle = exporter.Handle();
  std::vector<void*> imports;
  for (int i = 0; i < 3; ++i) {
    void* imported = Must(backend_->ImportIpc(handle));
    imports.push_back(imported);
  }
  for (void* imported : imports) {
    EXPECT_EQ(backend_->Identify(imported).kind, PointerKind::kDevice);
    EXPECT_TRUE(backend_->CloseIpc(imported).ok());
  }
  EXPECT_EQ(backend_->Identify(imports[0]).kind, PointerKind::kUnknown);
}

TEST_P(VendorFaults, DmabufsHoldTheMemory) {
  constexpr uint64_t kBytes = 10'000;
  constexpr uint64_t kOffset = 5'000;
  void* device = Must(backend_->AllocateDevice(0, kBytes));
  auto* inside = static_cast<std::byte*>(device) + kOffset;
  if (Vendor().export_dmabuf.empty()) {
    EXPECT_EQ(backend_->ExportDmabuf(inside).status().code(), ErrorCode::kUnsupported);
  } else {
    uint64_t* pinned = Pinned();
    pinned[0] = 0xD3ABF;
    const std::unique_ptr<Stream> stream = NewStream(*backend_);
    EXPECT_TRUE(stream->CopyAsync(inside, pinned, sizeof(*pinned)).ok());
    EXPECT_TRUE(stream->Synchronize().ok());
    Dmabuf dmabuf = Must(backend_->ExportDmabuf(inside));
    uint64_t there = 0;  // the stand-in's are files
    EXPECT_EQ(
        pread(dmabuf.fd.get(), &there, sizeof(there), static_cast<off_t>(dmabuf.offset_bytes)),
        static_cast<ssize_t>(sizeof(there)));
    EXPECT_EQ(there, 0xD3ABFU);
    EXPECT_EQ(backend_->ExportDmabuf(pinned).status().code(), ErrorCode::kInvalidBuffer);
    const StandInFaults faults = Inject(Vendor().export_dmabuf, "1", Vendor().some_error);
    const Status status = backend_->ExportDmabuf(inside).status();
    EXPECT_THAT(status.message(), HasSubstr(Vendor().export_dmabuf + ": "));
    EXPECT_TRUE(backend_->Free(pinned).ok());
  }
  EXPECT_TRUE(backend_->Free(device).ok());
}

TEST_P(VendorFaults, StreamsOfSeveralDevicesWorkTogether) {
  constexpr uint64_t kBytes = 100'000;
  StatusOr<void*> first = backend_->AllocateDevice(0, kBytes);
  StatusOr<void*> second = backend_->AllocateDevice(1, kBytes);
  StatusOr<void*> pinned = backend_->AllocatePinned(2 * kBytes);
  ASSERT_TRUE(first.ok() && second.ok() && pinned.ok());
  auto* bytes = static_cast<uint8_t*>(*pinned);
  std::memset(bytes, 3, kBytes);
  std::memset(bytes + kBytes, 0, kBytes);
  const std::unique_ptr<Stream> of_first = NewStream(*backend_);
  const std::unique_ptr<Event> event = NewEvent(*backend_);
  std::unique_ptr<Stream> of_second = Must(backend_->CreateStream(1));
  EXPECT_TRUE(of_first->CopyAsync(*first, bytes, kBytes).ok());
  EXPECT_TRUE(of_first->RecordEvent(event.get()).ok());
  EXPECT_TRUE(of_second->WaitEvent(event.get()).ok());
  EXPECT_TRUE(of_second->CopyAsync(*second, *first, kBytes).ok());
  EXPECT_TRUE(of_second->CopyAsync(bytes + kBytes, *second, kBytes).ok());
  EXPECT_TRUE(of_second->Synchronize().ok());
  EXPECT_EQ(std::memcmp(bytes, bytes + kBytes, kBytes), 0);
  for (void* pointer : {*first, *second, *pinned}) {
    EXPECT_TRUE(backend_->Free(pointer).ok());
  }
}

TEST_P(VendorFaults, MadeUpHandlesAreNotImported) {
  IpcHandle handle;
  handle.opaque.fill(0xA5);
  handle.size_bytes = 4096;
  handle.device = 0;
  EXPECT_FALSE(backend_->ImportIpc(handle).ok());
}

INSTANTIATE_TEST_SUITE_P(Vendors, VendorFaults, testing::ValuesIn(VendorsUnderTest()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::gpu
