// Runs a program for a test: with its output caught, its environment marked, and a bound on its
// time. Daemons and jobs of ranks are such programs.
//
// Every process that it starts, directly or not, carries a mark in its environment, by which
// Leftovers finds those that did not end. Each command has its own directory for temporary files of
// ferryrun, whose leftovers are found too. One test thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/patience.h"

namespace ferry::e2e {

using Words = std::vector<std::string>;

struct CommandResult {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

// A directory below /tmp that goes with this object, with all that is in it.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/tmp/ferry-test-XXXXXX";
};

class Command {
 public:
  // Starts `arguments` (the program first) with `variables` ("NAME=value") added to a small
  // environment, and `input` as its standard input. Killed after `limit_s`.
  explicit Command(Words arguments, Words variables = {}, std::string input = "",
                   unsigned limit_s = tests::kPatienceS);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  // Waits until standard output (or error) holds `text`. False if the command ends without it.
  bool WaitForOutput(const std::string& text);
  bool WaitForError(const std::string& text);
  // Its standard output so far.
  std::string Output();
  void Signal(int signal) const;
  CommandResult Wait();
  // As Wait, and fails the test if anything of this command is left then (see Leftovers).
  CommandResult WaitCleanly();

  // Where this command's ferryrun makes its directories (XDG_RUNTIME_DIR).
  const std::string& runtime_directory() const { return runtime_directory_.path(); }
  // Everything of this command that is still there: its processes, files in its runtime directory,
  // entries of /dev/shm. Waits a moment for processes that are ending. Empty if all is gone.
  Words Leftovers() const;
  // The pids of this command's processes whose command line contains `text`.
  std::vector<pid_t> Find(const std::string& text) const;

 private:
  bool WaitForText(const std::string& text, const std::string* stream);
  void ReadAll(int fd, std::string* stream);
  std::vector<pid_t> Processes() const;

  const TempDirectory runtime_directory_;
  const std::string line_;  // the arguments
  std::string mark_;
  Words shm_before_;
  pid_t pid_ = -1;
  bool waited_ = false;
  std::string out_;
  std::string err_;
  std::atomic<int> open_streams_ = 2;
  std::mutex mutex_;
  std::vector<std::thread> readers_;
};

// Runs it to its end.
CommandResult RunCommand(Words arguments, Words variables = {}, std::string input = "");
// As RunCommand, and fails the test if anything of the command is left then.
CommandResult RunCleanly(Words arguments, Words variables = {}, std::string input = "",
                         unsigned limit_s = tests::kPatienceS);
// As RunCleanly, and fails the test unless the exit code is 0. Returns standard output.
std::string RunWell(Words arguments, Words variables = {}, unsigned limit_s = tests::kPatienceS);

// Starts `program`, which is ferryd and its flags, with that run directory; waits until it serves.
std::unique_ptr<Command> StartDaemon(Words program, const std::string& run_directory,
                                     unsigned limit_s = tests::kPatienceS);
// `arguments` without the capabilities that root has: a worker process has none, and reaches no
// rank that has some.
Words WithoutCapabilities(Words arguments);

Words Joined(Words first, const Words& second);
// The command line of `program` with those variables added to its environment.
Words With(const Words& variables, const Words& program);
// The command line of ferryrun for a program on private daemons. `placement`: its flags, such as
// -n.
Words PrivateJob(const Words& placement, const Words& program = {});

// For jobs of which a test wants all messages between nodes to pass the daemons: ranks that talk
// much leave them else.
inline constexpr char kByDaemons[] = "--direct_links=off";

// The command line of `program` in a network namespace of its own, with loopback; root, or a user
// to whom the machine gives user namespaces, can run it.
Words InOwnNetwork(const Words& program);

// Waits until each rank of a job has printed "rank R: under way".
bool UnderWay(Command* job, int ranks);
// The run directories of the private daemons of a job, sorted: by node, under one ferryrun.
Words Daemons(const Command& job);

// tests::Eventually for conditions that ask another program.
bool Eventually(const std::function<bool()>& condition);

// The lines of `text`, sorted: ranks write in any order.
Words SortedLines(const std::string& text);

}  // namespace ferry::e2e
