#include "daemon/session/memory_guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "common/log.h"

namespace ferry::daemon {
namespace {

// So many pages of one mapping are replaced one by one, so that its owner still sees what we write
// to the others. Then the mapping is replaced as a whole: each page costs a mapping, and a process
// may have only so many of them.
constexpr uint32_t kMaxPages = 16;

// Found by a signal handler, so never freed, only used again.
struct GuardedRange {
  std::atomic<uintptr_t> begin = 0;  // 0: unused
  std::atomic<uintptr_t> end = 0;
  std::atomic<int> event = -1;
  std::atomic<uint32_t> pages = 0;  // that have vanished
  GuardedRange* next = nullptr;
  // Under the lock.
  const MemoryWatch* watch = nullptr;
  bool is_told = false;
  MemoryOwner owner;
};

std::atomic<GuardedRange*> g_ranges = nullptr;
std::mutex g_mutex;
uintptr_t g_page_bytes = 0;  // of the kernel; set before the handler is
struct sigaction g_before {};

GuardedRange* Find(uintptr_t address) {
  for (GuardedRange* range = g_ranges.load(std::memory_order_acquire); range != nullptr;
       range = range->next) {
    // Pairs with Guard. The range that a thread of ours touches does not change meanwhile; another
    // may, and is then not taken for it.
    const uintptr_t begin = range->begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < range->end.load(std::memory_order_acquire) &&
        range->begin.load(std::memory_order_relaxed) == begin) {
      return range;
    }
  }
  return nullptr;
}

bool PutEmptyPages(uintptr_t begin, uintptr_t end) {
  return mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

// System calls and atomics only.
void OnBusError(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  GuardedRange* const range = info->si_code > 0 ? Find(address) : nullptr;
  bool is_mended = false;
  if (range != nullptr) {
    const uintptr_t page = address & ~(g_page_bytes - 1);
    const uint32_t before = range->pages.fetch_add(1, std::memory_order_release);
    is_mended = before < kMaxPages ? PutEmptyPages(page, page + g_page_bytes)
                                   : PutEmptyPages(range->begin, range->end) ||
                                         PutEmptyPages(page, page + g_page_bytes);
    const uint64_t one = 1;
    (void)!write(range->event, &one, sizeof(one));
  }
  errno = error;
  if (is_mended) {
    return;
  }
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(number, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(number);
  } else {
    signal(SIGBUS, SIG_DFL);  // touched again, it ends us
  }
}

void Install() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &g_before);
  });
}

}  // namespace

MemoryWatch::MemoryWatch() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) {
    spdlog::error("nobody will be told of memory that vanishes: eventfd: errno {}", errno);
  }
  Install();
}

MemoryWatch::~MemoryWatch() {
  const std::lock_guard lock(g_mutex);
  for (GuardedRange* range = g_ranges; range != nullptr; range = range->next) {
    if (range->watch == this) {
      range->watch = nullptr;
      range->event = -1;
    }
  }
}

std::vector<MemoryOwner> MemoryWatch::TakeVanished() {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
  std::vector<MemoryOwner> owners;
  const std::lock_guard lock(g_mutex);
  for (GuardedRange* range = g_ranges; range != nullptr; range = range->next) {
    // Pairs with OnBusError.
    if (range->watch == this && !range->is_told &&
        range->pages.load(std::memory_order_acquire) != 0) {
      range->is_told = true;
      owners.push_back(range->owner);
    }
  }
  return owners;
}

void MemoryWatch::Guard(const shm::Mapping& mapping, const MemoryOwner& owner) {
  const std::lock_guard lock(g_mutex);
  GuardedRange* range = g_ranges;
  while (range != nullptr && range->begin != 0) {
    range = range->next;
  }
  if (range == nullptr) {
    range = new GuardedRange();
    range->next = g_ranges;
    g_ranges.store(range, std::memory_order_release);
  }
  range->watch = this;
  range->is_told = false;
  range->owner = owner;
  range->pages = 0;
  range->event = event_.get();
  const auto begin = reinterpret_cast<uintptr_t>(mapping.base());
  range->end.store(begin + mapping.size_bytes(), std::memory_order_release);  // Pairs with Find.
  range->begin.store(begin, std::memory_order_release);                       // Pairs with Find.
}

void MemoryWatch::Forget(const shm::Mapping& mapping) {
  const auto begin = reinterpret_cast<uintptr_t>(mapping.base());
  if (begin == 0) {
    return;
  }
  const std::lock_guard lock(g_mutex);
  for (GuardedRange* range = g_ranges; range != nullptr; range = range->next) {
    if (range->begin == begin) {
      range->begin = 0;
      range->event = -1;
      range->watch = nullptr;
      range->owner = {};
    }
  }
}

}  // namespace ferry::daemon
