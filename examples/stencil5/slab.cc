#include "examples/stencil5/slab.h"

#include <cmath>
#include <utility>

#include "examples/common/five_point.h"

namespace stencil5 {
namespace {

enum Tag { kUpwards, kDownwards };

size_t Points(int rows, int width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

void Fill(int width, int first_row, int rows, double* values) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < width; ++column) {
      values[Points(row, width) + static_cast<size_t>(column)] =
          InitialValue(column, first_row + row);
    }
  }
}

}  // namespace

double InitialValue(int column, int row) { return std::fmod(column * 0.618 + row * 0.7548, 1.0); }

Slab::Slab(int width, int height, int ranks, int rank, examples::Memory memory, int threads)
    : width_(width),
      range_(examples::RangeOf(height, ranks, rank)),
      ranks_(ranks),
      rank_(rank),
      threads_(threads),
      current_(Points(range_.count + 2, width), memory),
      next_(Points(range_.count + 2, width), memory) {
  // The edge must be right in both; no step writes it.
  Fill(width_, range_.first - 1, range_.count + 2, current_.data());
  Fill(width_, range_.first - 1, range_.count + 2, next_.data());
}

const std::vector<examples::Face>& Slab::PackFaces() {
  const auto count = static_cast<size_t>(width_);
  faces_.clear();
  if (rank_ > 0) {
    faces_.push_back({Row(1), Row(0), count, rank_ - 1, kUpwards, kDownwards});
  }
  if (rank_ < ranks_ - 1) {
    faces_.push_back(
        {Row(range_.count), Row(range_.count + 1), count, rank_ + 1, kDownwards, kUpwards});
  }
  return faces_;
}

void Slab::ComputeRest() {
  Compute(1, 2);
  if (range_.count > 1) {
    Compute(range_.count, range_.count + 1);
  }
  std::swap(current_, next_);
}

std::vector<double> Slab::Values() const { return {Row(1), Row(range_.count + 1)}; }

double* Slab::Row(int row) const { return current_.data() + Points(row, width_); }

void Slab::Compute(int first, int last) {
#pragma omp parallel for num_threads(threads_) \
    schedule(static) if (threads_ > 1 && last - first > 1)
  for (int row = first; row < last; ++row) {
    examples::JacobiRows(current_.data(), next_.data(), width_, row, row + 1);
  }
}

std::unique_ptr<Plane> Plane::Make(const examples::StencilArguments& arguments, int ranks,
                                   int threads, std::string* mistake) {
  const auto [width, height, ignored] = arguments.points;
  if (height - 2 < ranks) {
    *mistake = std::to_string(ranks) + " ranks need at least " + std::to_string(ranks + 2) +
               " rows, one each and the fixed edge, but --size is " +
               examples::TimesText(arguments.points, 2) + ": make it larger, or run fewer ranks";
    return nullptr;
  }
  return std::unique_ptr<Plane>(new Plane(width, height, ranks, threads, arguments.memory));
}

std::string Plane::Describe() const {
  return std::to_string(width_) + " x " + std::to_string(height_) + " points, " +
         std::to_string(ranks_) + " ranks of " + std::to_string(threads_) + " thread(s)";
}

std::unique_ptr<examples::Part> Plane::MakePart(int rank) const {
  return std::make_unique<Slab>(width_, height_, ranks_, rank, memory_, threads_);
}

std::vector<double> Plane::SolveSerially(int iterations) const {
  std::vector<double> current(Points(height_, width_));
  Fill(width_, 0, height_, current.data());
  std::vector<double> next = current;
  for (int i = 0; i < iterations; ++i) {
    examples::JacobiRows(current.data(), next.data(), width_, 1, height_ - 1);
    std::swap(current, next);
  }
  return current;
}

std::vector<double> Plane::ValuesOf(const std::vector<double>& all, int rank) const {
  const examples::Range range = examples::RangeOf(height_, ranks_, rank);
  const double* first = all.data() + Points(range.first, width_);
  return {first, first + Points(range.count, width_)};
}

double Plane::PointsPerIteration() const { return static_cast<double>(width_ - 2) * (height_ - 2); }

}  // namespace stencil5
