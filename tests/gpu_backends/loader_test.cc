// Where a GPU may be opened: worker processes that may not are confined more narrowly.
#include "gpu_backends/loader/loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gpu_backends/loader/late_vendors.h"
#include "tests/e2e/command.h"

namespace ferry::gpu {
namespace {

class MayHaveGpusTest : public testing::Test {
 protected:
  bool MayHave() const { return MayHaveGpus(options_, root_->path()); }
  void Add(const std::string& path) const {
    const std::filesystem::path file = root_->path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "a device";
  }

  std::optional<e2e::TempDirectory> root_{std::in_place};
  config::Options options_;
};

TEST_F(MayHaveGpusTest, NotWithoutADevice) {
  EXPECT_FALSE(MayHave());
  Add("/dev/dri/card0");  // that of a display
  EXPECT_FALSE(MayHave());
}

TEST_F(MayHaveGpusTest, WhereADeviceIs) {
  for (const char* path : {"/dev/nvidiactl", "/sys/module/nvidia/version", "/dev/nvhost-gpu",
                           "/dev/kfd", "/dev/dri/renderD128", "/dev/dxg"}) {
    root_.emplace();
    Add(path);
    EXPECT_TRUE(MayHave()) << path;
  }
}

TEST_F(MayHaveGpusTest, OfTheBackendThatIsAskedFor) {
  Add("/dev/kfd");
  options_.gpu_backend = "host";
  EXPECT_TRUE(MayHave()) << "the emulation has threads, too";
  options_.gpu_backend = "hip";
  EXPECT_TRUE(MayHave());
  options_.gpu_backend = "cuda";
  EXPECT_TRUE(MayHave()) << "the administrator knows";
}

TEST_F(MayHaveGpusTest, WithALibraryThatIsThere) {
  options_.gpu_backend = "cuda";
  options_.cuda_library = "/opt/libcuda.so.1";
  EXPECT_FALSE(MayHave());
  Add("/opt/libcuda.so.1");
  EXPECT_TRUE(MayHave());
  options_.cuda_library = "libcuda.so.1";
  EXPECT_TRUE(MayHave()) << "the loader finds it, or does not";
}

// A library that is there without a device would stay, be taken for the program's own, and be asked
// about each buffer.
TEST(OpenProgramsBackendTest, LoadsNoLibraryForWhichThereIsNoDevice) {
  const config::Options options;
  if (MayHaveGpus(options)) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  const auto backend = OpenProgramsBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status().ToString();
  EXPECT_EQ((*backend)->name(), "host");
  for (const char* vendor : {"cuda", "hip", "level_zero"}) {
    EXPECT_FALSE(IsVendorLoaded(vendor)) << vendor;
  }
}

}  // namespace
}  // namespace ferry::gpu
