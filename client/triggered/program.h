// A program of a queue: steps that a stream carries out between a start and its wait, over matched
// requests of its own (docs/stream_triggered.md). Collectives are made of them.
//
// The steps up to the first wait or call, the *opening*, run on the queue's stream, at the start.
// If the remaining steps start no message, no other rank depends on them, and they run at the wait,
// on the same stream. Otherwise they run on a stream of the program's own (*aside*), which begins
// when the queue's stream has passed the start. The program then goes on while the queue's stream
// does other work; at the wait the queue's stream waits for the word that says that the program is
// over.
//
// Its rank can carry a start out itself, in place of streams (program_by_rank.h).
// A send may follow receives (ProgramStep::follows): it is started ahead of their waits, and moves
// when their messages have come, by the NIC or the daemon. So the steps of a chain that passes
// messages on lie in the opening, and no stream takes part between its start and its end. Starts
// that stand next to each other share one doorbell.
//
// Failure. A wait for a message that fails lets the stream go on, as all waits do (shm/counter.h).
// Nothing may be sent on then, since the data was never received. So before each start, call and
// end that follows a wait, a function on the stream checks that the awaited messages have come. If
// not, it parts with all partners, whose programs fail in turn, lets the queue's stream go on, and
// stops the stream aside. A failed program stays failed.
//
// Calling thread: streams call the functions meant for them, one at a time; the holder of the
// queues' lock calls the rest.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/api/front_end.h"
#include "client/triggered/pair.h"
#include "client/triggered/pairs.h"
#include "client/triggered/program_by_rank.h"
#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "shm/layout/counter_layout.h"

namespace ferry::client {

class Program {
 public:
  struct Step : ProgramStep {
    Program* program = nullptr;
    // Messages waited for before this step and not yet checked by an earlier one.
    std::vector<uint32_t> to_check = {};
    bool is_last = false;
  };

  // `requests` by their slots. `over` is zeroed memory that streams reach; the caller owns it.
  // `pairs` outlives the program.
  Program(std::string name, std::vector<uint32_t> requests, std::vector<ProgramStep> steps,
          shm::CounterLayout* over, Pairs* pairs);
  ~Program() { StopAside(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& name() const { return name_; }
  shm::CounterLayout* over() const { return over_; }
  std::vector<Step>& steps() { return steps_; }
  size_t opening() const { return opening_; }
  bool is_aside() const { return is_aside_; }
  // The end of the starts that stand next to each other from `first` on, before `end`.
  size_t EndOfStarts(size_t first, size_t end) const;
  // Valid once prepared.
  const std::vector<Pair*>& members() const { return members_; }
  Pair& PairOf(const Step& step) { return *members_[step.request]; }
  gpu::Stream& aside() { return *aside_; }
  gpu::Event& begins() { return *begins_; }
  gpu::Event& passed() { return *passed_; }

  // Call it before each start. kInvalidRequest unless all requests are matched and no start is
  // under way; or why the program failed.
  Status CheckStart();
  // Makes what the program needs to run on `device`. Errors are the backend's.
  Status Prepare(gpu::GpuBackend* backend, int device);
  // Returns true while some of the enqueued work, the wait included, has not run yet.
  bool IsEnqueued() const;
  // Returns kOk, or the error with which the program has failed.
  ErrorCode error() const { return shm::Counter(over_).error(); }
  // Fails the program, and its messages with its partners. Called by threads of the application.
  void Fail(ErrorCode error);

  // The starts that the rank carries out in place of streams; Start comes after CheckStart.
  ProgramByRank& by_rank() { return by_rank_; }
  // Ends its messages with its partners, whose programs fail in turn. For the stream, or
  // the rank, that carries out its steps; other threads call Fail.
  void Part(ErrorCode error);

  // For streams: LaunchHost calls it for a kCall step of the start `round`.
  Status Run(const Step& step, uint64_t round);

  // The queues' own fields.
  uint64_t starts = 0;
  QueueHandle queue = 0;  // of the last start
  bool wants_wait = false;
  bool is_listed = false;
  uint64_t mark = 0;

 private:
  Status FindMembers();
  Status Follow(const Step& step);
  void StopAside() { aside_.reset(); }
  void FailAfterThis(ErrorCode error);

  const std::string name_;
  const std::vector<uint32_t> requests_;
  shm::CounterLayout* const over_;  // counts the starts that are over
  Pairs& pairs_;
  std::vector<Step> steps_;
  size_t opening_ = 0;
  bool is_aside_ = false;
  std::vector<Pair*> members_;          // by request, once all are matched
  std::atomic<int32_t> fails_next_{0};  // ErrorCode: why there is no start after this one
  ProgramByRank by_rank_;
  std::unique_ptr<gpu::Event> begins_;
  std::unique_ptr<gpu::Event> passed_;
  std::unique_ptr<gpu::Stream> aside_;
};

}  // namespace ferry::client
