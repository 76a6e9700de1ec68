// Parts of algorithms that reduce the vectors of a party's members.
//
// See moves.h. Unless their comment says otherwise, functions keep the order of the members, so
// that the operation need not be commutative. Sizes are of whole elements.
#pragma once

#include <vector>

#include "coll/algorithms/party.h"
#include "coll/schedule_builder.h"

namespace ferry::collective {

// A vector that is to be reduced: where it lies, and how.
struct Reduction {
  Range input = {};   // only read
  Range output = {};  // the same size; may be the input
  size_t element_bytes = 1;
  size_t segment_bytes = 0;
};

// Returns the reduction of a problem's own vector.
Reduction ReductionOf(const Problem& problem);

// to = operands[0] op operands[1] op ... `to` may be one of them. At most one of them lies outside
// the scratch, besides the first; those in the scratch may be overwritten.
void AddReductionInOrder(ScheduleBuilder* builder, const std::vector<Range>& operands,
                         const Range& to);

// The root gets the reduction of all, in segments; `output` is used there only. Keeps the order if
// the root is index 0.
void AddTreeReduce(ScheduleBuilder* builder, const Party& party, const Tree& tree,
                   const Reduction& reduction);
// The root gets all vectors, segment by segment, and reduces them in the order of the members.
void AddLinearReduce(ScheduleBuilder* builder, const Party& party, int root,
                     const Reduction& reduction);

// A party whose size is a power of two, made by having one of two neighbours rest.
struct Folded {
  Party active;      // the members that go on; self -1: this rank rests
  int partner = -1;  // the rank that rests for this one, or for which this one rests; -1: none
  Range vector;      // this rank goes on with it: the input, or the sum of two in the output
};
Folded AddFold(ScheduleBuilder* builder, const Party& party, const Reduction& reduction);
// Sends the output of the members that went on to those that rest.
void AddUnfold(ScheduleBuilder* builder, const Folded& folded, const Range& output);

// Gives all members the reduction of all vectors, by log2(n) exchanges of whole vectors.
void AddDoublingAllreduce(ScheduleBuilder* builder, const Party& party, const Reduction& reduction);
// An allreduce of a commutative operation: each member gets a part of the reduction of all
// (recursive halving), then all gather the parts (recursive doubling).
void AddRabenseifnerAllreduce(ScheduleBuilder* builder, const Party& party,
                              const Reduction& reduction);
// An allreduce of a commutative operation around a ring: a reduce-scatter, then an allgather.
void AddRingAllreduce(ScheduleBuilder* builder, const Party& party, const Reduction& reduction);
// An allreduce by messages from all to all at once: each member reduces a part of all vectors, in
// order.
void AddDirectAllreduce(ScheduleBuilder* builder, const Party& party, const Reduction& reduction);

// By recursive halving, for a commutative operation and a power of two members. Member i ends with
// part i of the reduction at its place in the output; the rest of the output must not be used.
// `vector` is where this one's data lie.
void AddHalvingReduceScatter(ScheduleBuilder* builder, const Party& party, const Range& vector,
                             const std::vector<Range>& output_parts);
// Member i gets the i-th part of all vectors, and reduces them in order into `to`.
void AddDirectReduceScatter(ScheduleBuilder* builder, const Party& party,
                            const std::vector<Range>& input_parts, const Range& to,
                            size_t segment_bytes, size_t element_bytes);

}  // namespace ferry::collective
