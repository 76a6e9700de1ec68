#include "common/rank_table.h"

#include <optional>

namespace ferry {
namespace {

constexpr int kBitsOfByte = 7;
constexpr int kMostBits = 64;

void Append(uint64_t number, std::string* text) {
  while (number >= 1U << kBitsOfByte) {
    text->push_back(static_cast<char>(number | 1U << kBitsOfByte));
    number >>= kBitsOfByte;
  }
  text->push_back(static_cast<char>(number));
}

// Steps have signs: 0, -1, 1, -2, 2... are 0, 1, 2, 3, 4...
uint64_t Folded(int64_t step) {
  return step < 0 ? 2 * static_cast<uint64_t>(-(step + 1)) + 1 : 2 * static_cast<uint64_t>(step);
}
int64_t Unfolded(uint64_t number) {
  const auto half = static_cast<int64_t>(number / 2);
  return number % 2 == 1 ? -half - 1 : half;
}

std::optional<uint64_t> Take(std::string_view* text) {
  uint64_t number = 0;
  for (int shift = 0; shift < kMostBits && !text->empty(); shift += kBitsOfByte) {
    const auto byte = static_cast<unsigned char>(text->front());
    text->remove_prefix(1);
    number |= static_cast<uint64_t>(byte & ((1U << kBitsOfByte) - 1)) << shift;
    if (byte < 1U << kBitsOfByte) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string PackNodes(const std::vector<uint32_t>& node_of_rank) {
  std::string text;
  for (size_t rank = 0; rank < node_of_rank.size();) {
    const int64_t first = node_of_rank[rank];
    const int64_t step = rank + 1 < node_of_rank.size() ? node_of_rank[rank + 1] - first : 0;
    size_t count = 1;
    while (rank + count < node_of_rank.size() &&
           node_of_rank[rank + count] == first + step * static_cast<int64_t>(count)) {
      ++count;
    }
    Append(static_cast<uint64_t>(first), &text);
    Append(Folded(step), &text);
    Append(count, &text);
    rank += count;
  }
  return text;
}

StatusOr<std::vector<uint32_t>> UnpackNodes(std::string_view text, uint32_t size) {
  const Status corrupt(ErrorCode::kCorrupt, "a table of ranks that cannot be");
  std::vector<uint32_t> nodes;
  while (!text.empty()) {
    const std::optional<uint64_t> first = Take(&text);
    const std::optional<uint64_t> step = Take(&text);
    const std::optional<uint64_t> count = Take(&text);
    const bool is_whole = first && step && count;
    if (!is_whole || *count == 0 || *count > size - nodes.size() || *first > UINT32_MAX ||
        *step > 2ULL * UINT32_MAX) {
      return corrupt;
    }
    const int64_t by = Unfolded(*step);
    auto node = static_cast<int64_t>(*first);  // all numbers have 33 bits at most
    for (uint64_t i = 0; i < *count; ++i, node += by) {
      if (node < 0 || node > UINT32_MAX) {
        return corrupt;
      }
      nodes.push_back(static_cast<uint32_t>(node));
    }
  }
  return nodes.size() == size ? StatusOr<std::vector<uint32_t>>(std::move(nodes)) : corrupt;
}

}  // namespace ferry
