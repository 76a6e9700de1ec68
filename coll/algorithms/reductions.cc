#include "coll/algorithms/reductions.h"

#include <algorithm>

#include "coll/algorithms/moves.h"

namespace ferry::collective {
namespace {

// Segments of a receive that may be ahead of the reduction that uses them.
constexpr size_t kSlots = 4;

const Range& At(const std::vector<Range>& ranges, int index) {
  return ranges[static_cast<size_t>(index)];
}

// Scratch memory for the segments of one peer, used in turn.
class Slots {
 public:
  Slots(ScheduleBuilder* builder, const std::vector<Range>& segments) {
    size_t longest = 0;
    for (const Range& segment : segments) {
      longest = std::max(longest, segment.size_bytes);
    }
    for (size_t i = 0; i < std::min(kSlots, segments.size()); ++i) {
      slots_.push_back(builder->Scratch(longest));
    }
  }
  Range Of(size_t segment_index, const Range& segment) const {
    return slots_[segment_index % slots_.size()].Part(0, segment.size_bytes);
  }

 private:
  std::vector<Range> slots_;
};

}  // namespace

Reduction ReductionOf(const Problem& problem) {
  return {.input = problem.ReductionInput(),
          .output = {Place::kOutput, 0, problem.block_bytes},
          .element_bytes = problem.element_bytes,
          .segment_bytes = problem.segment_bytes};
}

void AddReductionInOrder(ScheduleBuilder* builder, const std::vector<Range>& operands,
                         const Range& to) {
  if (operands.size() == 1) {
    builder->Copy(operands.front(), to);
    return;
  }
  // Until `to` has been read as an operand, the sum lies in the scratch.
  const auto last_use =
      static_cast<size_t>(std::find(operands.begin() + 1, operands.end(), to) - operands.begin());
  Range sum = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    const bool is_free = last_use == operands.size() || i >= last_use;
    const Range target = is_free ? to : operands[i];
    builder->Reduce(sum, operands[i], target);
    sum = target;
  }
}

// ---- To a root ----------------------------------------------------------------------------------

void AddTreeReduce(ScheduleBuilder* builder, const Party& party, const Tree& tree,
                   const Reduction& reduction) {
  const bool is_root = tree.parent < 0;
  const std::vector<Range> inputs =
      Segments(reduction.input, reduction.segment_bytes, reduction.element_bytes);
  std::vector<Slots> slots;
  for (size_t i = 0; i < tree.children.size(); ++i) {
    slots.emplace_back(builder, inputs);
  }
  for (size_t s = 0; s < inputs.size(); ++s) {
    const Range& input = inputs[s];
    const Range output =
        reduction.output.Part(input.offset_bytes - reduction.input.offset_bytes, input.size_bytes);
    Range sum = input;
    for (size_t i = 0; i < tree.children.size(); ++i) {
      const Range slot = slots[i].Of(s, input);
      builder->Receive(party.Rank(tree.children[i]), slot);
      const Range target = is_root ? output : slot;
      builder->Reduce(sum, slot, target);
      sum = target;
    }
    if (!is_root) {
      builder->Send(party.Rank(tree.parent), sum);
    } else if (tree.children.empty()) {
      builder->Copy(input, output);
    }
  }
}

void AddLinearReduce(ScheduleBuilder* builder, const Party& party, int root,
                     const Reduction& reduction) {
  const std::vector<Range> inputs =
      Segments(reduction.input, reduction.segment_bytes, reduction.element_bytes);
  if (party.self != root) {
    for (const Range& input : inputs) {
      builder->Send(party.Rank(root), input);
    }
    return;
  }
  std::vector<Slots> slots;
  for (int i = 0; i < party.size() - 1; ++i) {
    slots.emplace_back(builder, inputs);
  }
  for (size_t s = 0; s < inputs.size(); ++s) {
    const Range& input = inputs[s];
    std::vector<Range> operands;
    for (int i = 0; i < party.size(); ++i) {
      if (i == root) {
        operands.push_back(input);
        continue;
      }
      operands.push_back(slots[static_cast<size_t>(i < root ? i : i - 1)].Of(s, input));
      builder->Receive(party.Rank(i), operands.back());
    }
    AddReductionInOrder(
        builder, operands,
        reduction.output.Part(input.offset_bytes - reduction.input.offset_bytes, input.size_bytes));
  }
}

