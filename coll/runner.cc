#include "coll/runner.h"

#include <algorithm>
#include <utility>

namespace ferry::collective {
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
    : runner_(runner), schedule_(std::move(schedule)), steps_(schedule_->graph) {}

CollectiveRun::~CollectiveRun() {
  runner_->prepared_steps_ -= schedule_->steps.size();
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
    if (failure.mismatch == RunFailure::Mismatch::kNone) {
      failure_.text = runner_->messenger_->TextOf(failure.code);
    }
  }
}

// ---- The caller's side --------------------------------------------------------------------------

std::unique_ptr<CollectiveRun> Runner::Prepare(std::shared_ptr<const Schedule> schedule) {
  prepared_steps_ += schedule->steps.size();
  pending_.reserve(prepared_steps_);
  stalled_.reserve(prepared_steps_);
  return std::unique_ptr<CollectiveRun>(new CollectiveRun(this, std::move(schedule)));
}

void Runner::Start(CollectiveRun* run, const Binding& binding, uint32_t sequence,
                   const RunFailure& before) {
  run->failure_ = binding.before != nullptr ? *binding.before : before;
  run->sequence_ = sequence;
  run->reducer_ = binding.reducer;
  if (!run->MakeScratch(binding.device)) {
    run->Fail({.code = ErrorCode::kOutOfMemory});
  }
  run->bases_[static_cast<size_t>(Place::kInput)] =
      static_cast<char*>(const_cast<void*>(binding.input));
  run->bases_[static_cast<size_t>(Place::kOutput)] = static_cast<char*>(binding.output);
  if (run->schedule_->steps.empty()) {
    ended_runs_++;
    return;
  }
  run->steps_.Start();
  BeginReady(run);
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
    const Message ended = pending_[i];
    pending_[i] = pending_.back();
    pending_.pop_back();
    EndMessage(ended.run, ended.step, error, received_bytes);
    BeginReady(ended.run);
    any = true;
  }
  return (!stalled_.empty() && RetryStalled()) || any;
}

bool Runner::WaitsForMessageFrom(int peer) const {
  return std::any_of(pending_.begin(), pending_.end(), [peer](const Message& message) {
    const Step& step = message.run->schedule_->steps[message.step];
    return step.kind == StepKind::kReceive && step.peer == peer;
  });
}

void Runner::CancelMessagesWith(int peer) {
  for (const Message& message : pending_) {
    if (message.run->schedule_->steps[message.step].peer == peer) {
      messenger_->Cancel(message.ticket);
    }
  }
}

void Runner::CancelMessagesOf(const CollectiveRun* run) {
  for (const Message& message : pending_) {
    if (message.run == run) {
      messenger_->Cancel(message.ticket);
    }
  }
}

// In order: one that finds no room holds up those behind it.
bool Runner::RetryStalled() {
  size_t begun = 0;
  while (begun < stalled_.size() && BeginMessage(stalled_[begun].run, stalled_[begun].step)) {
    BeginReady(stalled_[begun++].run);
  }
  stalled_.erase(stalled_.begin(), stalled_.begin() + static_cast<ptrdiff_t>(begun));
  return begun != 0;
}

// ---- Steps --------------------------------------------------------------------------------------

// Begins what is ready, and what is ready once that has ended.
void Runner::BeginReady(CollectiveRun* run) {
  for (StepId id = run->steps_.Next(); id != engine::kNoStep; id = run->steps_.Next()) {
    const Step& step = run->schedule_->steps[id];
    if (step.kind != StepKind::kSend && step.kind != StepKind::kReceive) {
      Compute(run, step);
      EndStep(run, id);
    } else if (!stalled_.empty() || !BeginMessage(run, id)) {
      stalled_.push_back({0, run, id});
    }
  }
}

// False: there is no room for it. Otherwise it is under way, or has ended.
bool Runner::BeginMessage(CollectiveRun* run, StepId id) {
  const Step& step = run->schedule_->steps[id];
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
    return false;
  }
  const bool is_refused = error != ErrorCode::kOk && error != ErrorCode::kTruncated;
  if (is_refused && !run->has_failed()) {
    // Such as for the data's memory. The other rank waits all the same: again, as a failed run.
    run->Fail({.code = error, .peer = step.peer});
    return BeginMessage(run, id);
  }
  if (error == ErrorCode::kOk && ticket != 0) {
    pending_.push_back({ticket, run, id});
  } else {
    EndMessage(run, id, error, received_bytes);
  }
  return true;
}

// A message that failed ends its step like any other, since the run goes on.
void Runner::EndMessage(CollectiveRun* run, StepId id, ErrorCode error, size_t received_bytes) {
  const Step& step = run->schedule_->steps[id];
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
  EndStep(run, id);
}

void Runner::EndStep(CollectiveRun* run, StepId id) {
  run->steps_.End(id);
  ended_runs_ += run->is_done() ? 1 : 0;
}

void Runner::Compute(CollectiveRun* run, const Step& step) {
  if (run->has_failed()) {
    return;
  }
  ErrorCode error = ErrorCode::kOk;
  void* to = run->Address(step.to);
  const void* left = run->Address(step.left);
  if (step.kind == StepKind::kCopy && to != left) {
    error = messenger_->Copy(to, left, step.to.size_bytes);
  } else if (step.kind == StepKind::kReduce) {
    error = run->reducer_->ReduceBy(step.operation, left, run->Address(step.right), to,
                                    step.to.size_bytes / run->schedule_->element_bytes);
  }
  if (error != ErrorCode::kOk) {
    run->Fail({.code = error});
  }
}

}  // namespace ferry::collective
