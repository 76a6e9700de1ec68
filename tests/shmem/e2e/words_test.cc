#include "tests/shmem/e2e/words.h"

namespace ferry::shmem_tests {
namespace {

TEST_P(WordsTest, ComeOnceAndWhole) { Expect({"words", GetParam().rounds_of_a_call}); }

// Each pair of operations, with each call and in each way to wait, once.
TEST_P(WordsTest, ComeInOrder) { Expect({"order", "1944"}); }

INSTANTIATE_TEST_SUITE_P(, WordsTest, testing::ValuesIn(WordsTest::Paths("10000", "100")),
                         NameOfPath);

}  // namespace
}  // namespace ferry::shmem_tests
