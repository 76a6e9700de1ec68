// Each outcome of each check, with made-up findings.
#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/topology/discover.h"
#include "common/unique_fd.h"
#include "common/version_text.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/probe.h"
#include "tools/ferryctl/certs.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void Expect(const Finding& finding, Verdict verdict, const std::string& found,
            const std::string& mend) {
  EXPECT_EQ(static_cast<int>(finding.verdict), static_cast<int>(verdict)) << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(found));
  if (mend.empty()) {
    EXPECT_EQ(finding.mend, "");
  } else {
    EXPECT_THAT(finding.mend, HasSubstr(mend));
  }
}

constexpr uint64_t kMebi = 1 << 20;

TEST(DoctorTest, JudgesLockedMemory) {
  Expect(CheckMemlock(kUnlimited, kUnlimited, 68 * kMebi), Verdict::kOk, "unlimited", "");
  Expect(CheckMemlock(68 * kMebi, 68 * kMebi, 68 * kMebi), Verdict::kOk, "68 MiB", "");
  Expect(CheckMemlock(8 * kMebi, kUnlimited, 68 * kMebi), Verdict::kWarning, "less than the 68 MiB",
         "ulimit -l unlimited");
  Expect(CheckMemlock(8 * kMebi, 8 * kMebi, 68 * kMebi), Verdict::kWarning, "8 MiB",
         "LimitMEMLOCK=infinity");
}

TEST(DoctorTest, JudgesOpenFiles) {
  Expect(CheckOpenFiles(1024, 64), Verdict::kOk, "1024", "");
  Expect(CheckOpenFiles(256, 64), Verdict::kWarning, "less than the 576", "nofile 576");
}

TEST(DoctorTest, JudgesPtraceScope) {
  Expect(CheckPtraceScope(std::nullopt), Verdict::kOk, "no Yama", "");
  Expect(CheckPtraceScope(0), Verdict::kOk, "reach each other's memory", "");
  Expect(CheckPtraceScope(1), Verdict::kWarning, "one copy more", "kernel.yama.ptrace_scope=0");
}

TEST(DoctorTest, JudgesCores) {
  Expect(CheckCores(8, 8), Verdict::kOk, "8 of 8", "");
  Expect(CheckCores(2, 8), Verdict::kOk, "affinity", "");
  Expect(CheckCores(1, 8), Verdict::kWarning, "share one", "more cores");
}

TEST(DoctorTest, JudgesKernelFeatures) {
  Expect(CheckKernelFeature("pidfd", "deaths are late", 0, Verdict::kWarning), Verdict::kOk,
         "works", "");
  Expect(CheckKernelFeature("pidfd", "deaths are late", ENOSYS, Verdict::kWarning),
         Verdict::kWarning, "deaths are late", "a later kernel");
  Expect(CheckKernelFeature("memfd", "no memory is shared", EPERM, Verdict::kProblem),
         Verdict::kProblem, "not permitted", "seccomp");
}

TEST(DoctorTest, JudgesFerrysMalloc) {
  const std::string path = "/lib/ferry/libferry_malloc.so";
  Expect(CheckMalloc({path}), Verdict::kOk, path, "");
  Expect(CheckMalloc({""}), Verdict::kWarning, "no libferry_malloc.so", "lib/ferry");
  Expect(CheckMalloc({.path = "", .is_wanted = true}), Verdict::kProblem, "starts nothing",
         "lib/ferry");
  Expect(CheckMalloc({.path = path, .loader_says = "wrong ELF class"}), Verdict::kWarning,
         path + " is not preloaded: wrong ELF class", "ldd " + path);
  Expect(CheckMalloc({.path = path, .memfd_error = EPERM}), Verdict::kWarning,
         "not permitted): malloc's memory stays private", "the line memfd");
  Expect(CheckMalloc({.path = path, .file_bytes = 3 * kMebi}), Verdict::kWarning,
         "files may have 3 MiB: malloc's memory stays private", "ulimit -f");
  Expect(CheckMalloc({.path = path, .file_bytes = 100 * kMebi}), Verdict::kWarning,
         "100 MiB: with ferryrun --malloc no more", "ulimit -f");
  Expect(CheckMalloc({.path = path, .address_bytes = 31 * kMebi}), Verdict::kWarning,
         "31 MiB of addresses: malloc's memory stays private", "ulimit -v");
  Expect(CheckMalloc({.path = path, .address_bytes = 4096 * kMebi}), Verdict::kWarning, "half",
         "ulimit -v");
  Expect(CheckMalloc({.path = path, .quota_bytes = 200 * kMebi}), Verdict::kWarning,
         "quota_pinned_bytes is 200 MiB, and malloc's memory begins with 256 MiB",
         "raise quota_pinned_bytes");
}

