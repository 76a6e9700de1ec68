// Queues: starts and waits of matched requests that a GPU stream carries out, and calls that the
// rank makes when the stream gets there (docs/stream_triggered.md); and the streams of the emulated
// device that programs can make.
//
// Inside the node a start is one small kernel of Ferry's on the stream, which meets the other end
// and moves the bytes (gpu::MatchedMove). Between nodes it is a store into the page of the NIC's
// counter, where the rank has it (CounterPages), or else into the doorbell that the daemon watches;
// ready sends of one call share a doorbell. A wait is the stream's own wait for a word. So once the
// calls here have returned, no CPU of the rank has anything left to do, except for the calls of
// EnqueueCall (queue_calls.h).
//
// Calling thread: any that the thread level allows; a lock is held for the length of a call, but
// not while Await waits, nor while Free and DestroyStream wait for a call that has begun.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/memory/memory.h"
#include "client/triggered/pairs.h"
#include "client/triggered/program.h"
#include "client/triggered/queue_calls.h"
#include "client/triggered/queue_steps.h"
#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::client {

enum class QueueType : uint32_t { kFerry = 0, kCuda = 1, kHip = 2, kLevelZero = 3 };

// A stream that Ferry made, whose address is the handle that programs hold; or one that the program
// made with the vendor's library, for as long as there are queues on it.
struct FerryStream {
  std::unique_ptr<gpu::Stream> stream;
  int device = 0;
  void* native = nullptr;  // the program's own
};

class Queues {
 public:
  // Both arguments outlive this object.
  Queues(Pairs* pairs, Memory* memory) : pairs_(*pairs), memory_(*memory) {}
  ~Queues();

  // ---- Streams: kUnsupported without a GPU backend ----
  StatusOr<FerryStream*> MakeStream(int device);
  Status DestroyStream(FerryStream* stream);
  // Returns the stream that a handle names, or kInvalidArgument.
  StatusOr<gpu::Stream*> Find(FerryStream* stream);

  // ---- Queues: kInvalidArgument for a handle that names none ----
  // Makes a queue. kUnsupported: the GPU backend has no streams of that type.
  StatusOr<QueueHandle> Make(QueueType type, const void* stream_address);
  Status Free(QueueHandle queue);
  // Blocks until the stream has done everything. Returns the first failure of a request, or of a
  // call, since the last Await.
  Status Await(QueueHandle queue);
  // Returns QueueSteps::object of a queue; 0: there is no such queue.
  uint64_t StepsOf(QueueHandle queue) {
    std::lock_guard lock(mutex_);
    const auto found = queues_.find(queue);
    return found == queues_.end() ? 0 : found->second.steps->object();
  }
  // Something that queues start and wait for: a request by its slot, or a program.
  struct Item {
    uint32_t request = 0;
    RequestHandle program = 0;  // 0: none
  };
  // Enqueues all or none; kInvalidRequest names the one at fault. If the stream itself refuses,
  // pairs whose start it had already taken end, and need no wait.
  Status EnqueueStart(QueueHandle queue, std::span<const Item> items);
  Status EnqueueWait(QueueHandle queue, std::span<const Item> items);

  // ---- Calls: see front_end.h ----
  Status EnqueueCall(QueueHandle queue, HostCall call);
  // Returns the number of calls that are not over.
  size_t CountOpenCalls();
  // Ends the calls before the process ends without Leave: none begins any more, and no stream waits
  // for one. False: a call that has begun goes on, and the objects that it uses must stay.
  bool EndCalls();

  // ---- Programs: see front_end.h. `requests` by their slots ----
  static bool IsProgram(RequestHandle handle);
  StatusOr<RequestHandle> MakeProgram(std::string name, std::vector<uint32_t> requests,
                                      std::vector<ProgramStep> steps);
  Status FreeProgram(RequestHandle program);
  bool IsProgramEnqueued(RequestHandle program);
  Status StartByRank(RequestHandle program);
  bool AdvanceByRank(RequestHandle program, ErrorCode* error);

