// A ferryd in a process of its own: the one for tests, or the real one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry::daemon {

class FerrydProcess {
 public:
  static constexpr char kForTest[] = "tests/daemon/ferryd_for_test";
  static constexpr char kReal[] = "daemon/ferryd";

  // Starts it over `directory` with `flags` added; WaitUntilReady says whether it serves.
  FerrydProcess(const std::string& directory, const std::vector<std::string>& flags,
                const char* program = kForTest);
  // Kills it if it still runs.
  ~FerrydProcess();
  FerrydProcess(const FerrydProcess&) = delete;
  FerrydProcess& operator=(const FerrydProcess&) = delete;

  // Blocks until it serves (true) or has closed the descriptor without a word.
  bool WaitUntilReady();
  // Blocks until it ends; 128 + signal if killed by one.
  int Wait();
  void Signal(int number) const;
  pid_t pid() const { return pid_; }
  // host:port from ferryd.json.
  std::string ControlAddress() const;
  // Returns its standard error. Only after Wait.
  std::string Errors() const;

 private:
  std::string directory_;
  std::string log_;
  pid_t pid_ = -1;
  int ready_ = -1;
};

// A new directory below /tmp, and its removal.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ferry::daemon
