// How the inside of the MPI front end reports what went wrong: an MPI error class and a sentence.
//
// Only the binding of a call (mpi/api) turns a Failure into an error code, by way of the
// error handler of the object (MPI 5.0 chapter 9); everything below returns it.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>

#include "ferry/mpi/mpi.h"

// Returns from the calling function if `expression` (a Failure) is one.
#define FERRY_RETURN_FAILURE(expression)                                                        \
  do {                                                                                          \
    if (::ferry::mpi::Failure ferry_failure = (expression); !ferry_failure.ok()) [[unlikely]] { \
      return ferry_failure;                                                                     \
    }                                                                                           \
  } while (false)

namespace ferry::mpi {

// A default Failure is success. `text` names the argument and its value; the name of the call is
// put before it by whoever reports it.
struct [[nodiscard]] Failure {
  int error_class = MPI_SUCCESS;
  std::string text;

  bool ok() const { return error_class == MPI_SUCCESS; }
};

// A value, or why there is none. Move-only values are fine.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  // `failure` is one: a Result that is neither a value nor a failure cannot be made.
  Result(Failure failure) : failure_(std::move(failure)) {  // NOLINT(google-explicit-constructor)
    assert(!failure_.ok());
  }

  bool ok() const { return value_.has_value(); }

  // Success where there is a value.
  const Failure& failure() const { return failure_; }

  // Only where ok().
  T& value() & {
    assert(ok());
    return *value_;
  }
  const T& value() const& {
    assert(ok());
    return *value_;
  }
  T&& value() && {
    assert(ok());
    return *std::move(value_);
  }

 private:
  Failure failure_;
  std::optional<T> value_;
};

}  // namespace ferry::mpi
