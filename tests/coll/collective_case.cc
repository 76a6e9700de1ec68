#include "tests/coll/collective_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace ferry::collective {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t kUntouched = 0xab;
constexpr size_t kMoveBytes = 3;  // element of collectives that only move data

class Maker {
 public:
  explicit Maker(const CaseSpec& spec)
      : spec_(spec), random_(spec.seed), n_(static_cast<size_t>(spec.size)), ranks_(n_) {
    element_ = !IsReduction(spec.collective) ? kMoveBytes
               : spec.commutative            ? kSumBytes
                                             : kCompositionBytes;
    bytes_ = spec.count * element_;
    for (size_t i = 0; i < n_; ++i) {
      Problem& problem = ranks_[i].problem;
      problem.collective = spec.collective;
      problem.rank = static_cast<int>(i);
      problem.size = spec.size;
      problem.root = spec.root;
      problem.element_bytes = element_;
      problem.commutative = spec.commutative;
      problem.node_of = spec.node_of;
      problem.segment_bytes = spec.segment_bytes;
      problem.block_bytes = bytes_;
    }
  }

  std::vector<CaseRank> Make();

 private:
  CaseRank& Root() { return ranks_[spec_.root]; }
  Bytes Random(size_t size) {
    Bytes bytes(size);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
      const uint64_t eight = random_();
      std::memcpy(bytes.data() + at, &eight, std::min(sizeof(eight), size - at));
    }
    return bytes;
  }
  std::vector<size_t> RandomSizes();
  // Places for blocks of these sizes: in any order, with gaps. Returns the bytes they span.
  size_t Place(const std::vector<size_t>& sizes, std::vector<Block>* blocks);
  std::vector<Bytes> RandomVectors(size_t size) {
    std::vector<Bytes> vectors(n_);
    std::generate(vectors.begin(), vectors.end(), [&] { return Random(size); });
    return vectors;
  }
  // The reduction of the vectors of ranks 0 .. last.
  Bytes Reduced(const std::vector<Bytes>& vectors, size_t last) {
    CaseReducer reducer(spec_.commutative);
    Bytes sum = vectors[0];
    for (size_t i = 1; i <= last; ++i) {
      reducer.Reduce(sum.data(), vectors[i].data(), sum.data(), sum.size() / element_);
    }
    return sum;
  }
  static void Put(const Bytes& bytes, const Block& block, Bytes* into) {
    std::copy(bytes.begin(), bytes.end(),
              into->begin() + static_cast<ptrdiff_t>(block.offset_bytes));
  }

  void MakeBcast();
  void MakeGather(bool to_all);
  void MakeScatter();
  void MakeAlltoall();
  void MakeReduction();
  void MakeReduceScatter();
  void MakeScan(bool inclusive);

  const CaseSpec& spec_;
  std::mt19937_64 random_;
  const size_t n_;
  size_t element_ = 1;
  size_t bytes_ = 0;
  std::vector<CaseRank> ranks_;
};

std::vector<size_t> Maker::RandomSizes() {
  std::vector<size_t> sizes(n_);
  for (size_t& size : sizes) {
    size = spec_.has_blocks ? random_() % (spec_.count + 1) * element_ : bytes_;
  }
  return sizes;
}

size_t Maker::Place(const std::vector<size_t>& sizes, std::vector<Block>* blocks) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (spec_.has_blocks) {
    std::shuffle(order.begin(), order.end(), random_);
  }
  blocks->resize(sizes.size());
  size_t offset = 0;
  for (const size_t i : order) {
    offset += spec_.has_blocks ? random_() % 4 : 0;
    (*blocks)[i] = {offset, sizes[i]};
    offset += sizes[i];
  }
  return offset;
}

void Maker::MakeBcast() {
  for (CaseRank& rank : ranks_) {
    rank.output.assign(bytes_, kUntouched);
  }
  Root().output = Random(bytes_);
  for (CaseRank& rank : ranks_) {
    rank.expected = Root().output;
  }
}

