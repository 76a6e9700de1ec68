// Device memory between nodes over a network card that reaches it (tests/fixtures/device_nic): by
// its address, or as a dma-buf; and where the card refuses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/e2e/vendors.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

// The card's notes.
struct Notes {
  std::vector<std::string> bad;
  std::map<std::string, int> lines;  // by their first words
  uint64_t read_bytes = 0;           // into device memory
  uint64_t written_bytes = 0;        // from there
};

class DeviceNic {
 public:
  explicit DeviceNic(const std::string& offers) : offers_(offers) {
    std::ofstream(directory_ / "log").flush();
  }

  // Two ranks on two nodes whose daemons have the card.
  std::string Run(const Vendor& vendor, const std::string& provider, const Words& more = {},
                  const Words& what = {"few"}) const {
    return RunProgram({"-n", "2", "--nodes", "2"},
                      Joined({"tests/e2e/ranks/own_memory", vendor.name}, what), vendor, provider,
                      more);
  }
  // Returns ferryctl's answer there.
  std::string Ask(const std::string& question, const Vendor& vendor,
                  const std::string& provider) const {
    return RunProgram(
        {"-n", "1"},
        {"/bin/sh", "-c", "exec \"$0\" " + question + " --json", "tools/ferryctl/ferryctl"}, vendor,
        provider);
  }
  std::string RunProgram(const Words& placement, const Words& program, const Vendor& vendor,
                         const std::string& provider, const Words& more = {}) const {
    const std::string library =
        std::filesystem::absolute("tests/fixtures/device_nic/libfabric.so.1").parent_path();
    const Words card = {"LD_LIBRARY_PATH=" + library, "GPU_NIC=" + offers_,
                        "GPU_NIC_LOG=" + (directory_ / "log"), "FERRY_PROVIDER=" + provider};
    return RunWell(PrivateJob(placement, program), Joined(vendor.variables(), Joined(card, more)));
  }

  Notes Read() const {
    Notes notes;
    std::ifstream log(directory_ / "log");
    for (std::string line; std::getline(log, line);) {
      std::istringstream words(line);
      std::string first;
      std::string way;
      words >> first;
      if (first == "bad:") {
        notes.bad.push_back(line);
      } else if (first == "read") {
        uint64_t bytes = 0;
        words >> bytes;
        notes.read_bytes += bytes;
      } else if (first == "write" || first == "deferred") {
        uint64_t bytes = 0;
        words >> bytes;
        notes.written_bytes += bytes;
      } else if (first == "register") {
        words >> way >> way;
        ++notes.lines["by " + way];
      }
      ++notes.lines[first];
    }
    return notes;
  }

 private:
  const std::string offers_;
  TempDirectory directory_;
};

// The vendors' stand-ins that programs call by name. Level Zero gives no dma-buf of memory that was
// not allocated for that.
std::vector<Vendor> VendorsOfPrograms() {
  std::vector<Vendor> vendors = Vendors();
  vendors[0].library = {FileVariable("FERRY_CUDA_LIBRARY", "tests/fixtures/cuda/libcuda.so.1")};
  return vendors;
}

class DeviceNicTest : public testing::TestWithParam<std::tuple<Vendor, std::string>> {
 protected:
  const Vendor& vendor() const { return std::get<0>(GetParam()); }
  const std::string& way() const { return std::get<1>(GetParam()); }
};

TEST_P(DeviceNicTest, ReadsFromCardToCard) {
  const DeviceNic nic(way());
  EXPECT_THAT(nic.Run(vendor(), "tcp;ofi_rxm"), HasSubstr("own memory: ok\n"));
  Notes notes = nic.Read();
  EXPECT_THAT(notes.bad, testing::IsEmpty());
  EXPECT_EQ(notes.lines["open"], 2);
  EXPECT_EQ(notes.lines["close"], 2);
  EXPECT_EQ(notes.lines["register"], notes.lines["release"]);  // nothing leaks
  EXPECT_EQ(notes.lines["register"], notes.lines["by " + way()]);
  if (vendor().name == "level_zero" && way() == "dmabuf") {
    EXPECT_EQ(notes.lines["register"], 0);
    return;
  }
  EXPECT_GT(notes.lines["register"], 0);
  EXPECT_GT(notes.read_bytes, 10U << 20);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceNicTest,
                         testing::Combine(testing::ValuesIn(VendorsOfPrograms()),
                                          testing::Values("address", "dmabuf")),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "By" + std::get<1>(info.param);
                         });

// The program frees it by its vendor's call: what the card has of it stays until the card is done.
TEST_P(DeviceNicTest, MemoryIsFreedWhileTheCardReadsIt) {
  const DeviceNic nic(way());
  EXPECT_THAT(nic.Run(vendor(), "tcp;ofi_rxm", {}, {"freed"}), HasSubstr("own memory: ok\n"));
  Notes notes = nic.Read();
  EXPECT_THAT(notes.bad, testing::IsEmpty());
  EXPECT_EQ(notes.lines["register"], notes.lines["release"]);
  EXPECT_EQ(notes.lines["register"] > 0, vendor().name != "level_zero" || way() != "dmabuf");
}

