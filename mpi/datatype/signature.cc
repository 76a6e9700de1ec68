#include "mpi/datatype/signature.h"

namespace ferry::mpi {
namespace {

// A Mersenne prime, so that remainders are cheap; the base is a random number below it.
constexpr uint64_t kModulus = (uint64_t{1} << 61) - 1;
constexpr uint64_t kBase = 0x13b7'5d0c'94e2'a681 % kModulus;

// The remainder of a number below 2^62.
uint64_t Remainder(uint64_t a) { return a >= kModulus ? a - kModulus : a; }

// 2^61 leaves 1: the upper bits are added to the lower ones. (The compiler would divide 128 bits.)
uint64_t Multiply(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return Remainder(static_cast<uint64_t>(product & kModulus) +
                   static_cast<uint64_t>(product >> 61));
}

uint64_t Add(uint64_t a, uint64_t b) { return Remainder(a + b); }

Signature OneElement(const BasicType& type) {
  Signature one;
  one.hash = reinterpret_cast<uintptr_t>(type.handle) % kModulus;
  one.shift = kBase;
  one.elements = 1;
  return one;
}

}  // namespace

Signature SignatureOf(const BasicType& type) {
  Signature signature = type.IsPair()
                            ? JoinSignatures(OneElement(*type.value), OneElement(*type.index))
                            : OneElement(type);
  signature.basic = &type;
  signature.basics = 1;
  signature.mixed = false;
  signature.external_bytes = type.external_bytes;
  return signature;
}

Signature JoinSignatures(const Signature& front, const Signature& back) {
  if (front.elements == 0) {
    return back;
  }
  if (back.elements == 0) {
    return front;
  }
  Signature joined;
  joined.hash = Add(Multiply(front.hash, back.shift), back.hash);
  joined.shift = Multiply(front.shift, back.shift);
  joined.elements = front.elements + back.elements;
  joined.external_bytes = front.external_bytes + back.external_bytes;
  joined.mixed = front.mixed || back.mixed || front.basic != back.basic;
  if (!joined.mixed) {
    joined.basic = front.basic;
    joined.basics = front.basics + back.basics;
  }
  return joined;
}

Signature RepeatSignature(const Signature& signature, int64_t count) {
  if (count == 1) {
    return signature;
  }
  Signature result;
  Signature power = signature;  // repeated 1, 2, 4, ... times
  for (int64_t left = count; left > 0; left /= 2) {
    if (left % 2 != 0) {
      result = JoinSignatures(result, power);
    }
    if (left > 1) {
      power = JoinSignatures(power, power);
    }
  }
  return result;
}

}  // namespace ferry::mpi
