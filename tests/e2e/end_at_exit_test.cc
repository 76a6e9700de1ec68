// Programs may leave their job while the process ends: from handlers of atexit and destructors of
// static objects that were registered before they joined it, and so run after everything that
// Ferry's libraries would have destroyed at exit. None of them destroys anything then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class EndAtExitTest : public testing::TestWithParam<std::string> {
 protected:
  static void ExpectLeft(const Words& placement, const Words& program) {
    const CommandResult result = RunCleanly(PrivateJob(placement, program));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "left at exit\nleft at exit\n") << result.err;
    EXPECT_EQ(result.err, "");
  }
  static void ExpectLeft(const Words& program) {
    ExpectLeft({"--no-label", "-n", "2"}, program);
    ExpectLeft({"--no-label", "-n", "2", "--nodes", "2"}, program);
  }
};

TEST_P(EndAtExitTest, LeavesMpi) {
  ExpectLeft({"tests/e2e/ranks/end_at_exit_mpi", GetParam(), "world"});
}

TEST_P(EndAtExitTest, EndsASession) {
  ExpectLeft({"tests/e2e/ranks/end_at_exit_mpi", GetParam(), "session"});
}

TEST_P(EndAtExitTest, LeavesShmem) {
  ExpectLeft({"tests/e2e/ranks/end_at_exit_shmem", GetParam()});
}

TEST_P(EndAtExitTest, LeavesFerry) { ExpectLeft({"tests/e2e/ranks/end_at_exit", GetParam()}); }

INSTANTIATE_TEST_SUITE_P(Ways, EndAtExitTest, testing::Values("handler", "object", "library"),
                         [](const auto& info) { return info.param; });

// None uses the functions by which compilers register destructors of static and thread_local
// objects. (libferry_malloc has none, but jemalloc, which is part of it, may print its statistics
// at exit.)
TEST(StaticObjectsTest, OursAreNeverDestroyed) {
  for (const std::string library : {"client/libferry.so.0", "client/direct/libferry_direct.so",
                                    "client/direct/libferry_direct_ofi.so", "mpi/libmpi_abi.so.1",
                                    "shmem/libferry_shmem.so.0"}) {
    const CommandResult nm = RunCommand({"/usr/bin/nm", "-D", "--undefined-only", library});
    EXPECT_EQ(nm.exit_code, 0) << nm.err;
    EXPECT_THAT(nm.out, HasSubstr("@GLIBC")) << "the list of what the library uses";
    EXPECT_THAT(nm.out, Not(HasSubstr("__cxa_atexit"))) << library;
    EXPECT_THAT(nm.out, Not(HasSubstr("__cxa_thread_atexit"))) << library;
  }
}

}  // namespace
}  // namespace ferry::e2e
