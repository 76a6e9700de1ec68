#include "shm/accumulate.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "shm/atomic.h"
#include "shm/word_copy.h"

namespace ferry::shm {
namespace {

using reduction::NumberKind;
using reduction::OpKind;

// Of the index, in Accumulation::packed(), above those of the operation and the value.
constexpr uint32_t kValueShift = 8;
constexpr uint32_t kIndexShift = 16;
constexpr uint32_t kNoIndex = 0x7f;
constexpr uint32_t kByte = 0xff;

constexpr auto kOrder = std::memory_order_acq_rel;  // as ApplyAtomic

constexpr uint32_t RoundUp(uint32_t size, uint32_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// ThreadSanitizer makes locks of operations on 16 bytes, of which shorter ones know nothing.
#ifdef __SANITIZE_THREAD__
constexpr bool kElementsShareWords = false;
#else
constexpr bool kElementsShareWords = kHasWideWords;
#endif

bool IsKind(NumberKind kind) { return static_cast<int>(kind) < reduction::kNumberKinds; }

bool IsInteger(NumberKind kind) { return kind <= NumberKind::kUint64; }

}  // namespace

std::optional<Accumulation> Accumulation::Of(OpKind operation, NumberKind value,
                                             std::optional<NumberKind> index) {
  const bool only_moves = operation == OpKind::kReplace || operation == OpKind::kNoOp;
  if (operation >= OpKind::kUser || !IsKind(value) || (index && !IsKind(*index))) {
    return std::nullopt;
  }
  Accumulation made;
  if (index) {
    // Of what can be moved only, whether there are such pairs.
    made.kernel_ =
        reduction::FindPairKernel(only_moves ? OpKind::kMinloc : operation, value, *index);
  } else if (!only_moves) {
    made.kernel_ = reduction::FindKernel(operation, value);
  }
  if (made.kernel_ == nullptr && (index || !only_moves)) {
    return std::nullopt;
  }
  made.kernel_ = only_moves ? nullptr : made.kernel_;
  made.operation_ = operation;
  made.adds_integers_ = operation == OpKind::kSum && IsInteger(value);
  made.value_bytes_ = made.element_bytes_ = static_cast<uint8_t>(reduction::SizeOf(value));
  uint32_t index_word = kNoIndex;
  if (index) {  // each begins at a multiple of its size
    made.index_bytes_ = static_cast<uint8_t>(reduction::SizeOf(*index));
    made.index_offset_ = static_cast<uint8_t>(RoundUp(made.value_bytes_, made.index_bytes_));
    made.element_bytes_ = static_cast<uint8_t>(RoundUp(
        made.index_offset_ + made.index_bytes_, std::max(made.value_bytes_, made.index_bytes_)));
    index_word = static_cast<uint32_t>(*index);
  }
  made.packed_ = static_cast<uint32_t>(operation) | static_cast<uint32_t>(value) << kValueShift |
                 index_word << kIndexShift;
  return made;
}

std::optional<Accumulation> Accumulation::Unpack(uint32_t packed) {
  const uint32_t index = packed >> kIndexShift;
  if (index > kByte) {
    return std::nullopt;
  }
  return Of(static_cast<OpKind>(packed & kByte),
            static_cast<NumberKind>(packed >> kValueShift & kByte),
            index == kNoIndex ? std::nullopt : std::optional(static_cast<NumberKind>(index)));
}

bool Accumulation::TakesOperands(uint32_t packed) {
  return static_cast<OpKind>(packed & kByte) != OpKind::kNoOp;
}

bool Accumulation::IsAtomicAt(uint64_t address) const {
  return address % element_bytes_ == 0 && (element_bytes_ <= sizeof(uint64_t) ||
                                           (kHasWideWords && element_bytes_ == sizeof(WideWord)));
}

Accumulation::Stretches Accumulation::stretches() const {
  return index_bytes_ == 0 || index_offset_ == value_bytes_
             ? Stretches{{0, uint32_t{value_bytes_} + index_bytes_}, {}}
             : Stretches{{0, value_bytes_}, {index_offset_, index_bytes_}};
}

// Of an element, without gaps of a pair.
void Accumulation::CopyNumbers(void* to, const void* from) const {
  CopyWords(to, from, value_bytes_);
  CopyWords(static_cast<std::byte*>(to) + index_offset_,
            static_cast<const std::byte*>(from) + index_offset_, index_bytes_);
}

// Makes of an element what it becomes; `after` is as `before` already: gaps of a pair stay as they
// are.
void Accumulation::Change(const void* before, const void* operand, void* after) const {
  if (kernel_ != nullptr) {
    kernel_(operand, before, after, 1);
  } else if (operation_ == OpKind::kReplace) {
    CopyNumbers(after, operand);
  }
}

template <typename Word>
Word Accumulation::ApplyToWord(Word& word, const std::byte* operand) const {
  if constexpr (!std::is_same_v<Word, WideWord>) {
    if (operation_ == OpKind::kNoOp) {
      return LoadAcquire(word);
    }
    Word value;
    std::memcpy(&value, operand, sizeof(value));
    if (adds_integers_) {
      return FetchAdd(word, value, kOrder);
    }
    if (operation_ == OpKind::kReplace && index_bytes_ == 0) {
      return Exchange(word, value, kOrder);
    }
  }
  Word found = LoadRelaxed(word);
  Word after;
  do {
    after = found;
    Change(&found, operand, &after);
  } while (!CompareExchange(word, found, after, kOrder));
  return found;
}

// Of elements without gaps.
void Accumulation::Combine(const void* operands, const void* before, void* after,
                           uint64_t bytes) const {
  if (kernel_ != nullptr) {
    kernel_(operands, before, after, static_cast<int64_t>(bytes / element_bytes_));
  } else {
    std::memcpy(after, operands, bytes);
  }
}

// Applies the operation to elements that fill wide words. The new values are computed for many
// words at once, since that costs less, and then again for each word that was changed meanwhile, or
// while it was read.
void Accumulation::ApplyTogether(std::byte* target, const std::byte* operands, std::byte* found,
                                 uint64_t words) const {
  constexpr uint64_t kWord = sizeof(WideWord);
  constexpr uint64_t kMostWords = 32;
  auto* const there = reinterpret_cast<WideWord*>(target);
  WideWord before[kMostWords];
  WideWord after[kMostWords];
  for (uint64_t begin = 0; begin < words; begin += kMostWords) {
    const uint64_t count = std::min(words - begin, kMostWords);
    std::memcpy(before, there + begin, count * kWord);  // a guess
    Combine(operands + begin * kWord, before, after, count * kWord);
    for (uint64_t i = 0; i < count; ++i) {
      while (!CompareExchange(there[begin + i], before[i], after[i], kOrder)) {
        Combine(operands + (begin + i) * kWord, &before[i], &after[i], kWord);
      }
    }
    if (found != nullptr) {
      CopyWords(found + begin * kWord, before, count * kWord);
    }
  }
}

// An atomic operation costs the same whatever it changes. So elements side by side share one of 16
// bytes, which is whole for those, too, who change one of them alone.
template <typename Word>
void Accumulation::ApplyToWords(std::byte* target, const std::byte* operands, std::byte* found,
                                uint64_t count) const {
  constexpr uint64_t kWord = sizeof(Word);
  const uint64_t step = takes_operands() ? kWord : 0;
  const bool may_share =
      kElementsShareWords && kWord < sizeof(WideWord) && takes_operands() && !has_gaps();
  for (uint64_t i = 0; i < count;) {
    std::byte* const at = target + i * kWord;
    std::byte* const found_here = found == nullptr ? nullptr : found + i * kWord;
    const uint64_t wide = (count - i) * kWord / sizeof(WideWord);
    if (may_share && wide != 0 && reinterpret_cast<uintptr_t>(at) % sizeof(WideWord) == 0) {
      ApplyTogether(at, operands + i * step, found_here, wide);
      i += wide * sizeof(WideWord) / kWord;
      continue;
    }
    const Word before = ApplyToWord(*reinterpret_cast<Word*>(at), operands + i * step);
    if (found_here != nullptr) {
      CopyWords(found_here, &before, kWord);
    }
    ++i;
  }
}

void Accumulation::Apply(std::byte* target, const void* operands, void* found,
                         uint64_t count) const {
  const auto* const from = static_cast<const std::byte*>(operands);
  auto* const to = static_cast<std::byte*>(found);
  switch (element_bytes_) {
    case sizeof(uint8_t):
      return ApplyToWords<uint8_t>(target, from, to, count);
    case sizeof(uint16_t):
      return ApplyToWords<uint16_t>(target, from, to, count);
    case sizeof(uint32_t):
      return ApplyToWords<uint32_t>(target, from, to, count);
    case sizeof(uint64_t):
      return ApplyToWords<uint64_t>(target, from, to, count);
    default:
      return ApplyToWords<WideWord>(target, from, to, count);
  }
}

// Elements without gaps are combined all at once.
void Accumulation::ApplyToRow(std::byte* target, const std::byte* operands, std::byte* found,
                              uint64_t count) const {
  const uint64_t bytes = count * element_bytes_;
  if (found != nullptr) {
    CopyWords(found, target, bytes);
  }
  if (kernel_ != nullptr) {
    kernel_(operands, target, target, static_cast<int64_t>(count));
  } else if (operation_ == OpKind::kReplace) {
    CopyWords(target, operands, bytes);
  }
}

void Accumulation::ApplyAlone(std::byte* target, const void* operands, void* found,
                              uint64_t count) const {
  const auto* const from = static_cast<const std::byte*>(operands);
  auto* const to = static_cast<std::byte*>(found);
  if (!has_gaps()) {
    return ApplyToRow(target, from, to, count);
  }
  const uint64_t size = element_bytes_;
  for (uint64_t i = 0; i < count; ++i) {
    std::byte before[kMostElementBytes] = {};
    CopyNumbers(before, target + i * size);
    if (takes_operands()) {
      std::byte after[kMostElementBytes] = {};
      Change(before, from + i * size, after);
      CopyNumbers(target + i * size, after);
    }
    if (to != nullptr) {
      CopyWords(to + i * size, before, size);
    }
  }
}

}  // namespace ferry::shm