TEST(DoctorTest, JudgesOptions) {
  Expect(CheckOptions("", {}), Verdict::kOk, "defaults, environment and flags: understood", "");
  Expect(CheckOptions("/x.toml", {}), Verdict::kOk, "/x.toml: understood", "");
  Expect(CheckOptions("", {ErrorCode::kConfiguration, "x.toml:3: unknown option \"y\""}),
         Verdict::kProblem, "x.toml:3", "ferryctl config");
}

TEST(DoctorTest, JudgesProviders) {
  const std::vector<Provider> some = {
      {"ferry-tcp", true}, {"tcp;ofi_rxm", true}, {"udp", false}, {"shm", true}};
  Expect(CheckProviders(some, "auto", "1.17"), Verdict::kOk,
         "ferry-tcp, tcp;ofi_rxm, shm; libfabric 1.17", "");
  Expect(CheckProviders(some, "shm", "1.17"), Verdict::kOk, "shm", "");
  Expect(CheckProviders(some, "udp", "1.17"), Verdict::kProblem, "not udp", "auto");
  Expect(CheckProviders({{"ferry-tcp", true}}, "auto", "(not installed)"), Verdict::kOk,
         "ferry-tcp; libfabric (not installed)", "");
  Expect(CheckProviders({{"ferry-tcp", true}}, "tcp", "(not installed)"), Verdict::kProblem,
         "not tcp", "auto");
}

TEST(DoctorTest, JudgesTheDaemon) {
  DaemonFacts facts;
  facts.pid = 7;
  facts.state = "serving";
  facts.provider = "tcp";
  Expect(CheckDaemon(facts), Verdict::kOk, "pid 7, serving, provider tcp", "");
  Expect(CheckVersions(facts), Verdict::kOk, "the daemon has the same", "");
  facts.connected = {ErrorCode::kNoDaemon, "no ferryd serves /x"};
  Expect(CheckDaemon(facts), Verdict::kOk, "no ferryd serves /x", "");
  Expect(CheckVersions(facts), Verdict::kOk, "layout", "");
  facts.connected = {ErrorCode::kTimeout, "did not answer"};
  Expect(CheckDaemon(facts), Verdict::kProblem, "did not answer", "journalctl");
  facts.connected = {ErrorCode::kVersionMismatch, "has another version (layout 9)"};
  Expect(CheckVersions(facts), Verdict::kProblem, "layout 9", "from one release");
}

TEST(DoctorTest, JudgesTheUsersSocket) {
  Expect(CheckUsersSocket({}), Verdict::kOk, "answers", "");
  Expect(CheckUsersSocket({ErrorCode::kPermissionDenied, "uid 7 may not use it"}), Verdict::kOk,
         "uid 7 may not use it", "");
  Expect(CheckUsersSocket({ErrorCode::kTimeout, "did not answer"}), Verdict::kProblem,
         "jobs can be neither started nor joined: did not answer", "restart ferryd");
  Expect(CheckUsersSocket({ErrorCode::kLimitExceeded, "ferryd is out of file descriptors"}),
         Verdict::kProblem, "out of file descriptors", "ss -xp");
}

