// One job's ranks as `ferryctl why` sees them: each one's condition, and each request's step, in
// words. Looks at each rank once, when it is first asked about.
//
// Thread: the control thread; see why.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/admin/why_kernels.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/rank_view.h"
#include "proto/control.pb.h"
#include "shm/call_record.h"

namespace ferry::daemon {

// The condition of a rank. `phrase` follows "rank N", or "which".
struct Condition {
  enum class Kind {
    kWaits,
    kJoins,
    kComputes,
    kElsewhere,
    kStopped,
    kAbsent,
    kUnreachable,
    kDied,
    kLeft
  };
  Kind kind = Kind::kAbsent;
  std::string phrase;
};
const char* ConditionText(Condition::Kind kind);

// RankCall.ends_by of a rank that any rank may send to.
inline constexpr char kAnybodyMaySend[] = "no message that fits has come from any rank";

struct Step {
  std::string text;
  uint64_t done_bytes = 0;
  std::optional<uint32_t> partner =
      {};              // the rank whose turn it is; none: any, or this rank itself
  bool stuck = false;  // nothing but an action of the partner's program can end it
  // The partner, on another node, must confirm one of these before that is certain: that it holds
  // the announced send unmatched, or that it has sent no more messages than were drained.
  bool announced = false;
  std::optional<uint32_t> drained = {};
};

class WhySteps {
 public:
  WhySteps(const JobRecord& job, const DataPlane& data_plane)
      : job_(job), data_plane_(data_plane) {}

  struct Known {
    Condition condition;
    RankView view;                    // only of ranks of this node that have segments
    RankReport report;                // likewise
    std::vector<KernelWait> kernels;  // likewise, while the rank waits, or is outside Ferry

    bool is_in_call() const { return view.inside || !view.calls.calls.empty(); }
  };
  const Known& Look(uint32_t rank);  // valid for as long as this

  // `request` is one of Look(rank).view.requests.
  Step StepOf(uint32_t rank, const RequestView& request);
  // Returns true if any thread of the rank's process runs, in Ferry or outside. Looks once.
  bool HasRunningThread(uint32_t rank);
  // Null unless the rank is here and has segments.
  const Session* SessionOf(uint32_t rank) const;
  const JobRecord& job() const { return job_; }

 private:
  Condition ConditionOf(uint32_t rank, const RankView& view) const;
  void LookAtKernels(uint32_t rank, Known* known) const;
  Condition RemoteCondition(uint32_t rank) const;
  Step Queued(uint32_t rank, const RequestView& request);
  Step Posted(uint32_t rank, const RequestView& request);
  Step Transferring(uint32_t rank, const RequestView& request);
  Step Announced(uint32_t rank, const RequestView& request, Step step);
  Step BetweenNodes(uint32_t rank, const RequestView& request);
  Step Matched(const RequestView& request) const;

  const JobRecord& job_;
  const DataPlane& data_plane_;
  std::map<uint32_t, Known> known_;
  std::map<uint32_t, bool> runs_;
};

// Fills in name, phrase and age.
void FillCall(const shm::CallView& call, uint64_t now_ns, control::RankCall* told);

// "3.1 s".
std::string Seconds(uint64_t ns);
// "rank 3".
std::string RankName(uint32_t rank);

}  // namespace ferry::daemon
