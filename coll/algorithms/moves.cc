#include "coll/algorithms/moves.h"

#include <algorithm>

namespace ferry::collective {
namespace {

const Range& At(const std::vector<Range>& blocks, int index) {
  return blocks[static_cast<size_t>(index)];
}

}  // namespace

void AddDissemination(ScheduleBuilder* builder, const Party& party) {
  const int n = party.size();
  for (int distance = 1; distance < n; distance *= 2) {
    if (distance > 1) {
      builder->Fence();
    }
    builder->Notify(party.Rank((party.self + distance) % n));
    builder->Await(party.Rank((party.self - distance + n) % n));
  }
}

void AddGatherNotices(ScheduleBuilder* builder, const Party& party) {
  if (party.self != 0) {
    builder->Notify(party.Rank(0));
    return;
  }
  for (int i = 1; i < party.size(); ++i) {
    builder->Await(party.Rank(i));
  }
}

void AddReleaseNotices(ScheduleBuilder* builder, const Party& party) {
  if (party.self != 0) {
    builder->Await(party.Rank(0));
    return;
  }
  for (int i = 1; i < party.size(); ++i) {
    builder->Notify(party.Rank(i));
  }
}

// ---- Broadcast ----------------------------------------------------------------------------------

void AddTreeBcast(ScheduleBuilder* builder, const Party& party, const Tree& tree, const Range& data,
                  size_t segment_bytes) {
  for (const Range& segment : Segments(data, segment_bytes, 1)) {
    if (tree.parent >= 0) {
      builder->Receive(party.Rank(tree.parent), segment);
    }
    // The largest subtree, which has the longest way to go, comes first.
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      builder->Send(party.Rank(*child), segment);
    }
  }
}

void AddScatterRingBcast(ScheduleBuilder* builder, const Party& party, int root,
                         const Range& data) {
  const int n = party.size();
  const std::vector<Range> parts = Parts(data, n, 1);  // part i is of the i-th from the root on
  const int relative = (party.self - root + n) % n;
  // A member's subtree is the indexes from its own to the next with as many trailing zeros.
  const auto subtree_end = [n](int index, int mask) { return std::min(index + mask, n); };
  int mask = 1;
  while (mask < n && (relative & mask) == 0) {
    mask *= 2;
  }
  if (relative != 0) {
    builder->Receive(party.Rank((relative - mask + root) % n),
                     Span(parts, relative, subtree_end(relative, mask)));
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (relative + mask < n) {
      builder->Send(party.Rank((relative + mask + root) % n),
                    Span(parts, relative + mask, subtree_end(relative + mask, mask)));
    }
  }
  Party turned = party;
  std::rotate(turned.ranks.begin(), turned.ranks.begin() + root, turned.ranks.end());
  turned.self = relative;
  AddRingAllgather(builder, turned, parts, At(parts, relative));
}

// ---- Allgather ----------------------------------------------------------------------------------

void AddLinearAllgather(ScheduleBuilder* builder, const Party& party,
                        const std::vector<Range>& blocks, const Range& own, size_t segment_bytes) {
  const int n = party.size();
  for (int i = 1; i < n; ++i) {
    for (const Range& segment : Segments(own, segment_bytes, 1)) {
      builder->Send(party.Rank((party.self + i) % n), segment);
    }
    const int from = (party.self - i + n) % n;
    for (const Range& segment : Segments(At(blocks, from), segment_bytes, 1)) {
      builder->Receive(party.Rank(from), segment);
    }
  }
}

void AddBruckAllgather(ScheduleBuilder* builder, const Party& party, const Range& all) {
  const int n = party.size();
  const size_t bytes = all.size_bytes / static_cast<size_t>(n);
  const auto blocks = [&](int first, int count) {
    return all.Part(static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes);
  };
  for (int distance = 1; distance < n; distance *= 2) {
    const int count = std::min(distance, n - distance);
    builder->Send(party.Rank((party.self - distance + n) % n), blocks(0, count));
    builder->Receive(party.Rank((party.self + distance) % n), blocks(distance, count));
  }
}

void AddRingAllgather(ScheduleBuilder* builder, const Party& party,
                      const std::vector<Range>& blocks, const Range& own) {
  const int n = party.size();
  const int next = party.Rank((party.self + 1) % n);
  const int previous = party.Rank((party.self - 1 + n) % n);
  for (int i = 0; i + 1 < n; ++i) {
    builder->Send(next, i == 0 ? own : At(blocks, (party.self - i + n) % n));
    builder->Receive(previous, At(blocks, (party.self - i - 1 + 2 * n) % n));
  }
}

void AddDoublingAllgather(ScheduleBuilder* builder, const Party& party,
                          const std::vector<Range>& blocks, bool are_adjacent) {
  for (int mask = 1; mask < party.size(); mask *= 2) {
    const int partner = party.self ^ mask;
    const int mine = party.self & ~(mask - 1);
    const int theirs = partner & ~(mask - 1);
    if (are_adjacent) {
      builder->Send(party.Rank(partner), Span(blocks, mine, mine + mask));
      builder->Receive(party.Rank(partner), Span(blocks, theirs, theirs + mask));
      continue;
    }
    for (int i = 0; i < mask; ++i) {
      builder->Send(party.Rank(partner), At(blocks, mine + i));
      builder->Receive(party.Rank(partner), At(blocks, theirs + i));
    }
  }
}

// After Chen and Yuan's neighbour exchange: n / 2 rounds, in which members speak with the two
// beside them only. An even member receives, in rounds 1, 2, 3, 4 ..., the pairs 1 before, 1
// behind, 2 before, 2 behind ... its own; an odd one the other way round. Each sends on what came
// last.
void AddNeighbourAllgather(ScheduleBuilder* builder, const Party& party,
                           const std::vector<Range>& blocks) {
  const int n = party.size();
  const int pairs = n / 2;
  const bool even = party.self % 2 == 0;
  const int right = (party.self + 1) % n;
  const int left = (party.self - 1 + n) % n;
  const auto pair_of_round = [&](int round) {
    const int distance = round % 2 == 1 ? -(round + 1) / 2 : round / 2;
    return (party.self / 2 + (even ? distance : -distance) + n) % pairs;
  };
  const int first = even ? right : left;
  builder->Send(party.Rank(first), At(blocks, party.self));
  builder->Receive(party.Rank(first), At(blocks, first));
  for (int round = 1; round < pairs; ++round) {
    const int partner = party.Rank(even == (round % 2 == 1) ? left : right);
    for (const int i : {0, 1}) {
      builder->Send(partner, At(blocks, 2 * pair_of_round(round - 1) + i));
      builder->Receive(partner, At(blocks, 2 * pair_of_round(round) + i));
    }
  }
}

// ---- Gather and scatter -------------------------------------------------------------------------

void AddLinearGather(ScheduleBuilder* builder, const Party& party, int root,
                     const std::vector<Range>& blocks_at_root, const Range& own) {
  if (party.self != root) {
    builder->Send(party.Rank(root), own);
    return;
  }
  for (int i = 0; i < party.size(); ++i) {
    if (i != root) {
      builder->Receive(party.Rank(i), At(blocks_at_root, i));
    }
  }
}

void AddLinearScatter(ScheduleBuilder* builder, const Party& party, int root,
                      const std::vector<Range>& blocks_at_root, const Range& own) {
  if (party.self != root) {
    builder->Receive(party.Rank(root), own);
    return;
  }
  for (int i = 1; i < party.size(); ++i) {
    const int to = (root + i) % party.size();
    builder->Send(party.Rank(to), At(blocks_at_root, to));
  }
}

}  // namespace ferry::collective
