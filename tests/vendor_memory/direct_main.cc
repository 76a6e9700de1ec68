// direct_VENDOR: hands memory of the vendor's calls to ferry.h: messages, registered memory,
// matched pairs by queues, one-sided calls.
#include <cstdint>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "ferry/stream.h"
#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {
namespace {

#define VENDOR_FERRY(call) CheckFerry(__FILE__, __LINE__, #call, (call))

void CheckFerry(const char* file, int line, const char* call, int code) {
  if (code != FERRY_SUCCESS) {
    const std::string text =
        std::string(call) + ": " + ferry_error_string(code) + ": " + ferry_last_error();
    Fail(file, line, text.c_str());
  }
}

struct Ring {
  int next = (ferry_rank() + 1) % ferry_size();
  int before = (ferry_rank() + ferry_size() - 1) % ferry_size();
  unsigned own = static_cast<unsigned>(ferry_rank());
  unsigned theirs = static_cast<unsigned>(before);
};

void Exchange(const Ring& ring, const void* out, void* in, size_t bytes) {
  ferry_request requests[2];
  VENDOR_FERRY(ferry_irecv(in, bytes, ring.before, 1, &requests[0]));
  VENDOR_FERRY(ferry_isend(out, bytes, ring.next, 1, &requests[1]));
  VENDOR_FERRY(ferry_waitall(2, requests, nullptr));
}

void SendMessages(const Kind& kind) {
  const Ring ring;
  for (const size_t bytes : {size_t{8}, size_t{4000}, size_t{30'000}, size_t{256} << 10}) {
    Buffer out(kind, bytes);
    Buffer in(kind, bytes);
    out.Fill(ring.own);
    Exchange(ring, out.data(), in.data(), bytes);
    VENDOR_CHECK(in.IsFilled(ring.theirs));
    // Copies of Ferry's own know the memory, too.
    std::vector<unsigned char> plain(bytes);
    VENDOR_FERRY(ferry_memcpy(plain.data(), in.data(), bytes));
    VENDOR_CHECK(plain == Buffer::Pattern(bytes, ring.theirs));
    // It needs no registration.
    VENDOR_CHECK(ferry_register(out.data(), bytes) == FERRY_ERR_EXISTS);
  }
}

void SendByQueues(const Kind& kind) {
  const Ring ring;
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;
  VENDOR_FERRY(ferry_stream_create(0, &stream));
  VENDOR_FERRY(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  for (const size_t bytes : {size_t{16}, size_t{100'000}}) {
    Buffer out(kind, bytes);
    Buffer in(kind, bytes);
    ferry_request requests[2];
    VENDOR_FERRY(ferry_recv_init(in.data(), bytes, ring.before, 2, &requests[0]));
    VENDOR_FERRY(ferry_send_init(out.data(), bytes, ring.next, 2, &requests[1]));
    VENDOR_FERRY(ferry_matchall(2, requests));
    for (unsigned round = 0; round < 3; ++round) {
      out.Fill(ring.own + round);
      in.Clear();
      VENDOR_FERRY(ferry_enqueue_startall(queue, 2, requests));
      VENDOR_FERRY(ferry_enqueue_waitall(queue, 2, requests));
      VENDOR_FERRY(ferry_queue_wait(queue));
      VENDOR_CHECK(in.IsFilled(ring.theirs + round));
    }
    VENDOR_FERRY(ferry_request_free(&requests[0]));
    VENDOR_FERRY(ferry_request_free(&requests[1]));
  }
  VENDOR_FERRY(ferry_queue_free(&queue));
  VENDOR_FERRY(ferry_stream_destroy(&stream));
}

void PutAndGet(const Kind& kind) {
  const Ring ring;
  constexpr size_t kLongest = 200'000;
  static void* common = nullptr;  // of Ferry's, as ferry_locate wants it
  static ferry_place theirs;
  ferry_context context = 0;
  if (common == nullptr) {
    ferry_place own{};
    VENDOR_FERRY(ferry_alloc(kLongest, FERRY_MEMORY_HOST, 0, &common));
    VENDOR_FERRY(ferry_locate(common, kLongest, &own));
    ferry_request requests[2];
    VENDOR_FERRY(ferry_irecv(&theirs, sizeof(theirs), ring.next, 3, &requests[0]));
    VENDOR_FERRY(ferry_isend(&own, sizeof(own), ring.before, 3, &requests[1]));
    VENDOR_FERRY(ferry_waitall(2, requests, nullptr));
  }
  VENDOR_FERRY(ferry_context_create(&context));
  for (const size_t bytes : {size_t{8}, size_t{5000}, kLongest}) {
    Buffer from(kind, bytes);
    Buffer to(kind, bytes);
    from.Fill(ring.own);
    VENDOR_FERRY(ferry_put(context, theirs, from.data(), bytes));
    VENDOR_FERRY(ferry_quiet(context));
    VENDOR_FERRY(ferry_barrier());
    std::vector<unsigned char> plain(bytes);
    std::memcpy(plain.data(), common, bytes);
    VENDOR_CHECK(plain == Buffer::Pattern(bytes, ring.theirs));
    VENDOR_FERRY(ferry_get(context, to.data(), theirs, bytes));
    VENDOR_CHECK(to.IsFilled(ring.own));
    to.Clear();
    VENDOR_FERRY(ferry_get_nbi(context, to.data(), theirs, bytes));
    VENDOR_FERRY(ferry_quiet(context));
    VENDOR_CHECK(to.IsFilled(ring.own));
    VENDOR_FERRY(ferry_barrier());
  }
  VENDOR_FERRY(ferry_context_destroy(&context));
}

int Run() {
  int provided = 0;
  VENDOR_FERRY(ferry_init(FERRY_THREAD_SINGLE, &provided));
  for (const Kind& kind : Kinds()) {
    step = std::string("messages, ") + kind.name;
    SendMessages(kind);
    step = std::string("queues, ") + kind.name;
    SendByQueues(kind);
    step = std::string("one-sided, ") + kind.name;
    PutAndGet(kind);
  }
  VENDOR_FERRY(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  VENDOR_FERRY(ferry_finalize());
  return 0;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main() {
  ferry::vendor_memory::Begin();
  return ferry::vendor_memory::Run();
}
