// A rank of two: exchanges on an immediate command list of its own, as examples/sycl_exchange does
// on that of a queue of SYCL's. The list is not in order by itself.
#include <cstdint>
#include <cstring>
#include <vector>

#include "examples/sycl_exchange/exchange.h"

#define CHECK_ZE(call)                                 \
  do {                                                 \
    if ((call) != ZE_RESULT_SUCCESS) {                 \
      std::fprintf(stderr, "%s: no success\n", #call); \
      std::exit(1);                                    \
    }                                                  \
  } while (0)

namespace {

constexpr int kSteps = 50;
constexpr size_t kCount = 10000;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

struct Device {
  ze_device_handle_t device = nullptr;
  ze_context_handle_t context = nullptr;

  Device() {
    CHECK_ZE(zeInit(0));
    uint32_t count = 1;
    ze_driver_handle_t driver = nullptr;
    CHECK_ZE(zeDriverGet(&count, &driver));
    count = 1;
    CHECK_ZE(zeDeviceGet(driver, &count, &device));
    const ze_context_desc_t description = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
    CHECK_ZE(zeContextCreate(driver, &description, &context));
  }
  ze_command_list_handle_t MakeList() const {
    ze_command_queue_desc_t description = {};
    description.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    description.ordinal = 1;  // the group of queues that run kernels, as a queue of SYCL does
    description.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    ze_command_list_handle_t list = nullptr;
    CHECK_ZE(zeCommandListCreateImmediate(context, device, &description, &list));
    return list;
  }
  uint32_t* Allocate() const {
    const ze_device_mem_alloc_desc_t description = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                                    nullptr, 0, 0};
    void* memory = nullptr;
    CHECK_ZE(zeMemAllocDevice(context, &description, kBytes, 64, device, &memory));
    return static_cast<uint32_t*>(memory);
  }
};

void Append(ze_command_list_handle_t list, void* to, const void* from, size_t bytes) {
  CHECK_ZE(zeCommandListAppendMemoryCopy(list, to, from, bytes, nullptr, 0, nullptr));
}

// In place of a kernel: `own` gets `theirs`, turned by one.
void AppendStep(ze_command_list_handle_t list, uint32_t* own, const uint32_t* theirs) {
  Append(list, own, theirs + 1, kBytes - sizeof(uint32_t));
  Append(list, own + kCount - 1, theirs, sizeof(uint32_t));
}

uint32_t ValueOf(int rank, size_t i) { return static_cast<uint32_t>(rank * 1000000) + i; }

void Run(const Device& device) {
  const int rank = ferry_rank();
  ze_command_list_handle_t const list = device.MakeList();
  uint32_t* const own = device.Allocate();
  uint32_t* const theirs = device.Allocate();
  std::vector<uint32_t> values(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    values[i] = ValueOf(rank, i);
  }
  Append(list, own, values.data(), kBytes);
  {
    Exchange exchange(list, own, theirs, kBytes, 1 - rank);
    for (int step = 0; step < kSteps; ++step) {
      exchange.Enqueue();
      AppendStep(list, own, theirs);
    }
    CHECK_ZE(zeCommandListAppendBarrier(list, nullptr, 0, nullptr));
    std::memset(values.data(), 0, kBytes);
    Append(list, values.data(), own, kBytes);
    exchange.Wait();
  }
  for (size_t i = 0; i < kCount; ++i) {  // an even number of steps
    if (values[i] != ValueOf(rank, (i + kSteps) % kCount)) {
      std::fprintf(stderr, "rank %d: element %zu is %u\n", rank, i, values[i]);
      std::exit(1);
    }
  }
  CHECK_ZE(zeMemFree(device.context, own));
  CHECK_ZE(zeMemFree(device.context, theirs));
  CHECK_ZE(zeCommandListDestroy(list));
}

}  // namespace

int main() {
  int provided = 0;
  Check("ferry_init", ferry_init(FERRY_THREAD_SINGLE, &provided));
  const Device device;
  Run(device);
  std::printf("rank %d: right\n", ferry_rank());
  Check("ferry_finalize", ferry_finalize());
  return 0;
}
