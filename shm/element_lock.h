// A lock among processes, under which numbers change that not all of them reach by atomic
// operations of a CPU: memory of one process that others read and write by copies (a window's
// ordinary memory).
//
// The lock lies in memory that all of these processes map. A process that dies while it holds the
// lock leaves at most the element half changed that it was about; the next one just gets the lock
// (a robust mutex of POSIX). A holder that is stopped keeps the others waiting, however long: so
// hold it only for a few copies, and let a thread that serves other ranks only try it, and come
// back.
//
// Calling thread: any. lock() blocks, try_lock() does not. Meant for std::lock_guard and
// std::unique_lock.
#pragma once

#include <pthread.h>

#include <cerrno>

namespace ferry::shm {

class ElementLock {
 public:
  // Made by one process, in place, before others use it. It may go with its memory, once no process
  // uses it.
  ElementLock() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ElementLock(const ElementLock&) = delete;
  ElementLock& operator=(const ElementLock&) = delete;

  void lock() { (void)IsHeld(pthread_mutex_lock(&mutex_)); }
  bool try_lock() { return IsHeld(pthread_mutex_trylock(&mutex_)); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  bool IsHeld(int result) {
    if (result == EOWNERDEAD) {
      pthread_mutex_consistent(&mutex_);
    }
    return result == 0 || result == EOWNERDEAD;
  }

  pthread_mutex_t mutex_;
};

}  // namespace ferry::shm
