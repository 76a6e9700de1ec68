#include "tests/conformance/transport_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <deque>

#include "common/clock.h"

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

void WriteNumber(uint64_t number) { fwrite(&number, sizeof(number), 1, stdout); }

class Echo : public CompletionSink {
 public:
  void OnReceive(PeerId, std::span<const std::byte> message) override {
    waiting_.emplace_back(message.begin(), message.end());
  }
  void OnComplete(uint64_t, ErrorCode) override {}

  void Answer(Transport* transport, PeerId peer) {
    while (!waiting_.empty() &&
           transport->SendMessage(peer, waiting_.front(), {}, 0, MonotonicNs()) == ErrorCode::kOk) {
      waiting_.pop_front();
    }
  }

 private:
  std::deque<std::vector<std::byte>> waiting_;
};

// Waits for the transport or the end of standard input. Returns false at the latter.
bool Sleep(Transport* transport) {
  const uint64_t now_ns = MonotonicNs();
  const uint64_t wake_ns = transport->NextPollNs(now_ns);
  pollfd descriptors[] = {{STDIN_FILENO, POLLIN, 0}, {transport->WaitFd(), POLLIN, 0}};
  int timeout_ms = 0;
  if (transport->PrepareToSleep()) {
    timeout_ms = wake_ns == UINT64_MAX ? -1 : static_cast<int>((wake_ns - now_ns) / 1'000'000) + 1;
  }
  poll(descriptors, 2, timeout_ms);
  return descriptors[0].revents == 0;
}

}  // namespace

int RunTransportPeer(int argc, char** argv, const CreateFunction& create) {
  TransportOptions options;
  uint64_t address_bytes = 0;
  if (argc != 2 || !ReadAll(STDIN_FILENO, &address_bytes, sizeof(address_bytes)) ||
      address_bytes > 4096) {
    return 2;
  }
  options.provider = argv[1];
  std::vector<std::byte> address(address_bytes);
  std::vector<std::byte> memory(kPeerMemoryBytes);
  StatusOr<std::unique_ptr<Transport>> transport = create(options);
  if (!ReadAll(STDIN_FILENO, address.data(), address.size()) || !transport.ok()) {
    return 3;
  }
  Transport* const t = transport->get();
  StatusOr<PeerId> peer = t->AddPeer(address);
  StatusOr<MemoryRegion> region =
      t->RegisterMemory(memory.data(), memory.size(), Access::kRemoteRead | Access::kRemoteWrite);
  if (!peer.ok() || !region.ok()) {
    return 4;
  }
  WriteNumber(t->Address().size());
  fwrite(t->Address().data(), 1, t->Address().size(), stdout);
  WriteNumber(region->key);
  WriteNumber(region->remote_base);
  fflush(stdout);

  Echo echo;
  bool running = true;
  while (running) {
    if (t->Poll(echo, 64, MonotonicNs()) == 0) {
      running = Sleep(t);
    }
    echo.Answer(t, *peer);
  }
  return 0;
}

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
