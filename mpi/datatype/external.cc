#include "mpi/datatype/external.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace ferry::mpi {
namespace {

// One number of a basic element, as both sides have it.
struct Number {
  int64_t native_bytes;
  int64_t external_bytes;
  bool is_signed;
  bool is_long_double;
};

Number NumberOf(NumberKind kind, int64_t external_bytes) {
  const auto simple = [&](bool is_signed) {
    return Number{SizeOf(kind), external_bytes, is_signed, false};
  };
  switch (kind) {
    case NumberKind::kInt8:
    case NumberKind::kInt16:
    case NumberKind::kInt32:
    case NumberKind::kInt64:
    case NumberKind::kInt128:
      return simple(true);
    case NumberKind::kLongDouble:
      return {SizeOf(kind), external_bytes, false, true};
    case NumberKind::kComplex16:
    case NumberKind::kComplex32:
    case NumberKind::kComplex64:
    case NumberKind::kComplex128:
      return {SizeOf(kind) / 2, external_bytes / 2, false, false};
    case NumberKind::kComplexLongDouble:
      return {SizeOf(kind) / 2, external_bytes / 2, false, true};
    default:
      return simple(false);
  }
}

// ---- one number; little-endian on this side ----

// A long double is binary128 of IEEE 754 in external32. On Arm that is its format here, too; that of
// x86 has 10 bytes, and padding behind them.
#if __LDBL_MANT_DIG__ == 113
using Quadruple = long double;
constexpr size_t kLongDoubleBytes = 16;
#else
using Quadruple = __float128;
constexpr size_t kLongDoubleBytes = 10;
#endif

bool ToExternal(const Number& number, const char* native, char* external) {
  std::array<signed char, 16> wide{};  // char has no sign on Arm
  if (number.is_long_double) {
    long double value = 0;
    std::memcpy(&value, native, sizeof(value));
    const auto quadruple = static_cast<Quadruple>(value);
    std::memcpy(wide.data(), &quadruple, sizeof(quadruple));
  } else {
    std::memcpy(wide.data(), native, static_cast<size_t>(number.native_bytes));
  }
  // Bytes that are dropped have to be copies of the sign.
  if (number.native_bytes > number.external_bytes) {
    const bool negative = number.is_signed && wide[number.external_bytes - 1] < 0;
    for (int64_t i = number.external_bytes; i < number.native_bytes; ++i) {
      if (wide[i] != (negative ? -1 : 0)) {
        return false;
      }
    }
  }
  std::reverse_copy(wide.begin(), wide.begin() + number.external_bytes, external);
  return true;
}

void ToNative(const Number& number, const char* external, char* native) {
  std::array<signed char, 16> wide{};  // char has no sign on Arm
  std::reverse_copy(external, external + number.external_bytes, wide.begin());
  if (number.is_long_double) {
    Quadruple quadruple = 0;
    std::memcpy(&quadruple, wide.data(), sizeof(quadruple));
    const auto value = static_cast<long double>(quadruple);
    std::memset(native, 0, sizeof(value));
    std::memcpy(native, &value, kLongDoubleBytes);
    return;
  }
  if (number.is_signed && wide[number.external_bytes - 1] < 0) {
    std::fill(wide.begin() + number.external_bytes, wide.end(), -1);
  }
  std::memcpy(native, wide.data(), static_cast<size_t>(number.native_bytes));
}

// ---- runs of elements of one basic type ----

// The numbers of one element, in packed order: two at most differ (the parts of a pair).
struct Element {
  std::array<Number, 2> numbers;
  int count;
};

Element ElementOf(const BasicType& type) {
  if (type.IsPair()) {
    return {{NumberOf(type.value->kind, type.value->external_bytes),
             NumberOf(type.index->kind, type.index->external_bytes)},
            2};
  }
  const Number number = NumberOf(type.kind, type.external_bytes);
  return {{number, number}, static_cast<int>(type.size_bytes / number.native_bytes)};
}

// run(basic type, how many) over `count` elements, in packed order. Stops when run returns false.
template <typename Run>
bool ForEachBasicRun(const Datatype& type, int64_t count, Run& run) {
  if (type.size_bytes() == 0) {
    return true;
  }
  if (type.basic() != nullptr) {
    return run(*type.basic(), count * type.basics());
  }
  for (int64_t i = 0; i < count; ++i) {
    for (const Datatype::Part& part : type.parts()) {
      if (!ForEachBasicRun(*part.type, part.repeat, run)) {
        return false;
      }
    }
  }
  return true;
}

constexpr int64_t kBlock = 4096;  // bytes of packed data that are converted at a time

// convert(element, packed bytes, how many elements) over all of the data, block by block.
template <typename Convert>
void ForEachBlock(int64_t count, const Datatype& type, Convert&& convert) {
  int64_t offset = 0;
  auto run = [&](const BasicType& basic, int64_t elements) {
    const Element element = ElementOf(basic);
    while (elements > 0) {
      const int64_t now = std::min(elements, kBlock / basic.size_bytes);
      if (!convert(basic, element, offset, now)) {
        return false;
      }
      offset += now * basic.size_bytes;
      elements -= now;
    }
    return true;
  };
  ForEachBasicRun(type, count, run);
}

}  // namespace

