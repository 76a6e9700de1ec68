#include "mpi/io/file_domains.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "mpi/datatype/order.h"

namespace ferry::mpi {
namespace {

constexpr int64_t kLongPiece = 32 << 10;
// A read's piece counts as long from here on where the file system's own cache is near.
constexpr int64_t kLongLocalRead = 1 << 10;
// So few pieces take less time than the ranks' waits for each other.
constexpr int64_t kFewPieces = 16;
// A collective access is sparse if less than one in so many bytes of its span is accessed.
constexpr int64_t kSparse = 8;
constexpr int64_t kMostReaders = 4;
// To write pieces of this length and longer, which have no page in common, takes no longer there
// than to send them to another node.
constexpr int64_t kLongLocalWrite = 4 << 10;

// Where nodes share a machine, each of them reads what lies in its page cache as fast as it would
// be sent.
int64_t LongPieceToExchange(bool is_write, bool is_local) {
  return !is_local ? kLongPiece : is_write ? kLongLocalWrite : 0;
}

// Sums up the facts of the ranks with data.
struct Sum {
  int ranks = 0;
  int64_t bytes = 0;
  int64_t pieces = 0;
  int64_t spanned = 0;  // of the bytes between the first and the last one of some rank
  int64_t low = kNowhere;
  int64_t high = 0;
  int grain_shift = kMostGrainShift;
  bool is_sorted = true;
  bool is_fit = true;
  bool may_exchange = true;
  bool is_local = true;
  bool is_interleaved = false;
};

Sum SumOf(std::span<const AccessFacts> ranks) {
  std::vector<const AccessFacts*> with_data;
  Sum sum;
  for (const AccessFacts& facts : ranks) {
    sum.is_fit = sum.is_fit && facts.is_fit;
    sum.may_exchange = sum.may_exchange && facts.may_exchange;
    sum.is_local = sum.is_local && facts.is_local;
    if (facts.bytes > 0) {
      with_data.push_back(&facts);
    }
  }
  std::sort(with_data.begin(), with_data.end(),
            [](const AccessFacts* a, const AccessFacts* b) { return a->low < b->low; });
  for (const AccessFacts* facts : with_data) {
    sum.ranks++;
    sum.bytes += facts->bytes;
    sum.pieces += facts->bytes / std::max<int64_t>(facts->piece_bytes, 1);
    sum.low = std::min(sum.low, facts->low);
    sum.is_interleaved = sum.is_interleaved || facts->low < sum.high;
    sum.spanned += std::max<int64_t>(facts->high - std::max(facts->low, sum.high), 0);
    sum.high = std::max(sum.high, facts->high);
    sum.grain_shift = std::min<int>(sum.grain_shift, facts->grain_shift);
    sum.is_sorted = sum.is_sorted && facts->is_sorted;
  }
  return sum;
}

bool Pays(const Sum& sum, int64_t long_piece) {
  return sum.is_interleaved && sum.pieces > kFewPieces && sum.bytes / sum.pieces < long_piece &&
         sum.spanned / kSparse <= sum.bytes;
}

// Returns true if bytes of some node lie between those of another.
bool AreInterleaved(std::vector<NodeSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const NodeSpan& a, const NodeSpan& b) { return a.low < b.low; });
  int64_t high = 0;
  for (const NodeSpan& span : spans) {
    if (span.low < high) {
      return true;
    }
    high = std::max(high, span.high);
  }
  return false;
}

int64_t AlignUp(int64_t bytes) {
  return (bytes + kStretchAlignment - 1) / kStretchAlignment * kStretchAlignment;
}

}  // namespace

int64_t LongPiece(bool is_write, bool is_local) {
  return !is_write && is_local ? kLongLocalRead : kLongPiece;
}

int64_t StretchBytesFor(int64_t buffer_bytes) {
  return std::clamp(buffer_bytes / kStretches / kStretchAlignment * kStretchAlignment,
                    kLeastStretch, kMostStretch);
}

