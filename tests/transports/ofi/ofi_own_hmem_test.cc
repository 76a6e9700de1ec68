// Device memory over the installed libfabric's own providers, as far as they take part: with
// FI_HMEM, memory of CPUs has to move as ever, and device memory is read right or refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/support/patience.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::transport {
namespace {

constexpr uint64_t kBytes = 1 << 20;

class Ends : public CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t, ErrorCode code) override { codes.push_back(code); }
  std::vector<ErrorCode> codes;
};

struct Memory {
  const char* name;
  DeviceMemory::Interface interface;
};

class OfiOwnHmemTest : public testing::TestWithParam<const char*> {
 protected:
  // Null, with a reason: the provider is not there.
  static std::unique_ptr<Transport> Open(bool reaches, std::string* why) {
    TransportOptions options;
    options.provider = GetParam();
    options.reach_devices = reaches;
    StatusOr<std::unique_ptr<Transport>> opened = CreateOfiTransport(options);
    *why = opened.ok() ? "" : opened.status().ToString();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  void SetUp() override {
    std::string why;
    if (one_ = Open(true, &why); one_ == nullptr) {
      GTEST_SKIP() << "this libfabric has no " << GetParam() << " here: " << why;
    }
    if (!one_->capabilities().reaches_devices) {
      GTEST_SKIP() << "provider " << GetParam() << " of " << one_->Describe().version
                   << " has no FI_HMEM";
    }
    other_ = Open(true, &why);
    ASSERT_NE(other_, nullptr) << why;
  }
  ErrorCode Read(const MemoryRegion& source, const MemoryRegion& destination, void* local) {
    const StatusOr<PeerId> peer = other_->AddPeer(one_->Address());
    EXPECT_TRUE(peer.ok()) << peer.status().ToString();
    RmaRequest request;
    request.peer = *peer;
    request.local = static_cast<std::byte*>(local);
    request.region = destination.handle;
    request.remote_address = source.remote_base;
    request.key = source.key;
    request.bytes = kBytes;
    Ends ends;
    const uint64_t limit_ns = MonotonicNs() + tests::kPatienceNs;
    ErrorCode posted = ErrorCode::kWouldBlock;  // until the two are connected
    while (MonotonicNs() < limit_ns &&
           (posted = other_->Read(request, MonotonicNs())) == ErrorCode::kWouldBlock) {
      Poll(&ends);
    }
    while (posted == ErrorCode::kOk && ends.codes.empty() && MonotonicNs() < limit_ns) {
      Poll(&ends);
    }
    return posted != ErrorCode::kOk ? posted
           : ends.codes.empty()     ? ErrorCode::kTimeout
                                    : ends.codes[0];
  }
  void Poll(Ends* ends) {
    (void)one_->Poll(*ends, 16, MonotonicNs());
    (void)other_->Poll(*ends, 16, MonotonicNs());
  }

  std::unique_ptr<Transport> one_;
  std::unique_ptr<Transport> other_;
};

TEST_P(OfiOwnHmemTest, MemoryOfCpusMovesAsEver) {
  std::vector<char> from(kBytes);
  std::vector<char> to(kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) {
    from[i] = static_cast<char>(i * 7 + i / 4096);
  }
  const auto source = one_->RegisterMemory(from.data(), kBytes, Access::kRemoteRead);
  const auto destination = other_->RegisterMemory(to.data(), kBytes, Access::kLocal);
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  ASSERT_TRUE(destination.ok()) << destination.status().ToString();
  EXPECT_EQ(Read(*source, *destination, to.data()), ErrorCode::kOk);
  EXPECT_EQ(from, to);
}

// The installed library knows nothing of the stand-ins' drivers: what it does not take, it says.
TEST_P(OfiOwnHmemTest, DeviceMemoryIsTakenOrRefusedInWords) {
  void* const nobodys = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nobodys, MAP_FAILED);
  std::string refusals;
  for (const Memory& memory : {Memory{"CUDA", DeviceMemory::Interface::kCuda},
                               Memory{"ROCR", DeviceMemory::Interface::kRocr},
                               Memory{"ZE", DeviceMemory::Interface::kLevelZero}}) {
    SCOPED_TRACE(memory.name);
    const DeviceMemory device{.interface = memory.interface, .is_mapped = true};
    auto prepared = one_->PrepareDeviceMemory(device, nobodys, kBytes, Access::kRemoteRead);
    const StatusOr<MemoryRegion> taken =
        prepared.ok() ? one_->AdoptMemory(std::move(*prepared)) : prepared.status();
    if (taken.ok()) {
      EXPECT_TRUE(one_->DeregisterMemory(taken->handle).ok());
      continue;
    }
    EXPECT_THAT(taken.status().message(), testing::HasSubstr("fi_mr_regattr with an address"));
    refusals += std::string(memory.name) + ": " + taken.status().message() + "\n";
  }
  munmap(nobodys, kBytes);
  if (!refusals.empty()) {
    GTEST_SKIP() << one_->Describe().version << " was built without these: " << refusals;
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiOwnHmemTest,
                         testing::Values("shm", "tcp;ofi_rxm", "sockets", "net"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find(';'));
                         });

}  // namespace
}  // namespace ferry::transport
