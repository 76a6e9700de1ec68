// Words that another PE stores come once and whole, and in the order that the program has asked
// for: inside a node, and between two, by the daemons and by direct links.
#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

struct Path {
  const char* name;
  int nodes;
  std::vector<std::string> variables;
  const char* rounds_of_a_call;
};
void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

class WordsTest : public testing::TestWithParam<Path> {
 protected:
  static void Expect(const std::vector<std::string>& words) {
    ExpectAllOk({.nodes = GetParam().nodes, .variables = GetParam().variables}, words);
  }
};

TEST_P(WordsTest, ComeOnceAndWhole) { Expect({"words", GetParam().rounds_of_a_call}); }

// Each pair of operations, with each call and in each way to wait, once.
TEST_P(WordsTest, ComeInOrder) { Expect({"order", "1944"}); }

INSTANTIATE_TEST_SUITE_P(
    , WordsTest,
    testing::Values(Path{"OneNode", 1, {}, "10000"},
                    Path{"TwoNodes", 2, {"FERRY_DIRECT_LINKS=off"}, "400"},
                    Path{"TwoNodesByLinks", 2, {"FERRY_DIRECT_LINKS=always"}, "400"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::shmem_tests
