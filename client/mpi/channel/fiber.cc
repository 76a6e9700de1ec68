#include "client/mpi/channel/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace ferry::mpi {
namespace {

// A program's own MPI_Op runs here, too. Only what is touched takes memory.
constexpr size_t kStackBytes = size_t{1} << 20;

// Boost's own stacks need a part of its library that cannot become part of a shared one.
struct GuardedStack {
  boost::context::stack_context allocate() {
    const auto guard_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size_bytes = kStackBytes + guard_bytes;
    void* const base = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      throw std::bad_alloc();
    }
    (void)mprotect(base, guard_bytes, PROT_NONE);
    boost::context::stack_context stack;
    stack.size = size_bytes;
    stack.sp = static_cast<char*>(base) + size_bytes;
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) {
    munmap(static_cast<char*>(stack.sp) - stack.size, stack.size);
  }
};

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      inside_(std::allocator_arg, GuardedStack(), [this](boost::context::fiber&& outside) {
        outside_ = std::move(outside);
        body_();
        return std::move(outside_);
      }) {
#ifdef __SANITIZE_THREAD__
  sanitizer_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(sanitizer_inside_);
#endif
}

void Fiber::Resume() {
#ifdef __SANITIZE_THREAD__
  sanitizer_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_inside_, 0);
#endif
  inside_ = std::move(inside_).resume();
}

void Fiber::Suspend() {
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(sanitizer_outside_, 0);
#endif
  outside_ = std::move(outside_).resume();
}

}  // namespace ferry::mpi
