// Two ranks, on one node or two, whose kernels on an OpenCL run time ask ferryd by a ring, and
// reach each other's memory by it.
#include "ferry/device/ring.h"

#include <cstdint>
#include <cstring>
#include <iostream>
#include <vector>

#include "ferry/device/ring_operations.h"
#include "ferry/device_ring.hpp"
#include "ferry/one_sided.h"
#include "tests/e2e/ranks/check.h"
#include "tests/opencl/ranks/shapes.h"
#include "tests/opencl/runtime.h"

namespace {

using ferry::opencl::Argument;
using ferry::opencl::LaunchShape;

constexpr size_t kBytes = 64 * 1024;

int Partner() { return ferry_rank() ^ 1; }

void CheckAll(const std::vector<uint32_t>& wrong, const LaunchShape& shape) {
  for (size_t i = 0; i < shape.groups * shape.size; ++i) {
    CHECK_EQ(wrong[i], 0);
  }
}

void Ask(ferry::opencl::Program& program, const ferry::DeviceRing& ring, const LaunchShape& shape,
         ferry_ring_counter* counter) {
  std::vector<uint32_t> wrong(shape.groups * shape.size, 99);
  const uint64_t before = counter->value;
  const auto rounds = static_cast<uint32_t>(shape.size > 16 ? 1 : 16 / shape.size);
  program.Launch(
      "ask", shape.groups, shape.size,
      {Argument::Pointer(ring.address()), Argument::Value(ring.Place(counter, sizeof(*counter))),
       Argument::Value(before), Argument::Value(rounds), Argument::Pointer(wrong.data())});
  CheckAll(wrong, shape);
  CHECK_EQ(counter->value, before + shape.groups * shape.size * rounds * 4);
}

// The rank's own memory, of which both ranks know where the other's is.
struct Memory {
  uint64_t* words = nullptr;
  ferry_device_far_place there{};
};

Memory Share() {
  Memory memory;
  void* bytes = nullptr;
  CHECK_OK(ferry_alloc(kBytes, FERRY_MEMORY_HOST, 0, &bytes));
  std::memset(bytes, 0, kBytes);
  memory.words = static_cast<uint64_t*>(bytes);
  ferry_place own{};
  ferry_place partners{};
  CHECK_OK(ferry_locate(bytes, kBytes, &own));
  ferry_request requests[2];
  CHECK_OK(ferry_irecv(&partners, sizeof(partners), Partner(), 1, &requests[0]));
  CHECK_OK(ferry_isend(&own, sizeof(own), Partner(), 1, &requests[1]));
  CHECK_OK(ferry_waitall(2, requests, nullptr));
  memory.there = {static_cast<ferry_device_u32>(partners.rank), partners.segment, partners.offset};
  return memory;
}

void Reach(ferry::opencl::Program& program, const ferry::DeviceRing& ring, const LaunchShape& shape,
           const Memory& memory, uint64_t round) {
  const auto seed_of = [round](int rank) { return (round * 2 + rank + 1) * 100'000; };
  std::vector<uint32_t> wrong(shape.groups * shape.size, 99);
  uint64_t* const source = memory.words + 8000;
  *source = seed_of(ferry_rank());
  memory.words[0] = 0;
  CHECK_OK(ferry_barrier());
  program.Launch("reach", shape.groups, shape.size,
                 {Argument::Pointer(ring.address()), Argument::Value(memory.there),
                  Argument::Value(ring.Place(source, 8)), Argument::Pointer(memory.words),
                  Argument::Value(seed_of(ferry_rank())), Argument::Value(seed_of(Partner())),
                  Argument::Pointer(wrong.data())});
  CheckAll(wrong, shape);
  CHECK_OK(ferry_barrier());
  CHECK_EQ(memory.words[0], shape.groups * shape.size);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  {
    ferry::opencl::Program program("#include \"tests/opencl/ranks/ring.cl\"\n");
    const Memory memory = Share();
    // As many slots as are used at once, and far fewer than that.
    for (const uint32_t slots : {1024U, 8U}) {
      const ferry::DeviceRing ring(0, slots, 2048);
      void* bytes = nullptr;
      CHECK_OK(ferry_alloc(sizeof(ferry_ring_counter), FERRY_MEMORY_HOST, 0, &bytes));
      auto* const counter = static_cast<ferry_ring_counter*>(bytes);
      std::memset(counter, 0, sizeof(*counter));
      uint64_t round = slots;
      for (const LaunchShape& shape : ferry::opencl::ShapesOf(argc, argv)) {
        Ask(program, ring, shape, counter);
        Reach(program, ring, shape, memory, ++round);
      }
      CHECK_OK(ferry_free(counter));
    }
    CHECK_OK(ferry_free(memory.words));
  }
  CHECK_OK(ferry_finalize());
  std::cout << "all kernels were right\n";
  return 0;
}
