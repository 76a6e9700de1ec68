// Faults found in a session's memory: as numbers that lie in it, and in words.
//
// The rank's engine, or the progress worker, that finds what no correct program leaves there notes
// it before it poisons the rank. The daemon reads the note once, and reports it when it ends the
// session. Nothing depends on the note being true.
//
// Calling thread: Note by the lease holder; Describe by any.
#pragma once

#include <cstdint>
#include <string>

#include "shm/layout/session_layout.h"

namespace ferry::shm {

struct Fault {
  FaultKind kind = FaultKind::kNone;
  uint32_t where = 0;  // an index; what of, the kind says
  uint64_t value = 0;  // what was found there
};

// Keeps the first fault: what follows from it tells nobody anything.
void NoteFault(FaultLayout* layout, const Fault& fault);
Fault ReadFault(const FaultLayout& layout);
// "the match table has a cycle at entry 7".
std::string Describe(const Fault& fault);

}  // namespace ferry::shm
