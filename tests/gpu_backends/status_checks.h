// Expectations of tests on a status.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "common/status.h"

namespace ferry::gpu {

// The value; without one, the test ends here and has failed with the status.
template <typename T>
T Must(StatusOr<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(result.status().ToString());
  }
  return std::move(*result);
}

// An error of that code, whose message has the words.
inline void ExpectFails(const Status& status, ErrorCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_THAT(status.message(), testing::HasSubstr(words));
}

}  // namespace ferry::gpu
