// Words that another PE stores come once and whole, and in the order that the program has asked
// for: inside a node, and between two, by the daemons and by direct links.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {

struct WordPath {
  const char* name;
  int nodes;
  std::vector<std::string> variables;
  const char* rounds_of_a_call;
};
inline void PrintTo(const WordPath& path, std::ostream* out) { *out << path.name; }
inline std::string NameOfPath(const testing::TestParamInfo<WordPath>& info) {
  return info.param.name;
}

class WordsTest : public testing::TestWithParam<WordPath> {
 public:
  static std::vector<WordPath> Paths(const char* rounds_in_a_node, const char* rounds_between) {
    return {{"OneNode", 1, {}, rounds_in_a_node},
            {"TwoNodes", 2, {"FERRY_DIRECT_LINKS=off"}, rounds_between},
            {"TwoNodesByLinks", 2, {"FERRY_DIRECT_LINKS=always"}, rounds_between}};
  }

 protected:
  static void Expect(const std::vector<std::string>& words,
                     unsigned limit_s = JobSettings().limit_s) {
    ExpectAllOk({.nodes = GetParam().nodes, .variables = GetParam().variables, .limit_s = limit_s},
                words);
  }
};

}  // namespace ferry::shmem_tests
