// Packing elements with gaps, beside a list with one entry for each run of bytes, copied by memcpy.
#include <benchmark/benchmark.h>

#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "mpi/datatype/constructors.h"

namespace ferry::mpi {
namespace {

constexpr CountForm kForm = CountForm::kInt;

Ref<Datatype> Named(MPI_Datatype handle) { return MakeRef<Datatype>(*FindBasicType(handle)); }
Ref<Datatype> Take(MadeDatatype made) { return std::move(made).value(); }

// Each pattern: a type, and how many elements have about 256 KiB of data.
struct Pattern {
  Ref<Datatype> type;
  int64_t count;
};

constexpr int64_t kBytes = 256 * 1024;

// A column of a matrix of doubles.
Pattern Column() { return {Take(MakeVector(kForm, kBytes / 8, 1, 16, *Named(MPI_DOUBLE))), 1}; }

// Half of each row.
Pattern Rows() {
  return {
      Take(MakeSubarray(kForm, {64, 1024}, {64, 512}, {0, 100}, MPI_ORDER_C, *Named(MPI_DOUBLE))),
      1};
}

// A face of a cube, across its rows: runs of two doubles.
Pattern Face() {
  return {Take(MakeSubarray(kForm, {128, 128, 64}, {128, 128, 1}, {0, 0, 3}, MPI_ORDER_C,
                            *Take(MakeContiguous(kForm, 2, *Named(MPI_DOUBLE))))),
          1};
}

// {int, double} with the gap that C puts between them.
Pattern Structs() {
  const Ref<Datatype> number = Named(MPI_INT);
  const Ref<Datatype> value = Named(MPI_DOUBLE);
  return {Take(MakeStruct(kForm, {1, 1}, {0, 8}, {number.get(), value.get()})), kBytes / 12};
}

// Blocks of one to eight ints at places without a rule.
Pattern Scattered() {
  std::mt19937 random(1);
  Counts lengths;
  Counts places;
  int64_t at = 0;
  for (int64_t bytes = 0; bytes < kBytes; bytes += 4 * lengths.back()) {
    lengths.push_back(1 + static_cast<int64_t>(random() % 8));
    places.push_back(at += 1 + static_cast<int64_t>(random() % 8));
    at += lengths.back();
  }
  return {Take(MakeIndexed(kForm, lengths, places, *Named(MPI_INT))), 1};
}

class Memory {
 public:
  explicit Memory(const Pattern& pattern)
      : bytes_(static_cast<size_t>(pattern.type->Span(pattern.count).high)),
        packed_(static_cast<size_t>(pattern.count * pattern.type->size_bytes())) {
    std::iota(bytes_.begin(), bytes_.end(), char{0});
  }
  char* buffer() { return bytes_.data(); }
  char* packed() { return packed_.data(); }
  int64_t size() const { return static_cast<int64_t>(packed_.size()); }

 private:
  std::vector<char> bytes_;
  std::vector<char> packed_;
};

void Report(benchmark::State& state, const Memory& memory) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * memory.size());
}

template <Pattern (*kPattern)()>
void PackLoops(benchmark::State& state) {
  const Pattern pattern = kPattern();
  Memory memory(pattern);
  for ([[maybe_unused]] auto _ : state) {
    pattern.type->Pack(memory.buffer(), pattern.count, 0, memory.size(), memory.packed());
    benchmark::ClobberMemory();
  }
  Report(state, memory);
}

template <Pattern (*kPattern)()>
void PackList(benchmark::State& state) {
  const Pattern pattern = kPattern();
  Memory memory(pattern);
  std::vector<std::pair<int64_t, int64_t>> runs;
  pattern.type->ForEachRun(pattern.count, 0, memory.size(),
                           [&](int64_t at, int64_t length) { runs.emplace_back(at, length); });
  for ([[maybe_unused]] auto _ : state) {
    char* to = memory.packed();
    for (const auto& [at, length] : runs) {
      std::memcpy(to, memory.buffer() + at, static_cast<size_t>(length));
      to += length;
    }
    benchmark::ClobberMemory();
  }
  Report(state, memory);
}

template <Pattern (*kPattern)()>
void UnpackLoops(benchmark::State& state) {
  const Pattern pattern = kPattern();
  Memory memory(pattern);
  for ([[maybe_unused]] auto _ : state) {
    pattern.type->Unpack(memory.buffer(), pattern.count, 0, memory.size(), memory.packed());
    benchmark::ClobberMemory();
  }
  Report(state, memory);
}

BENCHMARK(PackLoops<Column>)->Name("Pack<Loops>/Column");
BENCHMARK(PackList<Column>)->Name("Pack<List>/Column");
BENCHMARK(UnpackLoops<Column>)->Name("Unpack<Loops>/Column");
BENCHMARK(PackLoops<Rows>)->Name("Pack<Loops>/Rows");
BENCHMARK(PackList<Rows>)->Name("Pack<List>/Rows");
BENCHMARK(UnpackLoops<Rows>)->Name("Unpack<Loops>/Rows");
BENCHMARK(PackLoops<Face>)->Name("Pack<Loops>/Face");
BENCHMARK(PackList<Face>)->Name("Pack<List>/Face");
BENCHMARK(UnpackLoops<Face>)->Name("Unpack<Loops>/Face");
BENCHMARK(PackLoops<Structs>)->Name("Pack<Loops>/Structs");
BENCHMARK(PackList<Structs>)->Name("Pack<List>/Structs");
BENCHMARK(UnpackLoops<Structs>)->Name("Unpack<Loops>/Structs");
BENCHMARK(PackLoops<Scattered>)->Name("Pack<Loops>/Scattered");
BENCHMARK(PackList<Scattered>)->Name("Pack<List>/Scattered");
BENCHMARK(UnpackLoops<Scattered>)->Name("Unpack<Loops>/Scattered");

}  // namespace
}  // namespace ferry::mpi
