// Heat in a plane, by kernels that exchange their rows without the host.
//
//   oshrun -n 4 shmem_jacobi [WIDTH ROWS STEPS]
//
// Each PE has two work-groups, each of them a band of ROWS rows of WIDTH cells. The plane's upper
// edge is hot. One kernel makes all steps: its groups put their outer rows into the neighbours'
// bands and wait for theirs. The host does the same in the usual way for comparison: a kernel for
// each step, then puts and waits by the CPU; and once more with all of it enqueued ahead, so that
// the stream has the puts and waits made. All are compared with a serial run.
#include <shmem.h>
#include <shmemx.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "examples/shmem_jacobi/kernel.h"
#include "ferry/device/emulated.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"

namespace {

constexpr int kGroups = 2;
constexpr ferry::device::Shape kLaunch = {kGroups, 4};
constexpr size_t kSignals = size_t{2} * kGroups;
constexpr double kHot = 1;

// The cells and signals of the kernels, in the symmetric heap.
struct Plane {
  jacobi_shape shape;
  double* cells;
  uint64_t* signals;  // of each band: from above, from below

  double* Row(int group, uint64_t buffer, uint64_t row) const {
    return jacobi_row(shape, cells, group, buffer, row);
  }
  size_t CellCount() const { return size_t{2} * kGroups * (shape.rows + 2) * shape.width; }
};

// The argument of the functions that a stream runs as kernels.
struct Work {
  const Plane* plane;
  const void* table;
  uint64_t step;
  std::atomic<int> status;
};

[[noreturn]] void Fail(const char* sentence) {
  std::fprintf(stderr, "shmem_jacobi: PE %d: %s\n", shmem_my_pe(), sentence);
  shmem_global_exit(1);
  std::abort();
}

void Check(int error) {
  if (error != FERRY_SUCCESS) {
    Fail(ferry_last_error());
  }
}

// Cold, but for the upper edge of the first band.
void Begin(const Plane& plane) {
  std::fill(plane.cells, plane.cells + plane.CellCount(), 0.0);
  std::fill(plane.signals, plane.signals + kSignals, 0);
  if (shmem_my_pe() == 0) {
    for (const uint64_t buffer : {0, 1}) {
      std::fill_n(plane.Row(0, buffer, 0), plane.shape.width, kHot);
    }
  }
  shmem_barrier_all();
}

// ---- The kernel's way ---------------------------------------------------------------------------

void RunAll(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch(kLaunch, [&] {
    const int status =
        jacobi_run(work.table, work.plane->shape, work.plane->cells, work.plane->signals);
    if (status != SHMEMX_DEVICE_SUCCESS) {
      work.status = status;
    }
  });
}

void ByKernel(ferry_stream stream, const Plane& plane, const void* table) {
  Work work{&plane, table, 0, SHMEMX_DEVICE_SUCCESS};
  Check(ferry_stream_launch(stream, RunAll, &work));
  Check(ferry_stream_synchronize(stream));
  if (work.status != SHMEMX_DEVICE_SUCCESS) {
    Fail(ferry_error_string(work.status));
  }
}

// ---- The host's way -----------------------------------------------------------------------------

void RunStep(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch(kLaunch,
                        [&] { jacobi_update(work.plane->shape, work.plane->cells, work.step); });
}

// Sends the outer rows of this PE's bands by `put`, then waits for those of the neighbours by
// `wait`.
template <typename Put, typename Wait>
void Exchange(const Plane& plane, uint64_t step, Put&& put, Wait&& wait) {
  const int bands = shmem_n_pes() * kGroups;
  const uint64_t to = 1 - step % 2;
  const int first = shmem_my_pe() * kGroups;
  for (int band = first; band < first + kGroups; ++band) {
    const int group = band % kGroups;
    if (band > 0) {
      const int above = (band - 1) % kGroups;
      put(plane.Row(above, to, plane.shape.rows + 1), plane.Row(group, to, 1),
          jacobi_signal(plane.signals, above, 1), (band - 1) / kGroups);
    }
    if (band + 1 < bands) {
      const int below = (band + 1) % kGroups;
      put(plane.Row(below, to, 0), plane.Row(group, to, plane.shape.rows),
          jacobi_signal(plane.signals, below, 0), (band + 1) / kGroups);
    }
  }
  for (int band = first; band < first + kGroups; ++band) {
    if (band > 0) {
      wait(jacobi_signal(plane.signals, band % kGroups, 0));
    }
    if (band + 1 < bands) {
      wait(jacobi_signal(plane.signals, band % kGroups, 1));
    }
  }
}

void ByHost(ferry_stream stream, const Plane& plane) {
  Work work{&plane, nullptr, 0, SHMEMX_DEVICE_SUCCESS};
  for (work.step = 0; work.step < plane.shape.steps; ++work.step) {
    Check(ferry_stream_launch(stream, RunStep, &work));
    Check(ferry_stream_synchronize(stream));
    Exchange(
        plane, work.step,
        [&](double* to, const double* from, uint64_t* signal, int pe) {
          shmem_double_put_signal(to, from, plane.shape.width, signal, work.step + 1,
                                  SHMEM_SIGNAL_SET, pe);
        },
        [&](uint64_t* signal) { shmem_signal_wait_until(signal, SHMEM_CMP_GE, work.step + 1); });
  }
}

// ---- The queue's way ----------------------------------------------------------------------------

void ByQueue(ferry_stream stream, const Plane& plane) {
  ferry_queue queue = FERRY_QUEUE_NULL;
  Check(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  std::vector<Work> steps(plane.shape.steps);
  for (uint64_t step = 0; step < plane.shape.steps; ++step) {
    steps[step].plane = &plane;
    steps[step].step = step;
    Check(ferry_stream_launch(stream, RunStep, &steps[step]));
    Exchange(
        plane, step,
        [&](double* to, const double* from, uint64_t* signal, int pe) {
          Check(shmemx_double_put_signal_on_queue(to, from, plane.shape.width, signal, step + 1,
                                                  SHMEM_SIGNAL_SET, pe, queue));
        },
        [&](uint64_t* signal) {
          Check(shmemx_signal_wait_until_on_queue(signal, SHMEM_CMP_GE, step + 1, queue));
        });
  }
  Check(ferry_queue_wait(queue));
  Check(ferry_queue_free(&queue));
}

// ---- Comparison ---------------------------------------------------------------------------------

// The whole plane after all steps, with its edges.
std::vector<double> Serial(const jacobi_shape& shape, uint64_t bands) {
  const uint64_t rows = bands * shape.rows + 2;
  std::vector<double> from(rows * shape.width);
  std::fill_n(from.begin(), shape.width, kHot);
  std::vector<double> to = from;
  for (uint64_t step = 0; step < shape.steps; ++step) {
    for (uint64_t row = 1; row + 1 < rows; ++row) {
      for (uint64_t i = 1; i + 1 < shape.width; ++i) {
        const double* const here = &from[row * shape.width + i];
        to[row * shape.width + i] =
            (here[-static_cast<ptrdiff_t>(shape.width)] + here[shape.width] + here[-1] + here[1]) /
            4;
      }
    }
    std::swap(from, to);
  }
  return from;
}

// Returns true on PE 0 if all bands are, cell for cell, those that a serial run computes.
bool IsAsSerial(const Plane& plane, const std::vector<double>& serial) {
  const uint64_t buffer = plane.shape.steps % 2;
  std::vector<double> row(plane.shape.width);
  for (int band = 0; band < shmem_n_pes() * kGroups; ++band) {
    for (uint64_t i = 1; i <= plane.shape.rows; ++i) {
      shmem_double_get(row.data(), plane.Row(band % kGroups, buffer, i), row.size(),
                       band / kGroups);
      const uint64_t at = (static_cast<uint64_t>(band) * plane.shape.rows + i) * plane.shape.width;
      if (!std::equal(row.begin(), row.end(), serial.begin() + static_cast<ptrdiff_t>(at))) {
        return false;
      }
    }
  }
  return true;
}

// Runs it; returns the microseconds of a step, as PE 0 has measured them.
template <typename Run>
double Measure(const Plane& plane, Run&& run) {
  Begin(plane);
  const auto begin = std::chrono::steady_clock::now();
  run();
  shmem_barrier_all();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(plane.shape.steps);
}

// Stays 0 if `text` is no number between `least` and `most`.
uint64_t Number(const char* text, uint64_t least, uint64_t most) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0' && number >= least && number <= most ? number
                                                                                           : 0;
}

bool Parse(int argc, char** argv, jacobi_shape* shape) {
  if (argc == 4) {
    *shape = {Number(argv[1], 3, 1 << 16), Number(argv[2], 1, 1 << 16),
              Number(argv[3], 1, 1 << 20)};
  }
  return (argc == 1 || argc == 4) && shape->width != 0 && shape->rows != 0 && shape->steps != 0;
}

int Solve(const jacobi_shape& shape) {
  Plane plane{shape, nullptr, nullptr};
  plane.cells = static_cast<double*>(shmem_malloc(plane.CellCount() * sizeof(double)));
  plane.signals = static_cast<uint64_t*>(shmem_calloc(kSignals, sizeof(uint64_t)));
  if (plane.cells == nullptr || plane.signals == nullptr) {
    Fail("the plane is too large: make it smaller, or raise SHMEM_SYMMETRIC_SIZE");
  }
  const int device = shmem_my_pe() % shmemx_device_count();
  void* const table = shmemx_device_prepare(SHMEM_TEAM_WORLD, device);
  if (table == nullptr) {
    Fail("there is no table for kernels");
  }
  ferry_stream stream = nullptr;
  Check(ferry_stream_create(device, &stream));
  const bool is_first = shmem_my_pe() == 0;
  const auto bands = static_cast<uint64_t>(shmem_n_pes()) * kGroups;
  const std::vector<double> serial = is_first ? Serial(shape, bands) : std::vector<double>();

  const double by_kernel_us = Measure(plane, [&] { ByKernel(stream, plane, table); });
  bool is_right = !is_first || IsAsSerial(plane, serial);
  shmem_barrier_all();
  const double by_host_us = Measure(plane, [&] { ByHost(stream, plane); });
  is_right = is_right && (!is_first || IsAsSerial(plane, serial));
  shmem_barrier_all();
  const double by_queue_us = Measure(plane, [&] { ByQueue(stream, plane); });
  is_right = is_right && (!is_first || IsAsSerial(plane, serial));
  if (is_first) {
    std::printf(
        "%d PEs, %llu bands of %llu x %llu cells, %llu steps: %.1f us a step by one kernel, "
        "%.1f by the host, %.1f by a queue; equal to a serial run: %s\n",
        shmem_n_pes(), static_cast<unsigned long long>(bands), shape.width, shape.rows, shape.steps,
        by_kernel_us, by_host_us, by_queue_us, is_right ? "PASS" : "FAIL");
  }
  Check(ferry_stream_destroy(&stream));
  shmemx_device_release(table);
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernels are functions of this program.
  setenv("FERRY_GPU_BACKEND", "host", 1);
  jacobi_shape shape = {128, 16, 100};
  if (!Parse(argc, argv, &shape)) {
    std::fprintf(stderr,
                 "usage: shmem_jacobi [WIDTH ROWS STEPS]: 3 to 65536 cells a row, 1 to 65536 rows "
                 "for each of a PE's %d bands, 1 to 1048576 steps\n",
                 kGroups);
    return 2;
  }
  shmem_init();
  const int status = Solve(shape);
  shmem_finalize();
  return status;
}
