#include "shm/word_copy.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#include <cpuid.h>
#include <immintrin.h>
#define FERRY_MOVES_BY_VECTORS 1  // sanitizers would not see these stores
#endif

namespace ferry::shm {
namespace internal {
namespace {

// From here on a call is worth its cost, and from here on strings are faster than vectors.
constexpr size_t kVectorBytes = 64;
constexpr size_t kStringBytes = 4096;

// Moves a word of this type if the destination's address has its bit: after bytes, pairs and so on
// the address is a multiple of the next longer word's size.
template <typename Word>
inline void MoveIfDue(std::byte** to, const std::byte** from, size_t* bytes) {
  if ((reinterpret_cast<uintptr_t>(*to) & sizeof(Word)) != 0 && *bytes >= sizeof(Word)) {
    MoveWord<Word>(*to, *from);
    *to += sizeof(Word);
    *from += sizeof(Word);
    *bytes -= sizeof(Word);
  }
}

// The last words first: `to` lies within the source.
void MoveBackwards(std::byte* to, const std::byte* from, size_t bytes) {
  const auto end = [&] { return reinterpret_cast<uintptr_t>(to) + bytes; };
  const auto move = [&]<typename Word>(Word /*of this type*/, bool is_due) {
    if (is_due && bytes >= sizeof(Word)) {
      bytes -= sizeof(Word);
      MoveWord<Word>(to + bytes, from + bytes);
    }
  };
  move(uint8_t{}, (end() & 1) != 0);
  move(uint16_t{}, (end() & 2) != 0);
  move(uint32_t{}, (end() & 4) != 0);
  while (bytes >= sizeof(uint64_t)) {
    move(uint64_t{}, true);
  }
  move(uint32_t{}, true);
  move(uint16_t{}, true);
  move(uint8_t{}, true);
}

}  // namespace

#ifdef FERRY_MOVES_BY_VECTORS

bool MayMoveByVectors() { return __builtin_cpu_supports("avx") != 0; }

// Of other vendors' CPUs some are slow at it.
bool MayMoveByStrings() {
  static const bool may = [] {
    constexpr unsigned kEnhanced = 1u << 9;  // CPUID 7.0, EBX: ERMS
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __builtin_cpu_is("intel") != 0 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
           (ebx & kEnhanced) != 0;
  }();
  return may;
}

// In assembler, so that no compiler makes a memcpy of it.
#define FERRY_STORE_VECTOR(to, vector) \
  asm volatile("vmovdqa %1, %0" : "=m"(*reinterpret_cast<__m256i*>(to)) : "x"(vector))

// The source may overlap what is behind it: so each round loads before it stores.
[[gnu::target("avx")]] void MoveByVectors(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kStep = sizeof(__m256i);
  static_assert(kBulkBytes == kStep);
  for (; bytes >= 4 * kStep; bytes -= 4 * kStep) {
    const auto* const vectors = reinterpret_cast<const __m256i*>(from);
    const __m256i first = _mm256_loadu_si256(vectors);
    const __m256i second = _mm256_loadu_si256(vectors + 1);
    const __m256i third = _mm256_loadu_si256(vectors + 2);
    const __m256i fourth = _mm256_loadu_si256(vectors + 3);
    FERRY_STORE_VECTOR(to, first);
    FERRY_STORE_VECTOR(to + kStep, second);
    FERRY_STORE_VECTOR(to + 2 * kStep, third);
    FERRY_STORE_VECTOR(to + 3 * kStep, fourth);
    to += 4 * kStep;
    from += 4 * kStep;
  }
  for (; bytes >= kStep; bytes -= kStep) {
    FERRY_STORE_VECTOR(to, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    to += kStep;
    from += kStep;
  }
}

// Of words of 8 bytes: at an interrupt the CPU stands between two of them.
void MoveByStrings(std::byte* to, const std::byte* from, size_t bytes) {
  size_t words = bytes / sizeof(uint64_t);
  asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

#else

bool MayMoveByVectors() { return false; }
bool MayMoveByStrings() { return false; }
void MoveByVectors(std::byte* to, const std::byte* from, size_t bytes) {
  MoveWords(to, from, bytes);
}
void MoveByStrings(std::byte* to, const std::byte* from, size_t bytes) {
  MoveWords(to, from, bytes);
}

#endif

void CopyLongOrUneven(std::byte* to, const std::byte* from, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(to);
  if (at - reinterpret_cast<uintptr_t>(from) < bytes) [[unlikely]] {
    return to == from ? void() : MoveBackwards(to, from, bytes);
  }
  if (at % sizeof(uint64_t) != 0) {
    MoveIfDue<uint8_t>(&to, &from, &bytes);
    MoveIfDue<uint16_t>(&to, &from, &bytes);
    MoveIfDue<uint32_t>(&to, &from, &bytes);
  }
  if (bytes >= kVectorBytes && MayMoveByVectors()) {
    while (reinterpret_cast<uintptr_t>(to) % kBulkBytes != 0) {
      MoveWord<uint64_t>(to, from);
      to += sizeof(uint64_t);
      from += sizeof(uint64_t);
      bytes -= sizeof(uint64_t);
    }
    const size_t bulk = bytes & ~(kBulkBytes - 1);
    if (bulk >= kStringBytes && reinterpret_cast<uintptr_t>(from) % sizeof(uint64_t) == 0 &&
        MayMoveByStrings()) {
      MoveByStrings(to, from, bulk);
    } else {
      MoveByVectors(to, from, bulk);
    }
    to += bulk;
    from += bulk;
    bytes -= bulk;
  }
  MoveWords(to, from, bytes);
}

}  // namespace internal
}  // namespace ferry::shm
