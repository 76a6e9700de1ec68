// Runs a program for a test: with its output caught, its environment marked, and a bound on its
// time.
//
// Every process that it starts, directly or not, carries a mark in its environment, by which
// Leftovers finds those that did not end. Each command has its own directory for temporary files of
// ferryrun, whose leftovers are found too. One test thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ferry::e2e {

struct CommandResult {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

class Command {
 public:
  // Starts `arguments` (the program first) with `variables` ("NAME=value") added to a small
  // environment, and `input` as its standard input. Killed after `limit_s`.
  explicit Command(std::vector<std::string> arguments, std::vector<std::string> variables = {},
                   std::string input = "", unsigned limit_s = 60);
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

  // Where this command's ferryrun makes its directories (XDG_RUNTIME_DIR).
  const std::string& runtime_directory() const { return runtime_directory_; }
  // Everything of this command that is still there: its processes, files in its runtime directory,
  // entries of /dev/shm. Waits a moment for processes that are ending. Empty if all is gone.
  std::vector<std::string> Leftovers() const;
  // The pids of this command's processes whose command line contains `text`.
  std::vector<pid_t> Find(const std::string& text) const;

 private:
  bool WaitForText(const std::string& text, const std::string* stream);
  void ReadAll(int fd, std::string* stream);
  std::vector<pid_t> Processes() const;

  std::string runtime_directory_;
  std::string mark_;
  std::vector<std::string> shm_before_;
  pid_t pid_ = -1;
  bool waited_ = false;
  std::string out_;
  std::string err_;
  std::atomic<int> open_streams_ = 2;
  std::mutex mutex_;
  std::vector<std::thread> readers_;
};

// Runs it to its end.
CommandResult RunCommand(std::vector<std::string> arguments,
                         std::vector<std::string> variables = {}, std::string input = "");

// The command line of ferryrun for a program on private daemons. `placement`: its flags, such as
// -n.
std::vector<std::string> PrivateJob(const std::vector<std::string>& placement,
                                    const std::vector<std::string>& program);

// Polls `condition` for at most half a minute.
bool Eventually(const std::function<bool()>& condition);

// The lines of `text`, sorted: ranks write in any order.
std::vector<std::string> SortedLines(const std::string& text);

}  // namespace ferry::e2e
