#include "daemon/jobs/job_tree.h"

#include <algorithm>

namespace ferry::daemon {

JobTree::JobTree(uint32_t nodes, uint32_t radix, uint32_t self)
    : nodes_(nodes), radix_(uint64_t{radix} + 1 < nodes ? radix : 0), self_(self) {}

bool JobTree::IsBelow(uint32_t node, uint32_t top) const {
  while (node > top) {
    node = ParentOf(node, radix_);
  }
  return node == top;
}

std::vector<uint32_t> JobTree::ChildrenOf(uint32_t node) const {
  std::vector<uint32_t> children;
  const uint64_t first = uint64_t{node} * radix_ + 1;
  for (uint64_t child = first; child < std::min<uint64_t>(first + radix_, nodes_); ++child) {
    children.push_back(static_cast<uint32_t>(child));
  }
  return children;
}

std::optional<uint32_t> JobTree::FirstThatIsLeft(const IsOut& is_out) const {
  for (uint32_t node = 0; node < nodes_; ++node) {
    if (node == self_ || !is_out(node)) {
      return node;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> JobTree::Upward(const IsOut& is_out) const {
  for (uint32_t node = self_; node != 0;) {
    node = ParentOf(node, radix_);
    if (!is_out(node)) {
      return node;
    }
  }
  const std::optional<uint32_t> first = FirstThatIsLeft(is_out);
  return first == self_ ? std::nullopt : first;
}

// Without recursion: a launcher may ask for a tree of radix 1, whose depth is the number of nodes.
void JobTree::AddBelow(uint32_t node, const IsOut& is_out, std::vector<uint32_t>* found) const {
  std::vector<uint32_t> to_pass = {node};
  while (!to_pass.empty()) {
    const std::vector<uint32_t> children = ChildrenOf(to_pass.back());
    to_pass.pop_back();
    for (const uint32_t child : children) {
      if (child != self_) {  // whose children are added by themselves
        (is_out(child) ? &to_pass : found)->push_back(child);
      }
    }
  }
}

std::vector<uint32_t> JobTree::Downward(const IsOut& is_out) const {
  std::vector<uint32_t> found;
  AddBelow(self_, is_out, &found);
  if (self_ != 0 && FirstThatIsLeft(is_out) == self_) {
    AddBelow(0, is_out, &found);  // all above them are out: whoever is not would come before us
  }
  return found;
}

bool JobTree::IsTheWayOf(uint32_t node, uint32_t by) const {
  if (node == self_) {
    return false;
  }
  return node == by ||
         (by != self_ && IsBelow(by, self_) ? IsBelow(node, by) : !IsBelow(node, self_));
}

}  // namespace ferry::daemon
