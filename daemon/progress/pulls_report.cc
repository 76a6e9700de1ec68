// Pulls: what others see of them. See pulls.h.
#include <algorithm>

#include "daemon/progress/pulls.h"
#include "daemon/progress/records.h"

namespace ferry::daemon {

// ---- Trace -------------------------------------------------------------------------------------

// Ends now, unless that is changed.
TraceRecord Pulls::RecordOf(const Pull& pull, TraceKind kind, uint64_t begin_ns) {
  TraceRecord record =
      daemon::RecordOf(*pull.rank->job, kind, pull.rank->rank(), pull.source, begin_ns);
  record.end_ns = MonotonicNs();
  record.message = TraceMessage(pull.send_request, pull.send_generation);
  return record;
}

// An empty piece stands for the pull as a whole.
void Pulls::Trace(const Pull& pull, const Piece& piece, TraceRecord record, ErrorCode error) {
  record.offset = piece.offset;
  record.bytes = piece.size_bytes != 0 ? piece.size_bytes : pull.size_bytes;
  record.block = BlockNumber(pull.stage, piece.block);
  record.error = TraceError(error);
  pull.rank->job->trace.Put(record);
}

void Pulls::TraceUnfinished() {
  pulls_.ForEach([](PullId, const Pull& pull) {
    if (pull.rank->job->trace.on()) {
      Trace(pull, {}, RecordOf(pull, TraceKind::kPull, pull.begun_ns), ErrorCode::kWouldBlock);
    }
  });
}

// ---- Looking in --------------------------------------------------------------------------------

void Pulls::Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports) {
  pulls_.ForEach([&](PullId id, const Pull& pull) {
    if (pull.rank != &rank) {
      return;
    }
    TransferReport report{true, pull.request, pull.source, pull.done_bytes, pull.size_bytes};
    report.silent_ns = now_ns - std::min(now_ns, pull.heard_ns);
    if (pull.error != ErrorCode::kOk) {
      report.wants = "the end of what it has begun (it has failed)";
    } else if (pull.queued) {
      const auto slot =
          std::find(wants_slot_.begin(), wants_slot_.end(), static_cast<uint64_t>(id));
      report.wants = slot == wants_slot_.end() ? "a staging block" : "a slot of the network";
      report.wants = pull.claim.waiting() ? pull.claim.wants() : report.wants;
    }
    reports->push_back(report);
  });
}

}  // namespace ferry::daemon
