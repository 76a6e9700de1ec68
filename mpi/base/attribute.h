// Attributes that programs cache on communicators, datatypes and windows, under keys (keyvals) of
// their own making, with callbacks for copying and deleting. MPI 5.0, section 7.7.
//
// A callback's arguments depend on the kind of object only in the type of the handle. All of MPI's
// handles are pointers, so here they are `void*`, and a Caller, which knows the type, makes the
// call. A failing callback gives its own error code, which the failing MPI call returns (section
// 7.7.2).
//
// Calling thread: any for Keyvals. An AttributeSet belongs to one object: its calls may come from
// any thread, and no lock is held during a callback, which may itself set, get and delete
// attributes.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"

namespace ferry::mpi {

enum class AttributeKind : int32_t { kCommunicator = 0, kDatatype = 1, kWindow = 2 };

// A callback of the program, of the function type that its kind has. The ABI's predefined functions
// are numbers: null does nothing, and one copies the value as it is.
using AnyFunction = void (*)();
inline bool IsDuplicate(AnyFunction copy) { return reinterpret_cast<uintptr_t>(copy) == 1; }

class Keyval : public Object {
 public:
  // How a kind of object calls its callbacks. Both return MPI_SUCCESS or the program's error code.
  struct Caller {
    int (*copy)(AnyFunction function, void* object, int keyval, void* extra_state, void* value,
                void** copied, int* wanted);
    int (*remove)(AnyFunction function, void* object, int keyval, void* value, void* extra_state);
  };

  Keyval(AttributeKind kind, int number, Caller caller, AnyFunction copy, AnyFunction remove,
         void* extra_state)
      : kind(kind),
        number(number),
        caller(caller),
        copy(copy),
        remove(remove),
        extra_state(extra_state) {}

  const AttributeKind kind;
  const int number;
  const Caller caller;
  const AnyFunction copy;    // null: attributes are not copied; see IsDuplicate
  const AnyFunction remove;  // null: nothing is called
  void* const extra_state;
};

// The keys that programs made. A number is never reused.
class Keyvals {
 public:
  // `first`: the smallest number to give; those of the ABI's predefined attributes lie below.
  explicit Keyvals(int first) : next_(first) {}

  // MPI_ERR_INTERN when numbers have run out.
  Failure Create(AttributeKind kind, Keyval::Caller caller, AnyFunction copy, AnyFunction remove,
                 void* extra_state, int* number);
  // MPI_ERR_KEYVAL when `number` names no key of this kind, or one that was freed.
  Failure Find(AttributeKind kind, int number, Ref<Keyval>* keyval) const;
  // Frees a number, which names nothing from now on; attributes under it live on (section 7.7.2,
  // MPI_COMM_FREE_KEYVAL). Errors as in Find.
  Failure Free(AttributeKind kind, int number);
  size_t count() const;

 private:
  mutable std::mutex mutex_;
  int next_;
  std::unordered_map<int, Ref<Keyval>> keyvals_;
};

// Returns the keys of this process. They may be used before MPI_Init and after MPI_Finalize.
Keyvals& ProcessKeyvals();
// Returns the functions that call the callbacks of a kind of object.
Keyval::Caller CallerOf(AttributeKind kind);

// The attributes of one object, in the order in which they were first set.
class AttributeSet {
 public:
  AttributeSet() = default;
  AttributeSet(const AttributeSet&) = delete;
  AttributeSet& operator=(const AttributeSet&) = delete;

  // In the following `object` is the handle for callbacks.

  // Sets or replaces an attribute; the old value is deleted first, and stays if its callback fails.
  Failure Set(void* object, Ref<Keyval> keyval, void* value);
  // Gets an attribute. False: it is not set.
  bool Get(int number, void** value) const;
  // Deletes an attribute. MPI_ERR_KEYVAL if it is not set; it stays if its callback fails.
  Failure Delete(void* object, int number);
  // Copies, for each key whose callback wants that, the attribute to `copies`, those of an object
  // that is not in use yet. The first callback that fails ends the copying, and the caller deletes
  // the copies.
  Failure CopyTo(void* object, AttributeSet* copies) const;
  // Deletes all attributes, the last set first (as section 11.2.4 asks for MPI_COMM_SELF). Ends at
  // the first whose callback fails, which stays, as those before it do. Attributes that callbacks
  // set meanwhile are deleted too.
  Failure DeleteAll(void* object);

 private:
  struct Attribute {
    Ref<Keyval> keyval;
    void* value;
    uint64_t generation;  // of this value: tells whether a callback changed it
  };

  std::vector<Attribute>::iterator Locate(int number);
  // Calls the callback for `attribute`, and takes the attribute out, unless the callback failed or
  // has changed it.
  Failure Remove(void* object, const Attribute& attribute);

  mutable std::mutex mutex_;
  std::vector<Attribute> attributes_;
  uint64_t generations_ = 0;
};

}  // namespace ferry::mpi
