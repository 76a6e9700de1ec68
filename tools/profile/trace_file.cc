#include "tools/profile/trace_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tools/profile/timeline.h"

namespace ferry::tools {
namespace {

std::string Counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string Seconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f s", static_cast<double>(ns) / 1e9);
  return text;
}

// `why_daemons`: why events of daemons are missing, as far as these have said.
std::string SentenceOf(const TimelineFacts& facts, const Timeline& timeline,
                       const std::vector<std::string>& why_daemons) {
  std::string text = Seconds(facts.length_ns) + " of " + Counted(timeline.ranks, "rank") + ", " +
                     Counted(facts.arrows, "arrow");
  if (facts.lost != 0) {
    text +=
        "; " + Counted(facts.lost, "older event") + " gave way to newer ones (option trace_bytes)";
  }
  if (timeline.ranks < timeline.size || facts.missing != 0) {
    text += "; " + Counted(timeline.size - timeline.ranks + facts.missing, "rank") + " missing";
  }
  if (facts.daemon_events_lost != 0) {
    text += "; of ferryd, " + Counted(facts.daemon_events_lost, "older event") +
            " gave way to newer ones (option trace_bytes)";
  }
  if (facts.daemons_missing != 0) {
    text += "; what " + Counted(facts.daemons_missing, "ferryd") + " did is missing" +
            (why_daemons.empty() ? "" : " (" + why_daemons.front() + ")");
  }
  return text + "; open it in ui.perfetto.dev";
}

}  // namespace

StatusOr<std::string> WriteTrace(const TracedJob& job, std::vector<TraceSource> sources,
                                 const std::function<Status(std::string_view)>& write) {
  StatusOr<TraceSpool> spool = TraceSpool::Create(job.size);
  FERRY_RETURN_IF_ERROR(spool.status());
  Timeline timeline;
  timeline.job = job.name;
  timeline.program = job.program;
  timeline.size = job.size;
  timeline.last_ns = job.last_ns;
  Status failed(ErrorCode::kNotFound,
                "no rank of job " + job.id +
                    " has left events: `ferryrun --trace=FILE` makes ranks keep them");
  for (uint32_t node = 0; node < sources.size(); ++node) {
    TraceSource& source = sources[node];
    if (source.ask != nullptr) {
      Status status = AskClock(source.ask, job.id, &source.clocks);
      if (status.ok()) {
        status = spool->Fetch(source.ask, job.id, node);
      }
      if (status.ok()) {
        (void)AskClock(source.ask, job.id, &source.clocks);
      } else {
        failed = status;
      }
    }
    timeline.nodes.push_back({source.name, NodeClock::Of(source.clocks)});
  }
  if (spool->count() == 0) {
    return spool->refusals().empty() ? failed
                                     : Status(ErrorCode::kLimitExceeded, spool->refusals().front());
  }
  timeline.ranks = spool->count();
  timeline.load = [&spool](uint32_t i, TimelineRank* rank) { return spool->Load(i, rank); };
  timeline.daemons = spool->daemon_count();
  timeline.load_daemon = [&spool](uint32_t i, TimelineDaemon* daemon) {
    return spool->LoadDaemon(i, daemon);
  };
  if (timeline.nodes.size() > 1) {  // daemons have nothing to do for messages inside a node
    timeline.daemons_missing =
        timeline.nodes.size() - std::min<size_t>(timeline.nodes.size(), timeline.daemons);
  }
  Status written;
  TimelineFacts facts;
  (void)WriteTimeline(
      timeline,
      [&](std::string_view piece) {
        written = write(piece);
        return written.ok();
      },
      &facts);
  FERRY_RETURN_IF_ERROR(written);
  return SentenceOf(facts, timeline, spool->daemon_refusals());
}

StatusOr<uint64_t> ReadDuration(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit.empty() || unit == "s"    ? 1e9
                       : unit == "ms"                 ? 1e6
                       : unit == "us"                 ? 1e3
                       : unit == "m" || unit == "min" ? 60e9
                       : unit == "h"                  ? 3600e9
                                                      : 0;
  const double ns = value * scale;
  if (error != std::errc() || !(ns >= 1) || ns > 1e18) {
    return Status(ErrorCode::kInvalidArgument,
                  "\"" + text + "\" is no time: 10s, 500ms and 2m are such");
  }
  return static_cast<uint64_t>(ns);
}

}  // namespace ferry::tools
