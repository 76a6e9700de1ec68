#include "tools/profile/fetch.h"

#include <optional>
#include <utility>

#include "common/clock.h"

namespace ferry::tools {
namespace {

constexpr uint32_t kProfilePart = 1;  // JobProfileRequest.parts
constexpr int kClockQuestions = 8;

// Takes the parts of all ranks, which come rank by rank.
class Parts {
 public:
  Parts(NodeFacts* node, std::vector<RankProfile>* ranks) : node_(*node), ranks_(*ranks) {}

  void Take(const control::JobProfilePart& part) {
    if (is_first_) {
      is_first_ = false;
      node_.name = part.node();
      node_.cpu_ns = part.cpu_ns();
      return;
    }
    if (rank_ != part.rank()) {
      End();
      rank_ = part.rank();
      collector_.emplace();
      refusal_ = part.refusal();
    }
    collector_->Add(part.offset(), part.data(), part.segment_bytes());
  }

  // The last rank's parts have come.
  void End() {
    if (!rank_.has_value() || *rank_ >= ranks_.size()) {
      return;
    }
    RankProfile& profile = ranks_[*rank_];
    if (!refusal_.empty()) {
      profile.refusal = refusal_;
      return;
    }
    StatusOr<RankProfile> read = collector_->Take(*rank_, static_cast<uint32_t>(ranks_.size()));
    if (read.ok()) {
      profile = std::move(*read);
    } else {
      profile.refusal = read.status().message();
    }
  }

 private:
  NodeFacts& node_;
  std::vector<RankProfile>& ranks_;
  bool is_first_ = true;
  std::optional<uint32_t> rank_;
  std::optional<RankCollector> collector_;
  std::string refusal_;
};

}  // namespace

Status AskClock(const AskProfile& ask, const std::string& job_id,
                std::vector<ClockSample>* samples) {
  control::JobProfileRequest request;
  request.set_job_id(job_id);
  for (int i = 0; i < kClockQuestions; ++i) {
    ClockSample sample;
    sample.asked_ns = MonotonicNs();
    FERRY_RETURN_IF_ERROR(ask(request, [&](const control::JobProfilePart& part) {
      sample.answered_ns = MonotonicNs();
      sample.node_ns = part.clock_ns();
      return true;
    }));
    if (sample.answered_ns != 0) {
      samples->push_back(sample);
    }
  }
  return {};
}

Status FetchReports(const AskProfile& ask, const std::string& job_id, NodeFacts* node,
                    std::vector<RankProfile>* ranks) {
  control::JobProfileRequest request;
  request.set_job_id(job_id);
  request.set_parts(kProfilePart);
  Parts parts(node, ranks);
  const Status status = ask(request, [&parts](const control::JobProfilePart& part) {
    parts.Take(part);
    return true;
  });
  parts.End();
  return status;
}

}  // namespace ferry::tools
