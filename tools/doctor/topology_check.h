// The findings of `ferryctl doctor` about the places of NICs, GPUs and ferryd's progress thread.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/machine.h"
#include "tools/doctor/finding.h"

namespace ferry::tools {

// A NIC as the daemon reports it; texts are empty where it does not know.
struct NicPlace {
  std::string name;
  std::string cpus;           // near it
  std::string progress_cpus;  // those of the thread that serves it; empty: any
};

Finding CheckTopology(const StatusOr<topology::Machine>& machine,
                      const std::vector<NicPlace>& nics);

}  // namespace ferry::tools
