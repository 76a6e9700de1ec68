// Element-wise atomic operations on rows of numbers: MPI's accumulates (MPI 5.0, section 12.3.4),
// by ranks in memory of their own node, and for ranks of other nodes by ferryd or the rank's own
// core.
//
// Atomicity:
// - An element of 1, 2, 4, 8 or 16 bytes that lies at a multiple of its size is changed by one
//   atomic operation of the CPU: no process sees it half changed. Up to 8 bytes this agrees with
//   all other atomic operations there: those of atomic_operation.h, of kernels, and the program's
//   own.
// - All other elements (longer ones, and those that lie elsewhere) no CPU changes at once. Apply
//   leaves them alone; ferryd's progress thread changes them all by ApplyAlone, one after the
//   other, so they are atomic among accumulates, and the death of a process holds none up.
// The address decides, modulo 16; memory is mapped by pages, so it is the same in all processes.
//
// Any thread; does not block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/reduction/kernels.h"
#include "common/reduction/number_kind.h"

namespace ferry::shm {

// An operation, and the elements that it is for.
class Accumulation {
 public:
  static constexpr uint32_t kMostElementBytes = 32;

  // Makes an operation on numbers, or with `index` on pairs, as C lays out a structure of the two.
  // Operations are those of FindKernel or FindPairKernel, kReplace, and kNoOp, which only reads.
  // Nothing: there is no such operation on such elements.
  static std::optional<Accumulation> Of(reduction::OpKind operation, reduction::NumberKind value,
                                        std::optional<reduction::NumberKind> index = std::nullopt);
  // Unpacks the result of packed() of another process; any other number may be passed, and is
  // checked. Packed numbers are never negative as an int32_t.
  static std::optional<Accumulation> Unpack(uint32_t packed);
  uint32_t packed() const { return packed_; }
  static bool TakesOperands(uint32_t packed);

  uint32_t element_bytes() const { return element_bytes_; }
  // The numbers of an element: those of a pair are two stretches, or one where no gap is between.
  struct Stretch {
    uint32_t offset = 0;
    uint32_t size_bytes = 0;
  };
  struct Stretches {
    Stretch value;
    Stretch index;  // of no bytes: there is none, or it is a part of the other one
  };
  Stretches stretches() const;
  bool has_gaps() const { return uint32_t{value_bytes_} + index_bytes_ != element_bytes_; }
  // The gap behind the numbers of an element.
  uint32_t end_gap_bytes() const {
    return element_bytes_ - std::max<uint32_t>(value_bytes_, index_offset_ + index_bytes_);
  }
  bool takes_operands() const { return operation_ != reduction::OpKind::kNoOp; }
  // Returns true if Apply may be used for elements from `address` on: an address, or an offset in
  // memory that begins at a multiple of 16.
  bool IsAtomicAt(uint64_t address) const;

  // target = target op operand, element by element; `operands` are ignored if the operation takes
  // none. `found`, unless null, gets the elements from before; its gaps get either the target's
  // bytes or zeros. Only for a target for which IsAtomicAt is true.
  void Apply(std::byte* target, const void* operands, void* found, uint64_t count) const;
  // As Apply, for elements anywhere. The calling thread must be the only one that changes such
  // elements. Gaps of the target are neither read nor written: other threads may change the bytes
  // there, and behind the last element there may be no memory.
  void ApplyAlone(std::byte* target, const void* operands, void* found, uint64_t count) const;

 private:
  Accumulation() = default;
  template <typename Word>
  void ApplyToWords(std::byte* target, const std::byte* operands, std::byte* found,
                    uint64_t count) const;
  template <typename Word>
  Word ApplyToWord(Word& word, const std::byte* operand) const;
  void ApplyTogether(std::byte* target, const std::byte* operands, std::byte* found,
                     uint64_t words) const;
  void Combine(const void* operands, const void* before, void* after, uint64_t bytes) const;
  void Change(const void* before, const void* operand, void* after) const;
  void CopyNumbers(void* to, const void* from) const;
  void ApplyToRow(std::byte* target, const std::byte* operands, std::byte* found,
                  uint64_t count) const;

  reduction::OpKind operation_ = reduction::OpKind::kNoOp;
  bool adds_integers_ = false;
  uint8_t value_bytes_ = 0;
  uint8_t index_bytes_ = 0;  // 0: no pair
  uint8_t index_offset_ = 0;
  uint8_t element_bytes_ = 0;
  uint32_t packed_ = 0;
  reduction::ReduceKernel kernel_ = nullptr;  // null: kReplace, kNoOp
};

}  // namespace ferry::shm
