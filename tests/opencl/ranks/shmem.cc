// PEs whose kernels on an OpenCL run time use OpenSHMEM, several groups at once.
#include "ferry/device/shmem.h"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/opencl/ranks/shapes.h"
#include "tests/opencl/runtime.h"
#include "tests/shmem/ranks/check.h"

namespace {

using ferry::opencl::Argument;
using ferry::opencl::LaunchShape;

constexpr size_t kMostThreads = 2048;
constexpr size_t kMostGroups = 16;

template <typename T>
T* Symmetric(size_t count) {
  auto* const memory = static_cast<T*>(shmem_calloc(count, sizeof(T)));
  CHECK(memory != nullptr);
  return memory;
}

struct World {
  void* table = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  long* row = Symmetric<long>(kMostThreads);
  long* signals = Symmetric<long>(kMostGroups * 16);
  long* sum = Symmetric<long>(1);
  int* sum_32 = Symmetric<int>(1);
  long* blocks = Symmetric<long>(kMostThreads);
  long* back = Symmetric<long>(kMostThreads);
  long* word = Symmetric<long>(1);
  uint64_t round = 0;
};

void CheckAll(const std::vector<uint32_t>& wrong, size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    CHECK(wrong[i] == 0);
  }
}

void Rows(ferry::opencl::Program& program, World& world, const LaunchShape& shape) {
  std::vector<uint32_t> wrong(kMostThreads, 99);
  for (int i = 0; i < 5; ++i) {
    ++world.round;
    program.Launch("put_rows", shape.groups, shape.size,
                   {Argument::Pointer(world.table), Argument::Pointer(world.row),
                    Argument::Pointer(world.signals), Argument::Value(world.round),
                    Argument::Pointer(wrong.data())});
    CheckAll(wrong, shape.groups * shape.size);
    shmem_barrier_all();
  }
}

void Words(ferry::opencl::Program& program, World& world, const LaunchShape& shape) {
  std::vector<uint32_t> wrong(kMostThreads, 99);
  std::vector<int> taken(kMostThreads, -1);
  const size_t threads = shape.groups * shape.size;
  *world.sum = 0;
  *world.sum_32 = 0;
  shmem_barrier_all();
  program.Launch("words", shape.groups, shape.size,
                 {Argument::Pointer(world.table), Argument::Pointer(world.sum),
                  Argument::Pointer(world.sum_32), Argument::Pointer(taken.data()),
                  Argument::Pointer(wrong.data())});
  CheckAll(wrong, threads);
  shmem_barrier_all();
  const auto all = static_cast<long>(threads) * pes;
  if (me == 0) {
    CHECK(*world.sum == 3 * all);
    CHECK(*world.sum_32 == all);
  }
  std::vector<bool> has(static_cast<size_t>(all), false);
  for (size_t i = 0; i < threads; ++i) {
    CHECK(taken[i] >= 0 && taken[i] < all && !has[static_cast<size_t>(taken[i])]);
    has[static_cast<size_t>(taken[i])] = true;
  }
  shmem_barrier_all();
}

// Blocks of groups, several at once; then meetings of one group of each PE.
void Groups(ferry::opencl::Program& program, World& world, const LaunchShape& shape) {
  const size_t threads = shape.groups * shape.size;
  long* const source = world.row;
  std::vector<uint32_t> wrong(kMostThreads, 99);
  for (size_t i = 0; i < threads; ++i) {
    source[i] = me * 100000 + static_cast<long>(i);
    world.blocks[i] = world.back[i] = -1;
  }
  shmem_barrier_all();
  const auto move = [&](const char* kernel, long* dest) {
    program.Launch(kernel, shape.groups, shape.size,
                   {Argument::Pointer(world.table), Argument::Pointer(dest),
                    Argument::Pointer(source), Argument::Pointer(wrong.data())});
    CheckAll(wrong, threads);
    shmem_barrier_all();
  };
  move("put_blocks", world.blocks);
  move("get_blocks", world.back);
  for (size_t i = 0; i < threads; ++i) {
    CHECK(world.blocks[i] == before * 100000 + static_cast<long>(i));
    CHECK(world.back[i] == after * 100000 + static_cast<long>(i));
  }
  for (uint64_t round = 1; round <= 20; ++round) {
    program.Launch("meet", 1, shape.size,
                   {Argument::Pointer(world.table), Argument::Pointer(world.word),
                    Argument::Value(round), Argument::Pointer(wrong.data())});
    CheckAll(wrong, shape.size);
    shmem_barrier_all();
  }
}

}  // namespace

int main(int argc, char** argv) {
  shmem_init();
  note_place();
  {
    ferry::opencl::Program program("#include \"tests/opencl/ranks/shmem.cl\"\n");
    World world;
    CHECK(world.table != nullptr);
    for (const LaunchShape& shape : ferry::opencl::ShapesOf(argc, argv)) {
      Words(program, world, shape);
      Rows(program, world, shape);
    }
    // Each shape is compiled anew, which takes long for the calls of groups: one will do.
    Groups(program, world, ferry::opencl::ShapesOf(argc, argv).back());
    shmemx_device_release(world.table);
  }
  if (me == 0) {
    puts("all kernels were right");
  }
  shmem_finalize();
  return 0;
}
