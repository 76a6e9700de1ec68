// What an MPI handle stands for: an object with a count of those who use it. A user's handle is one
// of them, and so is each operation under way: MPI_Comm_free, for one, takes only the handle's
// part, and the communicator lives on until the last message of it is over (MPI 5.0,
// section 2.4.1).
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ferry::mpi {

class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void Retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<Object*>(this)->Destroy();
    }
  }

 protected:
  // Nobody uses the object any more. Objects of a pool go back there, with one part in them.
  virtual void Destroy() { delete this; }
  void Renew() { references_.store(1, std::memory_order_relaxed); }

 private:
  mutable std::atomic<uint32_t> references_{1};
};

// One part in an object.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: implicit, as a pointer's
  // Takes over the part that comes with `new`, or that someone else held.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // A part more.
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
  // Gives the part to the caller, who releases it.
  T* Leave() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Arguments>
Ref<T> MakeRef(Arguments&&... arguments) {
  return Ref<T>::Adopt(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace ferry::mpi
