// halo/requests.h - the messages behind ferry/halo.h: buffers and persistent requests to and from
// all neighbours, and what neighbours tell each other beforehand. Errors are thrown.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ferry/ferry.hpp"
#include "ferry/halo/block.h"
#include "ferry/halo/kernels.h"
#include "ferry/stream.h"

namespace ferry {
namespace halo {

// The tag of messages that move along `step`.
inline int TagOf(const HaloBlock& block, const Triple& step) {
  return block.tag + 1 + NumberOf(step);
}

// Counts the neighbours that are other ranks; those come first.
inline size_t CountOthers(const std::vector<Neighbour>& neighbours) {
  return static_cast<size_t>(
      std::count_if(neighbours.begin(), neighbours.end(),
                    [](const Neighbour& neighbour) { return neighbour.rank != ferry_rank(); }));
}

// Sends `size_bytes` to every other rank that is a neighbour, receives as many from it, and calls
// use(neighbour, bytes) with them. Blocks.
template <typename Use>
void TellNeighbours(const HaloBlock& block, const std::vector<Neighbour>& neighbours,
                    const void* told, size_t size_bytes, Use&& use) {
  const size_t count = CountOthers(neighbours);
  std::vector<std::byte> heard(count * size_bytes + 1);
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    const Neighbour& neighbour = neighbours[i];
    requests.push_back(Request::Receive(heard.data() + i * size_bytes, size_bytes, neighbour.rank,
                                        TagOf(block, Opposite(neighbour.step))));
    requests.push_back(
        Request::Send(told, size_bytes, neighbour.rank, TagOf(block, neighbour.step)));
  }
  for (Request& request : requests) {
    request.Wait();
  }
  for (size_t i = 0; i < count; ++i) {
    use(neighbours[i], heard.data() + i * size_bytes);
  }
}

// Returns when all neighbours have called it.
inline void MeetNeighbours(const HaloBlock& block, const std::vector<Neighbour>& neighbours) {
  TellNeighbours(block, neighbours, nullptr, 0, [](const Neighbour&, const std::byte*) {});
}

// Throws std::invalid_argument on both sides if two neighbours' descriptions do not go together.
inline void CompareWithNeighbours(const HaloBlock& block, int sends,
                                  const std::vector<Neighbour>& neighbours) {
  constexpr std::array<const char*, 17> kNames = {
      "cells[0]", "cells[1]", "cells[2]", "dimensions",  "ghost",       "element_bytes",
      "ranks[0]", "ranks[1]", "ranks[2]", "periodic[0]", "periodic[1]", "periodic[2]",
      "faces",    "edges",    "corners",  "tag",         "sends"};
  using Told = std::array<int64_t, kNames.size()>;
  const Told own = {block.cells[0],
                    block.cells[1],
                    block.cells[2],
                    block.dimensions,
                    block.ghost,
                    static_cast<int64_t>(block.element_bytes),
                    block.ranks[0],
                    block.ranks[1],
                    block.ranks[2],
                    block.periodic[0],
                    block.periodic[1],
                    block.periodic[2],
                    block.faces,
                    block.edges,
                    block.corners,
                    block.tag,
                    sends};
  TellNeighbours(block, neighbours, own.data(), sizeof(Told),
                 [&](const Neighbour& neighbour, const std::byte* heard) {
                   Told other;
                   std::memcpy(other.data(), heard, sizeof(Told));
                   for (size_t i = 0; i < own.size(); ++i) {
                     const bool may_differ = i < 3 && neighbour.step[i] != 0;
                     if (own[i] != other[i] && !may_differ) {
                       Refuse(std::string(kNames[i]) + " is " + std::to_string(own[i]) +
                              ", but rank " + std::to_string(neighbour.rank) +
                              ", a neighbour, has " + std::to_string(other[i]));
                     }
                   }
                 });
}

// Requests and buffers of one exchange. Each neighbour has a place in the buffers, other ranks'
// before the own ones; what a rank sends to itself is packed straight into where it is received.
class RequestSet {
 public:
  enum class Kind { kStandard, kReady };

