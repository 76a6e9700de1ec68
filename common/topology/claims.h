// Claims of jobs, of any user, to have CPUs of this machine to themselves.
//
// A claim on a CPU is a Unix socket with an abstract name, which only one process can have: so
// claims of launchers with and without a common daemon, and of several users, exclude each other,
// leave no files, and end with the process that made them, however it dies. They are advice: any
// process may claim any CPU, and one that finds a CPU claimed runs elsewhere, or unbound. Processes
// in different network namespaces do not see each other's.
//
// Calling thread: any, one at a time for each object. Nothing blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"

namespace ferry::topology {

class CpuClaims {
 public:
  // Returns the CPUs that any process claims now; none where the kernel does not tell.
  static CpuSet Current();

  // Claims these CPUs too, until Release or the end of this object or its process. If others have
  // some of them, it returns the first such CPU, and claims nothing anew.
  std::optional<uint32_t> Claim(const CpuSet& cpus);
  void Release() { sockets_.clear(); }

 private:
  std::vector<UniqueFd> sockets_;
};

}  // namespace ferry::topology
