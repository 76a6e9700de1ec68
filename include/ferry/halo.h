// halo.h - halo exchange on a GPU stream: the cells along the sides of a block travel into the
// ghosts of its neighbours, or ghosts back to their owners. Header-only C++20, over ferry/stream.h.
//
// After Cabana's StreamHalo as "Co-Design and Evaluation of a CPU-Free MPI GPU Communication
// Abstraction and Implementation" has it (section IV): the constructor makes persistent requests
// and matches them; an exchange is then enqueued as starts of receives, a pack kernel, starts of
// sends, waits, and an unpack kernel, and the CPU has no further part in it.
//
//   ferry::HaloBlock block;
//   block.cells = {128, 128, 64};
//   block.ranks = {2, 2, 1};
//   ferry::Halo halo(block, stream, ferry::Sends::kReady);
//   for (int step = 0; step < steps; ++step) {
//     halo.EnqueueGather(field);
//     ferry::Check(ferry_stream_launch(stream, Compute, field));
//   }
//   halo.Wait();
//
// Calling thread: any that ferry_init allows, one at a time. Errors are thrown, as in ferry.hpp:
// std::invalid_argument for an impossible description, ferry::Error for a call that fails.
//
// Every rank makes its halos, and calls EnqueueGather and EnqueueScatter of each, in the same
// order.
//
// Why ready sends are right. A ready send must find its receive started. With Sends::kReady there
// are two sets of requests and buffers, used in turn, and exchange k enqueues
//     start receives k+1 · pack k · start sends k · wait for sends and receives k · unpack k.
// Neighbours are neighbours of each other. So when a rank's stream has passed its wait for receives
// k, every neighbour's stream had started sends k, and before them receives k+1: the sends k+1,
// later on that rank's stream, find them started. Receives 0 are started, and known to be by all
// neighbours, before the constructor returns. No buffer in use is overwritten either: receives k+1
// go into the buffers unpacked in exchange k-1, earlier on the same stream.
// With standard sends one set is enough: Ferry itself holds a send back until its receive is
// started, and the stream starts that after the unpack before.
//
// Where the CPU starts the requests, receives k+1 are started while the stream may not have come to
// unpack k yet. So there are two sets, too: receives k+1 go into the buffers unpacked in exchange
// k-1, and the CPU has waited for the stream since.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferry/ferry.hpp"
#include "ferry/halo/block.h"
#include "ferry/halo/kernels.h"
#include "ferry/halo/requests.h"
#include "ferry/stream.h"

namespace ferry {

// How messages are sent. The last two are for comparison: the CPU synchronises with the stream and
// starts the sends, so that both Enqueue functions block.
enum class Sends {
  kReady,     // by the stream, never held back
  kStandard,  // by the stream
  kByCpu,     // plain persistent requests on device memory
  kStaged     // persistent requests on host memory, which copies of the device fill and empty
};

template <typename Device>
class BasicHalo {
 public:
  // Collective among neighbours, blocks. The stream must outlive the halo.
  BasicHalo(const HaloBlock& block, typename Device::Stream stream, Sends sends)
      : block_(block), stream_(stream), sends_(sends) {
    halo::CheckBlock(block_, ferry_size());
    neighbours_ = halo::NeighboursOf(block_, ferry_rank());
    halo::CompareWithNeighbours(block_, static_cast<int>(sends), neighbours_);
    MakeSets();
    try {
      if (ByStream()) {
        Check(ferry_queue_init(Device::kQueueType, &stream_, &queue_));
        MatchAll();
      }
    } catch (...) {
      Close();
      throw;
    }
  }
  // Collective like the constructor: waits for all enqueued exchanges.
  ~BasicHalo() { Close(); }
  BasicHalo(const BasicHalo&) = delete;
  BasicHalo& operator=(const BasicHalo&) = delete;

  // Enqueues an exchange that copies owned cells into the ghosts that neighbours have of them.
  // `field` is the block in device memory, field_bytes() long.
  void EnqueueGather(void* field) {
    Exchange<HaloUnpack>("EnqueueGather", field, /*is_gather=*/true);
  }
  // Enqueues an exchange that sends ghosts to their owners, whose cells become op(cell, ghost). T
  // is the type of the numbers in a cell, `Op` a class without state. Where several neighbours have
  // ghosts of a cell, these are applied in the order of the neighbours' places. Ghosts themselves
  // stay as they are.
  template <typename T, typename Op = HaloAdd>
  void EnqueueScatter(T* field, Op = {}) {
    if (block_.element_bytes % sizeof(T) != 0) {
      halo::Refuse("EnqueueScatter: element_bytes is " + std::to_string(block_.element_bytes) +
                   ", no multiple of the " + std::to_string(sizeof(T)) + " bytes of a number");
    }
    Exchange<HaloCombine<T, Op>>("EnqueueScatter", field, /*is_gather=*/false);
  }
  // Enqueues an exchange as EnqueueScatter does, but the owners' cells are replaced by the ghosts.
  void EnqueueScatterReplacing(void* field) {
    Exchange<HaloUnpack>("EnqueueScatterReplacing", field, /*is_gather=*/false);
  }
  // Blocks until all work on the stream is done.
  void Wait() {
    if (ByStream()) {
      Check(ferry_queue_wait(queue_));
    } else {
      Device::Synchronize(stream_);
    }
  }

