// The tree of a job's nodes, along which their daemons pass on news about the job (job_relay.h).
//
// Node 0 is the root, and node n stands below node (n - 1) / radix. Plain arithmetic: every daemon
// of the job computes the same tree. A daemon finds the way around nodes that are out of it (dead,
// cut off, silent) by itself, so two daemons may differ for a while in whom they talk to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace ferry::daemon {

class JobTree {
 public:
  using IsOut = std::function<bool(uint32_t node)>;

  // Of no nodes: the job's daemons talk to each other directly.
  JobTree() = default;
  // `radix` 0, or so few nodes that each would talk to all others anyway: as above.
  JobTree(uint32_t nodes, uint32_t radix, uint32_t self);

  bool exists() const { return radix_ != 0; }
  // Returns true if `node` is `top`, or stands below it.
  bool IsBelow(uint32_t node, uint32_t top) const;
  std::vector<uint32_t> ChildrenOf(uint32_t node) const;

  // Returns whom this node reports to: the nearest node above it that is not out, or else the first
  // node of all that is not. Nothing: that is this node.
  std::optional<uint32_t> Upward(const IsOut& is_out) const;
  // Returns the nodes below this one that it talks to by itself: its children, and in the place of
  // a child that is out, that one's. If this node is the first that is left, also those for whom it
  // takes the place of the root.
  std::vector<uint32_t> Downward(const IsOut& is_out) const;
  // Returns true if news of `node` come to this one by `by`: from below, of nodes below `by`; from
  // elsewhere, of nodes that are not below this one.
  bool IsTheWayOf(uint32_t node, uint32_t by) const;

 private:
  static uint32_t ParentOf(uint32_t node, uint32_t radix) { return (node - 1) / radix; }
  void AddBelow(uint32_t node, const IsOut& is_out, std::vector<uint32_t>* found) const;
  std::optional<uint32_t> FirstThatIsLeft(const IsOut& is_out) const;

  uint32_t nodes_ = 0;
  uint32_t radix_ = 0;
  uint32_t self_ = 0;
};

}  // namespace ferry::daemon
