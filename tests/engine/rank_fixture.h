// One node's ranks in one process, each with its segments and an engine, as a client would use it.
//
// TestNode makes the segments; TestRank does what libferry does around the engine: fills request
// slots, performs effects (and remembers them), copies what has landed. No lease is taken: tests
// with threads or processes take it themselves. FakeDaemon is the other end of a rank's two lanes
// to its daemon.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/rank_engine.h"
#include "engine/transfer.h"
#include "tests/shm/shared_memory.h"

namespace ferry::engine {

struct NodeOptions {
  uint32_t local_ranks = 2;   // ranks 0 .. local_ranks - 1
  uint32_t remote_ranks = 0;  // the ranks after them
  uint32_t request_limit = 1024;
  uint32_t unexpected_limit = 2048;
};

// Reaches all memory of this process by address, whichever rank owns it.
class FlatMemory : public MemoryAccess {
 public:
  Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) override;
  ErrorCode Copy(const Reach& destination, const Reach& source, uint64_t size_bytes) override;
};

class TestNode;

// The result of a request that has completed.
struct Outcome {
  ErrorCode error = ErrorCode::kOk;
  int32_t source = 0;
  int32_t tag = 0;
  uint64_t message_bytes = 0;
  std::string data;  // as much of the buffer as the message filled
};

class TestRank {
 public:
  TestRank(TestNode& node, uint32_t rank, Runner runner = Runner::kRank);

  RankEngine& engine() { return engine_; }
  const SessionView& view() const { return engine_.view(); }
  shm::RequestLayout& slot(uint32_t request) { return *view().request(request); }
  shm::RequestState state(uint32_t request);
  ErrorCode poison() const { return shm::Wake(view().inbox.wake()).poison(); }

  // Starts a message as libferry does: inline, by a cell, or else by a queued or announced request.
  uint32_t Isend(uint32_t destination, int32_t tag, const std::string& data, uint32_t context = 0);
  // Always uses the request, as libferry does when the short ways are closed.
  uint32_t IsendByRequest(uint32_t destination, int32_t tag, const std::string& data,
                          uint32_t flags = 0);
  uint32_t Irecv(int32_t source, int32_t tag, uint64_t capacity_bytes, uint32_t context = 0);
  // Receives as Irecv does, after trying TryTakeEager, FindRts and ReceiveNow, as a blocking
  // receive does.
  uint32_t IrecvDirect(int32_t source, int32_t tag, uint64_t capacity_bytes, uint32_t context = 0);
  // The engine's answer to the latest Irecv.
  ErrorCode start_error() const { return start_error_; }

  bool Cancel(uint32_t request);
  uint32_t Progress();
  // Moves a landed or transferring request on as far as it goes; whether it is complete.
  bool Test(uint32_t request);
  // For a complete request; its slot goes back to the pool.
  Outcome Finish(uint32_t request);
  // Calls Progress and Test until it is complete (fails the test if that takes long), then Finish.
  Outcome Wait(uint32_t request);
  // Irecv + Wait.
  Outcome Receive(int32_t source, int32_t tag, uint64_t capacity_bytes, uint32_t context = 0);

  // Applies the effects of an engine call: publishes to peers, and records them for the test.
  void Perform(const Effects& effects);
  LaneSet wakes;   // all so far
  LaneSet urgent;  // all so far
  bool rang_daemon = false;

  // A new slot, filled in but not started.
  uint32_t NewRequest(shm::RequestKind kind, int32_t peer, int32_t tag, uint32_t context,
                      std::string data);

 private:
  void Take(shm::RequestLayout& slot, const EagerMessage& message);
  void Take(shm::RequestLayout& slot, const AnnouncedMessage& rts);
  void Land(shm::RequestLayout& slot);
  void Transfer(shm::RequestLayout& slot);

  TestNode& node_;
  uint32_t rank_;
  RankEngine engine_;
  FlatMemory memory_;
  std::vector<std::string> buffers_;  // by request
  std::deque<uint32_t> free_;
  ErrorCode start_error_ = ErrorCode::kOk;
};

