// virtual_cuda: memory that is mapped to reserved addresses piece by piece,
// with holes and anew, as PyTorch's expandable segments are. Two ranks.
#include <array>

#include "tests/fixtures/cuda/cuda_stand_in.h"
#include "tests/vendor_memory/ferry_calls.h"

namespace ferry::vendor_memory {
namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace): the driver's
                           // names

constexpr size_t kPiece = size_t{2} << 20;
constexpr size_t kPieces = 4;
constexpr CudaMemoryLocation kDevice{kCudaMemoryLocationDevice, 0};

#define VENDOR_CU(call) VENDOR_CHECK((call) == kCudaSuccess)

class Segment {
 public:
  Segment() { VENDOR_CU(cuMemAddressReserve(&begin_, kPieces * kPiece, 0, 0, 0)); }
  ~Segment() {
    for (size_t piece = 0; piece < kPieces; ++piece) {
      if (is_mapped_[piece]) {
        Unmap(piece);
      }
    }
    VENDOR_CU(cuMemAddressFree(begin_, kPieces * kPiece));
  }
  Segment(const Segment &) = delete;
  Segment &operator=(const Segment &) = delete;

  static CudaMemoryHandle NewMemory() {
    CudaMemoryProperties properties{};
    properties.type = kCudaMemoryPinnedType;
    properties.location = kDevice;
    CudaMemoryHandle memory = 0;
    VENDOR_CU(cuMemCreate(&memory, kPiece, &properties, 0));
    return memory;
  }
  void Map(size_t piece, CudaMemoryHandle memory) {
    const CudaMemoryAccess access{kDevice, kCudaMemoryReadWrite};
    VENDOR_CU(cuMemMap(begin_ + piece * kPiece, kPiece, 0, memory, 0));
    VENDOR_CU(cuMemSetAccess(begin_ + piece * kPiece, kPiece, &access, 1));
    is_mapped_[piece] = true;
  }
  void Map(size_t piece) {
    const CudaMemoryHandle memory = NewMemory();
    Map(piece, memory);
    VENDOR_CU(cuMemRelease(memory));
  }
  void Unmap(size_t piece) {
    VENDOR_CU(cuMemUnmap(begin_ + piece * kPiece, kPiece));
    is_mapped_[piece] = false;
  }
  std::byte *At(size_t piece, ptrdiff_t offset = 0) const {
    return reinterpret_cast<std::byte *>(begin_ + piece * kPiece) + offset;
  }

 private:
  CudaDevicePtr begin_ = 0;
  std::array<bool, kPieces> is_mapped_{};
};

void Write(std::byte *memory, size_t bytes, unsigned seed) {
  Copy(memory, Buffer::Pattern(bytes, seed).data(), bytes);
}
std::vector<unsigned char> Read(const std::byte *memory, size_t bytes) {
  std::vector<unsigned char> found(bytes);
  Copy(found.data(), memory, bytes);
  return found;
}

// The ranks send each other what lies there; it arrives at the same place.
void Swap(std::byte *memory, size_t bytes, unsigned seed) {
  const std::vector<unsigned char> theirs =
      Buffer::Pattern(bytes, seed + static_cast<unsigned>(Peer()));
  std::vector<unsigned char> plain(bytes);
  ferry_request requests[2];
  Write(memory, bytes, seed + static_cast<unsigned>(ferry_rank()));
  VENDOR_FERRY(ferry_irecv(plain.data(), bytes, Peer(), 2, &requests[0]));
  VENDOR_FERRY(ferry_isend(memory, bytes, Peer(), 2, &requests[1]));
  VENDOR_FERRY(ferry_waitall(2, requests, nullptr));
  VENDOR_CHECK(plain == theirs);
  const std::vector<unsigned char> back =
      Buffer::Pattern(bytes, seed + static_cast<unsigned>(ferry_rank()));
  VENDOR_FERRY(ferry_irecv(memory, bytes, Peer(), 3, &requests[0]));
  VENDOR_FERRY(ferry_isend(plain.data(), bytes, Peer(), 3, &requests[1]));
  VENDOR_FERRY(ferry_waitall(2, requests, nullptr));
  VENDOR_CHECK(Read(memory, bytes) == back);
}

void ExpectHole(const std::byte *memory, size_t bytes, const std::byte *hole) {
  char address[32];
  std::snprintf(address, sizeof(address), "%p", static_cast<const void *>(hole));
  ferry_request request = FERRY_REQUEST_NULL;
  const auto is_named = [&](int code) {
    const std::string said = ferry_last_error();
    if (code != FERRY_ERR_BUFFER || said.find(address) == std::string::npos) {
      Fail(__FILE__, __LINE__, (said + ", not " + address).c_str());
    }
  };
  is_named(ferry_send(memory, bytes, Peer(), 4));
  is_named(ferry_irecv(const_cast<std::byte *>(memory), bytes, Peer(), 4, &request));
}

void UseSegment() {
  constexpr ptrdiff_t kBefore = 500;
  Segment segment;
  segment.Map(0);
  segment.Map(1);
  segment.Map(3);
  step = "two pieces side by side";
  for (const size_t bytes : {size_t{2 * kBefore}, size_t{100'000}}) {
    Swap(segment.At(1, -kBefore), bytes, 1);
    Swap(segment.At(1, kBefore), bytes, 2);
  }
  step = "a hole";
  Write(segment.At(1), kPiece, 3);
  Write(segment.At(3), kPiece, 4);
  ExpectHole(segment.At(2, -kBefore), kBefore + 1, segment.At(2));
  ExpectHole(segment.At(1, -kBefore), kPiece + 2 * kBefore, segment.At(2));
  ExpectHole(segment.At(2, -kBefore), kPiece + 2 * kBefore, segment.At(2));
  ExpectHole(segment.At(2, kBefore), 8, segment.At(2, kBefore));
  Swap(segment.At(2, -kBefore), kBefore, 5);  // up to its last byte
  Swap(segment.At(3), kBefore, 6);            // and behind
  step = "the hole is filled";
  segment.Map(2);
  Swap(segment.At(2, -kBefore), kPiece + 2 * kBefore, 7);

  step = "mapped anew";
  const CudaMemoryHandle first = Segment::NewMemory();
  Segment aside;  // where the first memory stays to be seen
  segment.Unmap(1);
  ExpectHole(segment.At(1, -kBefore), 2 * kBefore, segment.At(1));
  segment.Map(1, first);
  aside.Map(0, first);
  Swap(segment.At(1, -kBefore), 2 * kBefore, 8);
  Write(segment.At(1), kPiece, 9);
  segment.Unmap(1);
  segment.Map(1);
  for (const size_t bytes : {size_t{2 * kBefore}, size_t{100'000}}) {
    Swap(segment.At(1, -kBefore), bytes, 10);
  }
  VENDOR_CHECK(Read(aside.At(0), kPiece) == Buffer::Pattern(kPiece, 9));
  VENDOR_CU(cuMemRelease(first));
  VENDOR_FERRY(ferry_barrier());
}

}  // namespace
}  // namespace ferry::vendor_memory

int main() {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  Begin();
  VENDOR_FERRY(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  UseSegment();
  if (ferry_rank() == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  VENDOR_FERRY(ferry_finalize());
  return 0;
}