  // Returns true if there is a queue.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

  // Ends the use of a request's pair; it is not enqueued.
  void Release(uint32_t request);

 private:
  struct Queue {
    FerryStream* owner = nullptr;  // null once that was destroyed
    // Pairs waited for since the last Await; each once.
    std::vector<Pair*> waited;
    std::vector<Program*> waited_programs;
    uint32_t open_starts = 0;   // without a wait
    std::vector<void*> blocks;  // blocks of freed requests that the stream may still look at
    std::shared_ptr<QueueCalls> calls;  // null: there were none
    std::unique_ptr<QueueSteps> steps;

    gpu::Stream& stream() const { return *owner->stream; }
  };
  using Streams = std::map<FerryStream*, std::unique_ptr<FerryStream>>;

  StatusOr<Streams::iterator> LookupStream(FerryStream* stream);
  // The program's own stream, adopted if no queue has it yet.
  StatusOr<FerryStream*> Adopt(void* native);
  // Releases an adopted stream that no queue uses any more.
  void ReleaseAdopted(FerryStream* stream);
  static FerryStream* Add(FerryStream stream, Streams* streams);
  StatusOr<Queue*> Lookup(QueueHandle queue);
  Status CheckStart(QueueHandle handle, uint32_t request);
  SharedStart* Share(std::span<const Item> items);
  static Status RingShared(gpu::Stream& stream, SharedStart& shared);
  Status StartRequest(QueueHandle handle, Queue& queue, Pair& pair, bool* rings);
  // The pair or program of an item; null: there is none.
  template <typename Startable>
  Status CheckWait(QueueHandle handle, Startable* one) const;
  Status WaitRequest(Queue& queue, Pair& pair);
  Status Start(gpu::Stream& stream, Pair& pair);
  Status StartInNode(gpu::Stream& stream, Pair& pair);
  static Status CopyBuffer(gpu::Stream& stream, const Pair& pair, void* to, const void* from);
  static gpu::MatchedMove MoveOf(const Pair& pair);
  static Status Wait(gpu::Stream& stream, Pair& pair);
  void RefuseAll(Queue& queue, std::span<const Item> items, ErrorCode error);
  void FreeBlocks(std::vector<void*> blocks);
  void Unlist(Pair* pair);
  void Fail(Pair& pair, ErrorCode error);
  void WithdrawStarted(QueueHandle handle, Queue& queue);
  void FailStarted(QueueHandle handle, Queue& queue, ErrorCode error);
  void Refuse(Queue& queue, Pair& pair, ErrorCode error);
  // Returns true at the first look at the pair or program since mark_ was raised.
  template <typename Startable>
  bool IsFirst(Startable& one) const {
    return std::exchange(one.mark, mark_) != mark_;
  }

  // queue_programs.cc
  Program* FindProgram(RequestHandle handle);
  Status CheckProgramStart(QueueHandle handle, Queue& queue, Program* program);
  Status StartProgram(QueueHandle handle, Queue& queue, Program& program, bool* rings);
  Status EnqueueSteps(gpu::Stream& stream, Program& program, size_t first, size_t end, bool* rings);
  Status StartTogether(gpu::Stream& stream, Program& program, size_t first, size_t end,
                       bool* rings);
  Status WaitProgram(Queue& queue, Program& program);
  void UnlistProgram(Program* program);
  Status TakeProgramEnds(QueueHandle handle, Queue& queue);
  std::vector<Program*> StartedPrograms(QueueHandle handle);
  void FreePrograms();

  Pairs& pairs_;
  Memory& memory_;
  std::mutex mutex_;
  QueueHandle last_ = 0;
  std::atomic<size_t> count_{0};
  uint64_t mark_ = 0;
  std::vector<Pair*> sharing_;  // scratch of EnqueueStart
  std::map<QueueHandle, Queue> queues_;
  Streams streams_;
  RequestHandle last_program_ = 0;
  std::map<RequestHandle, std::unique_ptr<Program>> programs_;
};

}  // namespace ferry::client
