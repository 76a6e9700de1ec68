#include "benchmarks/gpu/peers.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "benchmarks/gpu/bare_gpu.h"
#include "common/passed_descriptors.h"
#include "shm/atomic.h"

namespace ferry::bench {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kWordsApart = 16;             // 128 bytes
constexpr uint64_t kTurnsBetweenLooks = 4096;  // at whether the child is still there

// An IpcHandle without its descriptor, which travels beside it.
struct HandleOnSocket {
  std::array<uint8_t, 64> opaque;
  uint64_t offset_bytes;
  uint64_t size_bytes;
  uint64_t allocation_id;
  int32_t device;
  uint32_t reserved;
};

void Must(const char* call, bool success) {
  if (!success) {
    CheckStatus(StatusFromErrno(errno, call));
  }
}

}  // namespace

PeerProcess PeerProcess::Fork() {
  int sockets[2];
  Must("socketpair", socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
  UniqueFd ends[2] = {UniqueFd(sockets[0]), UniqueFd(sockets[1])};
  void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Must("mmap", page != MAP_FAILED);
  const pid_t parent = getpid();
  const pid_t child = fork();
  Must("fork", child >= 0);
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(1);
    }
  }
  return {child, std::move(ends[child == 0 ? 1 : 0]), static_cast<uint64_t*>(page)};
}

PeerProcess::~PeerProcess() {
  if (!is_child()) {
    socket_.Reset(-1);
    (void)waitpid(child_, nullptr, 0);
  }
  (void)munmap(words_, kPageBytes);
}

void PeerProcess::Send(const gpu::IpcHandle& handle) {
  const HandleOnSocket message{handle.opaque,        handle.offset_bytes, handle.size_bytes,
                               handle.allocation_id, handle.device,       0};
  const int fd = handle.fd.get();
  Must("sendmsg", SendWithDescriptors(
                      socket_.get(), std::as_bytes(std::span(&message, 1)),
                      handle.fd.valid() ? std::span<const int>(&fd, 1) : std::span<const int>(),
                      0) == sizeof(message));
}

gpu::IpcHandle PeerProcess::Receive() {
  HandleOnSocket message{};
  std::vector<UniqueFd> descriptors;
  if (ReceiveWithDescriptors(socket_.get(), std::as_writable_bytes(std::span(&message, 1)),
                             &descriptors, 0) != sizeof(message)) {
    CheckStatus({ErrorCode::kPeerDied, "the other process has ended"});
  }
  gpu::IpcHandle handle;
  if (!descriptors.empty()) {
    handle.fd = std::move(descriptors.front());
  }
  handle.opaque = message.opaque;
  handle.offset_bytes = message.offset_bytes;
  handle.size_bytes = message.size_bytes;
  handle.allocation_id = message.allocation_id;
  handle.device = message.device;
  return handle;
}

void PeerProcess::Signal(uint64_t value) {
  // Pairs with Await of the other process: earlier copies are seen.
  shm::StoreRelease(words_[is_child() ? kWordsApart : 0], value);
}

void PeerProcess::Await(uint64_t value) {
  const uint64_t& word = words_[is_child() ? 0 : kWordsApart];
  // Pairs with Signal of the other process.
  for (uint64_t turn = 1; shm::LoadAcquire(word) < value; ++turn) {
    sched_yield();
    if (!is_child() && turn % kTurnsBetweenLooks == 0 && waitpid(child_, nullptr, WNOHANG) != 0) {
      CheckStatus({ErrorCode::kPeerDied, "the other process has ended"});
    }
  }
}

}  // namespace ferry::bench
