// virtual_VENDOR: memory that is mapped to reserved addresses piece by piece, with holes and anew,
// as PyTorch's expandable segments are. Two ranks.
#include <algorithm>
#include <array>
#include <utility>

#include "tests/vendor_memory/ferry_calls.h"

namespace ferry::vendor_memory {
namespace {

constexpr size_t kPiece = kMappingBytes;
constexpr size_t kPieces = 4;

class Segment {
 public:
  Segment() : begin_(ReserveAddresses(kPieces * kPiece)) {}
  ~Segment() {
    for (size_t piece = 0; piece < kPieces; ++piece) {
      if (mapped_[piece] != nullptr) {
        ReleaseMemory(Unmap(piece));
      }
    }
    FreeAddresses(begin_, kPieces * kPiece);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  void Map(size_t piece, void* memory) {
    MapMemory(At(piece), memory, kPiece);
    mapped_[piece] = memory;
  }
  void Map(size_t piece) { Map(piece, NewMemory(kPiece)); }
  // Returns the memory.
  void* Unmap(size_t piece) {
    UnmapMemory(At(piece), kPiece);
    return std::exchange(mapped_[piece], nullptr);
  }
  std::byte* At(size_t piece, ptrdiff_t offset = 0) const {
    return begin_ + piece * kPiece + offset;
  }

 private:
  std::byte* const begin_;
  std::array<void*, kPieces> mapped_{};
};

void Write(std::byte* memory, size_t bytes, unsigned seed) {
  Copy(memory, Buffer::Pattern(bytes, seed).data(), bytes);
}
std::vector<unsigned char> Read(const std::byte* memory, size_t bytes) {
  std::vector<unsigned char> found(bytes);
  Copy(found.data(), memory, bytes);
  return found;
}

// The ranks send each other what lies there; it arrives at the same place.
void Swap(std::byte* memory, size_t bytes, unsigned seed) {
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

void ExpectHole(const std::byte* memory, size_t bytes, const std::byte* hole) {
  char address[32];
  std::snprintf(address, sizeof(address), "%p", static_cast<const void*>(hole));
  ferry_request request = FERRY_REQUEST_NULL;
  const auto is_named = [&](int code) {
    const std::string said = ferry_last_error();
    if (code != FERRY_ERR_BUFFER || said.find(address) == std::string::npos) {
      Fail(__FILE__, __LINE__, (said + ", not " + address).c_str());
    }
  };
  is_named(ferry_send(memory, bytes, Peer(), 4));
  is_named(ferry_irecv(const_cast<std::byte*>(memory), bytes, Peer(), 4, &request));
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
  Write(segment.At(1), kPiece, 9);
  Segment aside;  // where the first memory is looked at
  aside.Map(0, segment.Unmap(1));
  ExpectHole(segment.At(1, -kBefore), 2 * kBefore, segment.At(1));
  segment.Map(1);
  for (const size_t bytes : {size_t{2 * kBefore}, size_t{100'000}}) {
    Swap(segment.At(1, -kBefore), bytes, 10);
    Swap(segment.At(1, kBefore), bytes, 11);
  }
  VENDOR_CHECK(Read(aside.At(0), kPiece) == Buffer::Pattern(kPiece, 9));
  VENDOR_FERRY(ferry_barrier());
}

// A buffer in more mappings than Ferry keeps allocations in mind, where they are small.
void UseMany() {
  constexpr size_t kMost = 600;
  constexpr size_t kMostBytes = size_t{40} << 20;
  const size_t piece_bytes = LeastMappingBytes();
  const size_t bytes = std::min(kMost, kMostBytes / piece_bytes) * piece_bytes;
  step = "many mappings of " + std::to_string(piece_bytes) + " bytes";
  const size_t reserved = (bytes + kPiece - 1) / kPiece * kPiece;
  std::byte* const begin = ReserveAddresses(reserved);
  std::vector<void*> memory;
  for (std::byte* at = begin; at < begin + bytes; at += piece_bytes) {
    memory.push_back(NewMemory(piece_bytes));
    MapMemory(at, memory.back(), piece_bytes);
  }
  Swap(begin + 100, bytes - 200, 12);
  Swap(begin, piece_bytes + 300, 13);
  Swap(begin + bytes - piece_bytes - 300, piece_bytes + 300, 14);
  VENDOR_FERRY(ferry_barrier());
  for (size_t piece = 0; piece < memory.size(); ++piece) {
    UnmapMemory(begin + piece * piece_bytes, piece_bytes);
    ReleaseMemory(memory[piece]);
  }
  FreeAddresses(begin, reserved);
}

}  // namespace
}  // namespace ferry::vendor_memory

int main() {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  Begin();
  VENDOR_FERRY(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  UseSegment();
  UseMany();
  if (ferry_rank() == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  VENDOR_FERRY(ferry_finalize());
  return 0;
}
