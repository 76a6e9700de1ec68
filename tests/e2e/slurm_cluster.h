// Ferry's Slurm scripts as if they were installed, and a real Slurm whose files, ports and keys are
// the test's own. Jobs belong to an ordinary user.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {

namespace fs = std::filesystem;
using tests::ReadFile;

inline constexpr char kNobody[] = "65534";

inline void WriteFile(const fs::path& path, const std::string& text, bool executable = false) {
  std::ofstream(path) << text;
  fs::permissions(path, executable ? fs::perms(0755) : fs::perms(0644));
}

inline void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != text->npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

// Ferry as if it were installed where every user can read it.
class Installation {
 public:
  Installation() {
    fs::permissions(path_.path(), fs::perms(0755));
    for (const char* file : {"daemon/ferryd", "tools/ferryctl/ferryctl", "tools/ferryrun/ferryrun",
                             "examples/hello/hello", "examples/mpi_hello/mpi_hello",
                             "client/libferry.so.0", "mpi/libmpi_abi.so.1"}) {
      fs::copy_file(file, Path(fs::path(file).filename()));
    }
    for (const char* script : {"functions", "prolog", "epilog", "task-prolog"}) {
      std::string text = ReadFile(std::string("config/slurm/") + script);
      ReplaceAll(&text, "@FERRYD@", Path("ferryd"));
      ReplaceAll(&text, "@FERRYCTL@", Path("ferryctl"));
      ReplaceAll(&text, "@ETC@", path_.path());
      WriteFile(Path(script), text, /*executable=*/true);
    }
    Configure("");
  }

  std::string Path(const std::string& name) const { return path_ / name; }
  // Sets options for the scripts beside the folder of the jobs' directories, and for ferryd.
  void Configure(const std::string& settings, const std::string& options = "") const {
    WriteFile(Path("slurm.conf"), "run_base=" + Path("run") + "\n" + settings);
    WriteFile(Path("job.toml"), "# beside the defaults\n" + options);
  }
  std::string Directory(const std::string& job) const { return Path("run/job-" + job); }
  Words Daemons(const std::string& job) const {
    return SortedLines(
        RunCommand({"/usr/bin/pgrep", "-f", "run_directory=" + Directory(job) + "( |$)"}).out);
  }
  // Remaining files and processes of any job.
  Words Leftovers() const {
    Words found = SortedLines(
        RunCommand({"/usr/bin/pgrep", "-a", "-f", "run_directory=" + Directory("")}).out);
    if (fs::exists(Path("run"))) {
      for (const auto& entry : fs::recursive_directory_iterator(Path("run"))) {
        found.push_back(entry.path());
      }
    }
    return found;
  }

 private:
  const TempDirectory path_;
};

// ---- A cluster ----

// The path of `name`, or empty.
inline std::string Find(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/"}) {
    if (fs::exists(folder + name)) {
      return folder + name;
    }
  }
  return "";
}

inline int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

enum class Kind {
  kScripts,   // one node, with Ferry's scripts
  kDatabase,  // the same, with slurmdbd and MariaDB
  kNodes,     // four nodes, which are all this machine, without scripts of Ferry
};

// munged, slurmctld and slurmd; no cgroups, no systemd.
class Cluster {
 public:
  Cluster(const Installation& ferry, Kind kind)
      : ferry_(ferry), kind_(kind), has_scripts_(kind != Kind::kNodes) {
    host_ = SortedLines(RunCommand({"/bin/hostname", "-s"}).out).at(0);
    for (const char* folder : {"munge", "state", "spool", "home"}) {
      fs::create_directory(ferry.Path(folder));
    }
    fs::permissions(ferry.Path("home"), fs::perms(0777));
    WriteFile(ferry.Path("munge/key"), std::string(64, 'k') + std::string(64, 'y'));
    fs::permissions(ferry.Path("munge/key"), fs::perms(0600));
    WriteFile(ferry.Path("cluster.conf"), Configuration());
    const std::string munge = ferry.Path("munge/");
    const std::string slurmd =
        has_scripts_ ? Find("slurmd") + " -D"
                     : "for node in n1 n2 n3 n4; do " + Find("slurmd") + " -D -N $node & done";
    // One shell owns all: they end with it.
    daemons_ = std::make_unique<Command>(
        Words{"/bin/sh", "-c",
              Find("munged") + " --foreground --key-file=" + munge + "key --socket=" + munge +
                  "socket --pid-file=" + munge + "pid --log-file=" + munge +
                  "log --seed-file=" + munge + "seed & " + Database() + Find("slurmctld") +
                  " -D & " + slurmd + " & wait"},
        Environment());
  }

