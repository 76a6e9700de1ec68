// Whole jobs over two daemons that speak TLS, with the files that `ferryctl certs` makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kPairs[] = "tests/faults/ranks/pairs";

class TlsTest : public testing::Test {
 protected:
  TlsTest() { fs::remove_all(directory_); }

  // Both private daemons have the same certificate, in a folder of `directory_`.
  void MakeCerts(const std::string& node) {
    const CommandResult result = RunCommand({kFerryctl, "certs", directory_, "--node", node});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("tls_key_file = \"" + directory_ + "/node.key\""));
  }
  Words Job(const Words& flags_and_program) const {
    return PrivateJob({"-n", "2", "--nodes", "2", "--tls_ca_file=" + directory_ + "/ca.pem"},
                      flags_and_program);
  }
  Words Variables() const {
    return {"FERRY_TLS_CERT_FILE=" + directory_ + "/node.pem",
            "FERRY_TLS_KEY_FILE=" + directory_ + "/node.key"};
  }

  const std::string directory_ = testing::TempDir() + "tls";
};

TEST_F(TlsTest, AJobRunsOverTwoDaemons) {
  MakeCerts("node,127.0.0.1");
  EXPECT_EQ(RunWell(Job({"tests/e2e/ranks/point_to_point"}), Variables()), "point_to_point: ok\n");
}

TEST_F(TlsTest, AnotherHostsCertificateIsRefusedAndTheRanksSayWhy) {
  MakeCerts("node,10.0.0.7");
  const CommandResult result =
      RunCleanly(Job({"--peer_timeout_ms=2000", "examples/hello/hello"}), Variables());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.out + result.err,
              HasSubstr("the certificate of the daemon there is valid for node, 10.0.0.7, not for "
                        "127.0.0.1"));
}

TEST_F(TlsTest, ADaemonWithHalfOfTlsDoesNotStart) {
  const CommandResult result = RunCleanly(Job({"examples/hello/hello"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("tls_cert_file and tls_key_file are missing"));
}

TEST_F(TlsTest, AFileThatIsMissingIsNamed) {
  const CommandResult result = RunCleanly(Job({"examples/hello/hello"}), Variables());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryd of node 0"),
                                HasSubstr("cannot read tls_ca_file " + directory_ + "/ca.pem: ")));
}

size_t Count(const std::string& path, const std::string& words) {
  const std::string text = tests::ReadFile(path);
  size_t count = 0;
  for (size_t at = 0; (at = text.find(words, at)) != text.npos; at += words.size()) {
    ++count;
  }
  return count;
}

// The certificates change under a job, first to good ones, then to rubbish.
TEST_F(TlsTest, AJobOutlivesReloads) {
  MakeCerts("node,127.0.0.1");
  const std::string log = directory_ + "/log";
  Command command(Job({kPairs, "4096"}), Joined(Variables(), {"FERRY_LOG_FILE=" + log}));
  ASSERT_TRUE(UnderWay(&command, 2));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  const auto reload = [&](const std::string& words) {
    for (const pid_t daemon : daemons) {
      kill(daemon, SIGHUP);
    }
    EXPECT_TRUE(Eventually([&] { return Count(log, words) == 2; })) << words;
  };
  fs::remove(directory_ + "/node.pem");
  fs::remove(directory_ + "/node.key");
  MakeCerts("node,127.0.0.1");
  reload("reload: new connections use the TLS files as they are now: CN = node, ");
  std::ofstream(directory_ + "/node.pem") << "rubbish";
  reload("reload: the TLS files read before stay in use: tls_cert_file " + directory_ +
         "/node.pem: a certificate is missing");
  for (const pid_t pid : command.Find(kPairs)) {
    if (pid != command.pid()) {
      kill(pid, SIGUSR1);  // enough
    }
  }
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("rank 0: all right"), HasSubstr("rank 1: all right")));
}

}  // namespace
}  // namespace ferry::e2e
