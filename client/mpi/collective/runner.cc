#include "client/mpi/collective/runner.h"

#include <cstdlib>
#include <utility>

#include "client/mpi/collective/schedule_program.h"

namespace ferry::mpi {
namespace {

// A tag is the collective's number and the step's.
constexpr uint32_t kStepTagBits = 12;
constexpr uint32_t kStepTags = 1U << kStepTagBits;
constexpr uint32_t kSequences = 1U << (kCollectiveTagBits - kStepTagBits);

uint32_t TagOf(uint32_t sequence, const Step& step) {
  return sequence % kSequences << kStepTagBits | step.tag % kStepTags;
}

// The bytes that a failed run sends in place of `size_bytes`: another number.
size_t NoticeBytes(size_t size_bytes) { return size_bytes == 0 ? 1 : 0; }
constexpr char kNotice = 0;

}  // namespace

// ---- Runs ---------------------------------------------------------------------------------------

CollectiveRun::CollectiveRun(Runner* runner, std::shared_ptr<const Schedule> schedule)
    : runner_(runner), schedule_(std::move(schedule)) {}

CollectiveRun::~CollectiveRun() {
  runner_->engine_.Free(program_);
  FreeScratch();
}

// Makes the scratch memory, and keeps it from start to start while they want it in the same place.
bool CollectiveRun::MakeScratch(int device) {
  char*& scratch = bases_[static_cast<size_t>(Place::kScratch)];
  if (schedule_->scratch_bytes == 0 || (scratch != nullptr && scratch_device_ == device)) {
    return true;
  }
  FreeScratch();
  scratch =
      static_cast<char*>(runner_->messenger_->AllocateScratch(schedule_->scratch_bytes, device));
  scratch_device_ = device;
  return scratch != nullptr;
}

void CollectiveRun::FreeScratch() {
  char*& scratch = bases_[static_cast<size_t>(Place::kScratch)];
  if (scratch != nullptr) {
    runner_->messenger_->FreeScratch(std::exchange(scratch, nullptr));
  }
}

void CollectiveRun::Fail(const RunFailure& failure) {
  if (!has_failed()) {
    failure_ = failure;
  }
}

// ---- The caller's side --------------------------------------------------------------------------

Runner::Runner(Messenger* messenger)
    : messenger_(messenger), engine_({nullptr, this, nullptr, this}) {}

std::unique_ptr<CollectiveRun> Runner::Prepare(std::shared_ptr<const Schedule> schedule) {
  std::unique_ptr<CollectiveRun> run(new CollectiveRun(this, std::move(schedule)));
  ScheduleProgram program = MakeProgram(*run->schedule_);
  run->counters_.resize(program.counter_count);
  engine::ProgramSpec spec;
  for (shm::CounterLayout& counter : run->counters_) {
    spec.counters.push_back({.word = &counter});
  }
  for (engine::Operation& operation : program.operations) {
    operation.body = reinterpret_cast<uintptr_t>(run.get());
  }
  spec.operations = std::move(program.operations);
  StatusOr<engine::ProgramId> id = engine_.Install(spec);
  if (!id.ok()) {
    std::abort();  // the builder makes no schedule that waits for itself
  }
  run->program_ = *id;
  pending_.reserve(pending_.capacity() + run->schedule_->steps.size());
  return run;
}

void Runner::Start(CollectiveRun* run, const Binding& binding, uint32_t sequence) {
  const Schedule& schedule = *run->schedule_;
  run->failure_ = {};
  run->sequence_ = sequence;
  run->reducer_ = binding.reducer;
  run->steps_left_ = schedule.steps.size();
  if (!run->MakeScratch(binding.device)) {
    run->Fail({.code = ErrorCode::kOutOfMemory});
  }
  run->bases_[static_cast<size_t>(Place::kInput)] =
      static_cast<char*>(const_cast<void*>(binding.input));
  run->bases_[static_cast<size_t>(Place::kOutput)] = static_cast<char*>(binding.output);
  if (run->is_done()) {
    ended_runs_++;
    return;
  }
  engine_.Start(run->program_);
}

bool Runner::Advance() {
  bool any = false;
  for (size_t i = 0; i < pending_.size();) {
    size_t received_bytes = 0;
    const ErrorCode error = messenger_->Test(pending_[i].ticket, &received_bytes);
    if (error == ErrorCode::kWouldBlock) {
      ++i;
      continue;
    }
    const Pending ended = pending_[i];
    pending_[i] = pending_.back();
    pending_.pop_back();
    NoteEnd(ended.run, ended.token, error, received_bytes);
    engine_.Completed(ended.token, ErrorCode::kOk);
    any = true;
  }
  if (is_stalled_) {
    is_stalled_ = false;  // Begin sets it again
    any = engine_.Poll(0) != 0 || any;
  }
  return any;
}

// ---- Steps --------------------------------------------------------------------------------------

ErrorCode Runner::Begin(const engine::Operation& operation, engine::Token token) {
  auto* run = reinterpret_cast<CollectiveRun*>(operation.body);
  const std::vector<Step>& steps = run->schedule_->steps;
  if (token.operation >= steps.size()) {
    engine_.Completed(token, ErrorCode::kOk);  // a relay
    return ErrorCode::kOk;
  }
  const Step& step = steps[token.operation];
  if (step.kind == StepKind::kSend || step.kind == StepKind::kReceive) {
    return BeginMessage(run, step, token);
  }
  Compute(messenger_, run, step);
  CountStep(run);
  engine_.Completed(token, ErrorCode::kOk);
  return ErrorCode::kOk;
}

ErrorCode Runner::BeginMessage(CollectiveRun* run, const Step& step, engine::Token token) {
  const uint32_t tag = TagOf(run->sequence_, step);
  Messenger::Ticket ticket = 0;
  size_t received_bytes = 0;
  ErrorCode error = ErrorCode::kOk;
  if (step.kind == StepKind::kSend) {
    const bool notice = run->has_failed();
    const void* data = notice ? &kNotice : run->Address(step.left);
    const size_t size_bytes = notice ? NoticeBytes(step.left.size_bytes) : step.left.size_bytes;
    error = messenger_->StartSend(step.peer, tag, data, size_bytes, &ticket);
  } else {
    // A failed run may have no memory to receive into.
    void* data = run->has_failed() ? nullptr : run->Address(step.to);
    const size_t size_bytes = run->has_failed() ? 0 : step.to.size_bytes;
    error = messenger_->StartReceive(step.peer, tag, data, size_bytes, &ticket, &received_bytes);
  }
  if (error == ErrorCode::kWouldBlock) {
    is_stalled_ = true;
    return error;
  }
  if (error == ErrorCode::kOk && ticket != 0) {
    pending_.push_back({ticket, run, token});
    return ErrorCode::kOk;
  }
  NoteEnd(run, token, error, received_bytes);
  engine_.Completed(token, ErrorCode::kOk);
  return ErrorCode::kOk;
}

void Runner::CountStep(CollectiveRun* run) {
  if (--run->steps_left_ == 0) {
    ended_runs_++;
  }
}

// Notes the end of a message. For the engine it is always a success, since the run goes on.
void Runner::NoteEnd(CollectiveRun* run, engine::Token token, ErrorCode error,
                     size_t received_bytes) {
  const Step& step = run->schedule_->steps[token.operation];
  if (error == ErrorCode::kTruncated ||
      (error == ErrorCode::kOk && step.kind == StepKind::kReceive &&
       received_bytes != step.to.size_bytes)) {
    run->Fail({.code = ErrorCode::kTruncated,
               .peer = step.peer,
               .mismatch = RunFailure::Mismatch::kSize,
               .expected_bytes = step.to.size_bytes,
               .received_bytes = received_bytes});
  } else if (error != ErrorCode::kOk) {
    run->Fail({.code = error, .peer = step.peer});
  }
  CountStep(run);
}

void Runner::Compute(Messenger* messenger, CollectiveRun* run, const Step& step) {
  if (run->has_failed()) {
    return;
  }
  ErrorCode error = ErrorCode::kOk;
  void* to = run->Address(step.to);
  const void* left = run->Address(step.left);
  if (step.kind == StepKind::kCopy && to != left) {
    error = messenger->Copy(to, left, step.to.size_bytes);
  } else if (step.kind == StepKind::kReduce) {
    error = run->reducer_->Reduce(left, run->Address(step.right), to,
                                  step.to.size_bytes / run->schedule_->element_bytes);
  }
  if (error != ErrorCode::kOk) {
    run->Fail({.code = error});
  }
}

void Runner::Renounce(const engine::Operation& /*operation*/, ErrorCode /*error*/) {
  // An operation tells a peer of its end only by its message.
}

void Runner::Abandon(const engine::Operation& /*operation*/, engine::Token /*token*/) {
  // No operation has a deadline: libferry fails what will never end.
}

}  // namespace ferry::mpi
