// Queues: programs. See queues.h and program.h.
#include <algorithm>
#include <string>
#include <utility>

#include "client/triggered/queues.h"

namespace ferry::client {

using Kind = ProgramStep::Kind;

namespace {

// Marks programs: no slot number, in the half of a handle that holds a request's slot.
constexpr RequestHandle kProgramMark = UINT32_MAX;

Status NoProgram() {
  return {ErrorCode::kInvalidRequest, "the handle names no program: it was freed, or never made"};
}

}  // namespace

bool Queues::IsProgram(RequestHandle handle) { return (handle & UINT32_MAX) == kProgramMark; }

StatusOr<RequestHandle> Queues::MakeProgram(std::string name, std::vector<uint32_t> requests,
                                            std::vector<ProgramStep> steps) {
  StatusOr<void*> over = memory_.Allocate(sizeof(shm::CounterLayout), MemoryKind::kPinned, 0);
  FERRY_RETURN_IF_ERROR(over.status());
  auto* const word = new (*over) shm::CounterLayout{};
  auto program = std::make_unique<Program>(std::move(name), std::move(requests), std::move(steps),
                                           word, &pairs_);
  std::lock_guard lock(mutex_);
  const RequestHandle handle = ++last_program_ << 32 | kProgramMark;
  programs_.emplace(handle, std::move(program));
  return handle;
}

Status Queues::FreeProgram(RequestHandle handle) {
  std::unique_ptr<Program> program;
  {
    std::lock_guard lock(mutex_);
    Program* const found = FindProgram(handle);
    if (found == nullptr) {
      return NoProgram();
    }
    if (found->IsEnqueued() || found->by_rank().is_under_way()) {
      return {ErrorCode::kInvalidRequest, "the " + found->name() + " was started and is not over"};
    }
    for (auto& [queue_handle, queue] : queues_) {
      std::erase(queue.waited_programs, found);
    }
    program = std::move(programs_[handle]);
    programs_.erase(handle);
  }
  shm::CounterLayout* const over = program->over();
  program.reset();  // and its stream, which may still look at the word
  return memory_.Free(over);
}

void Queues::FreePrograms() {
  for (auto& [handle, program] : programs_) {
    shm::CounterLayout* const over = program->over();
    program.reset();
    (void)memory_.Free(over);
  }
  programs_.clear();
}

bool Queues::IsProgramEnqueued(RequestHandle handle) {
  std::lock_guard lock(mutex_);
  Program* const program = FindProgram(handle);
  return program != nullptr && program->IsEnqueued();
}

Program* Queues::FindProgram(RequestHandle handle) {
  const auto found = programs_.find(handle);
  return found == programs_.end() ? nullptr : found->second.get();
}

// ---- Starts and waits ---------------------------------------------------------------------------

Status Queues::CheckProgramStart(QueueHandle handle, Queue& queue, Program* program) {
  if (program == nullptr) {
    return NoProgram();
  }
  FERRY_RETURN_IF_ERROR(program->CheckStart());
  if (!IsFirst(*program)) {
    return {ErrorCode::kInvalidRequest, "it is in the array twice"};
  }
  if (program->queue != handle && program->IsEnqueued()) {
    return {ErrorCode::kInvalidRequest, "its last start, on another queue, is not complete yet"};
  }
  return program->Prepare(memory_.backend(), queue.owner->device);
}

Status Queues::StartProgram(QueueHandle handle, Queue& queue, Program& program, bool* rings) {
  if (program.is_listed && program.queue != handle) {
    UnlistProgram(&program);
  }
  ++program.starts;
  program.queue = handle;
  program.wants_wait = true;
  ++queue.open_starts;
  FERRY_RETURN_IF_ERROR(EnqueueSteps(queue.stream(), program, 0, program.opening(), rings));
  if (!program.is_aside()) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(queue.stream().RecordEvent(&program.begins()));
  FERRY_RETURN_IF_ERROR(program.aside().WaitEvent(&program.begins()));
  return EnqueueSteps(program.aside(), program, program.opening(), program.steps().size(), rings);
}

Status Queues::EnqueueSteps(gpu::Stream& stream, Program& program, size_t first, size_t end,
                            bool* rings) {
  for (size_t i = first; i < end; ++i) {
    Program::Step& step = program.steps()[i];
    Status status;
    if (step.kind == Kind::kStart) {
      const size_t next = program.EndOfStarts(i, end);
      status = StartTogether(stream, program, i, next, rings);
      i = next - 1;
    } else if (step.kind == Kind::kWait) {
      status = Wait(stream, program.PairOf(step));
    } else if (step.kind == Kind::kCopy) {
      const bool is_device = memory_.IsByStream(step.to) || memory_.IsByStream(step.from);
      status = is_device ? stream.CopyDeviceAsync(step.to, step.from, step.size_bytes)
                         : stream.CopyAsync(step.to, step.from, step.size_bytes);
    } else if (step.kind == Kind::kStrided) {
      status = stream.CopyStrided(step.strided);
    } else if (step.kind == Kind::kReduce) {
      status = stream.Reduce(step.reduction);
    } else {
      status = stream.LaunchHost(
          [step = &step, round = program.starts] { return step->program->Run(*step, round); });
    }
    FERRY_RETURN_IF_ERROR(status);
  }
  return {};
}

// Enqueues the starts [first, end): those that may share a doorbell do, which rings once.
Status Queues::StartTogether(gpu::Stream& stream, Program& program, size_t first, size_t end,
                             bool* rings) {
  sharing_.clear();
  for (size_t i = first; i < end; ++i) {
    Pair& pair = program.PairOf(program.steps()[i]);
    if (SharedStarts::MayShareInProgram(pair)) {
      sharing_.push_back(&pair);
    } else {
      pairs_.shared_starts().Leave(pair);  // it has a page of its own now
    }
  }
  SharedStart* const shared = pairs_.shared_starts().Join(sharing_);
  for (size_t i = first; i < end; ++i) {
    Pair& pair = program.PairOf(program.steps()[i]);
    ++pair.starts;
    pair.was_enqueued = true;
    *rings |= !pair.local;
    FERRY_RETURN_IF_ERROR(Start(stream, pair));
  }
  return shared != nullptr ? RingShared(stream, *shared) : Status();
}

Status Queues::WaitProgram(Queue& queue, Program& program) {
  bool rings = false;
  if (program.is_aside()) {
    FERRY_RETURN_IF_ERROR(queue.stream().WaitValue64(&program.over()->value, program.starts,
                                                     gpu::WaitCondition::kGreaterOrEqual));
  } else {
    FERRY_RETURN_IF_ERROR(
        EnqueueSteps(queue.stream(), program, program.opening(), program.steps().size(), &rings));
  }
  FERRY_RETURN_IF_ERROR(queue.stream().RecordEvent(&program.passed()));
  program.wants_wait = false;
  --queue.open_starts;
  if (!std::exchange(program.is_listed, true)) {
    queue.waited_programs.push_back(&program);
  }
  return {};
}

// ---- By the rank --------------------------------------------------------------------------------

Status Queues::StartByRank(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  Program* const program = FindProgram(handle);
  if (program == nullptr) {
    return NoProgram();
  }
  FERRY_RETURN_IF_ERROR(program->CheckStart());
  if (program->IsEnqueued()) {
    return {ErrorCode::kInvalidRequest, "its last start, on a queue, is not complete yet"};
  }
  UnlistProgram(program);
  program->queue = 0;
  program->by_rank().Start();
  return {};
}

// Runs without the lock: it may copy for long.
bool Queues::AdvanceByRank(RequestHandle handle, ErrorCode* error) {
  Program* program = nullptr;
  {
    const std::lock_guard lock(mutex_);
    program = FindProgram(handle);
  }
  if (program == nullptr) {
    *error = ErrorCode::kInvalidRequest;
    return true;
  }
  const bool is_over = program->by_rank().Advance(&memory_);
  *error = program->error();
  return is_over;
}

// ---- Ends ---------------------------------------------------------------------------------------

void Queues::UnlistProgram(Program* program) {
  for (auto& [handle, queue] : queues_) {
    std::erase(queue.waited_programs, program);
  }
  program->is_listed = false;
}

// Takes the programs that were waited for and are over; returns the first failure.
Status Queues::TakeProgramEnds(QueueHandle handle, Queue& queue) {
  Status status;
  std::erase_if(queue.waited_programs, [&](Program* program) {
    program->is_listed = program->queue == handle && program->IsEnqueued();
    if (!program->is_listed && program->queue == handle && status.ok() &&
        program->error() != ErrorCode::kOk) {
      status = {program->error(), "the " + program->name() + " failed on this queue (" +
                                      ErrorCodeText(program->error()) +
                                      "): free it, make it and match it anew"};
    }
    return !program->is_listed;
  });
  return status;
}

// The programs whose last start, on that queue, is not over.
std::vector<Program*> Queues::StartedPrograms(QueueHandle handle) {
  std::vector<Program*> started;
  for (const auto& [program_handle, program] : programs_) {
    const bool is_under_way = program->error() == ErrorCode::kOk &&
                              shm::Counter(program->over()).Value() < program->starts;
    if (program->queue == handle && (program->wants_wait || is_under_way)) {
      started.push_back(program.get());
    }
  }
  return started;
}

}  // namespace ferry::client
