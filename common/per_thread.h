// One T for each thread that asks for it, made when it first does.
//
// It ends with its thread, but not with the process: while a process ends, handlers of atexit and
// destructors of the program's static objects may still call Ferry's libraries. A `thread_local`
// object of the main thread would be destroyed before the first of them runs.
//
// T's own type tells it apart, so give each use one of its own. Any thread.
#pragma once

#include <pthread.h>

namespace ferry {

template <typename T>
T& OfThisThread() {
  thread_local T* object = nullptr;
  if (object == nullptr) [[unlikely]] {
    // Their destructors run when a thread ends, and not when the process does.
    static const pthread_key_t key = [] {
      pthread_key_t made{};
      (void)pthread_key_create(&made, [](void* of_thread) {
        object = nullptr;  // another destructor of this thread may ask for one again
        delete static_cast<T*>(of_thread);
      });
      return made;
    }();
    object = new T();
    (void)pthread_setspecific(key, object);
  }
  return *object;
}

}  // namespace ferry
