#include <algorithm>
#include <cstdint>
#include <string>

#include "client/mpi/topology/cartesian.h"
#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

std::vector<int> Divisors(int value) {
  std::vector<int> divisors;
  for (int64_t low = 1; low * low <= value; ++low) {
    if (value % low == 0) {
      divisors.push_back(static_cast<int>(low));
      if (low * low != value) {
        divisors.push_back(static_cast<int>(value / low));
      }
    }
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// Whether base^exponent >= bound.
bool PowerReaches(int64_t base, int exponent, int64_t bound) {
  int64_t power = 1;
  for (int i = 0; i < exponent && power < bound; ++i) {
    if (base == 1) {
      break;
    }
    power *= base;
  }
  return power >= bound;
}

// The largest value whose `count`th power is at most `product`: no smallest factor is larger.
int RootBelow(int product, int count) {
  int low = 1;
  int high = product;
  while (low < high) {
    int middle = low + (high - low + 1) / 2;
    if (PowerReaches(middle, count, int64_t{product} + 1)) {
      high = middle - 1;
    } else {
      low = middle;
    }
  }
  return low;
}

// Looks through the ways to write a product, factors in descending order, and keeps the best.
class FactorSearch {
 public:
  FactorSearch(int product, int count) : divisors_(Divisors(product)), chosen_(count) {
    Choose(0, product);
  }
  std::vector<int> best() const { return best_; }

 private:
  // Chooses factor `at` and those after it; they are to make `product`.
  void Choose(size_t at, int product) {
    int left = static_cast<int>(chosen_.size() - at);
    if (left == 1) {
      chosen_[at] = product;
      Keep();
      return;
    }
    int most = at == 0 ? product : chosen_[at - 1];
    int smallest_at_most = RootBelow(product, left);
    // Ascending, so that the first one found with a difference has the smallest largest factor.
    for (auto divisor = std::lower_bound(divisors_.begin(), divisors_.end(), smallest_at_most);
         divisor != divisors_.end() && *divisor <= most; ++divisor) {
      if (product % *divisor != 0 || !PowerReaches(*divisor, left, product)) {
        continue;
      }
      int largest = at == 0 ? *divisor : chosen_[0];
      if (!best_.empty() && largest - smallest_at_most >= best_.front() - best_.back()) {
        return;  // for larger divisors too
      }
      chosen_[at] = *divisor;
      Choose(at + 1, product / *divisor);
    }
  }

  void Keep() {
    if (best_.empty() || chosen_.front() - chosen_.back() < best_.front() - best_.back()) {
      best_ = chosen_;
    }
  }

  std::vector<int> divisors_;
  std::vector<int> chosen_;
  std::vector<int> best_;
};

}  // namespace

std::vector<int> BalancedFactors(int product, int count) {
  return FactorSearch(product, count).best();
}

Failure CreateDims(int process_count, std::span<int> dims) {
  if (process_count < 1) {
    return Failure{MPI_ERR_ARG,
                   "nnodes is " + std::to_string(process_count) + "; at least 1 is needed"};
  }
  int64_t fixed = 1;
  int open = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return Failure{MPI_ERR_DIMS, "dims[" + std::to_string(i) + "] is " + std::to_string(dims[i])};
    }
    open += dims[i] == 0 ? 1 : 0;
    fixed *= dims[i] == 0 ? 1 : dims[i];
    if (fixed > process_count) {
      break;
    }
  }
  if (fixed > process_count || process_count % fixed != 0 ||
      (open == 0 && !dims.empty() && fixed != process_count)) {
    return Failure{MPI_ERR_DIMS, "the extents given do not divide nnodes " +
                                     std::to_string(process_count) + " into a grid"};
  }
  if (open > 0) {
    std::vector<int> factors = BalancedFactors(static_cast<int>(process_count / fixed), open);
    auto next = factors.begin();
    for (int& extent : dims) {
      if (extent == 0) {
        extent = *next++;
      }
    }
  }
  return Failure{};
}

}  // namespace ferry::mpi
