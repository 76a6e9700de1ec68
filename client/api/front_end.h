// FrontEnd: a rank's connection, for the front ends above ferry.h (MPI, OpenSHMEM), with features
// that ferry.h does not show. It holds five interfaces, and facts that do not change.
//
// A front end is a library of its own. It gets this interface from the libferry that the process
// has loaded, by ferry_front_end(). So a program that calls ferry.h and a front end side by side
// has one connection. Both libraries must be of one release.
//
// Calling thread: any that the thread level allows; after NodePeers::SetThreads(true), any.
// Functions that block say so.
#pragma once

#include <cstdint>

#include "client/api/calls.h"
#include "client/api/front_end_version.h"
#include "client/api/memory_access.h"
#include "client/api/message.h"
#include "client/api/messaging.h"
#include "client/api/node_peers.h"
#include "client/api/one_sided.h"
#include "client/api/plain_addresses.h"
#include "client/api/stream_queues.h"
#include "common/error_code.h"
#include "common/number_list.h"
#include "config/options.h"
#include "shm/wait_policy.h"
#include "shm/wake.h"

namespace ferry::client {

class FrontEnd {
 public:
  // The five interfaces. They live as long as this object.
  Messaging* messages = nullptr;
  StreamQueues* queues = nullptr;
  MemoryAccess* memory = nullptr;
  NodePeers* peers = nullptr;
  OneSided* one_sided = nullptr;
  // The calls that the rank's threads are in. Null until the rank has joined.
  Calls* calls = nullptr;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // The index of the node that `rank` lives on.
  int NodeOf(uint32_t rank) const { return nodes_[rank]; }
  // Returns true if the job has more ranks on this node than cores that it may use.
  bool IsCrowded() const { return is_crowded_; }
  // A front end with waiting code of its own passes this function to shm::SetCrowdedHook; null: it
  // passes none. The function outlives this object.
  shm::CrowdedHook crowded_hook() const { return crowded_hook_; }
  // Returns true if the NIC of this node carries out deferred operations
  // (transports/api/deferred_work.h). Then it moves the messages of matched pairs that have no
  // cells, also those that follow others.
  bool nic_defers() const { return nic_defers_; }
  // The rank's options: from its environment, and its place in the job from its launcher.
  const config::Options& options() const { return options_; }
  // Returns true if CPUs cannot access this memory, so that only Copy, CopyStrided and Reduce touch
  // its bytes.
  bool IsByStream(const void* pointer) const {
    return MayBeByStream(pointer) && memory->DeviceOf(pointer) >= 0;
  }
  // A quick form of IsByStream, for the hot path. False: IsByStream is false, too. True: call
  // IsByStream, since the pointer may also lie between two allocations of such memory.
  bool MayBeByStream(const void* pointer) const { return !addresses_->IsPlain(pointer); }
  // A word that the daemon increments after each change of a PeerState for the worse. Callers ask
  // for PeerState again only when it has grown.
  const uint32_t& death_epoch() const { return *death_epoch_; }
  bool AreThreadsAllowed() const { return *threads_allowed_; }
  // kOk, or the error that all calls of this rank now return.
  ErrorCode poison() const { return wake_->poison(); }

 protected:
  ~FrontEnd() = default;

  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  NumberList nodes_;  // by rank
  config::Options options_;
  bool is_crowded_ = false;  // ranks of the node share cores
  bool nic_defers_ = false;
  const PlainAddresses* addresses_ = nullptr;  // once the rank has joined
  const uint32_t* death_epoch_ = nullptr;      // likewise
  const shm::Wake* wake_ = nullptr;            // likewise
  const bool* threads_allowed_ = nullptr;      // likewise
  shm::CrowdedHook crowded_hook_ = nullptr;
};

}  // namespace ferry::client

// The interface of this process, once ferry_init has returned; null before it, after ferry_finalize
// and for another version. libferry exports it.
extern "C" ferry::client::FrontEnd* ferry_front_end(uint32_t version);

// Front ends share the process's connection: each of them joins it once, and leaves it once.
//
// The first front end to join makes the connection, unless the program has called ferry_init; a
// process that belongs to no job makes a job of itself alone, over the node's daemon or a daemon of
// its own. Several threads may call from then on if any front end that joined has asked for that
// (`required` is FERRY_THREAD_*). The last to leave ends a connection that a front end has made;
// before that, all ranks meet. Both functions return what ferry_init and ferry_finalize return.
// Both block. Main thread.
extern "C" int ferry_front_end_join(int required);
extern "C" int ferry_front_end_leave(void);

// Ends the job, as ferry_abort does; but an exit code of 0 is a success. Any thread.
extern "C" [[noreturn]] void ferry_front_end_exit(int exit_code);
