// Collective calls on a file that do not block (MPI 5.0, section 14.4.2): they are carried out one
// after the other, in the order of the calls, which is the same on all ranks, by the code of those
// that block. It runs on a fiber, which suspends where it would wait: for other ranks, or for the
// thread that accesses files (io_thread.h). So a rank needs to make no further call, and the calls
// of several files, which ranks may make in any order, do not wait for each other.
//
// The fiber goes on where the program tests or waits, and in between by Ferry's own thread
// (mpi/coll/helper.h). A death ends all that waits for other ranks: of the survivors some may have
// given up without a message.
//
// Calling thread: any that the thread level allows. Nothing blocks but AwaitIdle, and what the
// fiber does between two waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/coll/call_watch.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/fiber.h"
#include "mpi/coll/watched.h"
#include "mpi/io/file.h"
#include "mpi/io/io_thread.h"
#include "mpi/io/meeting.h"

namespace ferry::mpi {

// One such call.
class BackgroundCall {
 public:
  // Carries the call out, on the fiber.
  virtual void CarryOut(Background& background) = 0;
  // It is over: the object may be gone afterwards.
  virtual void EndCall() = 0;

 protected:
  ~BackgroundCall() = default;
};

class BackgroundCalls : public Object, public Watched, private Background {
 public:
  // Returns those of a file, made at the first call; all ranks make it together.
  static BackgroundCalls& Of(File& file);
  // As Of; null: the file has had no such call.
  static BackgroundCalls* Find(File& file);

  explicit BackgroundCalls(Comm& comm);
  ~BackgroundCalls() override;

  // Begins a call of the function, which stays until it is over. It may be over at once. Returns
  // its number among the file's collective calls.
  uint64_t Add(BackgroundCall* call, const char* function);
  // Carries the calls on as far as they go without waiting.
  void Advance();
  // Waits until no call is under way: for calls that block, which go by the same memory. Fails if
  // the rank's connection has ended. Blocks.
  Failure AwaitIdle();
  // Waits for such a call until done(argument) is true, as Request::AwaitUntil does. While the call
  // waits for other ranks, those are asked whether they have come (mpi/coll/call_watch.h).
  void Await(const CallWatch::Call& call, bool (*done)(void*), void* argument);
  // True while a call waits for other ranks; false: for the thread that accesses files.
  bool IsMeeting() const { return is_meeting_.load(std::memory_order_relaxed); }

  // While it exists, a thread of the program calls Advance again and again.
  class Waiting {
   public:
    explicit Waiting(BackgroundCalls* calls) : calls_(*calls) { calls_.waiting_++; }
    ~Waiting() { calls_.waiting_--; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    BackgroundCalls& calls_;
  };

  // ---- Watched ----
  bool IsBusy() override { return busy_.load(std::memory_order_acquire) != 0; }
  bool IsLookedAfter() override;
  Progress AdvanceAll() override;
  // Calls under way are left alone: other ranks still depend on them, or they never end.
  void Abandon() override {}

 private:
  // ---- Background, on the fiber ----
  Failure Gather(const void* own, size_t bytes, void* all) override;
  void Do(IoWork* work, IoLine line) override;

  void Work();
  bool AdvanceLocked();
  bool IsDeathKnown() const;

  Channel& channel_;
  // Of all gathers of the file's calls: one of them is under way at a time, as of a persistent
  // collective.
  const uint32_t number_;
  CallWatch::Call last_;  // that was added
  std::atomic<bool> is_meeting_{false};
  std::atomic<size_t> busy_{0};  // calls that are not over
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> looks_{0};  // of the program
  uint64_t seen_looks_ = 0;         // by IsLookedAfter
  std::mutex mutex_;                // guards what follows
  std::deque<BackgroundCall*> queue_;
  uint64_t ended_ = 0;
  Fiber fiber_;
};

}  // namespace ferry::mpi
