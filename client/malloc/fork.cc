// Heap: what fork makes of it. See heap.h.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client/malloc/heap.h"
#include "client/malloc/system_calls.h"
#include "shm/atomic.h"

namespace ferry::malloc_heap {
namespace {

// For a child of which nobody hears: it has died, or cannot get on.
constexpr time_t kPatienceS = 10;

[[noreturn]] void Die(const char* why) {
  constexpr char kWho[] = "libferry_malloc: a child was forked, but it gets no copy of the heap: ";
  (void)!write(STDERR_FILENO, kWho, sizeof(kWho) - 1);
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(127);
}

// Copies what of the file is there; all else reads as zero at both ends.
void CopyData(int fd, const std::byte* from, std::byte* to, uint64_t size_bytes) {
  const auto end = static_cast<off_t>(size_bytes);
  off_t begin = lseek(fd, 0, SEEK_DATA);
  while (begin >= 0 && begin < end) {
    off_t hole = lseek(fd, begin, SEEK_HOLE);
    hole = hole < 0 || hole > end ? end : hole;
    std::memcpy(to + begin, from + begin, static_cast<size_t>(hole - begin));
    begin = lseek(fd, hole, SEEK_DATA);
  }
  if (begin < 0 && errno != ENXIO) {  // ENXIO: no data follows
    Die("lseek failed");
  }
}

}  // namespace

// The child's first touch of the heap may come before its handlers run: the C library resets locks
// that lie there. So a fault in the heap, in the child, is answered with the copy; any other one is
// somebody else's.
void Heap::OnFault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  if (heap.forking_ && heap.state_ == State::kShared && getpid() != heap.parent_ &&
      heap.Contains(info->si_addr)) {
    heap.CopyInChild();
  } else {
    sigaction(SIGSEGV, &heap.old_action_, nullptr);  // and once more, for whom it is
  }
  errno = error;
}

void Heap::BeforeFork() {
  pthread_mutex_lock(&mutex_);
  if (state_ != State::kShared) {
    return;
  }
  if (pipe2(pipe_, O_CLOEXEC) != 0) {
    pipe_[0] = pipe_[1] = -1;
    void* const word = SystemMap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    copied_ = word == MAP_FAILED ? nullptr : static_cast<uint32_t*>(word);
  }
  parent_ = getpid();
  forking_ = true;
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &old_action_);
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &faults, &old_mask_);
}

void Heap::AfterForkInParent() {
  if (forking_) {
    if (pipe_[0] >= 0) {
      close(pipe_[1]);
      pipe_[1] = -1;
      char byte = 0;
      while (read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
      }
    } else if (copied_ != nullptr) {
      const timespec patience{kPatienceS, 0};
      while (shm::LoadAcquire(*copied_) == 0 &&
             (syscall(SYS_futex, copied_, FUTEX_WAIT, 0, &patience, nullptr, 0) == 0 ||
              errno == EINTR || errno == EAGAIN)) {
      }
    }
    EndFork();
  }
  pthread_mutex_unlock(&mutex_);
}

void Heap::AfterForkInChild() {
  if (forking_) {
    if (state_ == State::kShared) {
      CopyInChild();
    }
    EndFork();
  }
  pthread_mutex_unlock(&mutex_);
}

void Heap::CopyInChild() {
  // First the place, or the kernel may put the next mapping there.
  if (mapped_bytes_ != 0) {
    if (SystemMap(base_, mapped_bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
      Die("no memory for it");
    }
    void* const parents = SystemMap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, fd_, 0);
    if (parents == MAP_FAILED) {
      Die("the parent's cannot be mapped");
    }
    CopyData(fd_, static_cast<const std::byte*>(parents), base_, mapped_bytes_);
    SystemUnmap(parents, mapped_bytes_);
  }
  close(fd_);
  fd_ = -1;
  file_bytes_ = 0;
  state_ = State::kPrivate;
  refusal_ = Refusal::kForked;
  error_ = 0;
  if (pipe_[1] >= 0) {
    (void)!write(pipe_[1], "", 1);
  } else if (copied_ != nullptr) {
    shm::StoreRelease(*copied_, 1);  // pairs with AfterForkInParent
    syscall(SYS_futex, copied_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

void Heap::EndFork() {
  forking_ = false;
  for (int& end : pipe_) {
    if (end >= 0) {
      close(end);
      end = -1;
    }
  }
  if (copied_ != nullptr) {
    SystemUnmap(copied_, sizeof(uint32_t));
    copied_ = nullptr;
  }
  sigaction(SIGSEGV, &old_action_, nullptr);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace ferry::malloc_heap
