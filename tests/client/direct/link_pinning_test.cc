// Links over a network that pins memory, as cards do: `net` stands in, behind a layer that says so
// and counts what is pinned.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "client/direct/direct_home.h"
#include "client/direct/memory_monitor.h"
#include "common/version.h"
#include "tests/client/direct/links_fixture.h"
#include "transports/api/forwarding_transport.h"
#include "transports/greeting/greeting_transport.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::client {
namespace {

using transport::Access;
using transport::Registration;

// The pins that ranks have made, by address: tests ask how many cover a byte.
class Pins {
 public:
  void Add(const void* base, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    live_.insert({reinterpret_cast<uintptr_t>(base), bytes});
    ++made_;
  }
  void Remove(const void* base, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    live_.erase(live_.find({reinterpret_cast<uintptr_t>(base), bytes}));
  }
  uint64_t made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  // How many cover this byte.
  size_t Covering(const void* byte) const {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<uintptr_t>(byte);
    size_t count = 0;
    for (const auto& [base, bytes] : live_) {
      count += base <= address && address - base < bytes ? 1 : 0;
    }
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<std::pair<uintptr_t, uint64_t>> live_;
  uint64_t made_ = 0;
} pins;

std::atomic<bool> refuses = false;  // to pin memory of the program

struct Pinned final : Registration {
  Pinned(void* base, uint64_t bytes, std::unique_ptr<Registration> real)
      : base(base), bytes(bytes), real(std::move(real)) {
    pins.Add(base, bytes);
  }
  ~Pinned() override { pins.Remove(base, bytes); }
  void* const base;
  const uint64_t bytes;
  std::unique_ptr<Registration> real;
};

class PinningTransport final : public transport::ForwardingTransport {
 public:
  explicit PinningTransport(std::unique_ptr<transport::Transport> real)
      : ForwardingTransport(*real), real_(std::move(real)), capabilities_(real_->capabilities()) {
    capabilities_.pins = true;
  }
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    if (refuses) {
      return Status(ErrorCode::kSystem, "no");
    }
    auto real = real_->PrepareMemory(base, bytes, access);
    FERRY_RETURN_IF_ERROR(real.status());
    return std::unique_ptr<Registration>(new Pinned(base, bytes, std::move(*real)));
  }
  StatusOr<transport::MemoryRegion> AdoptMemory(std::unique_ptr<Registration> prepared) override {
    auto& pinned = static_cast<Pinned&>(*prepared);
    auto adopted = real_->AdoptMemory(std::move(pinned.real));
    if (adopted.ok()) {
      adopted_[adopted->handle] = std::move(prepared);
    }
    return adopted;
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(transport::RegionHandle region) override {
    auto real = real_->ReleaseMemory(region);
    FERRY_RETURN_IF_ERROR(real.status());
    auto prepared = std::move(adopted_[region]);
    adopted_.erase(region);
    static_cast<Pinned&>(*prepared).real = std::move(*real);
    return std::unique_ptr<Registration>(std::move(prepared));
  }

 private:
  const std::unique_ptr<transport::Transport> real_;
  transport::Capabilities capabilities_;
  std::map<transport::RegionHandle, std::unique_ptr<Registration>> adopted_;
};

StatusOr<std::unique_ptr<DirectLinks>> Open(const DirectSetup& setup, DirectHost* host) {
  transport::TransportOptions options;
  options.provider = "net";
  options.source_address = setup.source_address;
  options.receive_buffer_bytes += transport::kGreetingOverheadBytes;
  options.attachment_bytes = 0;
  auto opened = transport::CreateOfiTransport(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  auto greeting =
      transport::CreateGreetingTransport(std::make_unique<PinningTransport>(std::move(*opened)));
  FERRY_RETURN_IF_ERROR(greeting.status());
  return DirectHome::Create(setup, host, std::move(*greeting));
}

const DirectApi* Entry() {
  static constexpr DirectApi kApi = {kDirectApiVersion, kLayoutVersion, Open};
  return &kApi;
}

[[maybe_unused]] const bool chosen = [] {
  direct_entry = Entry;
  return true;
}();

constexpr size_t kLong = 1 << 20;

std::byte* Map(size_t bytes, void* at = nullptr) {
  void* const base = mmap(at, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  EXPECT_NE(base, MAP_FAILED);
  return static_cast<std::byte*>(base);
}

class LinkPinningTest : public LinksTest {
 protected:
  void SetUp() override {
    refuses = false;
    watches_ = MemoryMonitor::Create().ok();
    ASSERT_NO_FATAL_FAILURE(StartLinked());
  }
  void TearDown() override { refuses = false; }
  // A message from there to there, with other bytes each time.
  void CarryLong(const std::byte* to, std::byte* from, size_t bytes = kLong) {
    const std::vector<std::byte> sent = Pattern(bytes, ++seed_);
    std::memcpy(from, sent.data(), bytes);
    Passage passage{0, 1};
    passage.send = rank(0).SendFrom(1, 7, Private(from), bytes);
    passage.receive = rank(1).Receive(0, 7, Private(to), bytes);
    ExpectEnd(passage);
    ASSERT_EQ(std::memcmp(to, sent.data(), bytes), 0);
  }

  bool watches_ = false;
  uint32_t seed_ = 0;
};

TEST_F(LinkPinningTest, MessagesOfAllSizesArrive) {
  for (const size_t bytes : {1UL, 8192UL, 8193UL, 32767UL, 32768UL, 65536UL, 262145UL, 5000001UL}) {
    SCOPED_TRACE(bytes);
    const std::vector<std::byte> sent = Pattern(bytes, 1);
    std::vector<std::byte> there(bytes), back(bytes);
    for (int i = 0; i < 3; ++i) {
      Passage out{0, 1}, in{1, 0};
      out.receive = rank(1).Receive(0, 7, Private(there.data()), bytes);
      in.receive = rank(0).Receive(1, 7, Private(back.data()), bytes);
      out.send = rank(0).Send(1, 7, sent.data(), bytes);
      in.send = rank(1).Send(0, 7, sent.data(), bytes);
      ExpectEnd(out);
      ExpectEnd(in);
      ASSERT_EQ(there, sent);
      ASSERT_EQ(back, sent);
    }
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkPinningTest, LongDataStaysPinned) {
  if (!watches_) {
    GTEST_SKIP() << "this system does not let us watch memory";
  }
  std::byte* const from = Map(kLong);
  std::byte* const to = Map(kLong);
  CarryLong(to, from);
  EXPECT_EQ(pins.Covering(from), 1U);
  EXPECT_EQ(pins.Covering(to), 1U);
  const uint64_t made = pins.made();
  for (int i = 0; i < 20; ++i) {
    CarryLong(to, from);
  }
  EXPECT_EQ(pins.made(), made);
  munmap(from, kLong);
  munmap(to, kLong);
}

TEST_F(LinkPinningTest, OtherMemoryAtTheSameAddressIsPinnedAnew) {
  std::byte* const from = Map(kLong);
  std::byte* const to = Map(kLong);
  CarryLong(to, from);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const uint64_t made = pins.made();
    std::byte* const changed = i % 2 == 0 ? from : to;
    if (i % 3 == 0) {
      munmap(changed, kLong);
    }
    ASSERT_EQ(Map(kLong, changed), changed);
    CarryLong(to, from);
    EXPECT_EQ(pins.made(), made + (watches_ ? 1 : 0));
    // The earlier pins had gone before more memory was pinned.
    EXPECT_EQ(pins.Covering(from), watches_ ? 1U : 0U);
    EXPECT_EQ(pins.Covering(to), watches_ ? 1U : 0U);
  }
  munmap(from, kLong);
  munmap(to, kLong);
}

TEST_F(LinkPinningTest, FreeMallocAndRealloc) {
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    auto* from = static_cast<std::byte*>(std::malloc(kLong));
    auto* to = static_cast<std::byte*>(std::malloc(kLong));
    CarryLong(to, from);
    from = static_cast<std::byte*>(std::realloc(from, 4 * kLong));
    CarryLong(to, from);
    std::free(to);
    to = static_cast<std::byte*>(std::malloc(2 * kLong));
    CarryLong(to, from, 2 * kLong);
    std::free(from);
    std::free(to);
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkPinningTest, PagesThatWereDroppedArePinnedAnew) {
  if (!watches_) {
    GTEST_SKIP() << "this system does not let us watch memory";
  }
  std::byte* const from = Map(kLong);
  std::byte* const to = Map(kLong);
  CarryLong(to, from);
  const uint64_t made = pins.made();
  ASSERT_EQ(madvise(from, kLong, MADV_DONTNEED), 0);
  CarryLong(to, from);
  EXPECT_EQ(pins.made(), made + 1);
  munmap(from, kLong);
  munmap(to, kLong);
}

// Then it is copied, by way of memory that was pinned before.
TEST_F(LinkPinningTest, MemoryThatCannotBePinnedIsCopied) {
  std::byte* const from = Map(kLong);
  std::byte* const to = Map(kLong);
  CarryLong(to, from, 40'000);  // there is staging memory now, perhaps
  const std::vector<std::byte> sent = Pattern(20'000, 3);
  std::vector<std::byte> got(20'000);
  for (const auto& [one, other] : {std::pair{0U, 1U}, std::pair{1U, 0U}}) {  // and at both ends
    Passage passage{one, other};
    passage.receive =
        rank(other).Receive(static_cast<int32_t>(one), 8, Private(got.data()), got.size());
    passage.send = rank(one).Send(other, 8, sent.data(), sent.size());
    ExpectEnd(passage);
  }
  munmap(from, kLong);
  munmap(to, kLong);
  std::byte* const fresh = Map(kLong);
  std::byte* const fresh_too = Map(kLong);
  refuses = true;
  CarryLong(fresh_too, fresh);
  CarryLong(fresh_too, fresh);
  EXPECT_EQ(pins.Covering(fresh), 0U);
  munmap(fresh, kLong);
  munmap(fresh_too, kLong);
}

TEST_F(LinkPinningTest, IdleRankSleeps) {
  std::byte* const from = Map(kLong);
  std::byte* const to = Map(kLong);
  CarryLong(to, from);
  ExpectIdle(0, 1);
  uint64_t next_ns = 0;
  EXPECT_TRUE(rank(0).TryRest(1'000'000, &next_ns));
  munmap(from, kLong);
  munmap(to, kLong);
}

}  // namespace
}  // namespace ferry::client
