// Heap: the copy of it that a forked child takes. See heap.h.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/malloc/heap.h"
#include "client/malloc/system_calls.h"
#include "shm/atomic.h"

namespace ferry::malloc_heap {
namespace {

// How long the parent waits for a child that makes no progress with its copy: it was stopped, or
// has died unseen. The time is counted in the parent's looks, since it does not look while it is
// stopped itself.
constexpr int kPatienceMs = 10'000;
constexpr int kLookMs = 100;
constexpr int kLookWithoutPipeMs = 1;
// The child reports its progress after each piece of this size.
constexpr size_t kPieceBytes = 16 << 20;

enum CopyOutcome : uint32_t {
  kCopying = 0,
  kCopied = 1,
  kGivenUp = 2,  // the parent has gone on: the copied data may be of different moments
};

[[noreturn]] void Die(const char* why) {
  constexpr char kWho[] = "libferry_malloc: a child was forked, but it gets no copy of the heap: ";
  (void)!write(STDERR_FILENO, kWho, sizeof(kWho) - 1);
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(127);
}

}  // namespace

// Copies the parts of the file that hold data; all else reads as zero at both ends.
void Heap::CopyData(const std::byte* parents) {
  const auto end = static_cast<off_t>(mapped_bytes_);
  off_t begin = lseek(fd_, 0, SEEK_DATA);
  while (begin >= 0 && begin < end) {
    off_t hole = lseek(fd_, begin, SEEK_HOLE);
    hole = hole < 0 || hole > end ? end : hole;
    while (begin < hole) {
      const size_t bytes = std::min(static_cast<size_t>(hole - begin), kPieceBytes);
      std::memcpy(base_ + begin, parents + begin, bytes);
      begin += static_cast<off_t>(bytes);
      if (words_ != nullptr) {
        shm::FetchAdd(words_->progress, 1U, std::memory_order_relaxed);
      }
    }
    begin = lseek(fd_, hole, SEEK_DATA);
  }
  if (begin < 0 && errno != ENXIO) {  // ENXIO: no data follows
    Die("lseek failed");
  }
}

// The child's first touch of the heap may come before its handlers run: the C library resets locks
// that lie there. So the handler answers a fault in the heap, in the child, with the copy, and
// passes any other one to the handler that was there before.
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
  }
  void* const words = SystemMap(nullptr, sizeof(CopyWords), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  words_ = words == MAP_FAILED ? nullptr : static_cast<CopyWords*>(words);
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
    AwaitCopy();
    EndFork();
  }
  pthread_mutex_unlock(&mutex_);
}

// Returns once the child has its copy, or has died, or is given up. Without a pipe it looks only.
void Heap::AwaitCopy() {
  pollfd told = {pipe_[0], POLLIN, 0};
  if (pipe_[0] >= 0) {
    close(pipe_[1]);
    pipe_[1] = -1;
  }
  const int look_ms = pipe_[0] >= 0 ? kLookMs : kLookWithoutPipeMs;
  uint32_t seen = 0;
  int looks = 0;  // in vain
  // Pairs with CopyInChild.
  while (words_ == nullptr ? pipe_[0] >= 0 : shm::LoadAcquire(words_->outcome) == kCopying) {
    const int ready = poll(&told, 1, words_ == nullptr ? -1 : look_ms);
    if (ready > 0) {
      return;
    }
    if (ready < 0 || words_ == nullptr) {
      continue;
    }
    const uint32_t progress = shm::LoadRelaxed(words_->progress);
    looks = progress == seen ? looks + 1 : 0;
    seen = progress;
    uint32_t copying = kCopying;
    if (looks == kPatienceMs / look_ms) {
      shm::CompareExchange(words_->outcome, copying, uint32_t{kGivenUp}, std::memory_order_acq_rel);
    }
  }
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
    CopyData(static_cast<const std::byte*>(parents));
    SystemUnmap(parents, mapped_bytes_);
  }
  close(fd_);
  fd_ = -1;
  file_bytes_ = 0;
  state_ = State::kPrivate;
  refusal_ = Refusal::kForked;
  error_ = 0;
  uint32_t copying = kCopying;
  if (words_ != nullptr &&
      !shm::CompareExchange(words_->outcome, copying, uint32_t{kCopied},
                            std::memory_order_acq_rel)) {  // pairs with AwaitCopy
    Die("it was stopped for so long that its parent has gone on");
  }
  if (pipe_[1] >= 0) {
    (void)!write(pipe_[1], "", 1);
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
  if (words_ != nullptr) {
    SystemUnmap(words_, sizeof(CopyWords));
    words_ = nullptr;
  }
  sigaction(SIGSEGV, &old_action_, nullptr);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace ferry::malloc_heap