NodePlan PlanFor(std::span<const AccessFacts> ranks, const AccessFacts& hints, bool is_write) {
  NodePlan plan;
  const Sum sum = SumOf(ranks);
  if (!sum.is_fit || !sum.is_sorted || sum.ranks == 0 || ranks.size() < 2 ||
      hints.buffering == Switch::kDisable ||
      (hints.buffering == Switch::kAutomatic && !Pays(sum, LongPiece(is_write, sum.is_local)))) {
    return plan;
  }
  plan.is_buffered = true;
  plan.grain_shift = sum.grain_shift;
  plan.low = sum.low;
  // Smaller accesses are cut up, too, so that ranks copy while others access the file.
  plan.stretch_bytes = std::clamp(AlignUp((sum.high - sum.low) / (2 * kStretches)), kLeastStretch,
                                  StretchBytesFor(hints.buffer_bytes));
  // Ext4, XFS and tmpfs let one process write a file at a time.
  const int64_t usual = is_write ? 1 : kMostReaders;
  plan.aggregators = static_cast<int>(std::min<int64_t>(
      hints.aggregators == 0 ? usual : hints.aggregators, static_cast<int64_t>(ranks.size())));
  return plan;
}

bool PlanExchange(std::span<const std::vector<AccessFacts>> nodes, const AccessFacts& hints,
                  int64_t most_bytes, bool is_write, NodePlan* plan) {
  std::vector<AccessFacts> all;
  std::vector<NodeSpan> spans;
  for (const std::vector<AccessFacts>& ranks : nodes) {
    all.insert(all.end(), ranks.begin(), ranks.end());
    const Sum node = SumOf(ranks);
    spans.push_back({node.low, node.high});
  }
  const Sum sum = SumOf(all);
  // The cells between the first byte and the last one are all gone through.
  if (!sum.is_fit || !sum.may_exchange || !sum.is_sorted || sum.ranks == 0 ||
      !AreInterleaved(spans) || sum.spanned / kSparse > sum.bytes ||
      sum.high > kNowhere - 2 * kMostStretch || hints.buffering == Switch::kDisable ||
      (hints.buffering == Switch::kAutomatic &&
       !Pays(sum, LongPieceToExchange(is_write, sum.is_local)))) {
    return false;
  }
  const auto count = static_cast<int64_t>(nodes.size());
  int64_t cell =
      std::clamp((sum.high - sum.low) / (2 * kStretches * count), kLeastStretch, most_bytes);
  cell = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(cell)));
  const int64_t unit = hints.striping_unit;
  const bool is_striped = unit > 0 && unit % kLeastStretch == 0;
  plan->is_buffered = true;
  plan->is_exchanged = true;
  plan->grain_shift = sum.grain_shift;
  plan->low = sum.low;
  plan->stretch_bytes = is_striped ? std::gcd(cell, unit) : cell;
  plan->unit_bytes = is_striped ? unit : cell;
  plan->aggregators = 1;
  plan->nodes = std::move(spans);
  return true;
}

int64_t FirstPositionAt(const View& view, int64_t place, int64_t from, int64_t to) {
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    if (view.PlaceOf(middle) < place) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

ViewShape ShapeOf(const View& view) {
  if (view.is_empty()) {
    return {.is_sorted = true};
  }
  const RunOrder order = OrderOf(view.filetype());
  return {order.is_monotone && order.is_disjoint &&
              order.high - order.first <= view.filetype().extent(),
          std::gcd(order.grain, order.first), order.grain};
}

void DescribeAccess(const View& view, const ViewShape& shape, int64_t position, int64_t bytes,
                    AccessFacts* facts) {
  facts->least_piece = view.is_dense() || view.is_empty() ? kNowhere : shape.least_piece;
  facts->is_sorted = shape.is_sorted || bytes == 0;
  facts->bytes = bytes;
  if (bytes == 0) {
    return;
  }
  facts->low = view.PlaceOf(position);
  facts->high = view.PlaceOf(position + bytes - 1) + 1;
  const int64_t tile = view.filetype().size_bytes();
  int64_t grain = std::gcd(facts->low, bytes);
  if (!view.is_dense()) {
    grain = std::gcd(std::gcd(shape.grain, view.displacement()), std::gcd(position, bytes));
    if ((position + bytes - 1) / tile != 0) {
      grain = std::gcd(grain, view.filetype().extent());
    }
  }
  facts->grain_shift = static_cast<int8_t>(
      std::min(std::countr_zero(static_cast<uint64_t>(grain)), kMostGrainShift));
  // A look at the first pieces: more of them while they are long.
  int64_t pieces = 0;
  int64_t looked_at = 2 << 10;
  for (;;) {
    const int64_t now = std::min(bytes, looked_at);
    pieces = 0;
    view.ForEachPiece(position, now,
                      [&pieces](int64_t /*place*/, int64_t /*length*/) { ++pieces; });
    facts->piece_bytes = now / pieces;
    if (pieces > 4 || now == bytes || looked_at > 16 * kLongPiece) {
      return;
    }
    looked_at *= 8;
  }
}

}  // namespace ferry::mpi
