// far_VENDOR: device memory of the other rank is read and written block by block, by ferry.h's
// calls with strides and by one call for each block, from and to device memory and ordinary one.
// Beside the blocks nothing changes. Two ranks.
#include <algorithm>
#include <functional>

#include "tests/vendor_memory/ferry_calls.h"

namespace ferry::vendor_memory {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr size_t kTargetBytes = 200'000;
constexpr unsigned char kBlank = 0xCC;

// Of one side: blocks that begin so many bytes after each other, below 0: before.
struct Blocks {
  size_t bytes;  // of a block
  size_t count;
  ptrdiff_t stride;

  size_t span() const {
    return (count - 1) * static_cast<size_t>(stride < 0 ? -stride : stride) + bytes;
  }
  // Where block i begins, from the lowest byte of all.
  size_t At(size_t i) const {
    const size_t first = stride < 0 ? span() - bytes : 0;
    return first + static_cast<size_t>(stride) * i;  // wraps around where the stride is negative
  }
};

struct Shape {
  size_t bytes;
  size_t count;
  ptrdiff_t there;
  ptrdiff_t here;
};
constexpr Shape kShapes[] = {
    {1, 1000, 3, 2},       {8, 900, 24, 8},         {16, 400, -48, 40},           {7, 500, 7, 21},
    {300, 100, 1000, 300}, {3000, 30, 5000, -3001}, {60'000, 2, 100'001, 60'000}, {13, 1, 13, 13},
};

Bytes Moved(const Bytes& from, const Blocks& these, Bytes to, const Blocks& there) {
  for (size_t i = 0; i < these.count; ++i) {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(these.At(i)), these.bytes,
                to.begin() + static_cast<ptrdiff_t>(there.At(i)));
  }
  return to;
}

// Memory of this rank's: the vendor's, or ordinary one.
struct Here {
  std::byte* data;
  std::function<void(const Bytes&)> write;
  std::function<Bytes()> read;
};

void MoveBlocks(const Shape& shape, const Buffer& own, const ferry_place& theirs, const Here& here,
                bool by_calls_of_their_own) {
  const Blocks there{shape.bytes, shape.count, shape.there};
  const Blocks local{shape.bytes, shape.count, shape.here};
  const auto mine = Buffer::Pattern(local.span(), static_cast<unsigned>(ferry_rank()) + 1);
  const auto others = Buffer::Pattern(local.span(), static_cast<unsigned>(Peer()) + 1);
  const Bytes blank_there(kTargetBytes, kBlank);
  const Bytes blank_here(local.span(), kBlank);
  const size_t begin = 100;  // of the blocks in the target
  const auto place = [&](size_t i) {
    ferry_place at = theirs;
    at.offset += begin + there.At(i);
    return at;
  };

  Copy(own.data(), blank_there.data(), kTargetBytes);
  here.write(mine);
  VENDOR_FERRY(ferry_barrier());
  if (by_calls_of_their_own) {
    for (size_t i = 0; i < shape.count; ++i) {
      VENDOR_FERRY(
          ferry_put(FERRY_CONTEXT_DEFAULT, place(i), here.data + local.At(i), shape.bytes));
    }
  } else {
    VENDOR_FERRY(ferry_iput(FERRY_CONTEXT_DEFAULT, place(0), shape.there, here.data + local.At(0),
                            shape.here, shape.bytes, shape.count));
  }
  VENDOR_FERRY(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  VENDOR_FERRY(ferry_barrier());
  const Bytes part = Moved(others, local, Bytes(there.span(), kBlank), there);
  Bytes expected = blank_there;
  std::copy(part.begin(), part.end(), expected.begin() + static_cast<ptrdiff_t>(begin));
  VENDOR_CHECK(own.Read<unsigned char>(kTargetBytes) == expected);

  here.write(blank_here);
  if (by_calls_of_their_own) {
    for (size_t i = 0; i < shape.count; ++i) {
      VENDOR_FERRY(
          ferry_get_nbi(FERRY_CONTEXT_DEFAULT, here.data + local.At(i), place(i), shape.bytes));
    }
    VENDOR_FERRY(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  } else {
    VENDOR_FERRY(ferry_iget(FERRY_CONTEXT_DEFAULT, here.data + local.At(0), shape.here, place(0),
                            shape.there, shape.bytes, shape.count));
  }
  VENDOR_CHECK(here.read() == Moved(mine, local, blank_here, local));
  VENDOR_FERRY(ferry_barrier());
}

void Run() {
  constexpr size_t kMostCalls = 100;  // by one for each block
  const Buffer own(*FindKind("device"), kTargetBytes);
  const ferry_place theirs = Exchanged(PlaceOf(own.data(), kTargetBytes));
  for (const Shape& shape : kShapes) {
    const Blocks local{shape.bytes, shape.count, shape.here};
    step = std::to_string(shape.count) + " blocks of " + std::to_string(shape.bytes) +
           " bytes, every " + std::to_string(shape.there) + " there";
    Buffer device(*FindKind("device"), local.span());
    Bytes plain(local.span());
    const Here in_device{device.data(), [&](const Bytes& bytes) { device.Write(bytes); },
                         [&] { return device.Read<unsigned char>(device.bytes()); }};
    const Here in_plain{
        reinterpret_cast<std::byte*>(plain.data()),
        [&](const Bytes& bytes) { std::copy(bytes.begin(), bytes.end(), plain.begin()); },
        [&] { return plain; }};
    for (const Here* here : {&in_device, &in_plain}) {
      MoveBlocks(shape, own, theirs, *here, false);
      if (shape.count <= kMostCalls) {
        MoveBlocks(shape, own, theirs, *here, true);
      }
    }
  }
}

}  // namespace
}  // namespace ferry::vendor_memory

int main() {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  Begin();
  VENDOR_FERRY(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  Run();
  VENDOR_FERRY(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  VENDOR_FERRY(ferry_finalize());
  return 0;
}
