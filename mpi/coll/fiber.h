// A function that stops in the middle, and goes on from there when it is resumed: it has a stack of
// its own (Boost.Context).
//
// So code that waits can be used where nothing may block: in place of waiting it suspends.
//
// Calling thread: any, one at a time; the body runs on the thread that resumes it, so it must not
// suspend while it holds a lock, or the address of a thread-local object.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace ferry::mpi {

class Fiber {
 public:
  // `body` begins at the first Resume, and never returns.
  explicit Fiber(std::function<void()> body);
  // Unwinds the body's stack, if it has begun.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends. Not to be called by the body.
  void Resume();
  // Makes Resume return. Called by the body.
  void Suspend();

 private:
  // Tell sanitizers of a switch of stacks, on the side that leaves and on the one that comes.
  void LeaveOutside();
  void ComeInside();
  void LeaveInside(bool for_good);
  void ComeOutside();

  const std::function<void()> body_;
  boost::context::stack_context stack_;
  boost::context::fiber inside_;   // the body, while it is suspended
  boost::context::fiber outside_;  // the caller of Resume, while the body runs
  // Sanitizers' names for the two, and AddressSanitizer's for the stack outside.
  void* sanitizer_inside_ = nullptr;
  void* sanitizer_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
};

}  // namespace ferry::mpi
