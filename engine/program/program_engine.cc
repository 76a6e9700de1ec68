#include "engine/program/program_engine.h"

#include <algorithm>

#include "engine/program/program_check.h"

namespace ferry::engine {

// A counter that installed programs wait on or add to.
struct ProgramEngine::Word {
  shm::CounterLayout* layout;
  shm::Counter counter;
  uint32_t users = 0;       // references to it, of all programs
  uint32_t adders = 0;      // operations that add to it
  uint32_t others_add = 0;  // references that say that others do
  bool touched = false;
  uint64_t seen = 0;               // by Poll
  std::vector<Reference> waiters;  // operations whose trigger it is
  std::vector<ProgramId> starts;   // programs whose start it is
};

// An operation, and the start it is at.
struct ProgramEngine::Run {
  Operation operation;
  Reference self;
  Phase phase = Phase::kArmed;
  Placement placement = Placement::kDaemon;  // of the last run
  Word* trigger = nullptr;
  Word* done = nullptr;
  uint64_t threshold = 0;  // of its next run
  uint64_t stride = 0;
  uint64_t ended = 0;  // its runs that have
  uint64_t deadline_ns = UINT64_MAX;
  uint32_t run = 0;
};

struct ProgramEngine::Program {
  shm::CounterLayout own_start{};
  Word* start = nullptr;
  uint64_t start_base = 0;
  std::vector<Run> runs;
  std::vector<Word*> words;
  uint32_t running = 0;
  bool freed = false;
  ErrorCode error = ErrorCode::kOk;

