// The object behind an MPI handle, with a count of its uses. A user's handle is one of them, and so
// is each operation under way: MPI_Comm_free, for one, takes only the handle's part, and the
// communicator lives on until the last message of it is over (MPI 5.0,
// section 2.4.1).
//
// Calling thread: any. While one thread calls at a time, counting takes no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ferry::mpi {

// True if threads may use objects at the same time: not while the thread level, or the order of
// calls, keeps them apart. Set while one thread alone is in the library.
inline std::atomic<bool> threads_may_meet{true};

class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void Retain() const {
    if (IsShared()) {
      references_.fetch_add(1, std::memory_order_relaxed);
    } else {
      references_.store(references_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
  void Release() const {
    if (TakeOne() == 1) {
      const_cast<Object*>(this)->Destroy();
    }
  }

 protected:
  // For kinds that all threads may use, whatever the thread level (MPI 5.0, section 11.6).
  struct ForAnyThread {};
  explicit Object(ForAnyThread) : for_any_thread_(true) {}

  // Called when the object has no user any more. Objects of a pool go back there, with one
  // reference.
  virtual void Destroy() { delete this; }
  void Renew() { references_.store(1, std::memory_order_relaxed); }

 private:
  bool IsShared() const {
    return threads_may_meet.load(std::memory_order_relaxed) || for_any_thread_;
  }
  // Takes one reference away. Returns the number before.
  uint32_t TakeOne() const {
    if (IsShared()) {
      return references_.fetch_sub(1, std::memory_order_acq_rel);
    }
    const uint32_t before = references_.load(std::memory_order_relaxed);
    references_.store(before - 1, std::memory_order_relaxed);
    return before;
  }

  mutable std::atomic<uint32_t> references_{1};
  const bool for_any_thread_ = false;
};

// One reference to an object.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: implicit, as a pointer's
  // Takes over the reference that comes with `new`, or that another holder gives up.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Adds a reference.
  static Ref Share(T* object) {
    if (object != nullptr) {
      object->Retain();
    }
    return Adopt(object);
  }
  Ref(const Ref& other) : Ref(Share(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  Ref(Ref<U> other) : object_(other.Leave()) {}  // NOLINT: implicit, as a pointer's
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) {
      object_->Release();
    }
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Gives the reference to the caller, who releases it.
  T* Leave() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Arguments>
Ref<T> MakeRef(Arguments&&... arguments) {
  return Ref<T>::Adopt(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace ferry::mpi
