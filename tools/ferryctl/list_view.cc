#include "tools/ferryctl/list_view.h"

#include <algorithm>
#include <string>

#include "tools/display/table.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kJobsShown = 3;

std::string JobsText(const control::StatusReply& daemon) {
  std::string text;
  for (int i = 0; i < std::min(daemon.jobs_size(), kJobsShown); ++i) {
    text += (i == 0 ? "" : " ") + daemon.jobs(i).job_id();
  }
  const int more = daemon.jobs_size() - kJobsShown;
  return more > 0 ? text + " and " + std::to_string(more) + " more" : text;
}

ordered_json Json(const MetDaemon& met) {
  ordered_json json = {{"run_directory", met.place.run_directory},
                       {"kind", DaemonKindText(met.place.kind)}};
  if (!met.observer.ok()) {
    json["trouble"] = met.observer.status().message();
    return json;
  }
  const control::StatusReply& daemon = met.observer->daemon();
  json["pid"] = daemon.pid();
  json["node"] = daemon.node().name();
  json["state"] = daemon.state();
  json["uptime_ms"] = daemon.uptime_ms();
  json["sessions"] = daemon.sessions();
  json["jobs"] = ordered_json::array();
  for (const control::JobStatus& job : daemon.jobs()) {
    json["jobs"].push_back(job.job_id());
  }
  return json;
}

}  // namespace

View ListView(const std::vector<MetDaemon>& daemons, const Terminal& terminal) {
  View view = {{{"daemons", ordered_json::array()}}, ""};
  Table table({{"RUN DIRECTORY"},
               {"KIND"},
               {"PID", Align::kRight},
               {"STATE", Align::kLeft, true},
               {"UP", Align::kRight},
               {"RANKS", Align::kRight},
               {"JOBS"}});
  std::string troubles;
  for (const MetDaemon& met : daemons) {
    view.json["daemons"].push_back(Json(met));
    if (!met.observer.ok()) {
      troubles += Coloured("trouble: " + met.observer.status().message(), terminal) + "\n";
      continue;
    }
    const control::StatusReply& daemon = met.observer->daemon();
    table.AddRow({met.place.run_directory, DaemonKindText(met.place.kind),
                  std::to_string(daemon.pid()), daemon.state(), DurationText(daemon.uptime_ms()),
                  std::to_string(daemon.sessions()), JobsText(daemon)});
  }
  view.text = table.empty() ? "" : table.Text(terminal);
  view.text += troubles;
  if (daemons.empty()) {
    view.text = "no ferryd serves you here; ferryrun starts a private one for its job then\n";
  }
  return view;
}

}  // namespace ferry::tools
