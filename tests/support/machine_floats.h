// The formats of IEEE 754 with 16 and with 128 bits, by the names that this machine's compiler has
// for them, as common/reduction/kernels.cc has them.
#pragma once

namespace ferry::tests {

#if defined(__aarch64__)
#define FERRY_TEST_HAS_FLOAT16 1
using Float16 = __fp16;
#elif defined(__FLT16_MANT_DIG__)
#define FERRY_TEST_HAS_FLOAT16 1
using Float16 = _Float16;
#endif

#if defined(__SIZEOF_FLOAT128__)
using Float128 = __float128;
#else
using Float128 = long double;
#endif
static_assert(sizeof(Float128) == 16);

}  // namespace ferry::tests
