// Faults found in a session's memory: a note of the first in that memory, and its description.
//
// An engine, of the rank or of the progress worker, that finds words there which no correct program
// leaves notes the fault before it poisons the rank. The daemon reads the note once, and reports it
// when it ends the session. Nothing depends on the note being true.
//
// Calling thread: Note by the lease holder; Describe by any.
#pragma once

#include <cstdint>
#include <string>

#include "shm/layout/session_layout.h"

namespace ferry::shm {

struct Fault {
  FaultKind kind = FaultKind::kNone;
  uint32_t where = 0;  // an index; the kind says of which array
  uint64_t value = 0;  // the value found there
};

// Notes a fault, unless one is noted already: later ones only follow from the first.
void NoteFault(FaultLayout* layout, const Fault& fault);
Fault ReadFault(const FaultLayout& layout);
// "the match table has a cycle at entry 7".
std::string Describe(const Fault& fault);

}  // namespace ferry::shm
