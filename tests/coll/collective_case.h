// Collectives with data, and their expected results, computed the simple way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coll/messenger.h"
#include "coll/problem.h"

namespace ferry::collective {

struct CaseSpec {
  Collective collective = Collective::kBarrier;
  int size = 1;
  size_t count = 0;  // elements: of the vector, or of a block
  int root = 0;
  bool in_place = false;
  bool commutative = true;
  bool has_blocks = false;  // blocks have their own sizes and places
  size_t segment_bytes = 0;
  std::vector<int> node_of = {};
  uint64_t seed = 1;

  std::string Text() const;
};

// Return true if the collective reduces, has a form with MPI_IN_PLACE, or one with blocks of their
// own sizes.
bool IsReduction(Collective collective);
bool HasInPlace(Collective collective);
bool HasBlocks(Collective collective);

// One rank's part of the case.
struct CaseRank {
  Problem problem;
  std::vector<uint8_t> input;
  std::vector<uint8_t> output;
  std::vector<uint8_t> expected;  // the whole expected output
};

// Ignored for a collective without in-place or explicit blocks.
std::vector<CaseRank> MakeCase(const CaseSpec& spec);

// Elements of reductions: `commutative` ones are sums of 64-bit words; the others compose functions
// x -> a x + b on such words, which is only associative.
inline constexpr size_t kSumBytes = 8;
inline constexpr size_t kCompositionBytes = 16;
class CaseReducer : public Reducer {
 public:
  explicit CaseReducer(bool commutative) : commutative_(commutative) {}
  ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) override;

 private:
  const bool commutative_;
};

}  // namespace ferry::collective
