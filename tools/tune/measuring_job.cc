#include "tools/tune/measuring_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include "common/own_program.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;

// All of a stream until its writers have closed it.
StatusOr<std::string> ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got == 0) {
      return text;
    }
    if (got < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "cannot read what the job says");
    }
    text.append(piece.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }
}

}  // namespace

std::string FindBeside(std::initializer_list<const char*> places) {
  for (const char* place : places) {
    const fs::path path = (fs::path(OwnDirectory()) / place).lexically_normal();
    if (std::error_code ignored; fs::exists(path, ignored)) {
      return path.string();
    }
  }
  return "";
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

StatusOr<std::string> RunMeasuringJob(const std::vector<std::string>& arguments) {
  StatusOr<Pipe> out = MakePipe();
  FERRY_RETURN_IF_ERROR(out.status());
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> environment;
  for (const char* const* entry = config::ProcessEnvironment(); *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  const StatusOr<pid_t> pid = Spawn({.path = arguments[0],
                                     .arguments = arguments,
                                     .environment = std::move(environment),
                                     .stdin_fd = nothing.get(),
                                     .stdout_fd = out->write.get(),
                                     .stderr_fd = STDERR_FILENO,
                                     .parent_death_signal = SIGTERM});
  FERRY_RETURN_IF_ERROR(pid.status());
  out->write.Reset();
  StatusOr<std::string> text = ReadAll(out->read.get());
  int how = 0;
  while (waitpid(*pid, &how, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
    return Status(ErrorCode::kSystem, "the job that measures failed: see above");
  }
  return text;
}

}  // namespace ferry::tools
