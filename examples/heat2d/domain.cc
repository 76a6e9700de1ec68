#include "examples/heat2d/domain.h"

#include <utility>
#include <vector>

#include "examples/common/five_point.h"

namespace heat2d {
namespace {

enum Tag { kScatter, kUpwards, kDownwards, kGather, kSum };

size_t PaddedSize(const examples::Range& slab, int width) {
  return static_cast<size_t>(slab.count + 2) * static_cast<size_t>(width);
}

}  // namespace

Domain::Domain(const ferry::Session& session, const Image& initial)
    : rank_(session.rank()),
      ranks_(session.size()),
      width_(initial.width),
      height_(initial.height),
      slab_(examples::RangeOf(height_, ranks_, rank_)),
      current_(PaddedSize(slab_, width_), FERRY_MEMORY_DEVICE),
      next_(PaddedSize(slab_, width_), FERRY_MEMORY_DEVICE) {
  std::vector<ferry::Request> requests;
  requests.push_back(ferry::Request::Receive(current_.data(), current_.size_bytes(), 0, kScatter));
  for (int rank = 0; rank_ == 0 && rank < ranks_; ++rank) {
    const examples::Range slab = examples::RangeOf(height_, ranks_, rank);
    const double* first =
        initial.values.data() + static_cast<size_t>(slab.first - 1) * static_cast<size_t>(width_);
    requests.push_back(ferry::Request::Send(first, RowsBytes(slab.count + 2), rank, kScatter));
  }
  for (ferry::Request& request : requests) {
    request.Wait();
  }
  // The edges must be right in both buffers; no step writes them.
  ferry::Check(ferry_memcpy(next_.data(), current_.data(), current_.size_bytes()));
}

void Domain::Step() {
  const int last = slab_.count;
  std::vector<ferry::Request> requests;
  if (rank_ > 0) {
    requests.push_back(
        ferry::Request::Receive(Row(current_, 0), RowsBytes(1), rank_ - 1, kDownwards));
    requests.push_back(ferry::Request::Send(Row(current_, 1), RowsBytes(1), rank_ - 1, kUpwards));
  }
  if (rank_ < ranks_ - 1) {
    requests.push_back(
        ferry::Request::Receive(Row(current_, last + 1), RowsBytes(1), rank_ + 1, kUpwards));
    requests.push_back(
        ferry::Request::Send(Row(current_, last), RowsBytes(1), rank_ + 1, kDownwards));
  }
  examples::JacobiRows(current_.data(), next_.data(), width_, 2, last);
  for (ferry::Request& request : requests) {
    request.Wait();
  }
  examples::JacobiRows(current_.data(), next_.data(), width_, 1, 2);
  if (last > 1) {
    examples::JacobiRows(current_.data(), next_.data(), width_, last, last + 1);
  }
  std::swap(current_, next_);
}

void Domain::Gather(Image* result) const {
  ferry::Request send = ferry::Request::Send(Row(current_, 1), RowsBytes(slab_.count), 0, kGather);
  for (int rank = 0; rank_ == 0 && rank < ranks_; ++rank) {
    const examples::Range slab = examples::RangeOf(height_, ranks_, rank);
    double* rows =
        result->values.data() + static_cast<size_t>(slab.first) * static_cast<size_t>(width_);
    ferry::Request::Receive(rows, RowsBytes(slab.count), rank, kGather).Wait();
  }
  send.Wait();
}

double Domain::Sum() const {
  double mine = 0;
  for (const double* value = Row(current_, 1); value != Row(current_, slab_.count + 1); ++value) {
    mine += *value;
  }
  double all = 0;
  ferry::Request send = ferry::Request::Send(&mine, sizeof(mine), 0, kSum);
  for (int rank = 0; rank_ == 0 && rank < ranks_; ++rank) {
    double theirs = 0;
    ferry::Request::Receive(&theirs, sizeof(theirs), rank, kSum).Wait();
    all += theirs;
  }
  send.Wait();
  return all;
}

}  // namespace heat2d
