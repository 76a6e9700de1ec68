// The handles of one kind (communicators, datatypes, ...) that a program holds, and the object for
// which each stands.
//
// MPI's standard ABI makes a handle a pointer to an opaque structure. Ferry's points to a cell of
// this table, which holds the object's address. So any word that a program passes can be checked in
// a few instructions before anything is read: a handle that was freed, one of another kind and a
// wild pointer are all told apart from a live one. Predefined handles are the small numbers that
// the ABI gives them (MPI 5.0, section 20.3).
//
// Calling thread: any. Find takes no lock.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ferry::mpi {

// Predefined handles lie below this address.
inline constexpr uintptr_t kPredefinedHandles = 1024;

// The part that does not depend on the kind.
class HandleCells {
 public:
  // Without a destructor: programs may call MPI until the process has ended.
  HandleCells() = default;
  HandleCells(const HandleCells&) = delete;
  HandleCells& operator=(const HandleCells&) = delete;

  void* Find(uintptr_t handle) const {
    if (handle < kPredefinedHandles) [[likely]] {
      return predefined_[handle];
    }
    const uintptr_t offset = handle - base_.load(std::memory_order_acquire);  // Pairs with Reserve.
    if (offset >= used_.load(std::memory_order_acquire) * sizeof(Cell) ||
        offset % sizeof(Cell) != 0) {
      return nullptr;
    }
    return reinterpret_cast<const Cell*>(handle)->object.load(std::memory_order_acquire);
  }
  // Makes a handle for the object. 0: there is no memory for another one.
  uintptr_t Add(void* object);
  // Frees the handle, which may then be used for another object. Returns its object; null: it named
  // none.
  void* Remove(uintptr_t handle);
  // For objects of a pool, which keep their handle: makes a handle of Add stand for nothing (null),
  // or for `object` again. Takes no lock.
  static void Set(uintptr_t handle, void* object) {
    reinterpret_cast<Cell*>(handle)->object.store(object, std::memory_order_release);
  }
  void SetPredefined(uintptr_t handle, void* object) { predefined_[handle] = object; }
  // Returns a number for the handle, as small as can be: predefined handles are their own number,
  // and a handle that Add never gave has 0.
  int NumberOf(uintptr_t handle) const;
  // Returns the handle with this number; 0 if there was never one.
  uintptr_t HandleOf(int number) const;
  // Returns the number of Add's handles that stand for an object.
  size_t count() const;
  // Calls `use(handle, object)` for each of them. It may remove the handle; no other thread may.
  template <typename Use>
  void ForEach(Use&& use) const {
    const uintptr_t base = base_.load(std::memory_order_acquire);
    const size_t used = used_.load(std::memory_order_acquire);
    for (size_t i = 0; i < used; ++i) {
      const uintptr_t handle = base + i * sizeof(Cell);
      if (void* const object = Find(handle); object != nullptr) {
        use(handle, object);
      }
    }
  }

 private:
  struct Cell {
    std::atomic<void*> object{nullptr};
    uintptr_t next_free = 0;
  };
  bool Reserve();

  std::array<void*, kPredefinedHandles> predefined_{};
  std::atomic<uintptr_t> base_{0};
  std::atomic<size_t> used_{0};  // cells that have held an object
  mutable std::mutex mutex_;     // guards what follows
  uintptr_t free_ = 0;
  size_t count_ = 0;
};

template <typename T, typename Handle>
class HandleTable {
 public:
  // Returns the handle's object. Null: the handle stands for nothing.
  T* Find(Handle handle) const {
    return static_cast<T*>(cells_.Find(reinterpret_cast<uintptr_t>(handle)));
  }
  // Makes a handle for the object, to which the caller hands over its reference. A null handle (0):
  // no memory.
  Handle Add(T* object) { return reinterpret_cast<Handle>(cells_.Add(object)); }
  // Removes the handle, and returns its object with the handle's reference. Predefined handles are
  // not removed (null).
  T* Remove(Handle handle) {
    return static_cast<T*>(cells_.Remove(reinterpret_cast<uintptr_t>(handle)));
  }
  // See HandleCells::Set.
  static void Set(Handle handle, T* object) {
    HandleCells::Set(reinterpret_cast<uintptr_t>(handle), object);
  }
  void SetPredefined(Handle handle, T* object) {
    cells_.SetPredefined(reinterpret_cast<uintptr_t>(handle), object);
  }
  // See HandleCells::NumberOf and HandleOf. Conversions back and forth keep handles of freed
  // objects too.
  int NumberOf(Handle handle) const { return cells_.NumberOf(reinterpret_cast<uintptr_t>(handle)); }
  Handle HandleOf(int number) const { return reinterpret_cast<Handle>(cells_.HandleOf(number)); }
  static bool IsPredefined(Handle handle) {
    return reinterpret_cast<uintptr_t>(handle) < kPredefinedHandles;
  }
  size_t count() const { return cells_.count(); }
  // See HandleCells::ForEach.
  template <typename Use>
  void ForEach(Use&& use) const {
    cells_.ForEach([&use](uintptr_t handle, void* object) {
      use(reinterpret_cast<Handle>(handle), static_cast<T*>(object));
    });
  }

 private:
  HandleCells cells_;
};

class Comm;
class Datatype;
class ErrorHandler;
class Group;
class Info;
class MatchedMessage;
class Op;
class Request;
class Session;
class Win;

// The handles of this process.
extern HandleTable<Comm, MPI_Comm> comms;
extern HandleTable<Datatype, MPI_Datatype> datatypes;
extern HandleTable<ErrorHandler, MPI_Errhandler> error_handlers;
extern HandleTable<Group, MPI_Group> groups;
extern HandleTable<Info, MPI_Info> infos;
extern HandleTable<MatchedMessage, MPI_Message> matched_messages;
extern HandleTable<Op, MPI_Op> ops;
extern HandleTable<Request, MPI_Request> requests;
extern HandleTable<Session, MPI_Session> sessions;
extern HandleTable<Win, MPI_Win> wins;

}  // namespace ferry::mpi
