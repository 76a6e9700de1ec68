// ferry-kernel-meter: a program of OpenSHMEM whose kernels, on an emulated device, measure puts,
// gets and collectives by work-groups: as the PEs of a job that `ferryctl tune --kernels` or
// benchmarks/kernels starts.
//
//   ferry-kernel-meter LIBRARY moves|fcollect|broadcast MICROSECONDS THREADS,... SIZE,...
//
// moves: PE 0 puts to and gets from the last PE; the others: all PEs. PE 0 writes the lines of
// kernel_times.h: a time is the median of batches of about MICROSECONDS within one launch. The data
// that arrive are compared with those that were sent, outside the time that is measured. Every
// failure ends the job with a message.
#include <dlfcn.h>
#include <shmem.h>
#include <shmemx.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ferry/device/emulated.h"
#include "ferry/device/shmem.h"

namespace {

// The library's calls, opened by its path: so that a program that is installed apart from it needs
// no search path.
struct Library {
  decltype(&::shmem_init) init;
  decltype(&::shmem_finalize) finalize;
  decltype(&::shmem_global_exit) global_exit;
  decltype(&::shmem_my_pe) my_pe;
  decltype(&::shmem_n_pes) n_pes;
  decltype(&::shmem_align) align;
  decltype(&::shmem_barrier_all) barrier_all;
  decltype(&::shmem_double_broadcast) double_broadcast;
  decltype(&::shmemx_device_prepare) device_prepare;
  decltype(&::shmemx_device_release) device_release;
};
Library shmem;
int me, pes;
double* told;  // symmetric: by which PE 0 tells the others a time

constexpr int kBatches = 7;
constexpr int64_t kMostCalls = 1'000'000;

void OpenLibrary(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "ferry-kernel-meter: cannot open the library of OpenSHMEM: %s\n",
                 dlerror());
    std::exit(1);
  }
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) {
      std::fprintf(stderr, "ferry-kernel-meter: %s has no %s\n", path, name);
      std::exit(1);
    }
  };
  find("shmem_init", &shmem.init);
  find("shmem_finalize", &shmem.finalize);
  find("shmem_global_exit", &shmem.global_exit);
  find("shmem_my_pe", &shmem.my_pe);
  find("shmem_n_pes", &shmem.n_pes);
  find("shmem_align", &shmem.align);
  find("shmem_barrier_all", &shmem.barrier_all);
  find("shmem_double_broadcast", &shmem.double_broadcast);
  find("shmemx_device_prepare", &shmem.device_prepare);
  find("shmemx_device_release", &shmem.device_release);
}

[[noreturn]] void Fail(const char* what, size_t size) {
  std::fprintf(stderr, "ferry-kernel-meter: PE %d, %zu bytes: wrong %s\n", me, size, what);
  shmem.global_exit(1);
  std::abort();
}

// ---- Time ---------------------------------------------------------------------------------------

double NowNs() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// By all threads of the group: what `calls` calls take together.
template <typename Call>
double TimeOf(int64_t calls, const Call& call) {
  ferry_device_group_barrier();
  const double begin = NowNs();
  for (int64_t i = 0; i < calls; ++i) {
    const int status = call();
    if (status != 0) {
      std::fprintf(stderr, "ferry-kernel-meter: PE %d: a call returned %d\n", me, status);
      Fail("status", 0);
    }
  }
  ferry_device_group_barrier();
  return NowNs() - begin;
}

// One launch of `threads` threads that calls so often in each of `batches`; the median of a call.
template <typename Call>
double Launch(ferry_device_u32 threads, int batches, int64_t calls, const Call& call) {
  std::vector<double> times(static_cast<size_t>(batches));
  ferry::device::Launch({1, threads, 16}, [&] {
    for (double& time : times) {
      const double all = TimeOf(calls, call);
      if (ferry_device_group_thread() == 0) {
        time = all / static_cast<double>(calls);
      }
    }
  });
  const auto middle = times.begin() + batches / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

struct Shape {
  ferry_device_u32 threads;
  double batch_ns;
};

// How many calls make a batch: PE 0's answer, to whose finding all help if `all` call.
template <typename Call>
int64_t CallsOf(const Shape& shape, bool all, const Call& call) {
  for (int64_t calls = 1;; calls *= 4) {
    if (me == 0 || all) {
      *told = Launch(shape.threads, 1, calls, call) * static_cast<double>(calls);
    }
    if (shmem.double_broadcast(SHMEM_TEAM_WORLD, told, told, 1, 0) != 0) {
      Fail("broadcast", 0);
    }
    const double time = *told;
    if (time >= shape.batch_ns || calls >= kMostCalls) {
      const double in_a_batch = static_cast<double>(calls) * shape.batch_ns / time;
      return std::clamp(static_cast<int64_t>(in_a_batch), int64_t{1}, kMostCalls);
    }
  }
}

// Measures and prints; `check` looks at what has arrived.
template <typename Call, typename Check>
void Measure(const char* what, size_t size, const Shape& shape, bool all, const Call& call,
             const Check& check) {
  shmem.barrier_all();
  const int64_t calls = CallsOf(shape, all, call);
  double ns = 0;
  if (me == 0 || all) {
    ns = Launch(shape.threads, kBatches, calls, call);
  }
  shmem.barrier_all();
  if (!check()) {
    Fail(what, size);
  }
  shmem.barrier_all();
  if (me == 0) {
    std::printf("%s %u %zu %.1f\n", what, shape.threads, size, ns);
    std::fflush(stdout);
  }
}

// ---- The measurements ---------------------------------------------------------------------------

// The byte that a PE has at a place: what is left of other sizes differs.
unsigned char ByteOf(int pe, size_t size, size_t at) {
  return static_cast<unsigned char>(static_cast<size_t>(pe) * 31 + size % 97 * 5 + at * 7 +
                                    at / 251 + 1);
}
void Fill(unsigned char* bytes, int pe, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = ByteOf(pe, size, i);
  }
}
bool Has(const unsigned char* bytes, int pe, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != ByteOf(pe, size, i)) {
      return false;
    }
  }
  return true;
}

