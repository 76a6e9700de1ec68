// vendor_queues cuda|hip LIBRARY: messages, and calls of one_sided.h, on streams that the program
// makes with the vendor's own library. Two ranks, on one node or two.
#include <dlfcn.h>

#include <cstddef>
#include <string_view>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using ferry::ranks::Buffer;
using ferry::ranks::kDevice;
using ferry::ranks::MakeMatched;
using ferry::ranks::Sends;

void* library = nullptr;

// A function of the vendor's, with pointers and numbers as arguments. Ends the program unless it
// returns 0.
template <typename... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  CHECK_EQ(function != nullptr, true);
  CHECK_EQ(function(arguments...), 0);
}

// Streams that do not wait for the vendor's default one.
void* MakeCudaStream() {
  void* context = nullptr;
  void* stream = nullptr;
  Call("cuInit", 0U);
  Call("cuDevicePrimaryCtxRetain", &context, 0);
  Call("cuCtxPushCurrent_v2", context);
  Call("cuStreamCreate", &stream, 1U);
  return stream;
}

void* MakeHipStream() {
  void* stream = nullptr;
  Call("hipStreamCreateWithFlags", &stream, 1U);
  return stream;
}

// Device memory goes round by round, all rounds enqueued ahead, by two queues on one stream.
void Exchange(ferry_queue_type type, void* stream) {
  constexpr size_t kSize = 100'000;
  constexpr int kRounds = 20;
  Buffer memory(kDevice, kSize);
  if (Sends()) {
    memory.Fill(0, kSize, 5);
  }
  const ferry_request request = MakeMatched(memory.at(0), kSize, 1);
  ferry_queue first = FERRY_QUEUE_NULL;
  ferry_queue second = FERRY_QUEUE_NULL;
  CHECK_OK(ferry_queue_init(type, &stream, &first));
  CHECK_OK(ferry_queue_init(type, &stream, &second));
  for (const ferry_queue queue : {first, second}) {
    for (int round = 0; round < kRounds; ++round) {
      CHECK_OK(ferry_enqueue_start(queue, request));
      CHECK_OK(ferry_enqueue_wait(queue, request));
    }
    CHECK_OK(ferry_queue_wait(queue));
  }
  memory.Check(0, kSize, 5);
  CHECK_OK(ferry_queue_free(&first));
  CHECK_OK(ferry_queue_free(&second));
  ferry_request done = request;
  CHECK_OK(ferry_request_free(&done));
}

// Device memory goes to the other rank and comes back, by calls that the stream waits for.
void PutAndGet(ferry_queue_type type, void* stream) {
  constexpr size_t kSize = 50'000;
  Buffer memory(kDevice, 2 * kSize);
  Buffer other(ferry::ranks::kHeap, kSize);
  memory.Fill(0, kSize, 3 + static_cast<uint64_t>(ferry_rank()));
  const int partner = ferry::ranks::Partner();
  ferry_place own{};
  ferry_place theirs{};
  CHECK_OK(ferry_locate(other.at(0), kSize, &own));
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(ferry_irecv(&theirs, sizeof(theirs), partner, 2, &request));
  CHECK_OK(ferry_send(&own, sizeof(own), partner, 2));
  CHECK_OK(ferry_wait(&request, nullptr));
  ferry_queue queue = FERRY_QUEUE_NULL;
  CHECK_OK(ferry_queue_init(type, &stream, &queue));
  CHECK_OK(ferry_enqueue_put(queue, FERRY_CONTEXT_DEFAULT, theirs, memory.at(0), kSize));
  CHECK_OK(ferry_enqueue_quiet(queue, FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_enqueue_get(queue, FERRY_CONTEXT_DEFAULT, memory.at(kSize), theirs, kSize));
  CHECK_OK(ferry_queue_wait(queue));
  memory.Check(kSize, kSize, 3 + static_cast<uint64_t>(ferry_rank()));
  CHECK_OK(ferry_barrier());
  other.Check(0, kSize, 3 + static_cast<uint64_t>(partner));
  CHECK_OK(ferry_queue_free(&queue));
  CHECK_OK(ferry_barrier());
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 3);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  library = dlopen(argv[2], RTLD_NOW);
  CHECK_EQ(library != nullptr, true);
  const bool is_cuda = std::string_view(argv[1]) == "cuda";
  void* const stream = is_cuda ? MakeCudaStream() : MakeHipStream();
  Exchange(is_cuda ? FERRY_QUEUE_CUDA : FERRY_QUEUE_HIP, stream);
  Exchange(is_cuda ? FERRY_QUEUE_CUDA : FERRY_QUEUE_HIP, stream);  // adopted anew
  PutAndGet(is_cuda ? FERRY_QUEUE_CUDA : FERRY_QUEUE_HIP, stream);
  // The stream still belongs to the program.
  Call(is_cuda ? "cuStreamDestroy_v2" : "hipStreamDestroy", stream);
  CHECK_OK(ferry_finalize());
  return 0;
}
