// halo_VENDOR: halo exchanges by ferry/halo.h whose fields lie in memory of the vendor's calls, as
// fields of applications do. Streams pack and unpack by copies, which works with every vendor's
// library and its stand-in; ghosts are added to cells in host memory.
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>

#include "ferry/halo.h"
#include "tests/e2e/ranks/halo_rounds.h"
#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {
namespace {

struct CopyingDevice : EmulatedDevice {
  template <typename Body>
  static void Launch(Stream stream, const HaloKernel* kernel) {
    for (size_t i = 0; i < kernel->move_count; ++i) {
      MoveRows<Body>(stream, *kernel, kernel->moves[i]);
    }
  }

  // Where the stream adds rows, one after the other.
  struct Row {
    static constexpr size_t kMostBytes = 4096;
    ferry::Buffer<std::byte> cells{kMostBytes, FERRY_MEMORY_PINNED};
    ferry::Buffer<std::byte> packed{kMostBytes, FERRY_MEMORY_PINNED};
  };
  static inline std::unique_ptr<Row> row;

 private:
  template <typename Body>
  static void MoveRows(Stream stream, const HaloKernel& kernel, const halo::Move& move) {
    const auto& [first, count] = move.box;
    const size_t bytes = static_cast<size_t>(count[0]) * kernel.element_bytes;
    std::byte* packed = move.packed;
    for (int z = first[2]; z < first[2] + count[2]; ++z) {
      for (int y = first[1]; y < first[1] + count[1]; ++y, packed += bytes) {
        const auto cell =
            static_cast<size_t>((z * kernel.extent[1] + y) * kernel.extent[0] + first[0]);
        std::byte* const cells = kernel.field + cell * kernel.element_bytes;
        if constexpr (std::is_same_v<Body, HaloPack>) {
          Copy(stream, packed, cells, bytes);
        } else if constexpr (std::is_same_v<Body, HaloUnpack>) {
          Copy(stream, cells, packed, bytes);
        } else {
          Combine<Body>(stream, cells, packed, bytes);
        }
      }
    }
  }

  template <typename Body>
  static void Combine(Stream stream, std::byte* cells, const std::byte* packed, size_t bytes) {
    static std::deque<size_t> sizes;  // the stream reads them later
    VENDOR_CHECK(bytes <= Row::kMostBytes);
    sizes.push_back(bytes);
    Copy(stream, row->cells.data(), cells, bytes);
    Copy(stream, row->packed.data(), packed, bytes);
    Check(ferry_stream_launch(
        stream,
        [](void* size) {
          Body::Apply(row->cells.data(), row->packed.data(), *static_cast<const size_t*>(size));
        },
        &sizes.back()));
    Copy(stream, cells, row->cells.data(), bytes);
  }
};

using halo_rounds::Case;

constexpr Case kCases[] = {
    {.dimensions = 1,
     .ranks = {2, 1, 1},
     .periodic = {true, false, false},
     .faces = true,
     .edges = false,
     .corners = false,
     .ghost = 2,
     .components = 3},
    {.dimensions = 2,
     .ranks = {1, 2, 1},
     .periodic = {true, false, false},
     .faces = true,
     .edges = false,
     .corners = true,
     .ghost = 2,
     .components = 1},
    {.dimensions = 3,
     .ranks = {2, 1, 1},
     .periodic = {false, false, false},
     .faces = true,
     .edges = true,
     .corners = true,
     .ghost = 1,
     .components = 1},
};
constexpr Sends kSends[] = {Sends::kReady, Sends::kStandard, Sends::kByCpu, Sends::kStaged};

// All ways with the usual kind of memory; the others in turns.
void RunAll(ferry_stream stream) {
  constexpr size_t kEvery = 5;  // no multiple of the ways to send
  size_t number = 0;
  for (const Kind& kind : Kinds()) {
    const bool is_usual = std::string(kind.name) == "device";
    for (const Case& each : kCases) {
      for (const Sends sends : kSends) {
        if (!is_usual && ++number % kEvery != 0) {
          continue;
        }
        step = std::string(kind.name) + ", " + std::to_string(each.dimensions) +
               " dimensions, sends " + std::to_string(static_cast<int>(sends));
        halo_rounds::Run<CopyingDevice>(each, sends, stream,
                                        [&](size_t bytes) { return Buffer(kind, bytes); });
      }
    }
  }
}

}  // namespace
}  // namespace ferry::vendor_memory

int main() {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  Begin();
  try {
    const ferry::Session session;
    ferry_stream stream = nullptr;
    ferry::Check(ferry_stream_create(0, &stream));
    CopyingDevice::row = std::make_unique<CopyingDevice::Row>();
    RunAll(stream);
    CopyingDevice::row.reset();
    ferry::Check(ferry_stream_destroy(&stream));
    if (ferry_rank() == 0) {
      std::printf("%s memory was right\n", VendorName());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in %s: %s\n", step.c_str(), error.what());
    return 1;
  }
}
