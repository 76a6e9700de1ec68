// Tests that run one program in many combinations: `./dev test` has a few of them, which between
// them meet every part, and `./dev stress` has all (docs/building.md: tag `sliced`).
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace ferry::tests {

// Returns true if all combinations are wanted.
inline bool RunsAll() { return std::getenv("FERRY_TEST_ALL") != nullptr; }

// The `few`, and the `others` where all are wanted.
template <typename T>
std::vector<T> Slice(std::vector<T> few, std::initializer_list<T> others) {
  if (RunsAll()) {
    few.insert(few.end(), others);
  }
  return few;
}

}  // namespace ferry::tests
