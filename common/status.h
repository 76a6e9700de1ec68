// Status and StatusOr: how control-path functions report failure. The shape of absl::Status,
// without Abseil, because libferry must not drag a second Abseil into an application.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/error_code.h"

namespace ferry {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "text of the code: message".
  std::string ToString() const;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

// A failed system call: code from errno, message "what: strerror".
Status StatusFromErrno(int error_number, const std::string& what);

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {}  // NOLINT: implicit, as in Abseil
  StatusOr(T value) : value_(std::move(value)) {}          // NOLINT: implicit, as in Abseil

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace ferry

// Returns from the calling function if `expression` (a Status) is not ok.
#define FERRY_RETURN_IF_ERROR(expression)                                    \
  do {                                                                       \
    if (::ferry::Status ferry_status_ = (expression); !ferry_status_.ok()) { \
      return ferry_status_;                                                  \
    }                                                                        \
  } while (false)
