#include "mpi/coll/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#elif defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace ferry::mpi {
namespace {

// A program's own MPI_Op runs here, too, so as much as a thread mostly has. Only what is touched
// takes memory.
constexpr size_t kStackBytes = size_t{8} << 20;

// Boost's own stacks need a part of its library that cannot become part of a shared one.
struct GuardedStack {
  boost::context::stack_context* allocated;

  boost::context::stack_context allocate() const {
    const auto guard_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size_bytes = kStackBytes + guard_bytes;
    void* const base = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      throw std::bad_alloc();
    }
    (void)mprotect(base, guard_bytes, PROT_NONE);
    allocated->size = size_bytes;
    allocated->sp = static_cast<char*>(base) + size_bytes;
    return *allocated;
  }
  static void deallocate(boost::context::stack_context& stack) {
    munmap(static_cast<char*>(stack.sp) - stack.size, stack.size);
  }
};

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      inside_(std::allocator_arg, GuardedStack{&stack_}, [this](boost::context::fiber&& outside) {
        ComeInside();
        const std::unique_ptr<Fiber, void (*)(Fiber*)> leaving(
            this, [](Fiber* fiber) { fiber->LeaveInside(true); });
        outside_ = std::move(outside);
        body_();
        return std::move(outside_);
      }) {
#ifdef __SANITIZE_THREAD__
  sanitizer_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  LeaveOutside();
  inside_ = boost::context::fiber();
  ComeOutside();
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(sanitizer_inside_);
#endif
}

void Fiber::Resume() {
  LeaveOutside();
  inside_ = std::move(inside_).resume();
  ComeOutside();
}

// An exception of Boost's unwinds the stack.
void Fiber::Suspend() {
  LeaveInside(false);
  const std::unique_ptr<Fiber, void (*)(Fiber*)> coming(this,
                                                        [](Fiber* fiber) { fiber->ComeInside(); });
  outside_ = std::move(outside_).resume();
}

// ---- Sanitizers ---------------------------------------------------------------------------------

void Fiber::LeaveOutside() {
#ifdef __SANITIZE_THREAD__
  sanitizer_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_inside_, 0);
#elif defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_outside_, static_cast<char*>(stack_.sp) - stack_.size,
                                 stack_.size);
#endif
}

void Fiber::ComeInside() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(sanitizer_inside_, &outside_bottom_, &outside_bytes_);
#endif
}

void Fiber::LeaveInside([[maybe_unused]] bool for_good) {
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(sanitizer_outside_, 0);
#elif defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizer_inside_, outside_bottom_,
                                 outside_bytes_);
#endif
}

void Fiber::ComeOutside() {
#ifdef __SANITIZE_THREAD__
  if (__tsan_get_current_fiber() != sanitizer_outside_) {  // the body had never begun
    __tsan_switch_to_fiber(sanitizer_outside_, 0);
  }
#elif defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_outside_, nullptr, nullptr);
#endif
}

}  // namespace ferry::mpi