  // The block in memory: cells along each axis, ghosts counted.
  halo::Triple extent() const { return halo::ExtentOf(block_); }
  size_t field_bytes() const { return halo::Box{{}, extent()}.cells() * block_.element_bytes; }
  const std::vector<halo::Neighbour>& neighbours() const { return neighbours_; }

 private:
  using Set = halo::RequestSet;

  bool ByStream() const { return sends_ == Sends::kReady || sends_ == Sends::kStandard; }
  Set& Current() { return *sets_[exchanges_ % sets_.size()]; }
  Set& Next() { return *sets_[(exchanges_ + 1) % sets_.size()]; }

  void MakeSets() {
    const auto kind = sends_ == Sends::kReady ? Set::Kind::kReady : Set::Kind::kStandard;
    for (int i = 0; i < (sends_ == Sends::kStandard ? 1 : 2); ++i) {
      sets_.push_back(
          std::make_unique<Set>(block_, neighbours_, kind, /*staged=*/sends_ == Sends::kStaged));
    }
  }

  void MatchAll() {
    std::vector<ferry_request> all;
    for (const auto& set : sets_) {
      all.insert(all.end(), set->requests().begin(), set->requests().end());
    }
    Check(ferry_matchall(all.size(), all.data()));
    if (sends_ == Sends::kReady) {
      StartReceives(Current());
      Check(ferry_queue_wait(queue_));
      halo::MeetNeighbours(block_, neighbours_);
    }
  }

  void StartReceives(Set& set) {
    Check(ferry_enqueue_startall(queue_, set.remote_count(), set.receives()));
    set.receives_are_started = true;
  }

  template <typename Unpack>
  void Exchange(const char* call, void* field, bool is_gather) {
    if (field == nullptr) {
      halo::Refuse(std::string(call) + ": the field is null");
    }
    Set& set = Current();
    const HaloKernel* const pack = KernelOf(field, is_gather ? set.owned_out() : set.ghost_out());
    const HaloKernel* const unpack = KernelOf(field, is_gather ? set.ghost_in() : set.owned_in());
    if (ByStream()) {
      StartReceives(sends_ == Sends::kReady ? Next() : set);
      Device::template Launch<HaloPack>(stream_, pack);
      StartSendsAndWait(set);
    } else {
      ExchangeByCpu(set, pack);
    }
    Device::template Launch<Unpack>(stream_, unpack);
    ++exchanges_;
  }

  void StartSendsAndWait(Set& set) {
    Check(ferry_enqueue_startall(queue_, set.remote_count(), set.sends()));
    Check(ferry_enqueue_waitall(queue_, set.requests().size(), set.requests().data()));
    set.receives_are_started = false;
  }

  void ExchangeByCpu(Set& set, const HaloKernel* pack) {
    for (size_t i = 0; i < set.remote_count(); ++i) {
      Check(ferry_start(set.receives()[i]));
    }
    Device::template Launch<HaloPack>(stream_, pack);
    const bool copies = set.is_staged() && set.remote_bytes() != 0;
    if (copies) {
      Device::Copy(stream_, set.host_out(), set.device_out(), set.remote_bytes());
    }
    Device::Synchronize(stream_);
    for (size_t i = 0; i < set.remote_count(); ++i) {
      Check(ferry_start(set.sends()[i]));
    }
    Check(ferry_waitall(set.requests().size(), set.requests().data(), nullptr));
    if (copies) {
      Device::Copy(stream_, set.device_in(), set.host_in(), set.remote_bytes());
    }
  }

  // Kernels read their data when they run, much later: they are kept, one for each field.
  const HaloKernel* KernelOf(void* field, const std::vector<halo::Move>& moves) {
    const auto [found, is_new] = kernels_.try_emplace({field, moves.data()});
    if (is_new) {
      found->second = {static_cast<std::byte*>(field), extent(), block_.element_bytes, moves.data(),
                       moves.size()};
    }
    return &found->second;
  }

  // Waits for the enqueued exchanges. Receives that are started get their messages first, or the
  // queue could not be freed: with ready sends that is one last exchange, of which nothing is
  // unpacked.
  void Close() {
    if (queue_ == FERRY_QUEUE_NULL) {
      Device::Drain(stream_);
      return;
    }
    for (size_t i = 0; i < sets_.size(); ++i, ++exchanges_) {
      CloseSet(Current());
    }
    (void)ferry_queue_wait(queue_);
    sets_.clear();
    (void)ferry_queue_free(&queue_);
  }
  // Starts the sends one by one, even if some fail, so that neighbours get theirs. The wait for a
  // request that has failed ends.
  void CloseSet(Set& set) {
    if (!set.receives_are_started) {
      return;
    }
    for (size_t i = 0; i < set.remote_count(); ++i) {
      (void)ferry_enqueue_start(queue_, set.sends()[i]);
    }
    for (const ferry_request request : set.requests()) {
      (void)ferry_enqueue_wait(queue_, request);
    }
  }

  const HaloBlock block_;
  typename Device::Stream stream_;
  const Sends sends_;
  std::vector<halo::Neighbour> neighbours_;
  std::vector<std::unique_ptr<Set>> sets_;
  ferry_queue queue_ = FERRY_QUEUE_NULL;
  size_t exchanges_ = 0;
  std::map<std::pair<void*, const halo::Move*>, HaloKernel> kernels_;
};

using Halo = BasicHalo<EmulatedDevice>;

}  // namespace ferry
