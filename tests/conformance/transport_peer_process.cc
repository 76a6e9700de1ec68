#include "tests/conformance/transport_peer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ferry::transport {
namespace {

bool ReadAll(int fd, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(fd, at, bytes);
    if (count <= 0) {
      return false;
    }
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

std::unique_ptr<PeerProcess> PeerProcess::Start(const std::string& program,
                                                const std::string& provider,
                                                std::span<const std::byte> our_address) {
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
    return nullptr;
  }
  const UniqueFd its_input(input[0]);
  const UniqueFd its_output(output[1]);
  std::unique_ptr<PeerProcess> process(new PeerProcess());
  process->input_.Reset(input[1]);
  process->output_.Reset(output[0]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, its_output.get(), STDOUT_FILENO);
  std::string arguments[] = {program, provider};
  char* const argv[] = {arguments[0].data(), arguments[1].data(), nullptr};
  const int error = posix_spawn(&process->pid_, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    process->pid_ = -1;
    return nullptr;
  }
  const uint64_t bytes = our_address.size();
  if (write(input[1], &bytes, sizeof(bytes)) != sizeof(bytes) ||
      write(input[1], our_address.data(), bytes) != static_cast<ssize_t>(bytes) ||
      !process->ReadHello()) {
    return nullptr;
  }
  return process;
}

bool PeerProcess::ReadHello() {
  uint64_t bytes = 0;
  if (!ReadAll(output_.get(), &bytes, sizeof(bytes)) || bytes > 4096) {
    return false;
  }
  hello_.address.resize(bytes);
  return ReadAll(output_.get(), hello_.address.data(), bytes) &&
         ReadAll(output_.get(), &hello_.key, sizeof(hello_.key)) &&
         ReadAll(output_.get(), &hello_.remote_base, sizeof(hello_.remote_base));
}

void PeerProcess::Kill(int signal) {
  kill(pid_, signal);
  if (signal == SIGKILL) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  } else if (signal == SIGSTOP) {
    waitpid(pid_, nullptr, WUNTRACED);
  }
}

PeerProcess::~PeerProcess() {
  if (pid_ > 0) {
    Kill(SIGKILL);
  }
}

}  // namespace ferry::transport