struct Memory {
  unsigned char* in;   // symmetric, room for what all PEs have
  unsigned char* out;  // symmetric
};

void Moves(shmemx_device_t d, const Shape& shape, size_t size, const Memory& memory) {
  const int last = pes - 1;
  Fill(memory.out, me, size);
  std::memset(memory.in, 0, size);
  Measure(
      "put", size, shape, false,
      [&] { return shmemx_device_putmem_work_group(d, memory.in, memory.out, size, last); },
      [&] { return me != last || Has(memory.in, 0, size); });
  std::memset(memory.in, 0, size);
  Measure(
      "get", size, shape, false,
      [&] { return shmemx_device_getmem_work_group(d, memory.in, memory.out, size, last); },
      [&] { return me != 0 || Has(memory.in, last, size); });
}

void Fcollect(shmemx_device_t d, const Shape& shape, size_t size, const Memory& memory) {
  const auto count = static_cast<size_t>(pes);
  Fill(memory.out, me, size);
  std::memset(memory.in, 0, size * count);
  Measure(
      "fcollect", size, shape, true,
      [&] { return shmemx_device_fcollectmem_work_group(d, memory.in, memory.out, size); },
      [&] {
        for (size_t pe = 0; pe < count; ++pe) {
          if (!Has(memory.in + size * pe, static_cast<int>(pe), size)) {
            return false;
          }
        }
        return true;
      });
}

void Broadcast(shmemx_device_t d, const Shape& shape, size_t size, const Memory& memory) {
  Fill(memory.out, me, size);
  std::memset(memory.in, 0, size);
  Measure(
      "broadcast", size, shape, true,
      [&] { return shmemx_device_broadcastmem_work_group(d, memory.in, memory.out, size, 0); },
      [&] { return Has(memory.in, 0, size); });
}

// ---- The command line ---------------------------------------------------------------------------

std::vector<size_t> Numbers(const char* text) {
  std::vector<size_t> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    numbers.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  return numbers;
}

bool AreFrom(const std::vector<size_t>& numbers, size_t least, size_t most) {
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&](size_t number) {
    return number >= least && number <= most;
  });
}

int Run(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[2] : "";
  const double batch_us = argc > 3 ? std::atof(argv[3]) : 0;
  const std::vector<size_t> threads = Numbers(argc > 4 ? argv[4] : "");
  const std::vector<size_t> sizes = Numbers(argc > 5 ? argv[5] : "");
  const auto measure = what == "moves"       ? Moves
                       : what == "fcollect"  ? Fcollect
                       : what == "broadcast" ? Broadcast
                                             : nullptr;
  if (argc != 6 || measure == nullptr || !(batch_us > 0) || !AreFrom(threads, 1, 4096) ||
      !AreFrom(sizes, 1, size_t{1} << 30)) {
    std::fputs(
        "usage: ferry-kernel-meter LIBRARY moves|fcollect|broadcast MICROSECONDS THREADS,... "
        "SIZE,...\n",
        stderr);
    return 2;
  }
  OpenLibrary(argv[1]);
  shmem.init();
  me = shmem.my_pe();
  pes = shmem.n_pes();
  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  const size_t all = largest * static_cast<size_t>(what == "fcollect" ? pes : 1);
  const Memory memory = {static_cast<unsigned char*>(shmem.align(4096, all)),
                         static_cast<unsigned char*>(shmem.align(4096, largest))};
  told = static_cast<double*>(shmem.align(64, sizeof(*told)));
  void* const table = shmem.device_prepare(SHMEM_TEAM_WORLD, 0);
  if (memory.in == nullptr || memory.out == nullptr || told == nullptr || table == nullptr) {
    Fail("memory: there is too little, or no table", largest);
  }
  for (const size_t count : threads) {
    for (const size_t size : sizes) {
      measure(shmemx_device_open(table), {static_cast<ferry_device_u32>(count), 1e3 * batch_us},
              size, memory);
    }
  }
  shmem.device_release(table);
  shmem.finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
