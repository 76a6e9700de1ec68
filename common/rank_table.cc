#include "common/rank_table.h"

#include <optional>

#include "common/varint.h"

namespace ferry {
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
    AppendVarint(static_cast<uint64_t>(first), &text);
    AppendVarint(Folded(step), &text);
    AppendVarint(count, &text);
    rank += count;
  }
  return text;
}

StatusOr<std::vector<uint32_t>> UnpackNodes(std::string_view text, uint32_t size) {
  const Status corrupt(ErrorCode::kCorrupt, "a table of ranks that cannot be");
  std::vector<uint32_t> nodes;
  while (!text.empty()) {
    const std::optional<uint64_t> first = TakeVarint(&text);
    const std::optional<uint64_t> step = TakeVarint(&text);
    const std::optional<uint64_t> count = TakeVarint(&text);
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
