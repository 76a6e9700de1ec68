// Keys of jobs for Slingshot NICs, which a provider of the tests looks at
// (tests/fixtures/slingshot).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/support/patience.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Ends : public CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte> message) override {
    received = std::string(reinterpret_cast<const char*>(message.data()), message.size());
  }
  void OnComplete(uint64_t, ErrorCode code) override { ended = code; }
  std::string received;
  std::optional<ErrorCode> ended;
};

class SlingshotTest : public testing::Test {
 protected:
  SlingshotTest() {
    // Found by its name when the transport asks for libfabric.
    EXPECT_NE(dlopen(std::filesystem::absolute("tests/fixtures/slingshot/libfabric.so.1").c_str(),
                     RTLD_NOW | RTLD_LOCAL),
              nullptr)
        << dlerror();
    const std::string user = std::to_string(geteuid());
    const std::string other = std::to_string(geteuid() + 1);
    // Two jobs of this user, and one of another.
    setenv("CXI_SERVICES",
           ("cxi0/5/" + user + "/34/0xa cxi1/6/" + user + "/34/0x2 cxi0/7/" + user +
            "/35/0xa cxi0/8/" + other + "/36/0xa")
               .c_str(),
           1);
    setenv("CXI_LOG", log_.c_str(), 1);
    std::ofstream(log_).flush();
  }
  static TransportOptions Options(const std::string& provider, const std::string& nic = "") {
    TransportOptions options;
    options.provider = provider;
    options.domain = nic;
    return options;
  }
  static std::unique_ptr<Transport> Open(const SlingshotWords& words, const std::string& nic = "",
                                         const std::string& provider = "cxi") {
    StatusOr<std::unique_ptr<Transport>> opened =
        CreateOfiTransportOfJob(Options(provider, nic), words);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  static std::string Refusal(const SlingshotWords& words, const std::string& nic = "",
                             const std::string& provider = "cxi") {
    const StatusOr<std::unique_ptr<Transport>> opened =
        CreateOfiTransportOfJob(Options(provider, nic), words);
    EXPECT_FALSE(opened.ok());
    return opened.status().message();
  }
  // Sends a message, and returns what has come of it.
  static Ends Send(Transport& from, Transport& to) {
    const StatusOr<PeerId> peer = from.AddPeer(to.Address());
    EXPECT_TRUE(peer.ok()) << peer.status().ToString();
    constexpr char kText[] = "of one job";
    Ends sent;
    Ends arrived;
    EXPECT_EQ(from.SendMessage(*peer, std::as_bytes(std::span(kText, sizeof(kText) - 1)), {}, 1,
                               MonotonicNs()),
              ErrorCode::kOk);
    const uint64_t deadline_ns = MonotonicNs() + tests::kPatienceNs;
    while (MonotonicNs() < deadline_ns &&
           !(sent.ended && (*sent.ended != ErrorCode::kOk || !arrived.received.empty()))) {
      from.Poll(sent, 16, MonotonicNs());
      to.Poll(arrived, 16, MonotonicNs());
    }
    sent.received = arrived.received;
    return sent;
  }
  std::vector<std::string> Log() const {
    std::vector<std::string> lines;
    std::ifstream log(log_);
    for (std::string line; std::getline(log, line);) {
      lines.push_back(line);
    }
    return lines;
  }

 private:
  const std::string log_ = testing::TempDir() + "/slingshot.log";
};

const SlingshotWords kFirst = {"34", "5,6", "cxi0,cxi1", "0xa"};
const SlingshotWords kSecond = {"35", "7", "cxi0", "0xa"};

TEST_F(SlingshotTest, ProcessesOfAJobMeetByItsKey) {
  const auto one = Open(kFirst);
  const auto two = Open(kFirst, "cxi0");
  ASSERT_TRUE(one && two);
  const Ends ends = Send(*one, *two);
  EXPECT_EQ(ends.ended, ErrorCode::kOk);
  EXPECT_EQ(ends.received, "of one job");
  EXPECT_THAT(one->Describe().fabric, HasSubstr("VNI 34, service 5"));
  EXPECT_THAT(Log(), ElementsAre("cxi0 service 5 vni 34 class 8", "cxi0 service 5 vni 34 class 8"));
}

TEST_F(SlingshotTest, JobsDoNotReachEachOther) {
  const auto one = Open(kFirst);
  const auto two = Open(kSecond);
  ASSERT_TRUE(one && two);
  const Ends ends = Send(*one, *two);
  EXPECT_EQ(ends.ended, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(ends.received, "");
}

TEST_F(SlingshotTest, EachNicHasAServiceOfItsOwn) {
  SlingshotWords words = kFirst;
  words.traffic_classes = "0x2";
  ASSERT_TRUE(Open(words, "cxi1"));
  EXPECT_THAT(Log(), ElementsAre("cxi1 service 6 vni 34 class 2"));
}

TEST_F(SlingshotTest, TheKeyOfAnotherUsersJobIsRefused) {
  EXPECT_THAT(Refusal({"36", "8", "cxi0", "0xa"}),
              HasSubstr("the NIC cxi0 refuses the job's key (VNI 36, service 8"));
  EXPECT_THAT(Refusal({"35", "5", "cxi0", "0xa"}), HasSubstr("VNI 35, service 5"));
}

TEST_F(SlingshotTest, WordsThatMakeNoSenseLeadToNoSharedService) {
  EXPECT_THAT(Refusal({"34", "5", "cxi0,cxi1", "0xa"}), HasSubstr("SLINGSHOT_SVC_IDS"));
  EXPECT_THAT(Refusal(kSecond, "cxi1"), HasSubstr("may not use the NIC cxi1"));
  EXPECT_THAT(Refusal({"nonsense", "5", "cxi0", "0xa"}, "", "auto"),
              HasSubstr("SLINGSHOT_VNIS is 'nonsense'"));
  EXPECT_THAT(Log(), ElementsAre());
}

TEST_F(SlingshotTest, WithoutABatchSystemTheNicsSharedServiceIsTaken) {
  const auto one = Open({});
  ASSERT_TRUE(one);
  EXPECT_THAT(one->Describe().fabric, Not(HasSubstr("VNI")));
  EXPECT_THAT(Log(), ElementsAre("cxi0 shared"));
}

TEST_F(SlingshotTest, OtherProvidersTakeNoKey) {
  ASSERT_TRUE(Open({"nonsense", "5", "cxi0", "0xa"}, "", "tcp"));
  EXPECT_THAT(Log(), ElementsAre());
}

}  // namespace
}  // namespace ferry::transport
