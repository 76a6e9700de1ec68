// Checks of the words of a one-sided operation, from a rank or from another daemon
// (shm/layout/one_sided_layout.h). Pure functions: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "shm/accumulate.h"
#include "shm/atomic_operation.h"
#include "shm/layout/lane_layout.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::progress {

// `operation`: shm::OneSidedOperation.
inline bool IsLongOperation(uint8_t operation) {
  return shm::IsLong(static_cast<shm::OneSidedOperation>(operation));
}

inline bool IsPutOperation(uint8_t operation) {
  const auto kind = static_cast<shm::OneSidedOperation>(operation);
  return kind == shm::OneSidedOperation::kPut || kind == shm::OneSidedOperation::kLongPut;
}

inline bool IsAccumulate(uint8_t operation) {
  return static_cast<shm::OneSidedOperation>(operation) == shm::OneSidedOperation::kAccumulate;
}

// Returns true if a short operation carries data. `tag`: as of AreWordsSound.
inline bool HasData(uint8_t operation, int32_t tag) {
  return operation == static_cast<uint8_t>(shm::OneSidedOperation::kPut) ||
         (IsAccumulate(operation) && shm::Accumulation::TakesOperands(static_cast<uint32_t>(tag)));
}

// Returns true if the data of a short put lie in its words.
inline bool IsDataInline(uint8_t signal, uint64_t size_bytes) {
  return signal == 0 && size_bytes <= shm::kInlinePutBytes;
}

inline bool IsAccumulateSound(uint8_t signal, uint64_t size_bytes, int32_t tag) {
  const auto what = shm::Accumulation::Unpack(static_cast<uint32_t>(tag));
  return what && signal == 0 && size_bytes != 0 && size_bytes <= shm::kCellBytes &&
         size_bytes % what->element_bytes() == 0 &&
         size_bytes / what->element_bytes() <= shm::kMostAccumulated;
}

// Checks the words of an operation for all errors that do not depend on their origin. `tag`: the
// region of the signal, or Accumulation::packed().
inline bool AreWordsSound(uint8_t operation, uint8_t signal, uint8_t width, uint64_t size_bytes,
                          int32_t tag) {
  const auto kind = static_cast<shm::OneSidedOperation>(operation);
  if (operation >= shm::kOneSidedOperations || kind == shm::OneSidedOperation::kNone ||
      signal >= shm::kSignalUpdates) {
    return false;
  }
  if (shm::IsAtomic(kind)) {
    return shm::IsAtomicWidth(width) && size_bytes == 0 && signal == 0;
  }
  if (IsAccumulate(operation)) {
    return IsAccumulateSound(signal, size_bytes, tag);
  }
  return (size_bytes <= shm::kCellBytes || IsLongOperation(operation)) && tag >= 0 &&
         (signal == 0 || IsPutOperation(operation));
}

}  // namespace ferry::progress
