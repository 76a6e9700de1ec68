#include "internode/trace/tracer.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {
namespace {

// Later ones share the last name, so that a trace that is forgotten does not grow.
constexpr size_t kMaxJobs = 4096;
constexpr char kOtherJobs[] = "(other jobs)";

shm::DaemonTraceSlot SlotOf(const TraceRecord& record) {
  return {.begin_ns = record.begin_ns,
          .end_ns = record.end_ns,
          .message = record.message,
          .offset = record.offset,
          .bytes = record.bytes,
          .rank = record.rank,
          .peer = record.peer,
          .peer_node = record.peer_node,
          .error = record.error,
          .worker = record.worker,
          .block = record.block,
          .work = static_cast<uint8_t>(record.kind),
          .place = static_cast<uint8_t>(record.place),
          .check = 0};
}

}  // namespace

// ---- Rings and taps -----------------------------------------------------------------------------

std::vector<TraceRecord> TraceRing::Take() {
  if (written_ < records_.size()) {
    records_.resize(written_);
  } else {
    std::rotate(records_.begin(), records_.begin() + static_cast<ptrdiff_t>(next_), records_.end());
  }
  next_ = written_ = 0;
  return std::exchange(records_, std::vector<TraceRecord>(1));
}

void TraceTap::Put(TraceRecord record) const {
  if (own_ != nullptr && record.error != TraceError(ErrorCode::kWouldBlock)) {
    own_->Add(SlotOf(record));
  }
  if (ring_ != nullptr) {
    record.job = job_;
    ring_->Put(record);
  }
}

void TraceTap::Follow(const TraceTap& other) {
  ring_ = other.ring_;
  job_ = other.job_;
  is_on_ = ring_ != nullptr || own_ != nullptr;
}

void TraceTap::Keep(std::shared_ptr<shm::DaemonTraceWriter> own) {
  own_ = std::move(own);
  is_on_ = ring_ != nullptr || own_ != nullptr;
}

// ---- The trace of the daemon --------------------------------------------------------------------

Status Tracer::Start(TraceRing ring, uint64_t now_ns) {
  if (on_) {
    return {ErrorCode::kAlreadyExists, "a trace is running already, since " +
                                           std::to_string((now_ns - begin_ns_) / 1'000'000'000) +
                                           " s: `ferryctl trace stop` ends it"};
  }
  ring_ = std::move(ring);
  jobs_.clear();
  counted_ = {};
  begin_ns_ = now_ns;
  on_ = true;
  ring_.Put(CountersRecord(counted_, now_ns));
  return {};
}

StatusOr<TraceDump> Tracer::Stop(uint64_t now_ns) {
  if (!on_) {
    return Status(ErrorCode::kNotFound, "no trace is running: `ferryctl trace start` begins one");
  }
  on_ = false;
  return TraceDump{std::exchange(ring_, TraceRing(1)), std::exchange(jobs_, {}), begin_ns_, now_ns};
}

TraceTap Tracer::TapFor(const std::string& job_id) {
  if (!on_) {
    return {};
  }
  auto found = std::find(jobs_.begin(), jobs_.end(), job_id);
  if (found == jobs_.end()) {
    if (jobs_.size() < kMaxJobs) {
      jobs_.push_back(jobs_.size() + 1 < kMaxJobs ? job_id : kOtherJobs);
    }
    found = jobs_.end() - 1;
  }
  return {&ring_, static_cast<uint32_t>(found - jobs_.begin())};
}

void Tracer::Count(const TraceCounters& counters) {
  if (counters != counted_) {
    counted_ = counters;
    ring_.Put(CountersRecord(counters, MonotonicNs()));
  }
}

}  // namespace ferry::progress
