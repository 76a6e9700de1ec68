// A table whose ids name an entry and its generation, so that a stale id finds nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace ferry {

// Id is an `enum class : uint64_t`. Entries keep their address. Not thread safe; only Insert
// allocates.
template <typename Id, typename T>
class SlotMap {
 public:
  // Returns the id of a default-constructed entry.
  Id Insert() {
    if (free_.empty()) {
      free_.reserve(slots_.size() + 1);  // so that Erase need not allocate
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    slots_[index].used = true;
    slots_[index].value = T();
    return MakeId(index);
  }

  // Null if `id` names no entry, or one that is gone.
  T* Find(Id id) {
    const uint64_t bits = static_cast<uint64_t>(id);
    const uint32_t index = static_cast<uint32_t>(bits);
    if (index >= slots_.size() || !slots_[index].used ||
        slots_[index].generation != static_cast<uint32_t>(bits >> 32)) {
      return nullptr;
    }
    return &slots_[index].value;
  }

  void Erase(Id id) {
    if (Find(id) == nullptr) {
      return;
    }
    const uint32_t index = static_cast<uint32_t>(static_cast<uint64_t>(id));
    slots_[index].used = false;
    slots_[index].generation++;
    slots_[index].value = T();
    free_.push_back(index);
  }

  // Calls `visit(id, value)` for every entry; it may erase the one it is given.
  template <typename Visitor>
  void ForEach(Visitor&& visit) {
    for (uint32_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].used) {
        visit(MakeId(index), slots_[index].value);
      }
    }
  }

  uint32_t size() const { return static_cast<uint32_t>(slots_.size() - free_.size()); }
  bool empty() const { return size() == 0; }

  // Drops all entries and forgets all ids: for tearing down.
  void Clear() {
    slots_.clear();
    free_.clear();
  }

 private:
  struct Slot {
    T value;
    uint32_t generation = 0;
    bool used = false;
  };

  Id MakeId(uint32_t index) const {
    return static_cast<Id>(uint64_t{slots_[index].generation} << 32 | index);
  }

  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace ferry
