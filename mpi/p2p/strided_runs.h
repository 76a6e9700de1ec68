// Turns the runs of a buffer, in the order in which they lie packed, into strided copies: runs of
// one length at equal distances, such as those of a vector, become one copy.
//
// Calling thread: that of the call. Blocks only as long as `sink` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gpu_backends/api/strided_copy.h"
#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

template <typename Sink>
class StridedRuns {
 public:
  // Calls sink(copy) for each strided copy between `packed` and `buffer`, from which displacements
  // count.
  StridedRuns(std::byte* buffer, std::byte* packed, bool is_pack, Sink sink)
      : buffer_(buffer), next_packed_(packed), is_pack_(is_pack), sink_(std::move(sink)) {}

  void Add(int64_t displacement, int64_t length) {
    const int64_t distance = displacement - last_;
    if (runs_.block_count != 0 && static_cast<uint64_t>(length) == runs_.block_bytes &&
        (runs_.block_count == 1 ? MayBeStride(distance) : distance == runs_.stride_bytes)) {
      runs_.stride_bytes = distance;
      ++runs_.block_count;
    } else {
      Flush();
      runs_ = {buffer_ + displacement, next_packed_, static_cast<uint64_t>(length), 1, 0, is_pack_};
    }
    last_ = displacement;
    next_packed_ += length;
  }
  void Flush() {
    if (runs_.block_count != 0) {
      sink_(std::as_const(runs_));
      runs_.block_count = 0;
    }
  }

 private:
  // Blocks that overlap can only be written one after the other.
  bool MayBeStride(int64_t distance) const {
    const auto length = static_cast<int64_t>(runs_.block_bytes);
    return is_pack_ || distance >= length || distance <= -length;
  }

  std::byte* const buffer_;
  std::byte* next_packed_;
  const bool is_pack_;
  Sink sink_;
  gpu::StridedCopy runs_;
  int64_t last_ = 0;  // displacement of the last of them
};

// Calls sink(copy) for the runs of packed bytes [offset, offset + bytes) of `count` elements;
// `packed` holds these bytes alone.
template <typename Sink>
void ForEachStrided(std::byte* buffer, int64_t count, const Datatype& type, int64_t offset,
                    int64_t bytes, std::byte* packed, bool is_pack, Sink sink) {
  StridedRuns<Sink> runs(buffer, packed, is_pack, std::move(sink));
  type.ForEachRun(count, offset, bytes,
                  [&](int64_t displacement, int64_t length) { runs.Add(displacement, length); });
  runs.Flush();
}

// Splits a strided copy: calls sink(to, from, size_bytes) for each block.
template <typename Sink>
void ForEachBlock(const gpu::StridedCopy& copy, Sink sink) {
  auto* block = static_cast<std::byte*>(copy.blocks);
  auto* packed = static_cast<std::byte*>(copy.packed);
  for (uint64_t i = 0; i < copy.block_count; ++i) {
    copy.is_pack ? sink(packed, block, copy.block_bytes) : sink(block, packed, copy.block_bytes);
    block += copy.stride_bytes;
    packed += copy.block_bytes;
  }
}

}  // namespace ferry::mpi