// ---- Folding ------------------------------------------------------------------------------------

Folded AddFold(ScheduleBuilder* builder, const Party& party, const Reduction& reduction) {
  const int power = FloorPowerOfTwo(party.size());
  const int rest = party.size() - power;
  Folded folded;
  folded.vector = reduction.input;
  for (int i = 0; i < power; ++i) {
    folded.active.ranks.push_back(party.Rank(i < rest ? 2 * i + 1 : i + rest));
  }
  if (party.self >= 2 * rest) {
    folded.active.self = party.self - rest;
  } else if (party.self % 2 == 0) {
    folded.partner = party.Rank(party.self + 1);
    builder->Send(folded.partner, reduction.input);
  } else {
    folded.partner = party.Rank(party.self - 1);
    folded.active.self = party.self / 2;
    const Range other = builder->Scratch(reduction.input.size_bytes);
    builder->Receive(folded.partner, other);
    builder->Reduce(other, reduction.input, reduction.output);
    folded.vector = reduction.output;
  }
  return folded;
}

void AddUnfold(ScheduleBuilder* builder, const Folded& folded, const Range& output) {
  if (folded.partner < 0) {
    return;
  }
  if (folded.active.self < 0) {
    builder->Receive(folded.partner, output);
  } else {
    builder->Send(folded.partner, output);
  }
}

// ---- To all -------------------------------------------------------------------------------------

void AddDoublingAllreduce(ScheduleBuilder* builder, const Party& party,
                          const Reduction& reduction) {
  if (party.size() == 1) {
    builder->Copy(reduction.input, reduction.output);
    return;
  }
  const Folded folded = AddFold(builder, party, reduction);
  const Party& active = folded.active;
  Range sum = folded.vector;
  for (int mask = 1; active.self >= 0 && mask < active.size(); mask *= 2) {
    const int partner = active.self ^ mask;
    const Range theirs = builder->Scratch(sum.size_bytes);
    builder->Send(active.Rank(partner), sum);
    builder->Receive(active.Rank(partner), theirs);
    // This must not be where `sum` lies: its send need not be over.
    const Range target = 2 * mask < active.size() ? theirs : reduction.output;
    if (active.self < partner) {
      builder->Reduce(sum, theirs, target);
    } else {
      builder->Reduce(theirs, sum, target);
    }
    sum = target;
  }
  AddUnfold(builder, folded, reduction.output);
}

void AddRabenseifnerAllreduce(ScheduleBuilder* builder, const Party& party,
                              const Reduction& reduction) {
  if (party.size() == 1) {
    builder->Copy(reduction.input, reduction.output);
    return;
  }
  const Folded folded = AddFold(builder, party, reduction);
  if (folded.active.self >= 0) {
    const std::vector<Range> parts =
        Parts(reduction.output, folded.active.size(), reduction.element_bytes);
    AddHalvingReduceScatter(builder, folded.active, folded.vector, parts);
    AddDoublingAllgather(builder, folded.active, parts, true);
  }
  AddUnfold(builder, folded, reduction.output);
}

void AddRingAllreduce(ScheduleBuilder* builder, const Party& party, const Reduction& reduction) {
  const int n = party.size();
  if (n == 1) {
    builder->Copy(reduction.input, reduction.output);
    return;
  }
  const std::vector<Range> inputs = Parts(reduction.input, n, reduction.element_bytes);
  const std::vector<Range> outputs = Parts(reduction.output, n, reduction.element_bytes);
  const int next = party.Rank((party.self + 1) % n);
  const int previous = party.Rank((party.self - 1 + n) % n);
  for (int step = 0; step + 1 < n; ++step) {
    const int out = (party.self - step + n) % n;
    const int in = (party.self - step - 1 + 2 * n) % n;
    const Range& sum = step == 0 ? At(inputs, out) : At(outputs, out);
    for (const Range& s : Segments(sum, reduction.segment_bytes, reduction.element_bytes)) {
      builder->Send(next, s);
    }
    const Range& own = At(inputs, in);
    const Range theirs = builder->Scratch(own.size_bytes);
    for (const Range& s : Segments(own, reduction.segment_bytes, reduction.element_bytes)) {
      const size_t offset = s.offset_bytes - own.offset_bytes;
      builder->Receive(previous, theirs.Part(offset, s.size_bytes));
      builder->Reduce(theirs.Part(offset, s.size_bytes), s,
                      At(outputs, in).Part(offset, s.size_bytes));
    }
  }
  Party turned = party;  // member i has part i + 1 by now
  std::rotate(turned.ranks.begin(), turned.ranks.end() - 1, turned.ranks.end());
  turned.self = (party.self + 1) % n;
  AddRingAllgather(builder, turned, outputs, At(outputs, turned.self));
}