void Maker::MakeGather(bool to_all) {
  const std::vector<size_t> sizes = RandomSizes();
  std::vector<Bytes> data;
  for (size_t i = 0; i < n_; ++i) {
    data.push_back(Random(sizes[i]));
  }
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    const bool gets = to_all || &rank == &Root();
    rank.problem.in_place = spec_.in_place && gets;
    rank.problem.block_bytes = sizes[r];
    rank.problem.has_blocks = spec_.has_blocks;
    rank.input = rank.problem.in_place ? Bytes() : data[r];
    if (!gets) {
      continue;
    }
    std::vector<Block> blocks;
    rank.output.assign(Place(sizes, &blocks), kUntouched);
    rank.expected = rank.output;
    for (size_t i = 0; i < n_; ++i) {
      Put(data[i], blocks[i], &rank.expected);
    }
    if (rank.problem.in_place) {
      Put(data[r], blocks[r], &rank.output);
    }
    if (spec_.has_blocks) {
      rank.problem.receive_blocks = blocks;
    }
  }
}

void Maker::MakeScatter() {
  const std::vector<size_t> sizes = RandomSizes();
  std::vector<Block> blocks;
  const Bytes all = Random(Place(sizes, &blocks));
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    rank.problem.has_blocks = spec_.has_blocks;
    rank.problem.block_bytes = sizes[r];
    const auto begin = all.begin() + static_cast<ptrdiff_t>(blocks[r].offset_bytes);
    rank.output.assign(sizes[r], kUntouched);
    rank.expected.assign(begin, begin + static_cast<ptrdiff_t>(sizes[r]));
  }
  Root().input = all;
  if (spec_.has_blocks) {
    Root().problem.send_blocks = blocks;
  }
  if (spec_.in_place) {
    Root().problem.in_place = true;
    Root().output.clear();
    Root().expected.clear();
  }
}

void Maker::MakeAlltoall() {
  // sizes[from][to]; in place, both directions are alike.
  std::vector<std::vector<size_t>> sizes;
  for (size_t i = 0; i < n_; ++i) {
    sizes.push_back(RandomSizes());
    for (size_t j = 0; j < i && spec_.in_place; ++j) {
      sizes[i][j] = sizes[j][i];
    }
  }
  std::vector<std::vector<Bytes>> data(n_);
  for (size_t from = 0; from < n_; ++from) {
    for (size_t to = 0; to < n_; ++to) {
      data[from].push_back(Random(sizes[from][to]));
    }
  }
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    std::vector<size_t> incoming(n_);
    for (size_t i = 0; i < n_; ++i) {
      incoming[i] = sizes[i][r];
    }
    std::vector<Block> out;
    std::vector<Block> in;
    rank.input.assign(Place(sizes[r], &out), kUntouched);
    rank.output.assign(Place(incoming, &in), kUntouched);
    rank.expected = rank.output;
    for (size_t i = 0; i < n_; ++i) {
      Put(data[r][i], out[i], &rank.input);
      Put(data[i][r], in[i], &rank.expected);
      if (spec_.in_place) {
        Put(data[r][i], in[i], &rank.output);
      }
    }
    rank.problem.in_place = spec_.in_place;
    rank.problem.has_blocks = spec_.has_blocks;
    if (spec_.has_blocks) {
      rank.problem.send_blocks = out;
      rank.problem.receive_blocks = in;
    }
    if (spec_.in_place) {
      rank.input.clear();
    }
  }
}

void Maker::MakeReduction() {
  const std::vector<Bytes> vectors = RandomVectors(bytes_);
  const Bytes sum = Reduced(vectors, n_ - 1);
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    const bool gets = spec_.collective == Collective::kAllreduce || &rank == &Root();
    rank.problem.in_place = spec_.in_place && gets;
    (rank.problem.in_place ? rank.output : rank.input) = vectors[r];
    if (gets) {
      rank.output.resize(bytes_, kUntouched);
      rank.expected = sum;
    }
  }
}

