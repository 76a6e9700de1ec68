// own_memory cuda|hip|level_zero [LIBRARY|few|many|freed]: messages from and to device memory that
// the program allocates itself, by its vendor's calls. Two ranks, on one node or two. The program
// opens the vendor's library, or this one, only after ferry_init. few: fewer repetitions. many:
// more allocations than are known at a time, and nothing else. freed: memory that goes while a
// message is under way, and nothing else.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "level_zero/ze_api.h"
#include "tests/e2e/ranks/check.h"

namespace {

using ferry::ranks::EightBytesOf;

void* library = nullptr;
std::string_view vendor;

const char* file = nullptr;  // that the test has named
int repeats = 30;

void OpenLibrary(const char* variable, const char* name) {
  const auto given = ferry::config::FindVariable(ferry::config::ProcessEnvironment(), variable);
  library = dlopen(file != nullptr ? file : std::string(given.value_or(name)).c_str(), RTLD_NOW);
  CHECK_EQ(library != nullptr, true);
}

// A function of the vendor's. Ends the program unless it returns 0.
template <typename... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  CHECK_EQ(function != nullptr, true);
  CHECK_EQ(function(arguments...), 0);
}

// ---- The vendors --------------------------------------------------------------------------------

ze_context_handle_t ze_context = nullptr;
ze_device_handle_t ze_device = nullptr;

void StartLevelZero() {
  Call("zeInit", static_cast<ze_init_flags_t>(0));
  uint32_t count = 1;
  ze_driver_handle_t driver = nullptr;
  Call("zeDriverGet", &count, &driver);
  count = 1;
  Call("zeDeviceGet", driver, &count, &ze_device);
  ze_context_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  Call("zeContextCreate", driver, &description, &ze_context);
}

void Start() {
  if (vendor == "cuda") {
    OpenLibrary("FERRY_CUDA_LIBRARY", "libcuda.so.1");
    void* context = nullptr;
    Call("cuInit", 0U);
    Call("cuDevicePrimaryCtxRetain", &context, 0);
    Call("cuCtxPushCurrent_v2", context);
  } else if (vendor == "hip") {
    OpenLibrary("FERRY_HIP_LIBRARY", "libamdhip64.so");
  } else {
    OpenLibrary("FERRY_LEVEL_ZERO_LIBRARY", "libze_loader.so.1");
    StartLevelZero();
  }
}

uint8_t* Allocate(size_t size) {
  void* made = nullptr;
  if (vendor == "cuda") {
    Call("cuMemAlloc_v2", &made, size);
  } else if (vendor == "hip") {
    Call("hipMalloc", &made, size);
  } else {
    ze_device_mem_alloc_desc_t description{};
    description.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    Call("zeMemAllocDevice", ze_context, &description, size, size_t{64}, ze_device, &made);
  }
  return static_cast<uint8_t*>(made);
}

void Release(void* pointer) {
  if (vendor == "cuda") {
    Call("cuMemFree_v2", pointer);
  } else if (vendor == "hip") {
    Call("hipFree", pointer);
  } else {
    Call("zeMemFree", ze_context, pointer);
  }
}

// ---- The data -----------------------------------------------------------------------------------

void FillAt(void* to, size_t size, uint64_t message) {
  std::vector<uint8_t> bytes(size + 8);
  ferry::ranks::Fill(bytes.data(), size, message);
  CHECK_OK(ferry_memcpy(to, bytes.data(), size));
}

void CheckAt(const void* from, size_t size, uint64_t message) {
  std::vector<uint8_t> bytes(size + 8);
  CHECK_OK(ferry_memcpy(bytes.data(), from, size));
  CHECK_BYTES(bytes.data(), size, message);
}

int Partner() { return 1 - ferry_rank(); }

uint64_t MessageOf(int sender, size_t size) {
  return static_cast<uint64_t>(sender) << 32 | static_cast<uint64_t>(size);
}

// Each sends to the other.
void Exchange(uint8_t* going, uint8_t* coming, size_t size) {
  FillAt(going, size, MessageOf(ferry_rank(), size));
  FillAt(coming, size, 0);
  ferry_request receive = FERRY_REQUEST_NULL;
  ferry_status status{};
  CHECK_OK(ferry_irecv(coming, size, Partner(), 1, &receive));
  CHECK_OK(ferry_send(going, size, Partner(), 1));
  CHECK_OK(ferry_wait(&receive, &status));
  CHECK_EQ(status.size_bytes, size);
  CheckAt(coming, size, MessageOf(Partner(), size));
  // The receiver waits first, or comes late.
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_send(going, size, 1, 2));
    CHECK_OK(ferry_recv(coming, size, 1, 3, nullptr));
  } else {
    CHECK_OK(ferry_recv(coming, size, 0, 2, nullptr));
    CHECK_OK(ferry_send(going, size, 0, 3));
  }
  CheckAt(coming, size, MessageOf(Partner(), size));
}

