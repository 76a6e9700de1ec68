// Planes whose network card (tests/fixtures/device_nic) reaches device memory, as dma-bufs.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/internode/core/progress_one_sided_fixture.h"

namespace ferry::daemon {

inline constexpr uint64_t kMiB = 1 << 20;
inline constexpr uint64_t kSourceOffset = 128;
inline constexpr uint64_t kDestinationOffset = 4 * kMiB + 64;

enum class Kind { kHeap, kPrivate, kDevice };

struct Ends {
  const char* name;
  Kind source;
  Kind destination;
};
inline constexpr Ends kBoth{"", Kind::kDevice, Kind::kDevice};

class NicDeviceTest : public ProgressOneSidedTest {
 protected:
  NicDeviceTest() {
    setenv("GPU_NIC", "dmabuf", 1);
    setenv("GPU_NIC_REFUSES", "", 1);
    setenv("GPU_NIC_TAKES", "", 1);
    setenv("GPU_NIC_LOG", log_.c_str(), 1);
    std::ofstream(log_).flush();
    // It is there when the planes ask for libfabric by its name.
    EXPECT_NE(dlopen(std::filesystem::absolute("tests/fixtures/device_nic/libfabric.so.1").c_str(),
                     RTLD_NOW | RTLD_LOCAL),
              nullptr)
        << dlerror();
    UseDevices(4000, 5000);
    amend_device_ = [](Region& region) {
      region.dmabuf.Reset(fcntl(region.fd.get(), F_DUPFD_CLOEXEC, 0));
      region.backend = "cuda";
    };
  }
  void TearDown() override {
    ProgressOneSidedTest::TearDown();
    EXPECT_THAT(Log(), testing::Not(testing::HasSubstr("bad")));
  }
  std::string Log() const {
    std::ifstream log(log_);
    return {std::istreambuf_iterator<char>(log), {}};
  }

  struct Message {
    Ends ends;
    std::vector<std::byte> sent;
    std::vector<std::byte> got;
    Passage passage = {};
  };
  static shm::Location Place(Kind kind, uint64_t offset, const void* address) {
    return kind == Kind::kHeap     ? InHeap(offset)
           : kind == Kind::kDevice ? InDevice(offset)
                                   : Private(address);
  }
  std::byte* At(uint32_t of_rank, Kind kind, uint64_t offset) {
    return (kind == Kind::kHeap ? rank(of_rank).heap() : rank(of_rank).device()) + offset;
  }
  // Makes a message: the data to send lie at their place, and other bytes at the destination.
  Message Make(const Ends& ends, uint64_t size_bytes) {
    Message message{ends, Pattern(size_bytes, seed_++), std::vector<std::byte>(size_bytes)};
    if (ends.source != Kind::kPrivate) {
      std::memcpy(At(0, ends.source, kSourceOffset), message.sent.data(), size_bytes);
    }
    if (ends.destination != Kind::kPrivate) {
      std::memset(At(1, ends.destination, kDestinationOffset), 0, size_bytes);
    }
    return message;
  }
  Message Begin(const Ends& ends, uint64_t size_bytes) {
    Message message = Make(ends, size_bytes);
    message.passage = PlaneTest::Begin(
        0, 1, Place(ends.source, kSourceOffset, message.sent.data()),
        Place(ends.destination, kDestinationOffset, message.got.data()), size_bytes, 7);
    return message;
  }
  void ExpectThere(const Message& message) {
    const std::byte* const where = message.ends.destination == Kind::kPrivate
                                       ? message.got.data()
                                       : At(1, message.ends.destination, kDestinationOffset);
    EXPECT_TRUE(std::equal(message.sent.begin(), message.sent.end(), where));
  }
  void ExpectPassed(const Message& message) {
    ExpectEnd(message.passage);
    ExpectThere(message);
  }
  // How many messages have come to rank 1 by that path.
  uint64_t Came(shm::Path path) { return rank(1).Statistic(shm::Statistics::MessagesOf(path)); }
  // A message between devices whose reads the card has taken, and does not carry out.
  void BeginHeld(Message* message) {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    gate(1).closed = true;
    *message = Begin(kBoth, kMiB);
    ASSERT_TRUE(Meanwhile([&] { return gate(1).held != 0; }));
  }
  // Begins to remove the device region of a node's rank. The node's thread carries out its orders
  // one after the other, so the removal is under way when another call has been answered.
  std::future<void> BeginToRemove(uint32_t node) {
    const auto removed = std::make_shared<std::promise<void>>();
    plane(node).RemoveRegion(kJob, node, kDeviceRegion, [removed] { removed->set_value(); });
    (void)plane(node).Inspect(kJob, node);
    return removed->get_future();
  }
  // Registrations of ranks' memory.
  uint64_t Registered(uint32_t node) { return plane(node).Registered().entries; }

  uint32_t seed_ = 3;
  const std::string log_ = testing::TempDir() + "/nic.log";
};

}  // namespace ferry::daemon