  // Returns true once the node serves; if it does not, `why` has the daemons' words.
  bool WaitUntilIdle(std::string* why) const {
    const bool idle = Eventually([this] {
      return Ask({"sinfo", "-h", "-o", "%T %D"}).out == (has_scripts_ ? "idle 1\n" : "idle 4\n");
    });
    *why = ReadFile(ferry_.Path("slurmctld.log")) + ReadFile(ferry_.Path("slurmd.log"));
    return idle;
  }
  // A command of Slurm, as root.
  CommandResult Ask(Words arguments) const {
    arguments[0] = Find(arguments[0]);
    return RunCommand(arguments, Environment());
  }
  // Submits a script as an ordinary user; returns the job's number.
  std::string Submit(const std::string& script, const Words& flags = {}) const {
    WriteFile(ferry_.Path("job.sh"),
              "#!/bin/bash\nexport LD_LIBRARY_PATH=" + ferry_.Path("") + "\n" + script, true);
    const CommandResult result =
        RunCommand(Joined(Joined({"/usr/bin/setpriv", "--reuid", kNobody, "--regid", kNobody,
                                  "--clear-groups", Find("sbatch"), "--parsable", "--chdir",
                                  ferry_.Path("home"), "--output", ferry_.Path("home/%j")},
                                 flags),
                          {ferry_.Path("job.sh")}),
                   Environment());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  }
  // Waits for that state: after it the epilog has run.
  bool WaitForState(const std::string& job, const std::string& state) const {
    return Eventually([&] {
      return Ask({"scontrol", "show", "job", job}).out.find("JobState=" + state) !=
             std::string::npos;
    });
  }
  std::string Output(const std::string& job) const { return ReadFile(ferry_.Path("home/" + job)); }
  const std::string& host() const { return host_; }

