// One-sided operations in the memory of ranks of other nodes: as commands in the lane to the
// daemon, or to the rank's own core, which has them carried out there
// (shm/layout/one_sided_layout.h).
//
// Where messages to the peer take a direct link, the operations do, too, by the rank's own core
// (OperationWays). While messages take the daemons again, or a lost link is to be judged, an
// operation waits for the end of those before it.
//
// The operations with one peer are numbered as they are pushed, whatever their path, and the core
// says which number was the last that is over, and which have failed: the rank's log (OneSidedLog)
// knows the context of each. An operation that returns a value has one of the *answers* of the
// session, too (RemoteAnswers); a thread that waits, or needs an answer's place, harvests them.
//
// *Long* puts and gets have an answer and no number: the daemons move the bytes straight from where
// they lie to where they belong, as those of a large message. The program's own memory has a
// *bounce buffer* in the heap meanwhile, if it is not too long: moving memory that the network
// reaches costs half.
//
// Calling thread: any that the thread level allows. Calls that begin operations block while there
// is no room in the lane or the log, no place for an answer, or while the path changes. The rank's
// poison ends every wait.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "client/api/one_sided.h"
#include "client/memory/memory.h"
#include "client/p2p/progress.h"
#include "client/rma/one_sided_context.h"
#include "client/rma/one_sided_log.h"
#include "client/rma/operation_ways.h"
#include "client/rma/remote_answers.h"
#include "common/zeroed_array.h"
#include "shm/counters.h"

namespace ferry::client {

class RemoteOperations {
 public:
  struct Parts {  // all outlive it
    Progress* progress;
    Memory* memory;
    bool private_reachable;  // by the daemon and its workers: this rank's memory
    // Long operations on the program's own memory use bounce buffers up to this size.
    uint64_t bounce_buffer_max_bytes;
    shm::Statistics statistics;
    // Calls NodePeers::WaitFor.
    std::function<void(bool (*done)(void*), void* argument, uint32_t peer, uint64_t end_ns)> wait;
    // Called when an operation of that size has left by the link to the peer: the link thread
    // carries it on.
    std::function<void(uint32_t peer, uint64_t size_bytes)> carry_on_by_link = {};
  };
  explicit RemoteOperations(Parts parts);
  RemoteOperations(const RemoteOperations&) = delete;
  RemoteOperations& operator=(const RemoteOperations&) = delete;

  // Like the functions of client/api/one_sided.h, for a rank of another node.
  ErrorCode Put(OneSidedContext& context, const RemoteAddress& to, const void* from,
                uint64_t size_bytes, const Signal& signal, WhenDone when = WhenDone::kAtReturn);
  ErrorCode Get(OneSidedContext& context, void* to, const RemoteAddress& from, uint64_t size_bytes,
                WhenDone when);
  ErrorCode Atomic(OneSidedContext& context, const AtomicCall& call, uint64_t* found,
                   WhenDone when);
  // Also for a rank of this node, where only ferryd can carry the call out.
  ErrorCode Accumulate(OneSidedContext& context, const AccumulateCall& call, const void* operands,
                       void* found, WhenDone when);
  // Waits for the context's long operations; Quiet tells their failures.
  void Fence(OneSidedContext& context);
  // `with`: waits only for the operations with this rank.
  ErrorCode Quiet(OneSidedContext& context, std::optional<uint32_t> with, uint32_t* failed_rank);
  bool IsQuiet(OneSidedContext& context);
  // Call it before the context is freed: operations that are under way do not use it any more.
  void Leave(OneSidedContext& context);
  // Waits for the end of all operations of all contexts.
  void AwaitAll();

 private:
  using Call = RemoteAnswers::Call;
  using Expected = RemoteAnswers::Expected;
  struct Command;
  class Passage;

  // Every member that uses the data behind parts_ holds this lock, where several threads may call.
  [[nodiscard]] std::unique_lock<std::mutex> Lock() {
    return progress_.threads() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  template <typename Done>
  void Wait(uint32_t rank, Done& done, uint64_t end_ns = UINT64_MAX) {
    parts_.wait([](void* argument) { return (*static_cast<Done*>(argument))(); }, &done, rank,
                end_ns);
  }
  void GiveUpLinksFor(const RemoteAddress& there, const void* here, uint64_t size_bytes);
  template <typename Attempt>
  ErrorCode AwaitRoom(uint32_t rank, Attempt&& attempt);
  bool IsQuietWith(uint32_t rank);
  ErrorCode Judged(uint32_t rank, ErrorCode error);
  // This rank's end of a long operation: where its bytes lie.
  struct LongEnd {
    shm::Location where;
    void* bounce_buffer = nullptr;  // there
  };
  std::optional<LongEnd> FindLong(engine::Core core, const RemoteAddress& there, const void* here,
                                  uint64_t size_bytes, uint64_t least_bytes, bool is_copied);
  ErrorCode PutLong(OneSidedContext& context, engine::Core core, const RemoteAddress& to,
                    const LongEnd& end, const void* from, uint64_t size_bytes, const Signal& signal,
                    WhenDone when);
  ErrorCode GetLong(OneSidedContext& context, engine::Core core, void* to, const LongEnd& end,
                    const RemoteAddress& from, uint64_t size_bytes, WhenDone when);
  ErrorCode MoveLong(OneSidedContext& context, Command* command, const LongEnd& end,
                     Expected expected, WhenDone when);
  bool HasLong(const OneSidedContext& context, std::optional<uint32_t> with) const;
  ErrorCode GiveData(Command* command, const void* from, uint64_t size_bytes);
  ErrorCode FillCell(Command* command, const void* from, uint64_t size_bytes);
  ErrorCode Push(OneSidedContext& context, const Command& command);
  bool TryPush(const Command& command, const shm::Descriptor& descriptor);
  void ReturnCell(const Command& command);
  ErrorCode Ask(OneSidedContext& context, Command* command, Expected expected);
  ErrorCode TakePlace(const Expected& expected, uint16_t* place);
  void GivePlace(uint16_t place);
  ErrorCode AwaitCall(Call* call, uint32_t rank);
  void TakeFailures();
  void TakeFailures(const shm::OneSidedFailures& failures, uint64_t* taken);

  const Parts parts_;
  Progress& progress_;
  std::mutex mutex_;
  ZeroedArray<uint64_t> issued_;  // by rank: the number of the last operation
  OperationWays ways_;
  OneSidedLog log_;
  RemoteAnswers answers_;
  std::array<uint64_t, shm::kOneSidedCores> failures_taken_{};  // of SessionLayout::failures
};

}  // namespace ferry::client
