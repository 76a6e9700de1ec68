// A rank with direct links inside a test process, driven by the test in place of libferry: real
// segments, the real engine, and libferry_direct.so. And the little that such ranks need of
// daemons.
//
// Each rank lives on a node of its own. Several may live in one process, or each in another.
//
// The links go over sockets of Ferry's own, or over libfabric in targets with over_libfabric.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/direct/direct_api.h"
#include "engine/rank_engine.h"
#include "engine/session_view.h"
#include "shm/counters.h"
#include "shm/element_lock.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "tests/shm/shared_memory.h"

namespace ferry::client {

inline constexpr uint32_t kHeapRegion = 1;
inline constexpr uint64_t kHeapBytes = 16 << 20;
inline constexpr uint32_t kStreamRegion = 2;  // memory that only streams reach
inline constexpr uint32_t kLentRegion = 3;    // the heap, as memory of the program itself
// The heap but for its first byte, as memory that the program exposes.
inline constexpr uint32_t kExposedRegion = shm::kSegmentPrivate | 4;

// Set before main.
inline const char* link_provider = "ferry-tcp";
inline const char* direct_library = "client/direct/libferry_direct.so";
inline DirectEntry direct_entry = nullptr;  // of a library that is part of the test

// The library as libferry opens it. Null, with a test failure, if it cannot be opened.
const DirectApi* OpenDirectLibrary();

// A recognisable sequence of bytes.
std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed);

inline shm::Location InHeap(uint64_t offset) { return {kHeapRegion, 0, offset}; }
inline shm::Location Private(const void* address) {
  return {0, 0, reinterpret_cast<uint64_t>(address)};
}

// One end of the way by the daemons: takes what a rank says to its daemon, and brings what comes
// from the other nodes. It knows eager messages, credits and markers, which is all that goes this
// way between ranks with a direct link, and notes what the rank says to the daemon itself.
class DaemonPath {
 public:
  struct Carried {
    shm::Descriptor descriptor;
    uint8_t data[shm::kCellBytes];  // so much of it as the message is long
  };

  DaemonPath(const engine::SessionView& view, std::vector<int> sockets);

  // Moves what can be moved. True: there was something.
  bool Turn();
  // One thing that the rank has told the daemon of its links.
  struct Told {
    uint32_t peer;
    shm::LinkMatter matter;
  };
  const std::vector<Told>& told() const { return told_; }

 private:
  bool TakeCommand();
  bool Deliver(const Carried& carried);

  const engine::SessionView view_;
  const std::vector<int> sockets_;  // by rank, to the paths of the others; -1: none
  shm::LaneConsumer commands_;
  shm::LaneProducer lane_;
  std::vector<std::unique_ptr<Carried>> waiting_;  // by rank; null: nothing waits for room
  std::vector<Told> told_;
};

struct RankOptions {
  engine::EngineOptions engine = {};
  uint64_t operation_timeout_ns = 10'000'000'000;
  const char* source_address = "127.0.0.1";
};

class LinkedRank final : private DirectHost {
 public:
  // `sockets`: see DaemonPath; they stay the caller's.
  LinkedRank(uint32_t rank, uint32_t job_size, std::vector<int> sockets,
             const RankOptions& options = {});
  ~LinkedRank();
  LinkedRank(const LinkedRank&) = delete;
  LinkedRank& operator=(const LinkedRank&) = delete;

  // Opens the endpoint. It stays closed, with a test failure, if that fails.
  void OpenLinks();
  // Closes it without a word, as the end of the process would.
  void CloseLinks();
  DirectLinks& links() { return *links_; }
  bool has_links() const { return links_ != nullptr; }