 private:
  Words Environment() const { return {"SLURM_CONF=" + ferry_.Path("cluster.conf")}; }
  std::string Configuration() const {
    return "ClusterName=ferrytest\nSlurmctldHost=" + host_ +
           "(127.0.0.1)\n"
           "SlurmctldPort=" +
           std::to_string(FreePort()) + "\nSlurmdPort=" + std::to_string(FreePort()) +
           "\nSlurmUser=root\nSlurmdUser=root\n"
           "AuthType=auth/munge\nAuthInfo=socket=" +
           ferry_.Path("munge/socket") + "\nStateSaveLocation=" + ferry_.Path("state") +
           "\nSlurmdSpoolDir=" + ferry_.Path("spool") + (has_scripts_ ? "" : "/%n") +
           "\nSlurmctldPidFile=" + ferry_.Path("slurmctld.pid") +
           "\nSlurmdPidFile=" + ferry_.Path("slurmd%n.pid") +
           "\nSlurmctldLogFile=" + ferry_.Path("slurmctld.log") +
           "\nSlurmdLogFile=" + ferry_.Path("slurmd.log") +
           "\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
           "MpiDefault=none\nJobAcctGatherType=jobacct_gather/none\nReturnToService=2\n" +
           (has_scripts_ ? NodeWithScripts() : FourNodes()) +
           (kind_ != Kind::kDatabase
                ? ""
                : "AccountingStorageType=accounting_storage/slurmdbd\n"
                  "AccountingStorageHost=127.0.0.1\nAccountingStoragePort=" +
                      std::to_string(database_port_) +
                      "\nAccountingStoragePass=" + ferry_.Path("munge/socket") + "\n");
  }
  // The commands that start MariaDB, and slurmdbd once that serves, and make the cluster known.
  std::string Database() const {
    if (kind_ != Kind::kDatabase) {
      return "";
    }
    const std::string folder = ferry_.Path("database");
    const std::string port = std::to_string(FreePort());
    fs::create_directory(folder);
    WriteFile(ferry_.Path("begin.sql"),
              "CREATE DATABASE slurm_acct_db;\n"
              "CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'ferry';\n"
              "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n");
    WriteFile(
        ferry_.Path("slurmdbd.conf"),
        "AuthType=auth/munge\nAuthInfo=" + ferry_.Path("munge/socket") + "\nDbdHost=" + host_ +
            "\nDbdAddr=127.0.0.1\nDbdPort=" + std::to_string(database_port_) +
            "\nSlurmUser=root\nLogFile=" + ferry_.Path("slurmdbd.log") +
            "\nPidFile=" + ferry_.Path("slurmdbd.pid") +
            "\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort=" + port +
            "\nStorageUser=slurm\nStoragePass=ferry\n");
    fs::permissions(ferry_.Path("slurmdbd.conf"), fs::perms(0600));
    const std::string server = Find("mariadbd") + " --no-defaults --user=root --datadir=" + folder;
    const auto until = [](const std::string& condition) {
      return "until " + condition + "; do sleep 0.1; done; ";
    };
    return Find("mariadb-install-db") + " --no-defaults --user=root --datadir=" + folder +
           " --auth-root-authentication-method=normal --skip-test-db >" +
           ferry_.Path("database.log") + " 2>&1; " + server + " --socket=" + folder +
           "/socket --bind-address=127.0.0.1 --skip-name-resolve --port=" + port +
           " --pid-file=" + folder + "/pid --init-file=" + ferry_.Path("begin.sql") + " >>" +
           ferry_.Path("database.log") + " 2>&1 & " + until("[ -S " + folder + "/socket ]") +
           Find("slurmdbd") + " -D & " +
           until(Find("sacctmgr") + " -i add cluster ferrytest >/dev/null 2>&1");
  }
  std::string NodeWithScripts() const {
    return "PrologFlags=Alloc\nProlog=" + ferry_.Path("prolog") +
           "\nEpilog=" + ferry_.Path("epilog") + "\nTaskProlog=" + ferry_.Path("task-prolog") +
           "\nNodeName=" + host_ + " NodeAddr=127.0.0.1 CPUs=1\nPartitionName=test Nodes=" + host_ +
           " Default=YES\n";
  }
  std::string FourNodes() const {
    std::string text = "SlurmdParameters=config_overrides\n";
    for (const std::string name : {"n1", "n2", "n3", "n4"}) {
      text += "NodeName=" + name + " NodeHostname=" + host_ +
              " NodeAddr=127.0.0.1 Port=" + std::to_string(FreePort()) + " CPUs=2\n";
    }
    return text + "PartitionName=test Nodes=n[1-4] Default=YES\n";
  }

  const Installation& ferry_;
  const Kind kind_;
  const bool has_scripts_;
  const int database_port_ = FreePort();  // slurmdbd's
  std::string host_;
  std::unique_ptr<Command> daemons_;
};

template <Kind kKind>
class ClusterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) {
      why_not_ = "slurmd runs as root here, and this is uid " + std::to_string(geteuid());
      return;
    }
    for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "setpriv"}) {
      if (Find(program).empty()) {
        why_not_ = std::string(program) +
                   " is not installed: apt-get install munge slurmctld slurmd slurm-client";
        return;
      }
    }
    for (const char* program : {"slurmdbd", "mariadbd", "mariadb-install-db"}) {
      if (kKind == Kind::kDatabase && Find(program).empty()) {
        why_not_ = std::string(program) +
                   " is not installed: apt-get install slurmdbd mariadb-server-core "
                   "mariadb-client-core";
        return;
      }
    }
    ferry_ = std::make_unique<Installation>();
    cluster_ = std::make_unique<Cluster>(*ferry_, kKind);
    if (std::string words; !cluster_->WaitUntilIdle(&words)) {
      why_not_ = "Slurm does not start here: " + words;
    }
  }
  static void TearDownTestSuite() {
    cluster_.reset();
    ferry_.reset();
  }
  void SetUp() override {
    if (!why_not_.empty()) {
      GTEST_SKIP() << why_not_;
    }
    ferry_->Configure("");
  }

  inline static std::string why_not_;
  inline static std::unique_ptr<Installation> ferry_;
  inline static std::unique_ptr<Cluster> cluster_;
};

}  // namespace ferry::e2e