constexpr size_t kSizes[] = {1, 8, 32, 33, 4096, 8192, 8193, 65536, 65537, 262144, 1200001};
constexpr size_t kLargest = 1200001;

// At any offset: a caching allocator gives out parts of one allocation.
void MovesAllSizes() {
  uint8_t* const first = Allocate(3 * kLargest);
  uint8_t* const second = Allocate(kLargest);
  std::vector<uint8_t> host(kLargest);
  for (const size_t size : kSizes) {
    Exchange(first + 13, first + kLargest + 77, size);
    Exchange(first + kLargest, second, size);
    Exchange(host.data(), second, size);
    Exchange(second, host.data(), size);
  }
  Release(first);
  Release(second);
}

// New memory at an old address is never taken for the memory that was there before.
void FreesAndAllocatesAnew() {
  for (int round = 0; round < repeats; ++round) {
    const size_t size = round % 3 == 0 ? 300'000 : 70'000 + static_cast<size_t>(round);
    uint8_t* const going = Allocate(size);
    uint8_t* const coming = Allocate(size);
    Exchange(going, coming, size);
    Exchange(going, coming, 100);
    Release(coming);
    Release(going);
  }
}

// Matched requests, in memory that goes with them.
void MatchesAndStarts() {
  for (const size_t size : {size_t{100}, size_t{8193}, kLargest, kLargest}) {
    uint8_t* const going = Allocate(size);
    uint8_t* const coming = Allocate(size);
    ferry_request requests[2];
    CHECK_OK(ferry_recv_init(coming, size, Partner(), 4, &requests[0]));
    CHECK_OK(ferry_send_init(going, size, Partner(), 4, &requests[1]));
    CHECK_OK(ferry_matchall(2, requests));
    for (uint64_t round = 0; round < 2; ++round) {
      FillAt(going, size, MessageOf(ferry_rank(), size) + round);
      FillAt(coming, size, 0);
      CHECK_OK(ferry_start(requests[0]));
      CHECK_OK(ferry_start(requests[1]));
      ferry_request started[2] = {requests[0], requests[1]};
      CHECK_OK(ferry_waitall(2, started, nullptr));
      CheckAt(coming, size, MessageOf(Partner(), size) + round);
    }
    CHECK_OK(ferry_request_free(&requests[0]));
    CHECK_OK(ferry_request_free(&requests[1]));
    Release(coming);
    Release(going);
  }
}

