#include "tools/ferryrun/why_question.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/own_program.h"
#include "config/environment.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // of one answer

}  // namespace

void WhyQuestion::Ask(const std::vector<std::string>& run_directories, const std::string& job_id) {
  std::string program;
  for (const char* place : {"ferryctl", "../ferryctl/ferryctl"}) {
    const std::string path = OwnDirectory() + "/" + place;
    if (program.empty() && access(path.c_str(), X_OK) == 0) {
      program = path;
    }
  }
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<std::string> variables;
  for (const char* const* entry = config::ProcessEnvironment(); *entry != nullptr; ++entry) {
    variables.emplace_back(*entry);
  }
  for (const std::string& run_directory : run_directories) {
    StatusOr<Pipe> out = MakePipe();
    if (program.empty() || !out.ok()) {
      return;
    }
    const StatusOr<pid_t> pid =
        Spawn({.path = program,
               .arguments = {"ferryctl", "why", job_id, "--run_directory=" + run_directory},
               .environment = variables,
               .stdin_fd = nothing.get(),
               .stdout_fd = out->write.get(),
               .stderr_fd = nothing.get(),
               .parent_death_signal = SIGKILL});
    if (pid.ok()) {
      fcntl(out->read.get(), F_SETFL, O_NONBLOCK);
      answers_.push_back({.pid = *pid, .out = std::move(out->read)});
    }
  }
}

bool WhyQuestion::IsOpen() const {
  return std::any_of(answers_.begin(), answers_.end(),
                     [](const Answer& answer) { return answer.out.valid(); });
}

std::string WhyQuestion::Take() {
  std::string text;
  for (const Answer& answer : std::exchange(answers_, {})) {
    text += answer.text;
    Reap(answer.pid);  // it may still run
  }
  return text;
}

void WhyQuestion::AppendInterests(std::vector<pollfd>* fds) const {
  for (const Answer& answer : answers_) {
    fds->push_back({answer.out.get(), POLLIN, 0});
  }
}

void WhyQuestion::OnReady(const pollfd* fds) {
  for (Answer& answer : answers_) {
    if ((fds++)->revents == 0) {
      continue;
    }
    char bytes[16 << 10];
    const ssize_t size = read(answer.out.get(), bytes, sizeof(bytes));
    if (size > 0) {
      answer.text.append(bytes, static_cast<size_t>(size));
    }
    const bool is_over = size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN);
    if (is_over || answer.text.size() > kMostBytes) {
      answer.out.Reset();
    }
  }
}

}  // namespace ferry::tools
