// Numbers in the kind of memory that the user of an example chooses.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace examples {

enum class Memory {
  kPrivate,  // the process's own (aligned_alloc), unknown to Ferry
  kHeap,     // host memory that Ferry allocated
  kPinned,   // host memory, pinned for a GPU's copy engine
  kDevice    // device memory; the host backend's can be read by the CPU
};

// "device", "heap" or "private".
std::optional<Memory> MemoryNamed(std::string_view name);
std::string_view NameOf(Memory memory);

// Zeroed doubles. Throws ferry::Error when Ferry has no more of that memory.
class Array {
 public:
  Array(size_t count, Memory memory);

  double* data() const { return data_.get(); }
  size_t size() const { return count_; }

 private:
  struct Free {
    Memory memory;
    void operator()(double* data) const;
  };

  size_t count_;
  std::unique_ptr<double, Free> data_;
};

}  // namespace examples
