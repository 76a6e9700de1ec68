// Whole jobs over two daemons that speak TLS, with the files that `ferryctl certs` makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kFerryd[] = "daemon/ferryd";
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
  std::vector<std::string> Job(std::vector<std::string> flags_and_program) const {
    flags_and_program.insert(flags_and_program.begin(),
                             {kFerryrun, "--private", "--ferryd", kFerryd, "--no-label", "-n", "2",
                              "--nodes", "2", "--tls_ca_file=" + directory_ + "/ca.pem"});
    return flags_and_program;
  }
  std::vector<std::string> Variables() const {
    return {"FERRY_TLS_CERT_FILE=" + directory_ + "/node.pem",
            "FERRY_TLS_KEY_FILE=" + directory_ + "/node.key"};
  }

  const std::string directory_ = testing::TempDir() + "tls";
};

TEST_F(TlsTest, AJobRunsOverTwoDaemons) {
  MakeCerts("node,127.0.0.1");
  Command command(Job({"tests/e2e/ranks/point_to_point"}), Variables());
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "point_to_point: ok\n");
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST_F(TlsTest, AnotherHostsCertificateIsRefusedAndTheRanksSayWhy) {
  MakeCerts("node,10.0.0.7");
  Command command(Job({"--attach_timeout_ms=2000", "examples/hello/hello"}), Variables());
  const CommandResult result = command.Wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.out + result.err,
              HasSubstr("the certificate of the daemon there is valid for node, 10.0.0.7, not for "
                        "127.0.0.1"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST_F(TlsTest, ADaemonWithHalfOfTlsDoesNotStart) {
  Command command(Job({"examples/hello/hello"}));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("tls_cert_file and tls_key_file are missing"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST_F(TlsTest, AFileThatIsMissingIsNamed) {
  Command command(Job({"examples/hello/hello"}), Variables());
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryd of node 0"),
                                HasSubstr("cannot read tls_ca_file " + directory_ + "/ca.pem: ")));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

size_t Count(const std::string& path, const std::string& words) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
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
  std::vector<std::string> variables = Variables();
  variables.push_back("FERRY_LOG_FILE=" + log);
  Command command(Job({kPairs, "4096"}), variables);
  for (const char* rank : {"0", "1"}) {
    ASSERT_TRUE(command.WaitForOutput(std::string("rank ") + rank + ": under way\n"));
  }
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
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("rank 0: all right"), HasSubstr("rank 1: all right")));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::e2e