void* MapHostMemory(void* where, size_t size) {
  void* const made =
      mmap(where, size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  CHECK_EQ(made != MAP_FAILED, true);
  return made;
}

// Memory of CPUs, of the stack, the heap, the image and the kernel.
void MovesHostMemory() {
  constexpr size_t kSize = 20'000;
  static uint8_t fixed[2 * kSize];
  uint8_t on_stack[2 * kSize];
  std::vector<uint8_t> on_heap(2 * kSize);
  auto* const mapped = static_cast<uint8_t*>(MapHostMemory(nullptr, 2 * kSize));
  for (uint8_t* const memory : {fixed, on_stack, on_heap.data(), mapped}) {
    Exchange(memory, memory + kSize, 8);
    Exchange(memory, memory + kSize, kSize);
  }
  CHECK_EQ(munmap(mapped, 2 * kSize), 0);
}

// The kernel gives an address to CPUs' memory and to devices' by turns.
void TakesAddressesByTurns() {
  constexpr size_t kSize = 3 << 20;
  int turns = 0;
  for (int round = 0; round < repeats * 2 / 3; ++round) {
    void* const host = MapHostMemory(nullptr, kSize);
    auto* const bytes = static_cast<uint8_t*>(host);
    Exchange(bytes, bytes + kSize / 2, 8);
    Exchange(bytes, bytes + kSize / 2, 70'000);
    CHECK_EQ(munmap(host, kSize), 0);
    uint8_t* const device = Allocate(kSize);
    turns += device == host ? 1 : 0;
    Exchange(device, device + kSize / 2, 8);
    Exchange(device, device + kSize / 2, 70'000);
    Release(device);
  }
  std::printf("turns: %d\n", turns);
  // Where device memory was that is known here.
  uint8_t* const device = Allocate(kSize);
  Exchange(device, device + kSize / 2, 8);
  Release(device);
  auto* const host = static_cast<uint8_t*>(MapHostMemory(device, kSize));
  Exchange(host, host + kSize / 2, 8);
  Exchange(host, host + kSize / 2, 70'000);
  CHECK_EQ(munmap(host, kSize), 0);
}

// More than stay known at a time; all are used once more.
void KnowsManyAllocations() {
  constexpr size_t kMany = 700;
  std::vector<uint8_t*> all;
  for (size_t i = 0; i < kMany; ++i) {
    all.push_back(Allocate(5000));
    Exchange(all.back(), all.front() + 2000, 100);
  }
  for (size_t i = 0; i < kMany; ++i) {
    Exchange(all[i], all[kMany - 1 - i] + 2500, 1500);
  }
  for (uint8_t* const memory : all) {
    Release(memory);
  }
}

// A mistake that a program must not make: the data may be anything, but each end completes, and all
// goes on.
void FreesWhatIsUnderWay() {
  constexpr size_t kSize = 8 << 20;
  for (int round = 0; round < 4; ++round) {
    const bool sends = ferry_rank() == round % 2;
    const bool frees_early = sends == (round < 2);
    uint8_t* const memory = Allocate(kSize);
    FillAt(memory, kSize, 1);
    ferry_request request = FERRY_REQUEST_NULL;
    CHECK_OK(sends ? ferry_isend(memory, kSize, Partner(), 9, &request)
                   : ferry_irecv(memory, kSize, Partner(), 9, &request));
    int is_over = 0;
    if (frees_early) {
      (void)ferry_test(&request, &is_over, nullptr);  // the other end may have begun
      Release(memory);
    }
    const int error = is_over != 0 ? FERRY_SUCCESS : ferry_wait(&request, nullptr);
    CHECK_EQ(error == FERRY_SUCCESS || error == FERRY_ERR_BUFFER || error == FERRY_ERR_SYSTEM,
             true);
    if (!frees_early) {
      Release(memory);
    }
    uint8_t* const next = Allocate(2 * kLargest);
    Exchange(next, next + kLargest, kLargest);
    Release(next);
  }
}

// Memory that no rank can send from, or receive into, is refused in words.
void RefusesWhatIsNotThere() {
  constexpr size_t kSize = 10'000;
  uint8_t* const memory = Allocate(kSize);
  const int own = ferry_rank();
  for (const size_t size : {size_t{8}, kSize}) {
    CHECK_REFUSED(ferry_send(memory + kSize - size + 1, size, own, 1), FERRY_ERR_BUFFER,
                  "runs past the end of its device memory (10000 bytes at ");
    ferry_request request = FERRY_REQUEST_NULL;
    CHECK_REFUSED(ferry_irecv(memory + kSize - size + 1, size, own, 1, &request), FERRY_ERR_BUFFER,
                  "runs past the end");
  }
  Exchange(memory, memory + kSize / 2, kSize / 2);
  Release(memory);
  for (int again = 0; again < 3; ++again) {
    CHECK_REFUSED(ferry_send(memory + 5, 8, own, 1), FERRY_ERR_BUFFER, "(10000 bytes at ");
    CHECK_REFUSED(ferry_send(memory + 5, 9000, own, 1), FERRY_ERR_BUFFER, "freed");
    CHECK_REFUSED(ferry_recv(memory + 5, 8, own, 1, nullptr), FERRY_ERR_BUFFER, "freed");
  }
  // Far from all that Ferry has seen.
  void* const nowhere = mmap(reinterpret_cast<void*>(0x1000'0000'0000), 4096, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK_EQ(nowhere != MAP_FAILED, true);
  CHECK_REFUSED(ferry_send(nowhere, 8, own, 1), FERRY_ERR_BUFFER, "there is no memory at 0x");
  CHECK_REFUSED(ferry_recv(nowhere, 8, own, 1, nullptr), FERRY_ERR_BUFFER, "or is it another");
  CHECK_EQ(munmap(nowhere, 4096), 0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc >= 2, true);
  vendor = argv[1];
  const std::string_view what = argc > 2 ? argv[2] : "";
  const bool is_many = what == "many";
  const bool is_freed = what == "freed";
  const bool is_few = what == "few";
  repeats = is_few ? 9 : repeats;
  file = !what.empty() && !is_many && !is_freed && !is_few ? argv[2] : nullptr;
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  MovesHostMemory();
  Start();
  if (is_many) {
    KnowsManyAllocations();
  } else if (is_freed) {
    FreesWhatIsUnderWay();
  } else {
    MovesHostMemory();
    MovesAllSizes();
    FreesAndAllocatesAnew();
    MatchesAndStarts();
    TakesAddressesByTurns();
    RefusesWhatIsNotThere();
  }
  CHECK_OK(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("own memory: ok\n");
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
