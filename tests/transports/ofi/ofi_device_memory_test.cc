// Device memory over libfabric: a provider of the tests reaches it (tests/fixtures/device_nic).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "tests/support/patience.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::transport {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = 3 << 20;
constexpr uint64_t kOffset = 4096 * 3;  // of what is registered, in the dma-buf
constexpr uintptr_t kNowhere = uintptr_t{1} << 62;

// Memory that CPUs do not reach where the others say that it is.
class Device {
 public:
  Device() : fd_(memfd_create("device", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), kOffset + kBytes), 0);
    whole_ = static_cast<std::byte*>(
        mmap(nullptr, kOffset + kBytes, PROT_NONE, MAP_SHARED, fd_.get(), 0));
  }
  ~Device() { munmap(whole_, kOffset + kBytes); }
  std::byte* address() const { return whole_ + kOffset; }
  DeviceMemory ByAddress() const {
    return {.interface = DeviceMemory::Interface::kCuda, .device = 1, .is_mapped = true};
  }
  DeviceMemory ByDmabuf() const {
    return {.interface = DeviceMemory::Interface::kLevelZero,
            .dmabuf = fd_.get(),
            .dmabuf_begin = kNowhere};
  }
  std::byte* nowhere() const { return reinterpret_cast<std::byte*>(kNowhere + kOffset); }
  void Put(const std::vector<char>& bytes) const {
    EXPECT_EQ(pwrite(fd_.get(), bytes.data(), bytes.size(), kOffset),
              static_cast<ssize_t>(bytes.size()));
  }
  std::vector<char> Get() const {
    std::vector<char> bytes(kBytes);
    EXPECT_EQ(pread(fd_.get(), bytes.data(), kBytes, kOffset), static_cast<ssize_t>(kBytes));
    return bytes;
  }

 private:
  const UniqueFd fd_;
  std::byte* whole_ = nullptr;
};

std::vector<char> Pattern(int seed) {
  std::vector<char> bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 7 + i / 4096 + static_cast<size_t>(seed));
  }
  return bytes;
}

class Ends : public CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t, ErrorCode code) override { codes.push_back(code); }
  std::vector<ErrorCode> codes;
};