TEST(DoctorTest, JudgesTheLibraryBesideTheDaemon) {
  DaemonFacts facts;
  facts.layout_version = kLayoutVersion;
  facts.protocol_version = kProtocolVersion;
  Expect(CheckLibrary({"/lib/libferry.so.0", VersionText()}, facts), Verdict::kOk,
         "/lib/libferry.so.0: " + VersionText(), "");
  const std::string other_release = "0.0.9 (" + WireVersionText() + ")";
  Expect(CheckLibrary({"/lib/libferry.so.0", other_release}, facts), Verdict::kWarning,
         other_release + "; ferryctl is " + VersionText(), "one release");
  facts.layout_version = kLayoutVersion + 1;
  Expect(CheckLibrary({"/lib/libferry.so.0", VersionText()}, facts), Verdict::kProblem,
         VersionText() + "; the daemon has layout " + std::to_string(kLayoutVersion + 1),
         "ldd PROGRAM");
  facts.connected = {ErrorCode::kNoDaemon, ""};
  Expect(CheckLibrary({"/lib/libferry.so.0", "0.0.1 (layout 0, protocol 0)"}, facts),
         Verdict::kProblem, "ferryctl has " + WireVersionText(), "one release");
  Expect(CheckLibrary({"/lib/libferry.so.0", ""}, facts), Verdict::kProblem,
         "does not tell its version", "one release");
  Expect(CheckLibrary({}, facts), Verdict::kOk, "the loader finds none", "");
}

// An administrator who has given ferryd an address of the network, and has not told systemd.
TEST(DoctorTest, ReadsWhatTheUnitLetsFerrydReach) {
  namespace fs = std::filesystem;
  std::string root = "/tmp/ferry-doctor-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const auto write = [&root](const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  };
  DaemonFacts facts;
  facts.pid = 4711;
  facts.control_address = "10.0.0.7:7777";
  Expect(CheckUnit(facts, root), Verdict::kOk, "does not run as a service", "");
  write("/proc/4711/cgroup", "0::/system.slice/ferryd.service\n");
  write("/lib/systemd/system/ferryd.service",
        "[Service]\nIPAddressDeny=any\nIPAddressAllow=localhost\n");
  Expect(CheckUnit(facts, root), Verdict::kProblem,
         "ferryd at 10.0.0.7:7777 may reach this node only", "systemctl edit ferryd");
  facts.control_address = "127.0.0.1:7777";
  Expect(CheckUnit(facts, root), Verdict::kOk, "may reach its network", "");
  facts.control_address = "10.0.0.7:7777";
  write("/etc/systemd/system/ferryd.service.d/override.conf",
        "[Service]\nIPAddressAllow=10.0.0.0/16\n");
  Expect(CheckUnit(facts, root), Verdict::kOk, "may reach its network", "");
  write("/etc/systemd/system/ferryd.service.d/override.conf", "[Service]\nIPAddressDeny=\n");
  Expect(CheckUnit(facts, root), Verdict::kOk, "may reach its network", "");
  // A unit of the administrator's own takes the package's place.
  fs::remove_all(root + "/etc");
  write("/etc/systemd/system/ferryd.service", "[Service]\nExecStart=/usr/sbin/ferryd\n");
  Expect(CheckUnit(facts, root), Verdict::kOk, "may reach its network", "");
  fs::remove_all(root);
}

