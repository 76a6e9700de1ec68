// Performance variables of the tool interface (MPI 5.0, section 15.3.7): the rank's counters
// (shm/counters.h), under their own names.
//
// A counter's handle counts from 0 while it is started. The level, how many of something there are
// now, is always active and cannot be changed. Counters are this rank's in its job: before it joins
// and after it leaves they stand still.
//
// Calling thread: any, one at a time. Nothing blocks. Failures have the classes MPI_T_ERR_*.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

struct PerformanceVariable {
  const char* name;
  const char* unit;
  const char* help;
  int var_class;  // MPI_T_PVAR_CLASS_COUNTER, _AGGREGATE (bytes) or _LEVEL

  bool is_level() const { return var_class == MPI_T_PVAR_CLASS_LEVEL; }
};

// Returns the variables, by the numbers of the counters.
const std::vector<PerformanceVariable>& PerformanceVariables();

class PerformanceHandle {
 public:
  // `index` of PerformanceVariables.
  explicit PerformanceHandle(int index);

  // Start and Stop fail with MPI_T_ERR_PVAR_NO_STARTSTOP for a level, Write with
  // MPI_T_ERR_PVAR_NO_WRITE.
  Failure Start();
  Failure Stop();
  uint64_t Read();
  Failure Write(uint64_t value);
  const PerformanceVariable& variable() const;

 private:
  uint64_t Now() const;
  // Adds the counts since the last call.
  void Gather();

  const int index_;
  bool is_running_ = false;
  uint64_t value_ = 0;
  uint64_t seen_ = 0;  // the rank's counter, when Gather last looked
};

// A session of performance variables: its handles.
using PerformanceSession = std::vector<std::unique_ptr<PerformanceHandle>>;

}  // namespace ferry::mpi
