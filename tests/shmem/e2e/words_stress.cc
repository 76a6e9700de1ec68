// As words_test.cc, for a million rounds, while other threads take the CPUs: what goes wrong there
// does so where a thread is preempted.
#include "tests/shmem/e2e/shmem_job.h"
#include "tests/support/load.h"

namespace ferry::shmem_tests {
namespace {

struct Path {
  const char* name;
  int nodes;
  std::vector<std::string> variables;
  const char* rounds_of_a_call;
};
void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

class WordsStressTest : public testing::TestWithParam<Path> {
 protected:
  static void Expect(const std::vector<std::string>& words) {
    const tests::Load load;
    ExpectAllOk({.nodes = GetParam().nodes, .variables = GetParam().variables, .limit_s = 3'000},
                words);
  }
};

TEST_P(WordsStressTest, ComeOnceAndWhole) { Expect({"words", GetParam().rounds_of_a_call}); }

TEST_P(WordsStressTest, ComeInOrder) { Expect({"order", "1000000"}); }

INSTANTIATE_TEST_SUITE_P(
    , WordsStressTest,
    testing::Values(Path{"OneNode", 1, {}, "200000"},
                    Path{"TwoNodes", 2, {"FERRY_DIRECT_LINKS=off"}, "20000"},
                    Path{"TwoNodesByLinks", 2, {"FERRY_DIRECT_LINKS=always"}, "20000"},
                    Path{"TwoNodesByLinksNowAndThen",
                         2,
                         {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=3",
                          "FERRY_DIRECT_LINK_IDLE_MS=5"},
                         "20000"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::shmem_tests
