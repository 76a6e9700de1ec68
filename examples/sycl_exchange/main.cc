// Kernels of SYCL, and exchanges with another rank between them, on one queue: the host enqueues
// all steps, and waits once. For the compiler of oneAPI:
//
//   icpx -fsycl main.cc -o sycl_exchange $(pkg-config --cflags --libs ferry) -lze_loader
//   ferryrun -n 2 ./sycl_exchange
#include <ferry/ferry.h>

#include <cstdio>
#include <sycl/ext/oneapi/backend/level_zero.hpp>
#include <sycl/sycl.hpp>
#include <variant>
#include <vector>

#include "exchange.h"

namespace {

constexpr int kSteps = 100;
constexpr size_t kCount = 1 << 16;

// The list that a queue of SYCL's puts its kernels on, if it has an immediate one: it has where the
// queue asks for it, and by default on newer GPUs. It belongs to the queue.
ze_command_list_handle_t ListOf(const sycl::queue& queue) {
  const auto native = sycl::get_native<sycl::backend::ext_oneapi_level_zero>(queue);
  const auto* const list = std::get_if<ze_command_list_handle_t>(&native);
  if (list == nullptr) {
    std::fprintf(stderr, "this queue has no immediate command list\n");
    std::exit(1);
  }
  return *list;
}

}  // namespace

int main() {
  int provided = 0;
  Check("ferry_init", ferry_init(FERRY_THREAD_SINGLE, &provided));
  if (ferry_size() != 2) {
    std::fprintf(stderr, "this program is for two ranks\n");
    return 1;
  }
  const int rank = ferry_rank();
  bool is_right = true;
  {
    sycl::queue queue(sycl::gpu_selector_v,
                      {sycl::property::queue::in_order(),
                       sycl::ext::intel::property::queue::immediate_command_list()});
    auto* const own = sycl::malloc_device<long>(kCount, queue);
    auto* const theirs = sycl::malloc_device<long>(kCount, queue);
    queue.parallel_for(kCount, [=](sycl::id<1> i) { own[i] = rank; }).wait();
    {
      Exchange exchange(ListOf(queue), own, theirs, kCount * sizeof(long), 1 - rank);
      for (int step = 0; step < kSteps; ++step) {
        exchange.Enqueue();
        queue.parallel_for(kCount, [=](sycl::id<1> i) { own[i] = theirs[i] + 1; });
      }
      queue.wait();
      exchange.Wait();
    }
    // Both ranks add one to the other's in each step: after an even number each has its own again.
    std::vector<long> found(kCount);
    queue.memcpy(found.data(), own, kCount * sizeof(long)).wait();
    for (const long value : found) {
      is_right = is_right && value == rank + kSteps;
    }
    sycl::free(own, queue);
    sycl::free(theirs, queue);
  }
  std::printf("rank %d: %s\n", rank, is_right ? "right" : "WRONG");
  Check("ferry_finalize", ferry_finalize());
  return is_right ? 0 : 1;
}
