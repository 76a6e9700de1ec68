#include "gpu_backends/api/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

Status Unused() { return {ErrorCode::kUnsupported, "not part of this test"}; }

// Knows the pointers to one object.
class FakeBackend final : public GpuBackend {
 public:
  FakeBackend(std::string name, const void* known) : name_(std::move(name)), known_(known) {}

  std::string_view name() const override { return name_; }
  std::string version() const override { return "1"; }
  int device_count() const override { return 1; }
  PointerInfo Identify(const void* pointer) const override {
    PointerInfo info;
    info.kind = pointer == known_ ? PointerKind::kManaged : PointerKind::kUnknown;
    return info;
  }
  StatusOr<DeviceInfo> GetDeviceInfo(int) const override { return Unused(); }
  StatusOr<void*> AllocateDevice(int, uint64_t) override { return Unused(); }
  StatusOr<void*> AllocatePinned(uint64_t) override { return Unused(); }
  StatusOr<void*> AllocateManaged(int, uint64_t) override { return Unused(); }
  Status Free(void*) override { return Unused(); }
  StatusOr<IpcHandle> ExportIpc(const void*) override { return Unused(); }
  StatusOr<void*> ImportIpc(const IpcHandle&) override { return Unused(); }
  Status CloseIpc(void*) override { return Unused(); }
  StatusOr<Dmabuf> ExportDmabuf(const void*) override { return Unused(); }
  Status LetKernelsReach(int, const void*) override { return Unused(); }
  Status RegisterHostMemory(void*, uint64_t) override { return Unused(); }
  Status UnregisterHostMemory(void*) override { return Unused(); }
  StatusOr<std::unique_ptr<Stream>> CreateStream(int) override { return Unused(); }
  StatusOr<std::unique_ptr<Stream>> AdoptStream(int, void*) override { return Unused(); }
  StatusOr<std::unique_ptr<Event>> CreateEvent(int) override { return Unused(); }

 private:
  const std::string name_;
  const void* const known_;
};

std::unique_ptr<GpuBackend> Fake(const std::string& name, const void* known = nullptr) {
  return std::make_unique<FakeBackend>(name, known);
}

TEST(BackendRegistryTest, FindsBackendsByName) {
  BackendRegistry registry;
  EXPECT_EQ(registry.Find("one"), nullptr);
  ASSERT_TRUE(registry.Add(Fake("one")).ok());
  ASSERT_TRUE(registry.Add(Fake("two")).ok());
  ASSERT_NE(registry.Find("two"), nullptr);
  EXPECT_EQ(registry.Find("two")->name(), "two");
  EXPECT_EQ(registry.Find("three"), nullptr);
}

TEST(BackendRegistryTest, ListsInTheOrderAdded) {
  BackendRegistry registry;
  EXPECT_TRUE(registry.List().empty());
  ASSERT_TRUE(registry.Add(Fake("b")).ok());
  ASSERT_TRUE(registry.Add(Fake("a")).ok());
  ASSERT_EQ(registry.List().size(), 2u);
  EXPECT_EQ(registry.List()[0]->name(), "b");
  EXPECT_EQ(registry.List()[1]->name(), "a");
}

TEST(BackendRegistryTest, FirstBackendThatKnowsAPointerWins) {
  int mine = 0;
  int nobodys = 0;
  BackendRegistry registry;
  EXPECT_EQ(registry.Identify(&mine).backend, nullptr);
  ASSERT_TRUE(registry.Add(Fake("other", &registry)).ok());
  ASSERT_TRUE(registry.Add(Fake("first", &mine)).ok());
  ASSERT_TRUE(registry.Add(Fake("second", &mine)).ok());
  const BackendRegistry::Match match = registry.Identify(&mine);
  ASSERT_NE(match.backend, nullptr);
  EXPECT_EQ(match.backend->name(), "first");
  EXPECT_EQ(match.info.kind, PointerKind::kManaged);
  EXPECT_EQ(registry.Identify(&nobodys).backend, nullptr);
}

TEST(BackendRegistryTest, RejectsNullAndNamesThatAreTaken) {
  BackendRegistry registry;
  EXPECT_EQ(registry.Add(nullptr).code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(registry.Add(Fake("one")).ok());
  ExpectFails(registry.Add(Fake("one")), ErrorCode::kAlreadyExists, "'one'");
}

TEST(BackendRegistryTest, RejectsMoreThanItHolds) {
  BackendRegistry registry;
  for (size_t i = 0; i < BackendRegistry::kMaxBackends; ++i) {
    ASSERT_TRUE(registry.Add(Fake(std::to_string(i))).ok());
  }
  EXPECT_EQ(registry.Add(Fake("more")).code(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(registry.List().size(), BackendRegistry::kMaxBackends);
}

}  // namespace
}  // namespace ferry::gpu
