#include "client/shmem/reduction.h"

#include <complex>
#include <type_traits>

namespace ferry::shmem {
namespace {

struct And {
  template <typename T>
  static T Of(T left, T right) {
    return static_cast<T>(left & right);
  }
};
struct Or {
  template <typename T>
  static T Of(T left, T right) {
    return static_cast<T>(left | right);
  }
};
struct Xor {
  template <typename T>
  static T Of(T left, T right) {
    return static_cast<T>(left ^ right);
  }
};
struct Max {
  template <typename T>
  static T Of(T left, T right) {
    return left < right ? right : left;
  }
};
struct Min {
  template <typename T>
  static T Of(T left, T right) {
    return right < left ? right : left;
  }
};
// Integers wrap as C's unsigned ones do.
struct Sum {
  template <typename T>
  static T Of(T left, T right) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(left) + static_cast<Unsigned>(right));
    } else {
      return left + right;
    }
  }
};
struct Prod {
  template <typename T>
  static T Of(T left, T right) {
    if constexpr (std::is_integral_v<T>) {
      // 64 bits: factors of 16 would become int, which overflows.
      return static_cast<T>(static_cast<uint64_t>(left) * static_cast<uint64_t>(right));
    } else {
      return left * right;
    }
  }
};

// `to` may be one of the operands as a whole: each element depends on none before it.
template <typename T, typename Op>
void ReduceElements(const void* left, const void* right, void* to, size_t count) {
  const T* const a = static_cast<const T*>(left);
  const T* const b = static_cast<const T*>(right);
  T* const result = static_cast<T*>(to);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    result[i] = Op::Of(a[i], b[i]);
  }
}

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<std::complex<T>> = true;

}  // namespace

size_t BytesOf(ReduceType type) {
  switch (type) {
    case ReduceType::kInt8:
    case ReduceType::kUint8:
      return 1;
    case ReduceType::kInt16:
    case ReduceType::kUint16:
      return 2;
    case ReduceType::kInt32:
    case ReduceType::kUint32:
    case ReduceType::kFloat:
      return 4;
    case ReduceType::kInt64:
    case ReduceType::kUint64:
    case ReduceType::kDouble:
    case ReduceType::kComplexFloat:
      return 8;
    case ReduceType::kLongDouble:
      return sizeof(long double);
    case ReduceType::kComplexDouble:
      return 16;
  }
  return 0;
}

template <typename T>
ElementReducer::Function ElementReducer::FunctionFor(ReduceOp op) {
  if (op == ReduceOp::kSum) {
    return ReduceElements<T, Sum>;
  }
  if (op == ReduceOp::kProd) {
    return ReduceElements<T, Prod>;
  }
  if constexpr (!kIsComplex<T>) {
    if (op == ReduceOp::kMax) {
      return ReduceElements<T, Max>;
    }
    if (op == ReduceOp::kMin) {
      return ReduceElements<T, Min>;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case ReduceOp::kAnd:
        return ReduceElements<T, And>;
      case ReduceOp::kOr:
        return ReduceElements<T, Or>;
      case ReduceOp::kXor:
        return ReduceElements<T, Xor>;
      default:
        break;
    }
  }
  return nullptr;
}

ElementReducer::ElementReducer(ReduceType type, ReduceOp op) {
  switch (type) {
    case ReduceType::kInt8:
      function_ = FunctionFor<int8_t>(op);
      break;
    case ReduceType::kInt16:
      function_ = FunctionFor<int16_t>(op);
      break;
    case ReduceType::kInt32:
      function_ = FunctionFor<int32_t>(op);
      break;
    case ReduceType::kInt64:
      function_ = FunctionFor<int64_t>(op);
      break;
    case ReduceType::kUint8:
      function_ = FunctionFor<uint8_t>(op);
      break;
    case ReduceType::kUint16:
      function_ = FunctionFor<uint16_t>(op);
      break;
    case ReduceType::kUint32:
      function_ = FunctionFor<uint32_t>(op);
      break;
    case ReduceType::kUint64:
      function_ = FunctionFor<uint64_t>(op);
      break;
    case ReduceType::kFloat:
      function_ = FunctionFor<float>(op);
      break;
    case ReduceType::kDouble:
      function_ = FunctionFor<double>(op);
      break;
    case ReduceType::kLongDouble:
      function_ = FunctionFor<long double>(op);
      break;
    case ReduceType::kComplexFloat:
      function_ = FunctionFor<std::complex<float>>(op);
      break;
    case ReduceType::kComplexDouble:
      function_ = FunctionFor<std::complex<double>>(op);
      break;
  }
}

ErrorCode ElementReducer::Reduce(const void* left, const void* right, void* to, size_t count) {
  if (function_ == nullptr) {
    return ErrorCode::kUnsupported;
  }
  function_(left, right, to, count);
  return ErrorCode::kOk;
}

}  // namespace ferry::shmem
