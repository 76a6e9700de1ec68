// halo/kernels.h - the device code of ferry/halo.h: packing cells into messages, and back.
//
// A device is a class like EmulatedDevice below. For a GPU it launches a kernel of its own, one
// thread for each element, that calls Body::Apply; kernels get a HaloKernel by value.
#pragma once

#include <cstddef>
#include <cstring>

#include "ferry/ferry.hpp"
#include "ferry/halo/block.h"
#include "ferry/stream.h"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define FERRY_HALO_FUNCTION __host__ __device__
#else
#define FERRY_HALO_FUNCTION
#endif

namespace ferry {
namespace halo {

// Cells of the field, and the place in device memory where they lie packed, axis 0 fastest.
struct Move {
  Box box;
  std::byte* packed = nullptr;
};

}  // namespace halo

// One launch: all moves of one exchange, in their order. Plain data, which a kernel may be given by
// value; the moves outlive it.
struct HaloKernel {
  std::byte* field = nullptr;
  halo::Triple extent{};
  size_t element_bytes = 0;
  const halo::Move* moves = nullptr;
  size_t move_count = 0;
};

// ---- Bodies: functions of cells and as many packed ones ----------------------------------------

struct HaloPack {
  static FERRY_HALO_FUNCTION void Apply(std::byte* cells, std::byte* packed, size_t bytes) {
    std::memcpy(packed, cells, bytes);
  }
};
struct HaloUnpack {
  static FERRY_HALO_FUNCTION void Apply(std::byte* cells, const std::byte* packed, size_t bytes) {
    std::memcpy(cells, packed, bytes);
  }
};
// cells = Op()(cells, packed), of numbers of type T.
template <typename T, typename Op>
struct HaloCombine {
  static FERRY_HALO_FUNCTION void Apply(std::byte* cells, const std::byte* packed, size_t bytes) {
    for (size_t i = 0; i < bytes; i += sizeof(T)) {
      T own;
      T other;
      std::memcpy(&own, cells + i, sizeof(T));  // the caller knows the type of the bytes
      std::memcpy(&other, packed + i, sizeof(T));
      own = Op()(own, other);
      std::memcpy(cells + i, &own, sizeof(T));
    }
  }
};
struct HaloAdd {
  template <typename T>
  FERRY_HALO_FUNCTION T operator()(T owned, T ghost) const {
    return owned + ghost;
  }
};

// ---- The emulated device -----------------------------------------------------------------------

// Streams of ferry_stream_create. CPUs must reach the device's memory, as they do unless a link to
// it is emulated (docs/configuration.md, host_link_*).
struct EmulatedDevice {
  using Stream = ferry_stream;
  static constexpr ferry_queue_type kQueueType = FERRY_QUEUE_FERRY;

  // Enqueues the kernel. `kernel` must stay until the kernel has run.
  template <typename Body>
  static void Launch(Stream stream, const HaloKernel* kernel) {
    Check(ferry_stream_launch(stream, &Run<Body>, const_cast<HaloKernel*>(kernel)));
  }
  static void Copy(Stream stream, void* destination, const void* source, size_t size_bytes) {
    Check(ferry_stream_memcpy(stream, destination, source, size_bytes));
  }
  static void Synchronize(Stream stream) { Check(ferry_stream_synchronize(stream)); }
  // Waits as Synchronize does but reports no error, for destructors.
  static void Drain(Stream stream) noexcept { (void)ferry_stream_synchronize(stream); }

 private:
  template <typename Body>
  static void Run(void* argument) {
    const auto& kernel = *static_cast<const HaloKernel*>(argument);
    for (size_t i = 0; i < kernel.move_count; ++i) {
      RunMove<Body>(kernel, kernel.moves[i]);
    }
  }

  // Row by row: cells of axis 0 lie together.
  template <typename Body>
  static void RunMove(const HaloKernel& kernel, const halo::Move& move) {
    const auto& [first, count] = move.box;
    const auto at = [](int n) { return static_cast<size_t>(n); };
    const size_t row_bytes = at(count[0]) * kernel.element_bytes;
    std::byte* packed = move.packed;
    for (int z = first[2]; z < first[2] + count[2]; ++z) {
      for (int y = first[1]; y < first[1] + count[1]; ++y) {
        const size_t cell =
            (at(z) * at(kernel.extent[1]) + at(y)) * at(kernel.extent[0]) + at(first[0]);
        Body::Apply(kernel.field + cell * kernel.element_bytes, packed, row_bytes);
        packed += row_bytes;
      }
    }
  }
};

}  // namespace ferry