  // As libferry does. Send returns the request, or 0 if the message has left.
  uint32_t Send(uint32_t destination, int32_t tag, const void* data, uint64_t size_bytes);
  uint32_t SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                    uint64_t size_bytes, uint32_t flags = 0);
  uint32_t Receive(int32_t source, int32_t tag, const shm::Location& where, uint64_t size_bytes);
  bool Cancel(uint32_t request);
  bool Probe(int32_t source, int32_t tag, engine::ProbeResult* result);

  // The direct link to a peer, and the paths of what this rank sends to it.
  Status Connect(uint32_t peer, const LinkRoute& route);
  ErrorCode ConnectionTo(uint32_t peer, bool calls, std::string* why = nullptr);
  void End(uint32_t peer, ErrorCode error);
  ErrorCode UseLink(uint32_t peer);
  void LeaveLink(uint32_t peer);
  // A new life for the pair, as the daemons give it: `dead` first, and 0 once both have noticed.
  void MarkDead(uint32_t peer, ErrorCode error);
  void Revive(uint32_t peer);

  // One turn of everything. False if the lease was taken.
  bool Progress();
  // One turn of everything but the daemons. False if the lease was taken.
  bool ProgressLinks();
  // Turns the links alone, until nothing has moved for so long; then prepares for a sleep on their
  // WaitFd, until *next_ns at most. False: the lease is taken.
  bool TryRest(uint64_t quiet_ns, uint64_t* next_ns);
  // Returns true if the request is complete; does the rest that only a thread of the rank may do.
  bool Test(uint32_t request);
  // Its error, or kOk; the slot may be used again.
  ErrorCode Finish(uint32_t request);
  const shm::RequestLayout& Slot(uint32_t request) const { return *view_.request(request); }

  // Runs `action` as the holder of the lease.
  template <typename Action>
  void UnderLease(Action&& action) {
    Lock();
    action();
    Unlock();
  }

  uint32_t rank() const { return view_.rank; }
  engine::RankEngine& engine() { return *engine_; }
  const engine::SessionView& view() const { return view_; }
  std::byte* heap() { return heap_.base(); }
  DaemonPath& daemon() { return daemon_; }
  ErrorCode poison() const { return shm::Wake(view_.inbox.wake()).poison(); }
  uint64_t Statistic(shm::Statistic id) const {
    return shm::Statistics(view_.layout->counters).Read(id);
  }

  // A link that the library has reported as down.
  struct Loss {
    uint32_t peer;
    ErrorCode error;
    std::string text;
  };
  shm::ElementLock& elements() const { return elements_; }  // of kExposedRegion
  const std::vector<Loss>& losses() const { return losses_; }
  const std::vector<std::string>& violations() const { return violations_; }
  // The memory of receives into kStreamRegion, by request; or there is none for them.
  std::vector<std::byte> TakeLanded(uint32_t request) {
    return std::exchange(landings_[request], {});
  }
  void RefuseLandings() { refuses_landings_ = true; }

 private:
  // DirectHost.
  void LetMatch() override;
  void OnLinkDown(uint32_t peer, ErrorCode error, const char* text) override;
  void OnViolation(const char* text) override;
  bool FindRegion(uint32_t region, HostRegion* found) const override;
  ErrorCode TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) override;

  uint32_t Step();
  bool TryLock();
  void Lock();
  void Unlock();
  uint32_t NewRequest(shm::RequestKind kind, int32_t peer, int32_t tag, const shm::Location& where,
                      uint64_t size_bytes, uint32_t flags);
  std::byte* At(const shm::Location& where);
  void FinishLanded(shm::RequestLayout& slot);

  shm::SharedMemory session_memory_;
  shm::SharedMemory inbox_memory_;
  shm::SharedMemory heap_;
  mutable shm::ElementLock elements_;
  const RankOptions options_;
  engine::SessionView view_;
  engine::PeerTable peers_;
  std::unique_ptr<engine::RankEngine> engine_;
  shm::Lease lease_;
  DaemonPath daemon_;
  std::unique_ptr<DirectLinks> links_;
  std::optional<engine::Effects> effects_;  // of the holder of the lease
  std::vector<Loss> losses_;
  std::vector<std::string> violations_;
  std::map<uint32_t, std::vector<std::byte>> landings_;
  bool refuses_landings_ = false;
};

}  // namespace ferry::client
