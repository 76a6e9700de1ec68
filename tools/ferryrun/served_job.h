// A job, as servers for ranks of other libraries tell of it. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::tools {

// A job, as the ranks of one machine are to see it.
struct ServedJob {
  std::string name = {};
  std::string name_space = {};  // in PMIx; ranks prove by it that they belong to the job
  std::vector<uint32_t> node_of_rank = {};  // by rank
  std::vector<std::string> hosts = {};      // by node
  std::vector<uint32_t> nodes_here = {};

  uint32_t size() const { return static_cast<uint32_t>(node_of_rank.size()); }
};

}  // namespace ferry::tools
