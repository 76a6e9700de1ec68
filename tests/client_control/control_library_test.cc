// The library's effects on a process that itself has no gRPC.
#include "tests/client_control/control_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "common/error_code.h"

namespace ferry {
namespace {

size_t Threads() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Iterator("/proc/self/task"), Iterator()));
}

TEST(ControlLibraryTest, StartsNoThreadBeforeItConnects) {
  const size_t before = Threads();
  ASSERT_NE(OpenControlLibrary(), nullptr);
  EXPECT_EQ(Threads(), before);
}

TEST(ControlLibraryTest, HasTheVersionOfItsHeader) {
  const ferry_control_api* api = OpenControlLibrary();
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(api->version, static_cast<uint32_t>(FERRY_CONTROL_API_VERSION));
}

TEST(ControlLibraryTest, ItsSymbolsStayLocal) {
  ASSERT_NE(OpenControlLibrary(), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, FERRY_CONTROL_ENTRY_NAME), nullptr);
  void* library = dlopen(kControlLibrary, RTLD_NOW | RTLD_LOCAL);
  EXPECT_EQ(dlsym(library,
                  "_ZN5ferry7control6Client7NewStubERKSt10shared_ptrIN4grpc16"
                  "ChannelInterfaceEERKNS3_11StubOptionsE"),
            nullptr);
}

TEST(ControlLibraryTest, SaysWhenThereIsNoConnection) {
  const ferry_control_api* api = OpenControlLibrary();
  ASSERT_NE(api, nullptr);
  ferry_control* control = nullptr;
  char text[128] = "";
  EXPECT_EQ(api->connect(-1, "/run/x/control.sock", "00", &control, {text, sizeof(text)}),
            static_cast<int>(ErrorCode::kNoDaemon));
  EXPECT_STREQ(text, "no connection to /run/x/control.sock");
  EXPECT_EQ(control, nullptr);
}

TEST(ControlLibraryTest, CutsATextThatDoesNotFit) {
  const ferry_control_api* api = OpenControlLibrary();
  ASSERT_NE(api, nullptr);
  ferry_control* control = nullptr;
  char text[14] = "";
  EXPECT_NE(api->connect(-1, "/run/x/control.sock", "00", &control, {text, sizeof(text)}), 0);
  EXPECT_STREQ(text, "no connection");
  EXPECT_NE(api->connect(-1, "/run/x/control.sock", "00", &control, {nullptr, 0}), 0);
}

TEST(ControlLibraryTest, ClosesNothing) {
  const ferry_control_api* api = OpenControlLibrary();
  ASSERT_NE(api, nullptr);
  api->close(nullptr);
}

}  // namespace
}  // namespace ferry
