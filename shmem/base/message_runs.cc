#include "shmem/base/message_runs.h"

#include <utility>

#include "coll/messages/await_run.h"
#include "common/clock.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"

namespace ferry::shmem {
namespace {

// How often a PE looks whether one that it waits for has left, and how many looks in a row, in
// which nothing has come, make that certain: a PE that has left may have sent what it had to.
constexpr uint64_t kLookNs = 100'000'000;
constexpr int kLooks = 5;

// Ferry's own choices; MPI's options do not count here.
const collective::SelectionTable& Table() {
  static const collective::SelectionTable& table = *new collective::SelectionTable();
  return table;
}

std::vector<int> NodesOf(const std::vector<int>& pes) {
  std::vector<int> nodes;
  nodes.reserve(pes.size());
  for (const int pe : pes) {
    nodes.push_back(job.front_end->NodeOf(static_cast<uint32_t>(pe)));
  }
  return nodes;
}

}  // namespace

// The functions that AwaitRun calls.
class MessageRuns::Wait {
 public:
  explicit Wait(MessageRuns* runs) : runs_(*runs), end_ns_(CoarseMonotonicNs() + kLookNs) {}

  void Advance() {
    while (runs_.runner_.Advance()) {
      looks_ = 0;
    }
  }
  uint64_t end_ns() const { return end_ns_; }
  void Look() {
    const uint64_t now_ns = CoarseMonotonicNs();
    if (now_ns < end_ns_) [[likely]] {
      return;
    }
    end_ns_ = now_ns + kLookNs;
    LookForLeavers();
  }

 private:
  void LookForLeavers() {
    int left = -1;
    for (int peer = 0; peer < runs_.messenger_.size() && left < 0; ++peer) {
      const int pe = runs_.messenger_.WorldRank(peer);
      left = runs_.runner_.WaitsForMessageFrom(peer) && HasLeft(pe) ? peer : -1;
    }
    looks_ = left < 0 ? 0 : looks_ + 1;
    if (looks_ == kLooks) {
      runs_.runner_.CancelMessagesWith(left);  // so the run goes on, and tells the others
      looks_ = 0;
    }
  }

  MessageRuns& runs_;
  uint64_t end_ns_;
  int looks_ = 0;
};

MessageRuns::MessageRuns(uint32_t context, const std::vector<int>& pes, int self)
    : messenger_(job.front_end, context, pes, self),
      runner_(&messenger_),
      kept_(&runner_, self, NodesOf(pes)) {}

collective::RunFailure MessageRuns::Run(const collective::Problem& problem,
                                        const collective::Binding& binding,
                                        const collective::RunFailure& before) {
  if (const ErrorCode poison = job.front_end->poison(); poison != ErrorCode::kOk) {
    return {.code = poison};  // and what was abandoned is left alone
  }
  collective::KeptRuns::Taken taken = kept_.Take(problem, Table());
  messenger_.SetPatient(!job.front_end->AreThreadsAllowed());
  runner_.Start(taken.run(), binding, number_++, before);
  Wait wait(this);
  collective::AwaitRun(job.front_end, &messenger_, runner_, *taken.run(), &wait);
  messenger_.SetPatient(false);
  collective::RunFailure failure = taken.run()->failure();
  if (const ErrorCode poison = job.front_end->poison();
      !taken.run()->is_done() || (poison != ErrorCode::kOk && failure.code != ErrorCode::kOk)) {
    Abandon(std::move(taken));
    return {.code = poison};
  }
  if (failure.code == ErrorCode::kCancelled) {
    failure.code = ErrorCode::kNotFound;  // LookForLeavers has cancelled it
  }
  kept_.GiveBack(std::move(taken));
  return failure;
}

// The connection has ended in the middle of the run. From now on this process takes no message into
// memory of the caller, who lets go of it. Another process may still be writing one, to that or to
// the run's own memory: the run is kept for good, and so is what GiveStaging gets from now on.
void MessageRuns::Abandon(collective::KeptRuns::Taken taken) {
  for (int peer = 0; peer < messenger_.size(); ++peer) {
    runner_.CancelMessagesWith(peer);
  }
  taken.Abandon();
}

}  // namespace ferry::shmem
