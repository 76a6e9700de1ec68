// How long ranks have looked alike to those who asked about them.
//
// Thread: one, the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "daemon/jobs/job_registry.h"

namespace ferry::daemon {

// Remembers since when a rank has looked alike to `why`. Requests carry the time of their start,
// but a rank that computes leaves no trace of when it last called Ferry, and a clock read in every
// call would cost more than the call; so each question leaves this for the next one.
class QuietLog {
 public:
  // Returns for how many nanoseconds `fingerprint` has been seen for that rank of the job with that
  // serial.
  uint64_t Note(uint64_t job_serial, uint32_t rank, uint64_t fingerprint, uint64_t now_ns);
  // Forgets jobs that are gone.
  void Sweep(const JobRegistry& registry);

 private:
  struct Entry {
    uint64_t fingerprint;
    uint64_t since_ns;
  };
  std::map<std::pair<uint64_t, uint32_t>, Entry> entries_;
};

}  // namespace ferry::daemon
