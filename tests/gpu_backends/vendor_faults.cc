#include "tests/gpu_backends/vendor_faults.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "shm/atomic.h"
#include "tests/gpu_backends/vendor_scenario.h"

namespace ferry::gpu {
namespace {

class VendorFaults : public testing::TestWithParam<VendorUnderTest> {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<GpuBackend>> created = Create();
    ASSERT_TRUE(created.ok()) << created.status().ToString();
    backend_ = std::move(*created);
  }

  static const VendorUnderTest& Vendor() { return GetParam(); }
  static StatusOr<std::unique_ptr<GpuBackend>> Create() {
    return Vendor().create(Vendor().library);
  }
  static std::string Fault(const std::string& call, const std::string& count, int error) {
    return call + ":" + count + ":" + std::to_string(error);
  }
  // The first device's; fail the test where the backend refuses.
  uint64_t* Pinned() {
    StatusOr<void*> pinned = backend_->AllocatePinned(4096);
    EXPECT_TRUE(pinned.ok()) << pinned.status().ToString();
    std::memset(*pinned, 0, 4096);
    return static_cast<uint64_t*>(*pinned);
  }
  static std::unique_ptr<Stream> NewStream(GpuBackend& backend) {
    StatusOr<std::unique_ptr<Stream>> stream = backend.CreateStream(0);
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    return std::move(*stream);
  }
  static std::unique_ptr<Event> NewEvent(GpuBackend& backend) {
    StatusOr<std::unique_ptr<Event>> event = backend.CreateEvent(0);
    EXPECT_TRUE(event.ok()) << event.status().ToString();
    return std::move(*event);
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
      const StandInFaults faults(Vendor().library, Fault(call, "1+", Vendor().some_error));
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
      const StandInFaults faults(Vendor().library,
                                 Fault("*", std::to_string(number), Vendor().some_error));
      const StatusOr<std::unique_ptr<GpuBackend>> backend = Create();
      noticed += !backend.ok() || !UseEverything(**backend).empty();
    }
    ExpectAllWorks(*backend_, "call " + std::to_string(number));
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_GT(noticed, 30);  // else they did not fail
}

TEST_P(VendorFaults, OutOfMemoryIsToldAsSuch) {
  const StandInFaults faults(Vendor().library,
                             Fault(Vendor().allocate_device, "1", Vendor().out_of_memory) + "," +
                                 Fault(Vendor().allocate_pinned, "1", Vendor().out_of_memory));
  EXPECT_EQ(backend_->AllocateDevice(0, 4096).status().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(backend_->AllocatePinned(4096).status().code(), ErrorCode::kOutOfMemory);
}

TEST_P(VendorFaults, ACopyThatFailsUnderWayPoisonsItsStream) {
  StatusOr<void*> device = backend_->AllocateDevice(0, 4096);
  ASSERT_TRUE(device.ok());
  uint64_t* pinned = Pinned();
  {
    const StandInFaults faults(Vendor().library,
                               Fault(Vendor().copy + ".run", "1", Vendor().device_lost));
    const std::unique_ptr<Stream> stream = NewStream(*backend_);
    const std::unique_ptr<Event> event = NewEvent(*backend_);
    // Held back until all is enqueued: any call may be the first to tell.
    EXPECT_TRUE(stream->WaitValue64(pinned, 1, WaitCondition::kEqual).ok());
    EXPECT_TRUE(stream->CopyAsync(*device, pinned + 8, 2048).ok());
    EXPECT_TRUE(stream->RecordEvent(event.get()).ok());
    shm::StoreRelease(*pinned, 1);
    const Status status = stream->Synchronize();
    EXPECT_EQ(status.code(), ErrorCode::kSystem);
    EXPECT_NE(status.message().find(Vendor().device_lost_name), std::string::npos)
        << status.ToString();
    EXPECT_FALSE(stream->CopyAsync(*device, pinned + 8, 2048).ok());
    EXPECT_FALSE(stream->Query().ok());
    EXPECT_FALSE(event->Synchronize().ok());
  }
  ExpectAllWorks(*backend_, "the failure");
  EXPECT_TRUE(backend_->Free(*device).ok());
  EXPECT_TRUE(backend_->Free(pinned).ok());
}

// A stream waits for what will not come; the device goes away.
TEST_P(VendorFaults, ALostDeviceEndsAllWaits) {
  uint64_t* pinned = Pinned();
  {
    const StandInFaults faults(Vendor().library,
                               Fault(Vendor().device_info, "1", Vendor().device_lost));
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
  StatusOr<std::unique_ptr<GpuBackend>> again = Create();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  ExpectAllWorks(**again, "the device is back");
}

TEST_P(VendorFaults, MemoryOfAProcessThatIsGoneIsNotImported) {
  const std::string command =
      "tests/gpu_backends/ipc_exporter " + Vendor().exporter + " " + Vendor().library;
  FILE* exporter = popen(command.c_str(), "r");
  ASSERT_NE(exporter, nullptr);
  IpcHandle handle;
  for (uint8_t& byte : handle.opaque) {
    unsigned value = 0;
    ASSERT_EQ(std::fscanf(exporter, "%2x", &value), 1) << command;
    byte = static_cast<uint8_t>(value);
  }
  ASSERT_EQ(pclose(exporter), 0);
  handle.size_bytes = 4096;
  handle.device = 0;
  const Status status = backend_->ImportIpc(handle).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("Ipc"), std::string::npos) << status.ToString();
  ExpectAllWorks(*backend_, "the import");
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
