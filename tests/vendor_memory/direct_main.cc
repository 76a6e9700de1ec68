// direct_VENDOR [few_copies]: hands memory of the vendor's calls to ferry.h: messages, registered
// memory, matched pairs by queues, one-sided calls. few_copies: the device has kernels for blocks.
#include <cstdint>

#include "ferry/stream.h"
#include "tests/vendor_memory/ferry_calls.h"
#include "tests/vendor_memory/stand_in.h"

namespace ferry::vendor_memory {
namespace {

bool counts_copies = false;

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

constexpr size_t kLongest = 200'000;

// Memory that the others put to and get from.
struct Common {
  Common(std::byte* own, bool is_in_host) : memory(own), is_host(is_in_host) {
    const Ring ring;
    const ferry_place mine = PlaceOf(memory, kLongest);
    ferry_request requests[2];
    VENDOR_FERRY(ferry_irecv(&theirs, sizeof(theirs), ring.next, 3, &requests[0]));
    VENDOR_FERRY(ferry_isend(&mine, sizeof(mine), ring.before, 3, &requests[1]));
    VENDOR_FERRY(ferry_waitall(2, requests, nullptr));
  }
  // Of Ferry's.
  static const Common& InHost() {
    static const Common common(
        [] {
          void* memory = nullptr;
          VENDOR_FERRY(ferry_alloc(kLongest, FERRY_MEMORY_HOST, 0, &memory));
          return static_cast<std::byte*>(memory);
        }(),
        true);
    return common;
  }
  // Of the vendor's.
  static const Common& InDevice() {
    static const Common common(static_cast<std::byte*>(FindKind("device")->allocate(kLongest)),
                               false);
    return common;
  }

  // All of it. Of Ferry's heap the vendor may know some pages, and then copies across none.
  void Write(const std::vector<unsigned char>& bytes) const {
    is_host ? void(std::memcpy(memory, bytes.data(), kLongest))
            : Copy(memory, bytes.data(), kLongest);
  }
  std::vector<unsigned char> Read() const {
    std::vector<unsigned char> bytes(kLongest);
    is_host ? void(std::memcpy(bytes.data(), memory, kLongest))
            : Copy(bytes.data(), memory, kLongest);
    return bytes;
  }

  std::byte* const memory;
  const bool is_host;
  ferry_place theirs{};  // of the next rank
};

void PutAndGet(const Kind& kind) {
  const Ring ring;
  ferry_context context = 0;
  const std::byte* const common = Common::InHost().memory;
  const ferry_place theirs = Common::InHost().theirs;
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

// While this lives, the vendor's library fails to copy once it has been asked to that often.
class MostCopies {
 public:
  explicit MostCopies(int most) {
    const std::string after = ":" + std::to_string(most) + "+:1";
    VENDOR_CHECK(!counts_copies || SetFaults("cuMemcpyAsync" + after + ",hipMemcpyAsync" + after));
  }
  ~MostCopies() {
    if (counts_copies) {
      SetFaults("");
    }
  }
  MostCopies(const MostCopies&) = delete;
  MostCopies& operator=(const MostCopies&) = delete;
};

// Blocks move many at a time, although a stream could copy each of them.
void MoveBlocks(const Kind& kind, const Common& common, ptrdiff_t stride_there) {
  constexpr size_t kBlocks = 400;
  constexpr size_t kBlockBytes = 16;
  constexpr ptrdiff_t kStride = 40;
  constexpr int kFew = 50;
  const Ring ring;
  Buffer here(kind, kBlocks * kStride);
  ferry_place there = common.theirs;
  there.offset += stride_there < 0 ? kLongest - kBlockBytes : 0;
  const size_t first = stride_there < 0 ? kLongest - kBlockBytes : 0;
  const std::vector<unsigned char> blank(kLongest, 0xCC);
  common.Write(blank);
  here.Fill(ring.own);
  VENDOR_FERRY(ferry_barrier());
  {
    const MostCopies limit(kFew);
    VENDOR_FERRY(ferry_iput(FERRY_CONTEXT_DEFAULT, there, stride_there, here.data(), kStride,
                            kBlockBytes, kBlocks));
  }
  VENDOR_FERRY(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  VENDOR_FERRY(ferry_barrier());
  std::vector<unsigned char> expected = blank;
  const std::vector<unsigned char> sent = Buffer::Pattern(here.bytes(), ring.theirs);
  for (size_t i = 0; i < kBlocks; ++i) {
    std::memcpy(expected.data() + first + static_cast<size_t>(stride_there) * i,
                sent.data() + kStride * i, kBlockBytes);
  }
  VENDOR_CHECK(common.Read() == expected);

  here.Clear();
  {
    const MostCopies limit(kFew);
    VENDOR_FERRY(ferry_iget(FERRY_CONTEXT_DEFAULT, here.data(), kStride, there, stride_there,
                            kBlockBytes, kBlocks));
  }
  std::vector<unsigned char> got(here.bytes(), 0xCC);
  const std::vector<unsigned char> own = Buffer::Pattern(here.bytes(), ring.own);
  for (size_t i = 0; i < kBlocks; ++i) {
    std::memcpy(got.data() + kStride * i, own.data() + kStride * i, kBlockBytes);
  }
  VENDOR_CHECK(here.Read<unsigned char>(here.bytes()) == got);
  VENDOR_FERRY(ferry_barrier());
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
    step = std::string("blocks, ") + kind.name;
    for (const ptrdiff_t stride : {16, 24, -48}) {
      MoveBlocks(kind, Common::InHost(), stride);
      MoveBlocks(kind, Common::InDevice(), stride);
    }
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

int main(int argc, char** argv) {
  ferry::vendor_memory::counts_copies = argc > 1 && std::string(argv[1]) == "few_copies";
  ferry::vendor_memory::Begin();
  return ferry::vendor_memory::Run();
}
