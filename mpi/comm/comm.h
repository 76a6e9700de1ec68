// A communicator: its processes, and the contexts that keep its messages apart from others'
// (MPI 5.0, chapter 7).
//
// An intercommunicator has two groups. Both use the same contexts: a message's source, a rank of
// the job, says which side it comes from.
//
// Calling thread: any. Members that are const after the constructor need no lock; the number and
// the topology are set before others see the communicator, or (MPI_Comm_idup) before they may use
// it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/attribute.h"
#include "mpi/base/error_handler.h"
#include "mpi/base/object.h"
#include "mpi/base/session.h"
#include "mpi/comm/context_ids.h"
#include "mpi/comm/rank_set.h"
#include "mpi/info/info.h"
#include "mpi/topology/topology.h"

namespace ferry::mpi {

class MemoryKinds;

// Info hints (MPI 5.0, section 7.4.4).
//
// The standard's hints for communicators with their defaults: the program's promises about its
// messages, or their absence. Ferry knows them; none changes its behaviour.
std::vector<Info::Entry> DefaultHints();
// Returns `hints` after the program has set `given`: hints that Ferry does not know, and values
// that a hint cannot have, are ignored. mpi_assert_memory_alloc_kinds is there once it was set, to
// kinds that are all among `kinds`.
std::vector<Info::Entry> WithHints(std::vector<Info::Entry> hints,
                                   const std::vector<Info::Entry>& given, const MemoryKinds& kinds);

class Comm : public Object, public HasErrorHandler {
 public:
  // `number`: see context_ids.h; `rank` is this process' in `group`.
  Comm(uint32_t number, RankSet group, int rank, Ref<ErrorHandler> error_handler)
      : HasErrorHandler(std::move(error_handler)),
        number_(number),
        rank_(rank),
        group_(group),
        peers_(std::move(group)) {}
  // Makes an intercommunicator.
  Comm(uint32_t number, RankSet group, int rank, RankSet remote, Ref<ErrorHandler> error_handler)
      : HasErrorHandler(std::move(error_handler)),
        number_(number),
        rank_(rank),
        is_inter_(true),
        group_(std::move(group)),
        peers_(std::move(remote)) {}

  uint32_t number() const { return number_; }
  uint32_t context(Traffic traffic = Traffic::kPointToPoint) const {
    return ContextOf(number_, traffic);
  }
  void SetNumber(uint32_t number) { number_ = number; }
  bool is_inter() const { return is_inter_; }
  int rank() const { return rank_; }
  int size() const { return group_.size(); }
  const RankSet& group() const { return group_; }

  // The processes that messages go to and come from: the remote group of an intercommunicator, else
  // the group.
  const RankSet& peers() const { return peers_; }
  bool IsPeer(int rank) const {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(peers_.size());
  }
  // Returns the rank in the job of such a peer.
  int WorldRank(int rank) const { return peers_.WorldRank(rank); }
  // Returns the peer's rank for a rank in the job; RankSet::kAbsent if it is no peer.
  int RankOf(int world_rank) const { return peers_.RankOf(world_rank); }

  std::string name() const {
    std::lock_guard lock(mutex_);
    return name_;
  }
  void SetName(std::string name) {
    std::lock_guard lock(mutex_);
    name_ = std::move(name);
  }
  AttributeSet& attributes() { return attributes_; }
  const AttributeSet& attributes() const { return attributes_; }
  // Null: the communicator has no topology.
  const std::shared_ptr<const Topology>& topology() const { return topology_; }
  void SetTopology(std::shared_ptr<const Topology> topology) { topology_ = std::move(topology); }
  std::vector<Info::Entry> hints() const {
    std::lock_guard lock(mutex_);
    return hints_.empty() ? DefaultHints() : hints_;
  }
  void SetHints(std::vector<Info::Entry> hints) {
    std::lock_guard lock(mutex_);
    hints_ = std::move(hints);
  }
  // Data that other parts of the library keep with a communicator, for as long as it lives.
  class Extension {
   public:
    virtual ~Extension() = default;
  };
  // Null: there is no extension yet.
  Extension* extension() const { return extension_.load(std::memory_order_acquire); }
  // Keeps `made` unless another thread was first. Returns the one that is kept.
  Extension* Extend(std::unique_ptr<Extension> made) {
    std::lock_guard lock(mutex_);
    if (extension_owner_ == nullptr) {
      extension_owner_ = std::move(made);
      extension_.store(extension_owner_.get(), std::memory_order_release);
    }
    return extension_owner_.get();
  }
  // The session that the communicator belongs to. Null: none, as for all communicators made of
  // MPI_COMM_WORLD. Set before other threads see the communicator.
  const Ref<Session>& session() const { return session_; }
  void SetSession(Ref<Session> session) { session_ = std::move(session); }
  // The handle that callbacks get. Set once, before other threads see the communicator.
  MPI_Comm handle() const { return handle_; }
  void SetHandle(MPI_Comm handle) { handle_ = handle; }

 private:
  uint32_t number_;
  const int rank_;
  const bool is_inter_ = false;
  const RankSet group_;
  const RankSet peers_;
  Ref<Session> session_;
  MPI_Comm handle_ = MPI_COMM_NULL;
  std::shared_ptr<const Topology> topology_;
  AttributeSet attributes_;
  mutable std::mutex mutex_;  // guards what follows
  std::string name_;
  std::vector<Info::Entry> hints_;  // empty: as they are at first
  std::unique_ptr<Extension> extension_owner_;
  std::atomic<Extension*> extension_{nullptr};
};

}  // namespace ferry::mpi
