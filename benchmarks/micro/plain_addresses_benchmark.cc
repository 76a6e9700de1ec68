// Measures the time that each buffer of a call costs before its kind is known: the question if CPUs
// surely reach it, without a GPU vendor's library and with one.
#include <benchmark/benchmark.h>

#include <memory>

#include "client/api/plain_addresses.h"

namespace ferry::client {
namespace {

int in_image = 0;

void Ask(benchmark::State& state, const PlainAddresses& addresses, const void* pointer) {
  for (auto step : state) {
    benchmark::DoNotOptimize(pointer);
    benchmark::DoNotOptimize(addresses.IsPlain(pointer));
  }
}

void WithoutVendor(benchmark::State& state) {
  const void* word = nullptr;
  PlainAddresses addresses;
  addresses.Watch(&word);
  const auto on_heap = std::make_unique<int>();
  Ask(state, addresses, on_heap.get());
}
BENCHMARK(WithoutVendor);

void WithVendor(benchmark::State& state, const void* pointer) {
  PlainAddresses addresses;
  addresses.Watch(nullptr);
  Ask(state, addresses, pointer);
}
BENCHMARK_CAPTURE(WithVendor, image, &in_image);

void WithVendorOnHeap(benchmark::State& state) {
  const auto on_heap = std::make_unique<int>();
  WithVendor(state, on_heap.get());
}
BENCHMARK(WithVendorOnHeap);

void WithVendorOnStack(benchmark::State& state) {
  int on_stack = 0;
  WithVendor(state, &on_stack);
}
BENCHMARK(WithVendorOnStack);

// Then the vendor is asked.
void WithVendorElsewhere(benchmark::State& state) {
  WithVendor(state, reinterpret_cast<const void*>(uintptr_t{1} << 46));
}
BENCHMARK(WithVendorElsewhere);

}  // namespace
}  // namespace ferry::client