class OfiDeviceMemoryTest : public testing::TestWithParam<const char*> {
 protected:
  // Opens one where the card offers that, and refuses with that error.
  std::unique_ptr<Transport> Open(const char* offers, const char* refuses = "") {
    setenv("GPU_NIC", offers, 1);
    setenv("GPU_NIC_REFUSES", refuses, 1);
    setenv("GPU_NIC_LOG", log_.c_str(), 1);
    std::ofstream(log_).flush();
    // Found by its name when the transport asks for libfabric.
    EXPECT_NE(dlopen(std::filesystem::absolute("tests/fixtures/device_nic/libfabric.so.1").c_str(),
                     RTLD_NOW | RTLD_LOCAL),
              nullptr)
        << dlerror();
    TransportOptions options;
    options.provider = GetParam();
    options.reach_devices = true;
    StatusOr<std::unique_ptr<Transport>> opened = CreateOfiTransport(options);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  static StatusOr<MemoryRegion> Register(Transport& transport, const DeviceMemory& memory,
                                         std::byte* base, uint64_t bytes = kBytes) {
    auto prepared = transport.PrepareDeviceMemory(memory, base, bytes, Access::kRemoteRead);
    return prepared.ok() ? transport.AdoptMemory(std::move(*prepared)) : prepared.status();
  }
  // Reads all of one registration into another one.
  static ErrorCode Read(Transport& from, const MemoryRegion& source, Transport& to,
                        const MemoryRegion& destination, std::byte* local) {
    const StatusOr<PeerId> peer = to.AddPeer(from.Address());
    EXPECT_TRUE(peer.ok());
    RmaRequest request;
    request.peer = *peer;
    request.local = local;
    request.region = destination.handle;
    request.remote_address = source.remote_base;
    request.key = source.key;
    request.bytes = kBytes;
    const ErrorCode posted = to.Read(request, MonotonicNs());
    if (posted != ErrorCode::kOk) {
      return posted;
    }
    Ends ends;
    const uint64_t limit_ns = MonotonicNs() + tests::kPatienceNs;
    while (ends.codes.empty() && MonotonicNs() < limit_ns) {
      (void)from.Poll(ends, 16, MonotonicNs());
      (void)to.Poll(ends, 16, MonotonicNs());
    }
    return ends.codes.empty() ? ErrorCode::kTimeout : ends.codes[0];
  }
  std::string Log() const {
    std::ifstream log(log_);
    return {std::istreambuf_iterator<char>(log), {}};
  }

  const std::string log_ = testing::TempDir() + "/nic.log";
};

TEST_P(OfiDeviceMemoryTest, IsReadByAddressAndByDmabuf) {
  const auto one = Open("address,dmabuf");
  const auto other = Open("address,dmabuf");
  ASSERT_TRUE(one != nullptr && other != nullptr);
  EXPECT_TRUE(one->capabilities().reaches_devices);
  EXPECT_TRUE(one->capabilities().takes_dmabufs);
  const Device here;
  const Device there;
  there.Put(Pattern(5));
  const auto source = Register(*one, there.ByDmabuf(), there.nowhere());
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  const auto destination = Register(*other, here.ByAddress(), here.address());
  ASSERT_TRUE(destination.ok()) << destination.status().ToString();
  EXPECT_EQ(Read(*one, *source, *other, *destination, here.address()), ErrorCode::kOk);
  EXPECT_EQ(here.Get(), Pattern(5));
  // Nothing beyond the registration, at either end.
  EXPECT_EQ(Read(*one, *source, *other, *destination, here.address() + 1),
            ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(one->DeregisterMemory(source->handle).ok());
  EXPECT_TRUE(other->DeregisterMemory(destination->handle).ok());
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("register ze dmabuf " + std::to_string(kBytes)));
  EXPECT_THAT(log, HasSubstr("register cuda address " + std::to_string(kBytes)));
  EXPECT_THAT(log, HasSubstr("read " + std::to_string(kBytes)));
  EXPECT_THAT(log, testing::Not(HasSubstr("bad")));
}

// Where the dma-buf is refused, the address may do.
TEST_P(OfiDeviceMemoryTest, TheOtherWayIsTried) {
  const auto nic = Open("address");
  ASSERT_NE(nic, nullptr);
  EXPECT_FALSE(nic->capabilities().takes_dmabufs);
  const Device device;
  DeviceMemory both = device.ByAddress();
  both.dmabuf = device.ByDmabuf().dmabuf;
  both.dmabuf_begin = reinterpret_cast<uintptr_t>(device.address()) - kOffset;
  EXPECT_TRUE(Register(*nic, both, device.address()).ok());
  const auto neither = Register(*nic, device.ByDmabuf(), device.nowhere());
  EXPECT_EQ(neither.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(neither.status().message(), HasSubstr("dma-buf"));
}

TEST_P(OfiDeviceMemoryTest, ARefusalIsNamed) {
  const auto nic = Open("address,dmabuf", "12");
  ASSERT_NE(nic, nullptr);
  const Device device;
  const auto refused = Register(*nic, device.ByDmabuf(), device.nowhere());
  EXPECT_EQ(refused.status().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(refused.status().message(), HasSubstr("fi_mr_regattr with a dma-buf of 3145728"));
}

TEST_P(OfiDeviceMemoryTest, WithoutTheCapabilityNothingChanges) {
  const auto nic = Open("nothing");
  ASSERT_NE(nic, nullptr);
  EXPECT_FALSE(nic->capabilities().reaches_devices);
  const Device device;
  const auto refused = Register(*nic, device.ByAddress(), device.address());
  EXPECT_EQ(refused.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("FI_HMEM"));
  std::vector<std::byte> memory(kBytes);
  EXPECT_TRUE(nic->RegisterMemory(memory.data(), kBytes, Access::kRemoteRead).ok());
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiDeviceMemoryTest, testing::Values("tcp;ofi_rxm", "sockets"),
                         [](const auto& info) {
                           return std::string(info.param) == "sockets" ? "Sockets" : "Rxm";
                         });

}  // namespace
}  // namespace ferry::transport
