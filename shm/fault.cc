#include "shm/fault.h"

#include "shm/atomic.h"

namespace ferry::shm {

void NoteFault(FaultLayout* layout, const Fault& fault) {
  if (LoadRelaxed(layout->kind) != 0) {
    return;
  }
  StoreRelaxed(layout->where, fault.where);
  StoreRelaxed(layout->value, fault.value);
  StoreRelease(layout->kind, static_cast<uint32_t>(fault.kind));  // Pairs with ReadFault.
}

Fault ReadFault(const FaultLayout& layout) {
  Fault fault;
  fault.kind = static_cast<FaultKind>(LoadAcquire(layout.kind));  // Pairs with NoteFault.
  fault.where = LoadRelaxed(layout.where);
  fault.value = LoadRelaxed(layout.value);
  return fault;
}

std::string Describe(const Fault& fault) {
  const std::string where = std::to_string(fault.where);
  const std::string value = std::to_string(fault.value);
  switch (fault.kind) {
    case FaultKind::kNone:
      break;
    case FaultKind::kMatchTable:
      return "the match table of " + value + " entries does not fit its segment";
    case FaultKind::kMatchIndex:
      return "the match table names entry " + where + ", but has " + value;
    case FaultKind::kMatchCycle:
      return "the match table has a cycle at entry " + where;
    case FaultKind::kMatchState:
      return "the match table's entry " + where + " is in state " + value +
             ", which does not fit its chain";
    case FaultKind::kMatchRequest:
      return "the match table's entry " + where + " names request " + value +
             ", which is no posted receive";
    case FaultKind::kRequestChain:
      return "a chain of requests leads to request " + where + ", which does not belong there";
    case FaultKind::kRequestPeer:
      return "request " + where + " is for rank " + value + ", which the job does not have";
    case FaultKind::kJournal:
      return "the journal that a dead holder left holds entries outside of the segments";
    case FaultKind::kStore:
      return "an index in the session leads out of its segments";
    case FaultKind::kDaemonLane:
      return "the daemon's lane holds a descriptor of kind " + value + " that no daemon writes";
    case FaultKind::kLinkLane:
      return "the lane of the direct links holds a descriptor of kind " + value +
             " that no core writes";
  }
  return "its shared memory holds what no correct library writes (fault " +
         std::to_string(static_cast<uint32_t>(fault.kind)) + ")";
}

}  // namespace ferry::shm
