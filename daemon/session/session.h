// One attached rank, as the daemon sees it.
//
// Ownership: shared_ptr between the control plane, which makes and ends sessions, and the data
// plane, which serves them. The identity and the two segments never change after the session was
// added to the data plane; regions come and go under a lock that no hot path takes.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "gpu_backends/api/gpu_source.h"
#include "gpu_backends/api/imported_memory.h"
#include "internode/session/served_segments.h"
#include "proto/attach_protocol.h"
#include "shm/segment.h"

namespace ferry::daemon {

// Counts what each user of the node holds of the daemon's resources, and limits it.
//
// A resource is taken before it is made, all parts of it or none, and the hold lives in the thing
// it was taken for (Session, Region, Job): what is destroyed, however it came to that, is given
// back, exactly once.
//
// Any thread; one short lock. Holds may outlive the ledger.
struct QuotaAmounts {
  uint64_t sessions = 0;
  uint64_t regions = 0;
  uint64_t pinned_bytes = 0;  // of regions, which are registered with the NIC
  uint64_t jobs = 0;
  uint64_t requests = 0;  // slots of ranks, for each of which the daemon may have to keep something
  uint64_t links = 0;     // ends of direct links
  uint64_t nodes = 0;     // other nodes of jobs, each of which may cost a link
  uint64_t ranks = 0;     // of jobs, on all nodes: each costs a record
  bool operator==(const QuotaAmounts&) const = default;
};

// One quota: its option, and words for messages about it.
struct QuotaLabel {
  uint64_t QuotaAmounts::*member;
  const char* option;
  const char* unit;
  const char* remedy;  // what the user can do
};
std::span<const QuotaLabel> QuotaLabels();

class QuotaLedger;

// The amounts that one thing holds; gives them back when destroyed or told to.
class QuotaHold {
 public:
  QuotaHold() = default;
  QuotaHold(QuotaHold&& other) noexcept;
  QuotaHold& operator=(QuotaHold&& other) noexcept;
  ~QuotaHold() { Release(); }
  void Release();

 private:
  friend class QuotaLedger;
  struct Book;
  QuotaHold(std::shared_ptr<Book> book, uid_t uid, const QuotaAmounts& amounts);

  std::shared_ptr<Book> book_;
  uid_t uid_ = 0;
  QuotaAmounts amounts_;
};

class QuotaLedger {
 public:
  // `limits`: the most that each user may hold; 0: no limit. `shared_places`, unless it is 0,
  // replaces the limit of sessions: so many are shared, and each user may hold three quarters of
  // those that the others leave. So however many users take all that they get, places are left for
  // one more: of 1,024 they get 768, 192, 48, 12, 3 and 1. A user keeps the places that he already
  // holds.
  explicit QuotaLedger(const QuotaAmounts& limits, uint64_t shared_places = 0);

  // Takes `wanted` for the user, all or nothing. kLimitExceeded names the quota, its value, what is
  // used, and what to do.
  StatusOr<QuotaHold> Take(uid_t uid, const QuotaAmounts& wanted);
  // Returns the amounts that each user holds; users who hold nothing are left out.
  std::map<uid_t, QuotaAmounts> Used() const;
  // Returns the most that the user may hold at the moment.
  QuotaAmounts LimitsOf(uid_t uid) const;

 private:
  // Call it with the lock held.
  QuotaAmounts Limits(uid_t uid) const;

  const QuotaAmounts limits_;
  const uint64_t shared_places_;
  std::shared_ptr<QuotaHold::Book> book_;
};

enum class RegionKind { kHostHeap, kDevice };

// A registered range of a rank's memory. Either the daemon maps it and registers it with the NIC;
// or it is device memory that only streams reach: then the job's worker, a thread of the daemon or
// a process, has imported it, if it can copy there at all.
struct Region {
  uint32_t id = 0;
  RegionKind kind = RegionKind::kHostHeap;
  uint32_t device = 0;
  uint64_t allocation_id = 0;
  UniqueFd fd;  // handed on to peers of the node
  shm::Mapping mapping;
  bool lent = false;          // peers of the node only read it
  bool by_stream = false;     // `mapping` is empty,
  uint64_t device_bytes = 0;  // and this is its size
  std::array<uint8_t, attach::kHandleBytes> handle{};
  std::shared_ptr<gpu::OpenedGpu> gpu;                 // by which `device_memory` was imported
  std::unique_ptr<gpu::ImportedMemory> device_memory;  // in this process
  bool in_worker = false;                              // in the job's worker process
  UniqueFd dmabuf;                                     // device memory for NICs,
  uint64_t dmabuf_offset = 0;                          // where in that it begins,
  std::string backend;                                 // and whose it is
  QuotaHold quota;

  uint64_t size_bytes() const { return by_stream ? device_bytes : mapping.size_bytes(); }
  // Returns true if the daemon, or a worker for it, copies between device memory and the network.
  bool is_staged() const { return device_memory != nullptr || in_worker; }
  bool IsInside(uint64_t offset, uint64_t bytes) const {
    return offset <= size_bytes() && bytes <= size_bytes() - offset;
  }
  // Imports device memory into this process. Blocks for as long as a driver takes to start. Errors
  // as of opening the GPU backend, which is tried anew each time, and of ImportedMemory::Import.
  Status Import(gpu::GpuSource& gpus, const gpu::IpcHandle& device_handle);
};

struct Session : progress::ServedSegments {
  uid_t uid = 0;
  gid_t gid = 0;
  // True once it is known whether process_vm calls to `pid` work for the job's user
  // (`private_memory_reachable`). A worker process finds that out by itself, soon after the session
  // was added to the data plane: until then this is false.
  std::atomic<bool> reach_settled = true;
  // The rank has said that its pid and user namespaces are the daemon's, so that process ids mean
  // the same in both, and that the system lets it copy from and to other processes (process_vm
  // calls).
  bool shares_processes = false;
  QuotaHold quota;
  QuotaHold request_quota;
  UniqueFd doorbell;  // eventfd that the rank writes when the daemon sleeps
  UniqueFd session_fd;
  UniqueFd inbox_fd;
  uint32_t match_capacity = 0;  // copied out as request_limit was

  // Returns the active region with that id; null if the session has none. Any thread.
  std::shared_ptr<const Region> FindRegion(uint32_t id) const;
  // Adds a region. kAlreadyExists: its id is taken.
  Status AddRegion(std::shared_ptr<const Region> region);
  // Takes the region out and returns it; null if there is none.
  std::shared_ptr<const Region> RemoveRegion(uint32_t id);
  // Takes all regions out. Call it once nothing uses them.
  void DropRegions();
  // Returns a copy of the list of regions, for status pages.
  std::map<uint32_t, std::shared_ptr<const Region>> Regions() const;

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<const Region>> regions_;
};

}  // namespace ferry::daemon