void Maker::MakeReduceScatter() {
  const std::vector<size_t> sizes = RandomSizes();
  std::vector<Block> parts;
  size_t offset = 0;
  for (const size_t size : sizes) {
    parts.push_back({offset, size});
    offset += size;
  }
  const std::vector<Bytes> vectors = RandomVectors(offset);
  const Bytes sum = Reduced(vectors, n_ - 1);
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    rank.problem.in_place = spec_.in_place;
    rank.problem.has_blocks = spec_.has_blocks;
    if (spec_.has_blocks) {
      rank.problem.receive_blocks = parts;
    }
    const auto begin = sum.begin() + static_cast<ptrdiff_t>(parts[r].offset_bytes);
    rank.expected.assign(begin, begin + static_cast<ptrdiff_t>(sizes[r]));
    if (spec_.in_place) {
      rank.output = vectors[r];
    } else {
      rank.input = vectors[r];
      rank.output.assign(sizes[r], kUntouched);
    }
  }
}

void Maker::MakeScan(bool inclusive) {
  const std::vector<Bytes> vectors = RandomVectors(bytes_);
  for (size_t r = 0; r < n_; ++r) {
    CaseRank& rank = ranks_[r];
    rank.problem.in_place = spec_.in_place;
    rank.output = spec_.in_place ? vectors[r] : Bytes(bytes_, kUntouched);
    rank.input = spec_.in_place ? Bytes() : vectors[r];
    if (inclusive || r > 0) {
      rank.expected = Reduced(vectors, inclusive ? r : r - 1);
    } else {
      rank.expected = rank.output;  // rank 0's output stays as it is
    }
  }
}

std::vector<CaseRank> Maker::Make() {
  switch (spec_.collective) {
    case Collective::kBcast:
      MakeBcast();
      break;
    case Collective::kGather:
      MakeGather(false);
      break;
    case Collective::kAllgather:
      MakeGather(true);
      break;
    case Collective::kScatter:
      MakeScatter();
      break;
    case Collective::kAlltoall:
      MakeAlltoall();
      break;
    case Collective::kReduce:
    case Collective::kAllreduce:
      MakeReduction();
      break;
    case Collective::kReduceScatter:
      MakeReduceScatter();
      break;
    case Collective::kScan:
    case Collective::kExscan:
      MakeScan(spec_.collective == Collective::kScan);
      break;
    case Collective::kBarrier:
    case Collective::kNeighbourAllgather:
    case Collective::kNeighbourAlltoall:
      break;
  }
  return std::move(ranks_);
}

}  // namespace

bool IsReduction(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce ||
         collective == Collective::kReduceScatter || collective == Collective::kScan ||
         collective == Collective::kExscan;
}

bool HasInPlace(Collective collective) {
  return collective != Collective::kBarrier && collective != Collective::kBcast;
}

bool HasBlocks(Collective collective) {
  return collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllgather || collective == Collective::kAlltoall ||
         collective == Collective::kReduceScatter;
}

std::string CaseSpec::Text() const {
  std::string text = std::string(CollectiveName(collective)) + " size " + std::to_string(size) +
                     " count " + std::to_string(count) + " root " + std::to_string(root) +
                     " segment " + std::to_string(segment_bytes) + " seed " + std::to_string(seed);
  text += in_place ? " in place" : "";
  text += commutative ? "" : " not commutative";
  text += has_blocks ? " blocks" : "";
  text += " nodes";
  for (const int node : node_of) {
    text += " " + std::to_string(node);
  }
  return text;
}

std::vector<CaseRank> MakeCase(const CaseSpec& spec) { return Maker(spec).Make(); }

ErrorCode CaseReducer::Reduce(const void* left, const void* right, void* to, size_t count) {
  const size_t words = commutative_ ? 1 : 2;
  for (size_t i = 0; i < count; ++i) {
    uint64_t a[2] = {};
    uint64_t b[2] = {};
    const size_t offset = i * words * sizeof(uint64_t);
    std::memcpy(a, static_cast<const char*>(left) + offset, words * sizeof(uint64_t));
    std::memcpy(b, static_cast<const char*>(right) + offset, words * sizeof(uint64_t));
    const uint64_t result[2] = {commutative_ ? a[0] + b[0] : a[0] * b[0], a[0] * b[1] + a[1]};
    std::memcpy(static_cast<char*>(to) + offset, result, words * sizeof(uint64_t));
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::collective
