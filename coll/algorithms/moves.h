// Parts of algorithms that move data among a party without reducing them.
//
// Each function adds this rank's steps to a schedule; all members call it with the same arguments
// (but their own ranges), other ranks not at all. Names of algorithms as in Thakur, Rabenseifner
// and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005).
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <vector>

#include "coll/algorithms/party.h"
#include "coll/schedule_builder.h"

namespace ferry::collective {

// A barrier by dissemination: ends when all members have come, after log2(n) rounds.
void AddDissemination(ScheduleBuilder* builder, const Party& party);
// A barrier in two halves: all members notify index 0; then all are notified.
void AddGatherNotices(ScheduleBuilder* builder, const Party& party);
void AddReleaseNotices(ScheduleBuilder* builder, const Party& party);

// Sends `data` from the root of `tree` down, segment after segment.
void AddTreeBcast(ScheduleBuilder* builder, const Party& party, const Tree& tree, const Range& data,
                  size_t segment_bytes);
// Broadcasts by a binomial scatter, then a ring (van de Geijn): each byte leaves the root once or
// twice.
void AddScatterRingBcast(ScheduleBuilder* builder, const Party& party, int root, const Range& data);

// Every member has its block, at `own` (which may be its place among the blocks), and gets those of
// all others. Blocks by index; this member's must lie at its place too, once the caller has copied
// it there, unless a comment says that only `own` is read.
//
// All to all at once, in segments. Only `own` is read.
void AddLinearAllgather(ScheduleBuilder* builder, const Party& party,
                        const std::vector<Range>& blocks, const Range& own, size_t segment_bytes);
// Around a ring. Only `own` is read.
void AddRingAllgather(ScheduleBuilder* builder, const Party& party,
                      const std::vector<Range>& blocks, const Range& own);
// Bruck's: log2(n) rounds. `all` has one place of the block's size for each member, and its first
// one this member's block; those of the members behind this one follow, around the party.
void AddBruckAllgather(ScheduleBuilder* builder, const Party& party, const Range& all);
// By recursive doubling, for a power of two members; the blocks are adjacent everywhere, or else
// each goes by itself.
void AddDoublingAllgather(ScheduleBuilder* builder, const Party& party,
                          const std::vector<Range>& blocks, bool are_adjacent);
// An even number of members: pairs exchange, then swap their results with the pairs beside them.
void AddNeighbourAllgather(ScheduleBuilder* builder, const Party& party,
                           const std::vector<Range>& blocks);

// The root gets every member's block, or gives them away. Others know only their own block.
void AddLinearGather(ScheduleBuilder* builder, const Party& party, int root,
                     const std::vector<Range>& blocks_at_root, const Range& own);
void AddLinearScatter(ScheduleBuilder* builder, const Party& party, int root,
                      const std::vector<Range>& blocks_at_root, const Range& own);

}  // namespace ferry::collective
