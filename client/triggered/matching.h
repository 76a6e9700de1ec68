// The persistent requests of a rank that are matched for life, and the objects that start them:
// client/triggered, by the handles of requests.
//
// Calling thread: any that the thread level allows. Blocks as Pairs, Queues and DeviceRings do.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "client/p2p/requests.h"
#include "client/triggered/device_rings.h"
#include "client/triggered/pairs.h"
#include "client/triggered/queues.h"

namespace ferry::client {

class Matching {
 public:
  // All arguments outlive this object.
  Matching(Progress* progress, Requests* requests, Memory* memory, PeerMemory* peer_memory,
           AttachConnection* attach, const shm::Statistics& statistics,
           const config::Options& options);
  Matching(const Matching&) = delete;
  Matching& operator=(const Matching&) = delete;

  Queues& queues() { return queues_; }
  DeviceRings& rings() { return rings_; }
  // Returns true if a start by the rank is under way: a stream may complete it without waking a
  // thread.
  bool any_started() const { return pairs_.any_started(); }

  // Documented in front_end.h.
  Status Begin(std::span<const RequestHandle> requests, RequestHandle* match);
  Status IsMatched(RequestHandle handle, bool* matched);
  bool IsEnqueued(RequestHandle handle);
  Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests);
  Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests);
  StatusOr<RequestHandle> MakeProgram(std::string name, std::span<const RequestHandle> requests,
                                      std::vector<ProgramStep> steps);

  // Prepares one start of the request by a device; returns where its end lies. kInvalidRequest,
  // kInvalidBuffer, kUnsupported: as for ferry_ring_prepare_start.
  StatusOr<shm::Location> PrepareStart(RequestHandle handle);
  // A start that the device makes without ferryd. PrepareKernelStart fails as PrepareStart does,
  // and with kUnsupported where the NIC's counter has no page.
  struct KernelStart {
    uint64_t* word = nullptr;
    const uint64_t* done = nullptr;
    uint64_t number = 0;
  };
  StatusOr<KernelStart> PrepareKernelStart(RequestHandle handle);

  // The life of a persistent request, by its slot.
  void NoteMade(uint32_t request, bool in_place) { pairs_.NoteMade(request, in_place); }
  // Starts a request that is inactive and matched. kInvalidRequest: a queue has it.
  ErrorCode Start(uint32_t request);
  // Returns true if a request in state kMatched is over.
  bool Advance(uint32_t request);
  void Release(uint32_t request) { queues_.Release(request); }
  // Ends all operations under way, now and later, with this error. Any thread.
  void FailAll(ErrorCode error) {
    pairs_.FailAll(error);
    rings_.EndAll(error);
  }

 private:
  Pairs::Parts PairParts(Memory* memory, PeerMemory* peer_memory, AttachConnection* attach,
                         const shm::Statistics& statistics, const config::Options& options);
  DeviceRings::Parts RingParts(Memory* memory, const config::Options& options);
  Status CheckMatchable(RequestHandle handle, uint32_t* request) const;
  StatusOr<std::vector<Queues::Item>> ResolveAll(std::span<const RequestHandle> handles);
  StatusOr<Pair*> FindToArm(RequestHandle handle, const char* call);
  void MakeActive(uint32_t request, const Pair& pair);
  bool AdvanceMatch(uint32_t request);

  Progress& progress_;
  Requests& requests_;
  const RegionTable& regions_;
  Pairs pairs_;
  Queues queues_;
  DeviceRings rings_;
  std::mutex mutex_;
  std::map<uint32_t, std::vector<uint32_t>> matches_;  // match requests, and what each matches
};

}  // namespace ferry::client
