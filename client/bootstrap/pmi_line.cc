#include "client/bootstrap/pmi_line.h"

#include <algorithm>

namespace ferry::client {

PmiFields ReadPmiLine(std::string_view line) {
  PmiFields fields;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    if (const size_t equals = word.find('='); equals != word.npos) {
      fields.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

std::string FieldOf(const PmiFields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

std::optional<std::string> TakePmiLine(std::string* input) {
  const size_t end = input->find('\n');
  if (end == input->npos) {
    return std::nullopt;
  }
  std::string line = input->substr(0, end);
  input->erase(0, end + 1);
  return line;
}

namespace {

struct Block {
  uint32_t first_node, nodes, ranks;
};

// Returns true if the one block, again and again, is the whole mapping.
bool IsAll(const Block& block, const std::vector<uint32_t>& node_of_rank) {
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    if (node_of_rank[rank] != block.first_node + rank / block.ranks % block.nodes) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string PmiMappingText(const std::vector<uint32_t>& node_of_rank) {
  std::vector<Block> blocks;
  for (size_t rank = 0; rank < node_of_rank.size();) {
    const uint32_t node = node_of_rank[rank];
    uint32_t ranks = 0;
    for (; rank < node_of_rank.size() && node_of_rank[rank] == node; ++rank) {
      ++ranks;
    }
    if (!blocks.empty() && blocks.back().ranks == ranks &&
        blocks.back().first_node + blocks.back().nodes == node) {
      ++blocks.back().nodes;
    } else {
      blocks.push_back({node, 1, ranks});
    }
  }
  if (!blocks.empty() && IsAll(blocks.front(), node_of_rank)) {
    blocks.resize(1);
  }
  std::string text = "(vector";
  for (const Block& block : blocks) {
    text += ",(" + std::to_string(block.first_node) + "," + std::to_string(block.nodes) + "," +
            std::to_string(block.ranks) + ")";
  }
  return text + ")";
}

}  // namespace ferry::client
