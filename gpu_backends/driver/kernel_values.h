// The arguments of a launch as CUDA and HIP take them: a pointer to each value.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "common/status.h"
#include "gpu_backends/device/kernel_list.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// Used by one thread, for one launch.
class KernelValues {
 public:
  KernelValues() = default;
  KernelValues(const KernelValues&) = delete;
  KernelValues& operator=(const KernelValues&) = delete;

  // address_of(pointer): a StatusOr of where the device sees that memory.
  template <typename AddressOf>
  Status Set(std::span<const KernelArgument> arguments, AddressOf&& address_of) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      values_[i] = arguments[i].value;
      if (arguments[i].is_address && values_[i] != 0) {
        const auto address = address_of(reinterpret_cast<const void*>(values_[i]));
        FERRY_RETURN_IF_ERROR(address.status());
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(*address)>>) {
          values_[i] = reinterpret_cast<uint64_t>(*address);
        } else {
          values_[i] = *address;
        }
      }
      pointers_[i] = &values_[i];
    }
    return {};
  }
  void** pointers() { return pointers_.data(); }

 private:
  std::array<uint64_t, kMostKernelArguments> values_{};
  std::array<void*, kMostKernelArguments> pointers_{};
};

}  // namespace ferry::gpu