// Matched pairs, whose messages ferryd writes, or the card by deferred operations.
class MatchedNicTest : public testing::TestWithParam<std::tuple<Vendor, std::string, std::string>> {
 protected:
  const Vendor& vendor() const { return std::get<0>(GetParam()); }
  const std::string& way() const { return std::get<1>(GetParam()); }
  const std::string& provider() const { return std::get<2>(GetParam()); }
};

TEST_P(MatchedNicTest, PairsGoFromCardToCard) {
  const DeviceNic nic(way());
  nic.RunProgram({"-n", "2", "--nodes", "2"}, {"tests/e2e/ranks/matched", "device"}, vendor(),
                 provider());
  Notes notes = nic.Read();
  EXPECT_THAT(notes.bad, testing::IsEmpty());
  EXPECT_EQ(notes.lines["register"], notes.lines["release"]);  // nothing leaks
  EXPECT_GT(notes.written_bytes, 1U << 20);
  EXPECT_EQ(notes.lines["deferred"] != 0, provider() == "sockets");
}

// Level Zero gives dma-bufs of ferry_alloc's memory.
Vendor LevelZeroWithDmabufs() {
  Vendor vendor = VendorsOfPrograms()[2];
  vendor.library.back() = "ZE_FIXTURE=atomics,imports,dmabuf";
  return vendor;
}

INSTANTIATE_TEST_SUITE_P(Ways, MatchedNicTest,
                         testing::Values(std::tuple(VendorsOfPrograms()[0], "address", "sockets"),
                                         std::tuple(VendorsOfPrograms()[1], "dmabuf",
                                                    "tcp;ofi_rxm"),
                                         std::tuple(LevelZeroWithDmabufs(), "dmabuf", "sockets")),
                         [](const auto& info) { return std::get<0>(info.param).name; });

// All of it, or what exceeds the card's first registrations: a send's, and those of a pair, which
// are two when it is matched and one more for the receive's own key.
TEST(RefusingNicTest, MatchedPairsOfRefusedMemoryAreStaged) {
  for (const char* takes : {"", "4"}) {
    SCOPED_TRACE(takes);
    const DeviceNic nic("address,dmabuf");
    nic.RunProgram({"-n", "2", "--nodes", "2"}, {"tests/e2e/ranks/matched", "device"},
                   VendorsOfPrograms()[0], "tcp;ofi_rxm",
                   {"GPU_NIC_REFUSES=12", std::string("GPU_NIC_TAKES=") + takes});
    Notes notes = nic.Read();
    EXPECT_THAT(notes.bad, testing::IsEmpty());
    EXPECT_GT(notes.lines["refuse"], 0);
    EXPECT_EQ(notes.lines["register"], notes.lines["release"]);
    EXPECT_EQ(notes.lines["register"] == 0, takes[0] == '\0');
    EXPECT_EQ(notes.written_bytes == 0, takes[0] == '\0');
  }
}

TEST(DeviceWayTest, FerryctlSaysHowTheCardGetsAtDeviceMemory) {
  const Vendor cuda = VendorsOfPrograms()[0];
  for (const auto& [offers, provider, of_gpus, of_nics] : std::vector<std::array<std::string, 4>>{
           {"address,dmabuf", "sockets", "by dma-buf or address", "by address or dma-buf"},
           {"address", "sockets", "by address", "by address"},
           {"nothing", "sockets", "staged: the network has no FI_HMEM", "staged"},
           {"address", "ferry-tcp", "staged: the network has no FI_HMEM", "staged"}}) {
    SCOPED_TRACE(offers + " of " + provider);
    const DeviceNic nic(offers);
    const auto gpus = nlohmann::json::parse(nic.Ask("gpus", cuda, provider), nullptr, false);
    ASSERT_FALSE(gpus.is_discarded());
    EXPECT_EQ(gpus["gpus"].at(0)["to_nic"], of_gpus);
    const auto nics = nlohmann::json::parse(nic.Ask("nics", cuda, provider), nullptr, false);
    ASSERT_FALSE(nics.is_discarded());
    EXPECT_EQ(nics["nics"].at(0)["device_memory"], of_nics);
    EXPECT_EQ(nics["nics"].at(0)["device_refusal"], "");
  }
}

// FI_ENOSYS, FI_ENOMEM.
TEST(RefusingNicTest, RefusedMemoryIsStaged) {
  for (const char* error : {"38", "12"}) {
    SCOPED_TRACE(error);
    const DeviceNic nic("address,dmabuf");
    EXPECT_THAT(
        nic.Run(VendorsOfPrograms()[0], "tcp;ofi_rxm", {std::string("GPU_NIC_REFUSES=") + error}),
        HasSubstr("own memory: ok\n"));
    Notes notes = nic.Read();
    EXPECT_THAT(notes.bad, testing::IsEmpty());
    EXPECT_GT(notes.lines["refuse"], 0);
    EXPECT_EQ(notes.lines["register"], 0);
    EXPECT_EQ(notes.read_bytes, 0U);
  }
}

}  // namespace
}  // namespace ferry::e2e