TEST(DoctorTest, JudgesCertificates) {
  const auto check = [](int64_t seconds_left) {
    return CheckCertificate("tls_cert_file", "/x.pem",
                            CertificateLife{"CN = node0", "Nov 20 2027", seconds_left});
  };
  constexpr int64_t kDay = 86'400;
  Expect(check(31 * kDay), Verdict::kOk, "/x.pem: CN = node0 is valid until Nov 20 2027", "");
  Expect(check(30 * kDay - 1), Verdict::kWarning, "CN = node0 expires in 29 days, on Nov 20 2027",
         "systemctl reload ferryd");
  Expect(check(0), Verdict::kProblem, "CN = node0 expired on Nov 20 2027", "systemctl reload");
  Expect(check(-kDay), Verdict::kProblem, "expired", "SIGHUP");
  Expect(CheckCertificate("tls_cert_file", "/x.pem", Status(ErrorCode::kNotFound, "/x.pem: gone")),
         Verdict::kProblem, "/x.pem: gone", "ferryctl certs");
}

TEST(DoctorTest, ReadsTheCertificateThatExpiresFirst) {
  std::string directory = "/tmp/ferry-doctor-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  CertsPlan plan;
  plan.directory = directory;
  plan.nodes = {"node0"};
  plan.days = 20;
  ASSERT_TRUE(MakeCerts(plan).ok());
  const auto life = ReadCertificateLife(directory + "/node0.pem");
  ASSERT_TRUE(life.ok()) << life.status().ToString();
  EXPECT_NE(life->subject.find("node0"), std::string::npos) << life->subject;
  EXPECT_LE(life->seconds_left, 20 * 86'400);
  EXPECT_GT(life->seconds_left, 19 * 86'400);
  // Behind one that is valid for longer.
  std::ofstream both(directory + "/both.pem");
  both << std::ifstream(directory + "/ca.pem").rdbuf()
       << std::ifstream(directory + "/node0.pem").rdbuf();
  both.close();
  EXPECT_EQ(ReadCertificateLife(directory + "/both.pem")->subject, life->subject);
  EXPECT_EQ(ReadCertificateLife(directory + "/none.pem").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(ReadCertificateLife(directory + "/node0.key").status().code(),
            ErrorCode::kInvalidArgument);
  fs::remove_all(directory);
}

TEST(DoctorTest, JudgesDevices) {
  DaemonFacts facts;
  Expect(CheckGpus(facts, {{"host", "emulated", ""}}, "host"), Verdict::kOk, "1 device", "");
  Expect(CheckGpus(facts, {{"host", "emulated", "is broken"}}, "host"), Verdict::kWarning,
         "emulated: is broken", "vendor");
  facts.connected = {ErrorCode::kNoDaemon, ""};
  Expect(CheckGpus(facts, {}, "host"), Verdict::kOk, "a daemon would list", "");
}

class RunDirectoryCheckTest : public testing::Test {
 protected:
  RunDirectoryCheckTest() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~RunDirectoryCheckTest() override { fs::remove_all(path_); }
  std::string path_ = "/tmp/ferry-doctor-XXXXXX";
};

void Touch(const std::string& path) { const std::ofstream file(path); }

TEST_F(RunDirectoryCheckTest, JudgesEachState) {
  const uid_t uid = getuid();
  Expect(CheckRunDirectory(path_ + "/run", uid), Verdict::kOk, "does not exist; ferryd makes it",
         "");
  Expect(CheckRunDirectory(path_ + "/no/run", uid), Verdict::kProblem, "No such file",
         "--run_directory");
  Expect(CheckRunDirectory(path_, uid), Verdict::kOk, "no ferryd serves it", "");
  Expect(CheckRunDirectory(path_, uid + 1), Verdict::kWarning, "not by yours", "as that user");
  Expect(CheckRunDirectory(path_, uid + 1, true), Verdict::kOk,
         "a ferryd of uid " + std::to_string(uid) + " serves it", "");
  Touch(path_ + "/file");
  Expect(CheckRunDirectory(path_ + "/file", uid), Verdict::kProblem, "is not a directory",
         "remove it");
  Touch(path_ + "/control.sock");
  Expect(CheckRunDirectory(path_, uid), Verdict::kWarning, "socket of a dead ferryd", "removes it");
  Touch(path_ + "/ferryd.lock");
  Expect(CheckRunDirectory(path_, uid), Verdict::kWarning, "socket of a dead ferryd", "removes it");
  const UniqueFd lock(open((path_ + "/ferryd.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  Expect(CheckRunDirectory(path_, uid), Verdict::kOk, "serves it", "");
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  Expect(CheckRunDirectory(path_, uid), Verdict::kProblem, "other users", "chmod");
}

TEST(DoctorTest, OnlyProblemsAreUnhealthy) {
  EXPECT_TRUE(IsHealthy({{"a", Verdict::kOk, "", ""}, {"b", Verdict::kWarning, "", ""}}));
  EXPECT_FALSE(IsHealthy({{"a", Verdict::kOk, "", ""}, {"b", Verdict::kProblem, "", ""}}));
}

// ---- The topology

class TopologyCheckTest : public testing::Test {
 protected:
  const StatusOr<topology::Machine> machine_ =
      topology::ReadMachine("tests/common/topology/machines/two_sockets.xml");
};

TEST_F(TopologyCheckTest, SaysWhatIsNearWhat) {
  const Finding finding = CheckTopology(machine_, {});
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  EXPECT_EQ(finding.mend, "");
  EXPECT_EQ(finding.found,
            "2 NUMA nodes, 0: CPUs 0-7, 1: CPUs 8-15; NIC eth0 at node 0; NIC eth1 at node 0; NIC "
            "ib0 at node 0; NIC ib1 at node 1; GPU 0000:1a:00.0 at node 0, 10 from NIC eth0; GPU "
            "0000:3d:00.0 at node 0, 5 from NIC ib0; GPU 0000:b3:00.0 at node 1, 5 from NIC ib1; "
            "GPU 0000:d8:00.0 at node 1, 10 from NIC ib1");
}

TEST_F(TopologyCheckTest, WarnsOfAProgressThreadFarFromItsNic) {
  const Finding far = CheckTopology(machine_, {{"ib1", "8-15", "0-3"}});
  EXPECT_EQ(far.verdict, Verdict::kWarning);
  EXPECT_THAT(far.found, HasSubstr("runs on CPUs 0-3, far from its NIC ib1 (CPUs 8-15)"));
  EXPECT_THAT(far.mend, HasSubstr("progress_affinity = \"auto\""));
  for (const NicPlace& nic :
       {NicPlace{"ib1", "8-15", "7-8"}, NicPlace{"ib1", "8-15", ""}, NicPlace{"lo", "", "0-3"}}) {
    EXPECT_EQ(CheckTopology(machine_, {nic}).verdict, Verdict::kOk) << nic.progress_cpus;
  }
}

TEST(JobCheckTest, SaysHowLongMessagesTake) {
  const Finding finding = CheckJob(
      JobFacts{.ran = {}, .few_us = 0.25, .few_bytes = 8, .many_us = 50, .many_bytes = 1 << 20});
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  EXPECT_EQ(finding.found, "two ranks of this node: 0.25 us for 8 B, 21.0 GB/s for 1024 KiB");
}

TEST(JobCheckTest, AJobThatFailsIsAProblemAndNoneIsNot) {
  const Finding failed = CheckJob(JobFacts{.ran = Status(ErrorCode::kSystem, "it broke")});
  EXPECT_EQ(failed.verdict, Verdict::kProblem);
  EXPECT_THAT(failed.found, HasSubstr("it broke"));
  EXPECT_EQ(CheckJob(std::nullopt).verdict, Verdict::kOk);
  EXPECT_THAT(CheckJob(std::nullopt).found, HasSubstr("not tried"));
}

TEST_F(TopologyCheckTest, SaysWhyThereIsNoTopology) {
  const Finding finding = CheckTopology(Status(ErrorCode::kSystem, "hwloc cannot read it"), {});
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.found, HasSubstr("hwloc cannot read it"));
  EXPECT_THAT(finding.mend, HasSubstr("lstopo"));
}

}  // namespace
}  // namespace ferry::tools