  RequestSet(const HaloBlock& block, const std::vector<Neighbour>& neighbours, Kind kind,
             bool staged)
      : remote_count_(CountOthers(neighbours)) {
    const std::vector<size_t> offsets = OffsetsOf(block, neighbours);
    remote_bytes_ = offsets[remote_count_];
    const size_t all = std::max<size_t>(offsets.back(), 1);
    out_ = std::make_unique<Bytes>(all, FERRY_MEMORY_DEVICE);
    in_ = std::make_unique<Bytes>(all, FERRY_MEMORY_DEVICE);
    if (staged) {
      host_out_ = std::make_unique<Bytes>(all, FERRY_MEMORY_PINNED);
      host_in_ = std::make_unique<Bytes>(all, FERRY_MEMORY_PINNED);
    }
    for (size_t i = 0; i < neighbours.size(); ++i) {
      const Neighbour& neighbour = neighbours[i];
      std::byte* const in = in_->data() + offsets[i];
      std::byte* out = out_->data() + offsets[i];
      if (i >= remote_count_) {
        out = in_->data() + offsets[IndexOf(neighbours, Opposite(neighbour.step))];
      }
      owned_out_.push_back({neighbour.owned, out});
      ghost_out_.push_back({neighbour.ghost, out});
      ghost_in_.push_back({neighbour.ghost, in});
      owned_in_.push_back({neighbour.owned, in});
    }
    try {
      MakeRequests(block, neighbours, offsets, kind);
    } catch (...) {
      Free();
      throw;
    }
  }
  ~RequestSet() { Free(); }
  RequestSet(const RequestSet&) = delete;
  RequestSet& operator=(const RequestSet&) = delete;

  // Requests to and from other ranks: first the receives, then as many sends.
  size_t remote_count() const { return remote_count_; }
  std::vector<ferry_request>& requests() { return requests_; }
  const ferry_request* receives() const { return requests_.data(); }
  const ferry_request* sends() const { return requests_.data() + remote_count_; }

  // The moves of kernels: owned cells or ghosts out of the field, ghosts or owned cells into it.
  const std::vector<Move>& owned_out() const { return owned_out_; }
  const std::vector<Move>& ghost_out() const { return ghost_out_; }
  const std::vector<Move>& ghost_in() const { return ghost_in_; }
  const std::vector<Move>& owned_in() const { return owned_in_; }

  // For staged messages: their places in device memory, and the copies of these in host memory.
  bool is_staged() const { return host_out_ != nullptr; }
  size_t remote_bytes() const { return remote_bytes_; }
  std::byte* device_out() const { return out_->data(); }
  std::byte* device_in() const { return in_->data(); }
  std::byte* host_out() const { return host_out_->data(); }
  std::byte* host_in() const { return host_in_->data(); }

  bool receives_are_started = false;  // on the queue, without a wait yet

 private:
  using Bytes = Buffer<std::byte>;
  static constexpr size_t kAlignment = 64;

  // The offset of each neighbour's place, and the end of the last.
  static std::vector<size_t> OffsetsOf(const HaloBlock& block,
                                       const std::vector<Neighbour>& neighbours) {
    std::vector<size_t> offsets = {0};
    for (const Neighbour& neighbour : neighbours) {
      const size_t bytes = neighbour.ghost.cells() * block.element_bytes;
      offsets.push_back(offsets.back() + (bytes + kAlignment - 1) / kAlignment * kAlignment);
    }
    return offsets;
  }
  static size_t IndexOf(const std::vector<Neighbour>& neighbours, const Triple& step) {
    size_t index = 0;
    while (neighbours[index].step != step) {
      ++index;
    }
    return index;
  }

  void MakeRequests(const HaloBlock& block, const std::vector<Neighbour>& neighbours,
                    const std::vector<size_t>& offsets, Kind kind) {
    requests_.resize(2 * remote_count_, FERRY_REQUEST_NULL);
    Bytes& out = is_staged() ? *host_out_ : *out_;
    Bytes& in = is_staged() ? *host_in_ : *in_;
    for (size_t i = 0; i < remote_count_; ++i) {
      const Neighbour& neighbour = neighbours[i];
      const size_t bytes = neighbour.ghost.cells() * block.element_bytes;
      Check(ferry_recv_init(in.data() + offsets[i], bytes, neighbour.rank,
                            TagOf(block, Opposite(neighbour.step)), &requests_[i]));
      Check((kind == Kind::kReady ? ferry_rsend_init : ferry_send_init)(
          out.data() + offsets[i], bytes, neighbour.rank, TagOf(block, neighbour.step),
          &requests_[remote_count_ + i]));
    }
  }
  void Free() {
    for (ferry_request& request : requests_) {
      if (request != FERRY_REQUEST_NULL) {
        (void)ferry_request_free(&request);
      }
    }
  }

  const size_t remote_count_;
  size_t remote_bytes_ = 0;
  std::unique_ptr<Bytes> out_;
  std::unique_ptr<Bytes> in_;
  std::unique_ptr<Bytes> host_out_;
  std::unique_ptr<Bytes> host_in_;
  std::vector<Move> owned_out_;
  std::vector<Move> ghost_out_;
  std::vector<Move> ghost_in_;
  std::vector<Move> owned_in_;
  std::vector<ferry_request> requests_;
};

}  // namespace halo
}  // namespace ferry
