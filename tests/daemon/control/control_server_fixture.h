// A daemon with a control server and no ranks.
#pragma once

#include <gtest/gtest.h>

#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {

class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() : options_(TestOptions(directory_.path() + "/a")), daemon_(options_) {}

  TemporaryDirectory directory_;
  config::Options options_;
  TestDaemon daemon_;
};

}  // namespace ferry::daemon