  uint64_t Starts() const {
    const uint64_t value = start->counter.Value();
    return (value >= shm::kCounterFailure ? value - shm::kCounterFailure : value) - start_base;
  }
};

ProgramEngine::ProgramEngine(const Executors& executors) : executors_(executors) {}

ProgramEngine::~ProgramEngine() = default;

// ---- Installing and freeing ---------------------------------------------------------------------

ProgramEngine::Word* ProgramEngine::Use(shm::CounterLayout* layout, bool others_add) {
  std::unique_ptr<Word>& word = words_[layout];
  if (word == nullptr) {
    word = std::make_unique<Word>();
    word->layout = layout;
    word->counter = shm::Counter(layout);
    touched_.reserve(words_.size());
  }
  word->users++;
  if (others_add && word->others_add++ == 0) {
    watched_.push_back(word.get());
  }
  return word.get();
}

void ProgramEngine::Release(Word* word) {
  if (--word->users != 0) {
    return;
  }
  watched_.erase(std::remove(watched_.begin(), watched_.end(), word), watched_.end());
  touched_.erase(std::remove(touched_.begin(), touched_.end(), word), touched_.end());
  words_.erase(word->layout);
}

StatusOr<ProgramId> ProgramEngine::Install(const ProgramSpec& spec) {
  FERRY_RETURN_IF_ERROR(CheckProgram(spec));
  const std::vector<uint64_t> strides = Strides(spec);
  const ProgramId id = programs_.Insert();
  std::unique_ptr<Program>& slot = *programs_.Find(id);
  slot = std::make_unique<Program>();
  Program& program = *slot;
  program.start =
      Use(spec.start != nullptr ? spec.start : &program.own_start, spec.start != nullptr);
  program.start_base = program.start->counter.Value();
  program.start->starts.push_back(id);
  for (const ProgramCounter& counter : spec.counters) {
    program.words.push_back(Use(counter.word, counter.per_start != 0));
  }
  program.runs.resize(spec.operations.size());
  for (uint32_t i = 0; i < spec.operations.size(); ++i) {
    Run& run = program.runs[i];
    run.operation = spec.operations[i];
    run.self = {id, i};
    const Trigger& trigger = run.operation.trigger;
    const bool at_start = trigger.counter == kNoCounter;
    run.trigger = at_start ? program.start : program.words[trigger.counter];
    run.stride = at_start ? 1 : strides[trigger.counter];
    run.threshold = run.trigger->counter.Value() + trigger.threshold;
    run.trigger->waiters.push_back(run.self);
    if (run.operation.local_done != kNoCounter) {
      run.done = program.words[run.operation.local_done];
      run.done->adders++;
    }
  }
  program_count_++;
  run_count_ += program.runs.size();
  stalled_.reserve(run_count_);
  undated_.reserve(run_count_);
  finished_.reserve(program_count_);
  return id;
}

void ProgramEngine::Free(ProgramId id) {
  std::unique_ptr<Program>* found = programs_.Find(id);
  if (found == nullptr || (*found)->freed) {
    return;
  }
  Program& program = **found;
  const uint64_t starts = program.Starts();
  for (Run& run : program.runs) {
    if (run.phase == Phase::kStalled || (run.phase == Phase::kArmed && run.ended < starts)) {
      Fail(program, run, ErrorCode::kCancelled);
    } else if (run.phase == Phase::kArmed) {
      run.phase = Phase::kDead;
    }
  }
  program.freed = true;
  finished_.push_back(id);
  Settle();
}

// The end of a program that was freed and has nothing under way.
void ProgramEngine::Forget(ProgramId id) {
  Program& program = **programs_.Find(id);
  const auto is_own = [&](const Reference& waiter) { return waiter.program == id; };
  for (Run& run : program.runs) {
    std::vector<Reference>& waiters = run.trigger->waiters;
    waiters.erase(std::remove_if(waiters.begin(), waiters.end(), is_own), waiters.end());
  }
  for (Run& run : program.runs) {
    // Nobody adds any more to what this was the last to add to: a counter has one class of writer.
    if (run.done != nullptr && --run.done->adders == 0 && !run.done->waiters.empty()) {
      run.done->counter.Fail(ErrorCode::kCancelled);
      Touch(run.done);
    }
  }
  std::vector<ProgramId>& starts = program.start->starts;
  starts.erase(std::remove(starts.begin(), starts.end(), id), starts.end());
  Release(program.start);
  for (Word* word : program.words) {
    Release(word);
  }
  program_count_--;
  run_count_ -= program.runs.size();
  programs_.Erase(id);
}

// ---- Counters -----------------------------------------------------------------------------------

void ProgramEngine::Touch(Word* word) {
  if (!word->touched) {
    word->touched = true;
    touched_.push_back(word);
  }
}

// Looks at what has changed until nothing does. Operations that end at once change counters in
// their turn; they wait here rather than deepen the stack.
void ProgramEngine::Settle() {
  if (settling_) {
    return;
  }
  settling_ = true;
  while (!touched_.empty() || !finished_.empty()) {
    while (!touched_.empty()) {
      Word* word = touched_.back();
      touched_.pop_back();
      word->touched = false;
      Look(word);
    }
    if (!finished_.empty()) {
      const ProgramId id = finished_.back();
      finished_.pop_back();
      std::unique_ptr<Program>* program = programs_.Find(id);
      if (program != nullptr && (*program)->freed && (*program)->running == 0) {
        Forget(id);
      }
    }
  }
  settling_ = false;
}

void ProgramEngine::Look(Word* word) {
  const uint64_t value = word->counter.Value();
  for (const Reference& waiter : word->waiters) {
    LookAt(waiter, value);
  }
  for (const ProgramId id : word->starts) {
    Program& program = **programs_.Find(id);
    if (value >= shm::kCounterFailure) {
      // A start that failed: what waits for other counters waits in vain.
      for (Run& run : program.runs) {
        if (run.phase == Phase::kArmed) {
          Fail(program, run, word->counter.error());
        }
      }
    }
    for (Word* other : program.words) {
      if (other->others_add != 0) {
        Touch(other);  // what was added to it before the start counts now
      }
    }
  }
}

void ProgramEngine::LookAt(Reference waiter, uint64_t value) {
  Program* program = nullptr;
  Run* run = RunOf(waiter, &program);
  if (run == nullptr || run->phase != Phase::kArmed) {
    return;
  }
  if (value >= shm::kCounterFailure) {
    Fail(*program, *run, run->trigger->counter.error());
  } else if (value >= run->threshold && run->ended < program->Starts()) {
    Begin(*program, *run);
  }
}

Executor* ProgramEngine::ExecutorAt(Placement placement) const {
  return executors_[static_cast<size_t>(placement)];
}

bool ProgramEngine::IsUnderWay(const Run& run, Token token) {
  return run.phase == Phase::kRunning && run.run == token.run;
}

ProgramEngine::Run* ProgramEngine::RunOf(Reference reference, Program** program) {
  std::unique_ptr<Program>* found = programs_.Find(reference.program);
  if (found == nullptr) {
    return nullptr;
  }
  *program = found->get();
  return &(*found)->runs[reference.operation];
}

// ---- Operations ---------------------------------------------------------------------------------

void ProgramEngine::Begin(Program& program, Run& run) {
  // Operations that found no room before go first.
  if (!stalled_.empty() || !TryBegin(program, run)) {
    run.phase = Phase::kStalled;
    stalled_.push_back(run.self);
  }
}

// False: there is no room for it anywhere.
bool ProgramEngine::TryBegin(Program& program, Run& run) {
  const Operation& operation = run.operation;
  run.phase = Phase::kRunning;
  run.run++;
  program.running++;
  const Token token{run.self.program, run.self.operation, run.run};
  ErrorCode error = ErrorCode::kWouldBlock;
  run.placement = operation.placement;
  if (Executor* executor = ExecutorAt(run.placement); executor != nullptr) {
    error = executor->Begin(operation, token);
  }
  if (error == ErrorCode::kWouldBlock && run.placement != Placement::kDaemon) {
    run.placement = Placement::kDaemon;
    error = ExecutorAt(run.placement)->Begin(operation, token);
  }
  if (error == ErrorCode::kWouldBlock) {
    program.running--;
    return false;
  }
  events_++;
  if (error != ErrorCode::kOk) {
    Fail(program, run, error);
    return true;
  }
  counts_.begun[static_cast<size_t>(run.placement)]++;
  counts_.overflowed += run.placement != operation.placement ? 1 : 0;
  if (operation.timeout_ns != 0 && IsUnderWay(run, token)) {
    undated_.push_back(run.self);
  }
  return true;
}

void ProgramEngine::Completed(Token token, ErrorCode error) {
  Program* program = nullptr;
  Run* run = RunOf({token.program, token.operation}, &program);
  if (run == nullptr || !IsUnderWay(*run, token)) {
    return;
  }
  events_++;
  if (error == ErrorCode::kOk) {
    Finish(*program, *run);
  } else {
    Fail(*program, *run, error);
  }
  Settle();
}

void ProgramEngine::Finish(Program& program, Run& run) {
  program.running--;
  run.phase = Phase::kArmed;
  run.ended++;
  run.threshold += run.stride;
  run.deadline_ns = UINT64_MAX;
  if (run.done != nullptr) {
    run.done->counter.Add(1);
    Touch(run.done);
  }
  Touch(run.trigger);  // which may have been reached again meanwhile
  if (program.freed) {
    if (run.ended < program.Starts()) {
      Fail(program, run, ErrorCode::kCancelled);
    } else {
      run.phase = Phase::kDead;
      NoteIdle(program, run);
    }
  }
}

// Ends a run, and all later ones, without it having succeeded.
void ProgramEngine::Fail(Program& program, Run& run, ErrorCode error) {
  program.running -= run.phase == Phase::kRunning ? 1 : 0;
  run.phase = Phase::kDead;
  run.deadline_ns = UINT64_MAX;
  program.error = program.error == ErrorCode::kOk ? error : program.error;
  counts_.failed++;
  if (run.operation.remote_done != 0) {
    Executor* executor = ExecutorAt(run.operation.placement);
    (executor != nullptr ? executor : ExecutorAt(Placement::kDaemon))
        ->Renounce(run.operation, error);
  }
  if (run.done != nullptr) {
    run.done->counter.Fail(error);
    Touch(run.done);
  }
  NoteIdle(program, run);
}

void ProgramEngine::NoteIdle(const Program& program, const Run& run) {
  if (program.freed && program.running == 0) {
    finished_.push_back(run.self.program);
  }
}

// ---- The caller's side --------------------------------------------------------------------------

ErrorCode ProgramEngine::Start(ProgramId id) {
  std::unique_ptr<Program>* found = programs_.Find(id);
  if (found == nullptr || (*found)->freed) {
    return ErrorCode::kNotFound;
  }
  Program& program = **found;
  if (program.error != ErrorCode::kOk) {
    return program.error;
  }
  program.start->counter.Add(1);
  Touch(program.start);
  Settle();
  return ErrorCode::kOk;
}

bool ProgramEngine::IsBusy(ProgramId id) {
  std::unique_ptr<Program>* found = programs_.Find(id);
  if (found == nullptr) {
    return false;
  }
  const uint64_t starts = (*found)->Starts();
  return std::any_of((*found)->runs.begin(), (*found)->runs.end(), [starts](const Run& run) {
    return run.phase != Phase::kDead && run.ended < starts;
  });
}

uint32_t ProgramEngine::Poll(uint64_t now_ns) {
  now_ns_ = now_ns;
  settling_ = true;  // until all have been looked at
  Retry();
  Date();
  EndLate();
  for (Word* word : watched_) {
    if (const uint64_t value = word->counter.Value(); value != word->seen) {
      word->seen = value;
      Touch(word);
    }
  }
  settling_ = false;
  Settle();
  const uint32_t events = events_;
  events_ = 0;
  return events;
}

// In order: one that finds no room holds up those behind it.
void ProgramEngine::Retry() {
  size_t done = 0;
  for (; done < stalled_.size(); ++done) {
    Program* program = nullptr;
    Run* run = RunOf(stalled_[done], &program);
    if (run == nullptr || run->phase != Phase::kStalled) {
      continue;  // it was freed
    }
    if (!TryBegin(*program, *run)) {
      run->phase = Phase::kStalled;
      break;
    }
  }
  stalled_.erase(stalled_.begin(), stalled_.begin() + static_cast<ptrdiff_t>(done));
}

// Gives what has begun since the last Poll its deadline.
void ProgramEngine::Date() {
  for (const Reference reference : undated_) {
    Program* program = nullptr;
    if (Run* run = RunOf(reference, &program); run != nullptr && run->phase == Phase::kRunning) {
      run->deadline_ns = now_ns_ + run->operation.timeout_ns;
      next_deadline_ns_ = std::min(next_deadline_ns_, run->deadline_ns);
    }
  }
  undated_.clear();
}

void ProgramEngine::EndLate() {
  if (now_ns_ < next_deadline_ns_) {
    return;
  }
  next_deadline_ns_ = UINT64_MAX;
  programs_.ForEach([this](ProgramId id, std::unique_ptr<Program>& program) {
    for (Run& run : program->runs) {
      if (run.phase == Phase::kRunning && now_ns_ >= run.deadline_ns) {
        events_++;
        ExecutorAt(run.placement)->Abandon(run.operation, {id, run.self.operation, run.run});
        Fail(*program, run, ErrorCode::kTimeout);
      } else {
        next_deadline_ns_ = std::min(next_deadline_ns_, run.deadline_ns);
      }
    }
  });
}

}  // namespace ferry::engine
