// Stand-ins for most daemons of a job that is a tree, so that jobs fit whose every daemon knows a
// million ranks.
//
// Daemons are the nodes on the way from the root to the deepest leaf, each the first child of the
// one before. All other neighbours of these are stand-ins: what a daemon on the way tells the node
// above it, each of its siblings tells there, too, one call after the other, of the nodes at the
// same places below itself, as far as the job has them. A stand-in confirms what it is told after
// as long as its sibling on the way last took for such a request. So a daemon on the way does all
// that it would do among daemons only, and whatever must go from one end of the tree to the other
// takes as long as to the root from the leaf on the way, and back.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/daemon/jobs/job_world.h"

namespace ferry::daemon {

// From the root, which is node 0, down.
std::vector<uint32_t> WayToLeaf(uint32_t nodes, uint32_t radix);

class StandIns {
 public:
  // Of one job, of `per_node` ranks on each node of the world, whose daemons are WayToLeaf. Must
  // not outlive it.
  StandIns(World& world, uint32_t radix, uint32_t per_node);
  ~StandIns();
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;
  // From now on they tell nothing by themselves.
  void Hush() { world_.on_relay = nullptr; }
  // The stand-in for a child of the root tells it that a rank has died, the last one of the job
  // that is below it.
  void TellDeath(uint32_t child);

 private:
  void Mirror(WorldNode& from, uint32_t to, const control::RelayRequest& request);
  control::RelayRequest RequestOf(uint32_t node) const;
  void Tell(uint32_t from, uint32_t to, const control::RelayRequest& request);
  uint32_t Counterpart(uint32_t node, uint32_t daemon, uint32_t sibling) const;

  World& world_;
  const uint32_t radix_;
  const uint32_t per_node_;
};

}  // namespace ferry::daemon
