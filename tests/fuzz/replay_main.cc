// Runs a fuzzer's entry point over its committed corpus, and over a few fixed mutations of each
// input, as a test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ferry::fuzz {
namespace {

std::string g_corpus;
uint32_t g_mutations = 0;  // of each input

TEST(ReplayTest, CorpusAndItsMutations) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(g_corpus)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  uint64_t seed = 1;
  const auto next = [&seed](uint64_t bound) {
    seed = seed * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return (seed >> 33) % bound;
  };
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    std::ifstream stream(file, std::ios::binary);
    std::vector<uint8_t> input{std::istreambuf_iterator<char>(stream), {}};
    LLVMFuzzerTestOneInput(input.data(), input.size());
    for (uint32_t n = 0; n < g_mutations && !input.empty(); ++n) {
      input[next(input.size())] ^= static_cast<uint8_t>(1U << next(8));
      LLVMFuzzerTestOneInput(input.data(), n % 2 == 0 ? input.size() : next(input.size()));
    }
  }
}

}  // namespace
}  // namespace ferry::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    return 2;
  }
  ferry::fuzz::g_corpus = argv[1];
  ferry::fuzz::g_mutations = static_cast<uint32_t>(std::stoul(argv[2]));
  return RUN_ALL_TESTS();
}
