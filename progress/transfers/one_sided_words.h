// What the words of a one-sided operation say by themselves, from a rank or from another daemon
// (shm/layout/one_sided_layout.h). Plain computing: any thread.
#pragma once

#include <cstdint>

#include "shm/atomic_operation.h"
#include "shm/layout/lane_layout.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::progress {

// `operation`: shm::OneSidedOperation.
inline bool IsLongOperation(uint8_t operation) {
  const auto kind = static_cast<shm::OneSidedOperation>(operation);
  return kind == shm::OneSidedOperation::kLongPut || kind == shm::OneSidedOperation::kLongGet;
}

inline bool IsPutOperation(uint8_t operation) {
  const auto kind = static_cast<shm::OneSidedOperation>(operation);
  return kind == shm::OneSidedOperation::kPut || kind == shm::OneSidedOperation::kLongPut;
}

// What can be wrong with the words of an operation wherever they come from.
inline bool AreWordsSound(uint8_t operation, uint8_t signal, uint8_t width, uint64_t size_bytes,
                          int32_t tag) {
  const auto kind = static_cast<shm::OneSidedOperation>(operation);
  if (operation >= shm::kOneSidedOperations || kind == shm::OneSidedOperation::kNone ||
      signal >= shm::kSignalUpdates) {
    return false;
  }
  if (shm::IsAtomic(kind)) {
    return (width == 4 || width == 8) && size_bytes == 0 && signal == 0;
  }
  return (size_bytes <= shm::kCellBytes || IsLongOperation(operation)) && tag >= 0 &&
         (signal == 0 || IsPutOperation(operation));
}

}  // namespace ferry::progress
