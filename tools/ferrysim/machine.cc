#include "tools/ferrysim/machine.h"

#include <string>

namespace ferry::sim {

Status CheckMachine(const Machine& machine) {
  if (machine.ranks_per_node == 0 || machine.nics_per_node == 0) {
    return {ErrorCode::kInvalidArgument, "a node has " + std::to_string(machine.ranks_per_node) +
                                             " ranks and " + std::to_string(machine.nics_per_node) +
                                             " NICs: each must be at least 1"};
  }
  if (machine.nics_per_node > machine.ranks_per_node &&
      machine.nics_per_node % machine.ranks_per_node != 0) {
    return {ErrorCode::kInvalidArgument,
            std::to_string(machine.nics_per_node) + " NICs cannot be dealt out to " +
                std::to_string(machine.ranks_per_node) + " ranks of a node evenly"};
  }
  if (machine.nics_per_node <= machine.ranks_per_node &&
      machine.ranks_per_node % machine.nics_per_node != 0) {
    return {ErrorCode::kInvalidArgument,
            std::to_string(machine.ranks_per_node) + " ranks of a node cannot share " +
                std::to_string(machine.nics_per_node) + " NICs evenly"};
  }
  if (machine.nic.gap == 0 || machine.nic.gap_per_byte_ps == 0) {
    return {ErrorCode::kInvalidArgument,
            "a gap of 0: a NIC carries no infinity of messages or bytes"};
  }
  return CheckTopology(machine.topology);
}

}  // namespace ferry::sim