namespace {

// Converts all of the data; load(packed offset, bytes, to) gives the next of them.
template <typename Load>
Failure ConvertToExternal(int64_t count, const Datatype& type, void* external, Load&& load) {
  Failure failure;
  auto* out = static_cast<char*>(external);
  std::array<char, kBlock> block;
  ForEachBlock(count, type,
               [&](const BasicType& basic, const Element& element, int64_t offset, int64_t now) {
                 load(offset, now * basic.size_bytes, block.data());
                 const char* in = block.data();
                 for (int64_t i = 0; i < now * element.count; ++i) {
                   const Number& number = element.numbers[static_cast<size_t>(i % element.count)];
                   if (!ToExternal(number, in, out)) {
                     failure = {MPI_ERR_CONVERSION, "a value of " + std::string(basic.name) +
                                                        " does not fit into the " +
                                                        std::to_string(number.external_bytes) +
                                                        " bytes that external32 has for it"};
                     return false;
                   }
                   in += number.native_bytes;
                   out += number.external_bytes;
                 }
                 return true;
               });
  return failure;
}

// Converts whole basic elements, as far as `external_bytes` reach; store(packed offset, bytes,
// from) takes them. Returns the packed bytes.
template <typename Store>
int64_t ConvertFromExternal(const void* external, int64_t external_bytes, int64_t count,
                            const Datatype& type, Store&& store) {
  const auto* in = static_cast<const char*>(external);
  const char* const end = in + external_bytes;
  int64_t done = 0;
  std::array<char, kBlock> block;
  ForEachBlock(count, type,
               [&](const BasicType& basic, const Element& element, int64_t offset, int64_t now) {
                 const int64_t there = std::min(now, (end - in) / basic.external_bytes);
                 char* out = block.data();
                 for (int64_t i = 0; i < there * element.count; ++i) {
                   const Number& number = element.numbers[static_cast<size_t>(i % element.count)];
                   ToNative(number, in, out);
                   in += number.external_bytes;
                   out += number.native_bytes;
                 }
                 store(offset, there * basic.size_bytes, block.data());
                 done = offset + there * basic.size_bytes;
                 return there == now;
               });
  return done;
}

}  // namespace

Failure PackExternal(const void* buffer, int64_t count, const Datatype& type, void* external) {
  return ConvertToExternal(count, type, external, [&](int64_t offset, int64_t bytes, char* to) {
    type.Pack(buffer, count, offset, bytes, to);
  });
}

void UnpackExternal(const void* external, void* buffer, int64_t count, const Datatype& type) {
  ConvertFromExternal(external, count * type.signature().external_bytes, count, type,
                      [&](int64_t offset, int64_t bytes, const char* from) {
                        type.Unpack(buffer, count, offset, bytes, from);
                      });
}

Failure PackedToExternal(const void* packed, int64_t count, const Datatype& type, void* external) {
  return ConvertToExternal(count, type, external, [&](int64_t offset, int64_t bytes, char* to) {
    std::memcpy(to, static_cast<const char*>(packed) + offset, static_cast<size_t>(bytes));
  });
}

int64_t ExternalToPacked(const void* external, int64_t external_bytes, int64_t count,
                         const Datatype& type, void* packed) {
  return ConvertFromExternal(
      external, external_bytes, count, type, [&](int64_t offset, int64_t bytes, const char* from) {
        std::memcpy(static_cast<char*>(packed) + offset, from, static_cast<size_t>(bytes));
      });
}

}  // namespace ferry::mpi
