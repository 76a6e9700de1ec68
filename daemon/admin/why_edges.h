// Judges the edges of a WaitGraph (why_graph.h) by one look at a rank, or by two at neighbours:
// which of them say that the rank is stuck, and which lead to the one to blame.
//
// Thread: any; pure functions.
#pragma once

#include "proto/control.pb.h"

namespace ferry::daemon {

// Returns true if only the program of the edge's other rank can end the wait, as far as one look
// can tell. Null: there is no edge.
bool IsStuck(const control::WaitEdge* edge);
// Returns true if one of its edges is enough. Where what else may be enough is unknown, no edge
// says that the rank is stuck.
bool IsAny(const control::RankWait& look);
// Returns true if none of those whom a rank waits for is to blame.
bool IsForAnybody(const control::RankWait& look);
// Returns true if it is not known whether the rank's stream is at that wait yet, or has kernels to
// run before it. So the edge is one of a deadlock, or of none.
bool IsAhead(const control::RankWait& look, const control::WaitEdge& edge);
// Returns true if the rank is in a call in which ranks of a group meet.
bool MeetsOthers(const control::RankWait& look);
// Returns true if the rank's chain is the rank and then the chain of the only one it waits for.
bool GoesOneWay(const control::RankWait& look);
// Returns true if both are in the same call of a group of ranks, or `other` is in a later one of
// it.
bool HasCome(const control::RankWait& rank, const control::RankWait& other);
// Returns true if only the program of `peer` can end the wait.
bool IsCertain(const control::WaitEdge& edge, const control::RankWait& waiter,
               const control::RankWait& peer);

}  // namespace ferry::daemon
