// For a million rounds, while other threads take the CPUs: what goes wrong there does so where a
// thread is preempted.
#include "tests/shmem/e2e/words.h"
#include "tests/support/load.h"

namespace ferry::shmem_tests {
namespace {

class WordsStressTest : public WordsTest {
 public:
  static std::vector<WordPath> Paths() {
    std::vector<WordPath> paths = WordsTest::Paths("200000", "20000");
    paths.push_back(
        {"TwoNodesByLinksNowAndThen",
         2,
         {"FERRY_DIRECT_LINKS=auto", "FERRY_DIRECT_LINK_MESSAGES=3", "FERRY_DIRECT_LINK_IDLE_MS=5"},
         "20000"});
    return paths;
  }

 protected:
  static void ExpectUnderLoad(const std::vector<std::string>& words) {
    const tests::Load load;
    Expect(words, 3'000);
  }
};

TEST_P(WordsStressTest, ComeOnceAndWhole) {
  ExpectUnderLoad({"words", GetParam().rounds_of_a_call});
}

TEST_P(WordsStressTest, ComeInOrder) { ExpectUnderLoad({"order", "1000000"}); }

INSTANTIATE_TEST_SUITE_P(, WordsStressTest, testing::ValuesIn(WordsStressTest::Paths()),
                         NameOfPath);

}  // namespace
}  // namespace ferry::shmem_tests
