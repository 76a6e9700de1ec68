#include "mpi/base/attribute.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// Above the ABI's predefined attributes.
constexpr int kFirstKeyval = 1024;

template <typename Handle, typename Function>
int CallCopy(AnyFunction function, void* object, int keyval, void* extra_state, void* value,
             void** copied, int* wanted) {
  return reinterpret_cast<Function*>(function)(static_cast<Handle>(object), keyval, extra_state,
                                               value, copied, wanted);
}

template <typename Handle, typename Function>
int CallRemove(AnyFunction function, void* object, int keyval, void* value, void* extra_state) {
  return reinterpret_cast<Function*>(function)(static_cast<Handle>(object), keyval, value,
                                               extra_state);
}

const char* Name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kCommunicator:
      return "communicators";
    case AttributeKind::kDatatype:
      return "datatypes";
    case AttributeKind::kWindow:
      return "windows";
  }
  return "objects";
}

Failure CallbackFailed(const char* which, int keyval, int code) {
  return Failure{code, std::string("the ") + which + " callback of keyval " +
                           std::to_string(keyval) + " returned " + std::to_string(code)};
}

}  // namespace

Failure Keyvals::Create(AttributeKind kind, Keyval::Caller caller, AnyFunction copy,
                        AnyFunction remove, void* extra_state, int* number) {
  std::lock_guard lock(mutex_);
  if (next_ == std::numeric_limits<int>::max()) {
    return Failure{MPI_ERR_INTERN, "no numbers are left for keyvals"};
  }
  *number = next_++;
  keyvals_[*number] = MakeRef<Keyval>(kind, *number, caller, copy, remove, extra_state);
  return Failure{};
}

Failure Keyvals::Find(AttributeKind kind, int number, Ref<Keyval>* keyval) const {
  std::lock_guard lock(mutex_);
  auto found = keyvals_.find(number);
  if (found == keyvals_.end()) {
    return Failure{MPI_ERR_KEYVAL, "keyval " + std::to_string(number) + " names no key"};
  }
  if (found->second->kind != kind) {
    return Failure{MPI_ERR_KEYVAL, "keyval " + std::to_string(number) + " is a key for " +
                                       Name(found->second->kind) + ", not " + Name(kind)};
  }
  *keyval = found->second;
  return Failure{};
}

Failure Keyvals::Free(AttributeKind kind, int number) {
  Ref<Keyval> keyval;
  FERRY_RETURN_FAILURE(Find(kind, number, &keyval));
  std::lock_guard lock(mutex_);
  keyvals_.erase(number);
  return Failure{};
}

size_t Keyvals::count() const {
  std::lock_guard lock(mutex_);
  return keyvals_.size();
}

std::vector<AttributeSet::Attribute>::iterator AttributeSet::Locate(int number) {
  return std::find_if(attributes_.begin(), attributes_.end(),
                      [&](const Attribute& each) { return each.keyval->number == number; });
}

Failure AttributeSet::Remove(void* object, const Attribute& attribute) {
  const Keyval& keyval = *attribute.keyval;
  if (keyval.remove != nullptr) {
    int code = keyval.caller.remove(keyval.remove, object, keyval.number, attribute.value,
                                    keyval.extra_state);
    if (code != MPI_SUCCESS) {
      return CallbackFailed("delete", keyval.number, code);
    }
  }
  std::lock_guard lock(mutex_);
  auto at = Locate(keyval.number);
  if (at != attributes_.end() && at->generation == attribute.generation) {
    attributes_.erase(at);
  }
  return Failure{};
}

Failure AttributeSet::Set(void* object, Ref<Keyval> keyval, void* value) {
  std::unique_lock lock(mutex_);
  auto at = Locate(keyval->number);
  if (at != attributes_.end()) {
    Attribute before = *at;
    lock.unlock();
    FERRY_RETURN_FAILURE(Remove(object, before));
    lock.lock();
    at = Locate(keyval->number);  // a callback may have set it anew
  }
  if (at != attributes_.end()) {
    at->value = value;
    at->generation = ++generations_;
  } else {
    attributes_.push_back({std::move(keyval), value, ++generations_});
  }
  return Failure{};
}

bool AttributeSet::Get(int number, void** value) const {
  std::lock_guard lock(mutex_);
  for (const Attribute& attribute : attributes_) {
    if (attribute.keyval->number == number) {
      *value = attribute.value;
      return true;
    }
  }
  return false;
}

Failure AttributeSet::Delete(void* object, int number) {
  std::unique_lock lock(mutex_);
  auto at = Locate(number);
  if (at == attributes_.end()) {
    return Failure{MPI_ERR_KEYVAL, "no attribute is set under keyval " + std::to_string(number)};
  }
  Attribute attribute = *at;
  lock.unlock();
  return Remove(object, attribute);
}

Failure AttributeSet::CopyTo(void* object, AttributeSet* copies) const {
  std::vector<Attribute> attributes;
  {
    std::lock_guard lock(mutex_);
    attributes = attributes_;
  }
  for (const Attribute& attribute : attributes) {
    const Keyval& keyval = *attribute.keyval;
    if (keyval.copy == nullptr) {
      continue;
    }
    void* copied = attribute.value;
    int wanted = 1;
    if (!IsDuplicate(keyval.copy)) {
      wanted = 0;
      int code = keyval.caller.copy(keyval.copy, object, keyval.number, keyval.extra_state,
                                    attribute.value, &copied, &wanted);
      if (code != MPI_SUCCESS) {
        return CallbackFailed("copy", keyval.number, code);
      }
    }
    if (wanted != 0) {
      std::lock_guard lock(copies->mutex_);
      copies->attributes_.push_back({attribute.keyval, copied, ++copies->generations_});
    }
  }
  return Failure{};
}

Failure AttributeSet::DeleteAll(void* object) {
  while (true) {
    std::unique_lock lock(mutex_);
    if (attributes_.empty()) {
      return Failure{};
    }
    Attribute last = attributes_.back();
    lock.unlock();
    FERRY_RETURN_FAILURE(Remove(object, last));
  }
}

// Not destroyed at exit: threads of the program may still run.
Keyvals& ProcessKeyvals() {
  static auto& keyvals = *new Keyvals(kFirstKeyval);
  return keyvals;
}

Keyval::Caller CallerOf(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kCommunicator:
      return {CallCopy<MPI_Comm, MPI_Comm_copy_attr_function>,
              CallRemove<MPI_Comm, MPI_Comm_delete_attr_function>};
    case AttributeKind::kDatatype:
      return {CallCopy<MPI_Datatype, MPI_Type_copy_attr_function>,
              CallRemove<MPI_Datatype, MPI_Type_delete_attr_function>};
    case AttributeKind::kWindow:
      return {CallCopy<MPI_Win, MPI_Win_copy_attr_function>,
              CallRemove<MPI_Win, MPI_Win_delete_attr_function>};
  }
  return {nullptr, nullptr};
}

}  // namespace ferry::mpi
