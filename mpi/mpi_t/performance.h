// Performance variables of the tool interface (MPI 5.0, section 15.3.7): the rank's counters
// (shm/counters.h), under their own names, and what is measured only while a tool has started it.
//
// The handle of a counter or a timer counts from 0 while it is started. A mark is the most that
// there have been since its start, or since it was written. Levels and states, how it is now, are
// always active and cannot be changed. Counters are this rank's in its job: before it joins and
// after it leaves they stand still.
//
// Calling thread: any, one at a time. Nothing blocks. Failures have the classes MPI_T_ERR_*.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/mpi_t/events.h"

namespace ferry::mpi {

struct PerformanceVariable {
  enum class Source : uint8_t {
    kCounter,
    kWaited,
    kInCollectives,
    kMostUnexpected,
    kMostPosted,
    kCurrentCall,
  };

  const char* name;
  const char* unit;
  const char* help;
  int var_class;  // MPI_T_PVAR_CLASS_COUNTER, _AGGREGATE, _LEVEL, _TIMER, _HIGHWATERMARK or _STATE
  Source source = Source::kCounter;

  // It says how something is now.
  bool is_now() const {
    return var_class == MPI_T_PVAR_CLASS_LEVEL || var_class == MPI_T_PVAR_CLASS_STATE;
  }
  bool is_mark() const { return var_class == MPI_T_PVAR_CLASS_HIGHWATERMARK; }
  bool is_timer() const { return var_class == MPI_T_PVAR_CLASS_TIMER; }
  // MPI_DOUBLE of a timer (seconds), MPI_INT of a state, otherwise MPI_UNSIGNED_LONG_LONG.
  MPI_Datatype datatype() const;
  MPI_T_enum enumeration() const;
};

// Returns the variables: those of the counters by the counters' numbers, then the others.
const std::vector<PerformanceVariable>& PerformanceVariables();

class PerformanceHandle {
 public:
  // `index` of PerformanceVariables.
  explicit PerformanceHandle(int index);
  ~PerformanceHandle();
  PerformanceHandle(const PerformanceHandle&) = delete;
  PerformanceHandle& operator=(const PerformanceHandle&) = delete;

  // Start and Stop fail with MPI_T_ERR_PVAR_NO_STARTSTOP for what says how it is now, Write and
  // Reset with MPI_T_ERR_PVAR_NO_WRITE.
  Failure Start();
  Failure Stop();
  // Reads and writes a value of the variable's datatype.
  void Read(void* buffer);
  Failure Write(const void* buffer);
  // To 0; of a mark to what there are now.
  Failure Reset();
  const PerformanceVariable& variable() const;

 private:
  uint64_t Now() const;
  // Adds what has come since the last call.
  void Gather();
  Failure CheckWritable() const;

  const int index_;
  bool is_running_ = false;
  uint64_t value_ = 0;  // of a timer in ns
  uint64_t seen_ = 0;   // what there was when Gather last looked
  EventHub::Mark mark_;
};

// A session of performance variables: its handles.
using PerformanceSession = std::vector<std::unique_ptr<PerformanceHandle>>;

}  // namespace ferry::mpi