void AddDirectAllreduce(ScheduleBuilder* builder, const Party& party, const Reduction& reduction) {
  const std::vector<Range> inputs = Parts(reduction.input, party.size(), reduction.element_bytes);
  const std::vector<Range> outputs = Parts(reduction.output, party.size(), reduction.element_bytes);
  AddDirectReduceScatter(builder, party, inputs, At(outputs, party.self), reduction.segment_bytes,
                         reduction.element_bytes);
  AddLinearAllgather(builder, party, outputs, At(outputs, party.self), reduction.segment_bytes);
}

// ---- To each a part -----------------------------------------------------------------------------

void AddHalvingReduceScatter(ScheduleBuilder* builder, const Party& party, const Range& vector,
                             const std::vector<Range>& output_parts) {
  const Range output = Span(output_parts, 0, party.size());
  Range from = vector;
  int first = 0;
  for (int mask = party.size() / 2; mask > 0; mask /= 2) {
    const int partner = party.self ^ mask;
    const bool keeps_lower = (party.self & mask) == 0;
    const Range lower = Span(output_parts, first, first + mask);
    const Range upper = Span(output_parts, first + mask, first + 2 * mask);
    const Range& keep = keeps_lower ? lower : upper;
    const Range& give = keeps_lower ? upper : lower;
    const auto in_vector = [&](const Range& range) {
      return from.Part(range.offset_bytes - output.offset_bytes, range.size_bytes);
    };
    const Range theirs = builder->Scratch(keep.size_bytes);
    builder->Send(party.Rank(partner), in_vector(give));
    builder->Receive(party.Rank(partner), theirs);
    builder->Reduce(in_vector(keep), theirs, keep);
    from = output;
    first += keeps_lower ? 0 : mask;
  }
  if (party.size() == 1) {
    builder->Copy(vector, output);
  }
}

void AddDirectReduceScatter(ScheduleBuilder* builder, const Party& party,
                            const std::vector<Range>& input_parts, const Range& to,
                            size_t segment_bytes, size_t element_bytes) {
  const int n = party.size();
  std::vector<std::vector<Range>> segments;
  size_t most = 0;
  for (const Range& part : input_parts) {
    segments.push_back(Segments(part, segment_bytes, element_bytes));
    most = std::max(most, segments.back().size());
  }
  const std::vector<Range>& own = segments[static_cast<size_t>(party.self)];
  std::vector<Slots> slots;
  for (int i = 1; i < n; ++i) {
    slots.emplace_back(builder, own);
  }
  for (size_t s = 0; s < most; ++s) {
    std::vector<Range> operands(static_cast<size_t>(n));
    for (int i = 1; i < n; ++i) {
      const int give = (party.self + i) % n;
      if (s < segments[static_cast<size_t>(give)].size()) {
        builder->Send(party.Rank(give), segments[static_cast<size_t>(give)][s]);
      }
      if (const int from = (party.self - i + n) % n; s < own.size()) {
        Range& operand = operands[static_cast<size_t>(from)];
        operand = slots[static_cast<size_t>(i - 1)].Of(s, own[s]);
        builder->Receive(party.Rank(from), operand);
      }
    }
    if (s < own.size()) {
      operands[static_cast<size_t>(party.self)] = own[s];
      AddReductionInOrder(builder, operands,
                          to.Part(own[s].offset_bytes - At(input_parts, party.self).offset_bytes,
                                  own[s].size_bytes));
    }
  }
}

}  // namespace ferry::collective