class TestNode {
 public:
  explicit TestNode(const NodeOptions& options = {}, const EngineOptions& engine_options = {});

  TestRank& operator[](uint32_t rank) { return *ranks_[rank]; }
  uint32_t local_ranks() const { return options_.local_ranks; }
  const SessionView& view(uint32_t rank) const { return sessions_[rank]; }
  const PeerTable& peers() const { return peers_; }
  const EngineOptions& engine_options() const { return engine_options_; }
  const NodeOptions& options() const { return options_; }
  const shm::SharedMemory& session_memory(uint32_t rank) const { return *memory_[2 * rank]; }
  const shm::SharedMemory& inbox_memory(uint32_t rank) const { return *memory_[2 * rank + 1]; }

  // As if it were made anew, in the memory that it has: for tests that need thousands.
  void Restart();

  // Progresses everywhere until no rank finds anything.
  void Settle();
  // Does what the daemon of `observer` does when `dead` is gone.
  void MarkDead(uint32_t observer, uint32_t dead, ErrorCode error = ErrorCode::kPeerDied);

 private:
  void MakeRanks();

  NodeOptions options_;
  EngineOptions engine_options_;
  std::vector<std::unique_ptr<shm::SharedMemory>> memory_;
  std::vector<SessionView> sessions_;
  PeerTable peers_;
  std::vector<std::unique_ptr<TestRank>> ranks_;
};

// The payload of a descriptor as `Payload`.
template <typename Payload>
Payload PayloadOf(const shm::Descriptor& descriptor) {
  static_assert(sizeof(Payload) == shm::kInlineBytes);
  Payload payload;
  std::memcpy(&payload, descriptor.payload, sizeof(payload));
  return payload;
}

template <typename Payload>
void SetPayload(shm::Descriptor* descriptor, const Payload& payload) {
  static_assert(sizeof(Payload) == shm::kInlineBytes);
  std::memcpy(descriptor->payload, &payload, sizeof(payload));
}

// The daemon as one rank sees it: takes what the rank sends and plays the other nodes. Or the
// rank's own core.
class FakeDaemon {
 public:
  explicit FakeDaemon(const SessionView& view, Core core = Core::kDaemon);

  // Takes the contents of the rank's lane to it, at most `limit` of them.
  std::vector<shm::Descriptor> Take(uint32_t limit = ~uint32_t{0});
  // Takes as Take does, but returns only those of one kind.
  std::vector<shm::Descriptor> TakeOf(shm::DescriptorKind kind);
  // Fills that lane until it takes no more.
  void FillLane();

  // Each pushes one descriptor into its lane to the rank; false when it is full.
  bool Push(const shm::Descriptor& descriptor);
  template <typename Payload>
  bool Push(shm::DescriptorKind kind, uint32_t source, int32_t tag, uint64_t size_bytes,
            const Payload& payload) {
    shm::Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(kind);
    descriptor.source = source;
    descriptor.tag = tag;
    descriptor.size_bytes = size_bytes;
    SetPayload(&descriptor, payload);
    return Push(descriptor);
  }
  bool Eager(uint32_t source, int32_t tag, const std::string& data);
  bool RemoteRts(uint32_t source, int32_t tag, uint64_t size_bytes);
  bool Result(shm::DescriptorKind kind, uint32_t request, uint32_t generation,
              ErrorCode error = ErrorCode::kOk);
  bool Credit(uint32_t source, uint32_t count);  // for so many more messages
  bool Left(uint32_t source);

  shm::LaneProducer& producer() { return producer_; }

 private:
  SessionView view_;
  shm::LaneLayout* commands_;
  uint32_t lane_;
  shm::LaneConsumer consumer_;
  shm::LaneProducer producer_;
  std::map<uint32_t, uint32_t> credited_;  // by source: in all
};

// `size_bytes` bytes that depend on `seed` and on the place.
std::string Pattern(uint64_t size_bytes, uint32_t seed);

}  // namespace ferry::engine
