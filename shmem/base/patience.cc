#include "shmem/base/patience.h"

#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"

namespace ferry::shmem {
namespace {

using From = client::WordWait::From;

constexpr uint64_t kLongestRestNs = 5'000'000;

}  // namespace

void Patience::Note::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const Note&>(note);
  description->name = client::CallOf(call.function);
  if (call.word != nullptr) {
    description->flags |= shm::kCallHasObject;
    description->object = reinterpret_cast<uintptr_t>(call.word);
  }
}

Patience::Patience(const char* call, Deaths deaths, Looks looks, const void* word)
    : call_(call),
      deaths_(deaths),
      note_(call, word),
      scope_(job.front_end->calls, &note_),
      wait_(*job.front_end,
            looks == Looks::kMessages ? From::kQuestion
            : job.has_remote_pes      ? From::kNetwork
                                      : From::kNode,
            kLongestRestNs) {}

void Patience::RestLonger() {
  LookForCancellation(call_);
  LookForDeaths();
  wait_.Rest();
}

// Ends the program at the second look only: between the two the caller has looked for what a PE may
// have stored before it died.
void Patience::LookForDeaths() {
  const ErrorCode own = job.front_end->poison();
  if (own != ErrorCode::kOk) {
    GiveUp(call_, own, job.front_end->peers->Explain(own).ToString());
  }
  death_count_ = 0;
  int dead = -1;
  for (int pe = 0; pe < job.size; ++pe) {
    if (HasDied(pe)) {
      dead = pe;
      death_count_++;
    }
  }
  if (dead >= 0 && deaths_ == Deaths::kEndProgram) {
    if (has_found_death_) {
      const ErrorCode state = StateOf(dead);
      GiveUp(call_, state, StateText(dead, state) + "; this one may be waiting for it");
    }
    has_found_death_ = true;
  }
}

}  // namespace ferry::shmem
