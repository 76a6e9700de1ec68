// Shows ferryd to monitoring: runs the metrics server, and keeps the records of ended jobs.
//
// Thread: Start and the destructor the main one; OnJobEnd the control thread, which never waits for
// either.
#pragma once

#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/status.h"
#include "config/options.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "daemon/plane/data_plane.h"
#include "daemon/records/record_writer.h"

namespace ferry::daemon {

// All must outlive the Monitoring; the loop must run until it has gone.
struct MonitoringContext {
  const config::Options& options;
  ControlLoop& loop;
  JobRegistry& registry;
  PeerLinks& links;
  DataPlane& data_plane;
};

class Monitoring {
 public:
  explicit Monitoring(const MonitoringContext& context) : context_(context) {}
  // Tells of the jobs whose launchers have not said how their processes ended. The control thread
  // has ended.
  ~Monitoring();
  Monitoring(const Monitoring&) = delete;
  Monitoring& operator=(const Monitoring&) = delete;

  // Errors: as MetricsServer::Start and RecordFolder::Open.
  Status Start();
  // From now on, a scrape asks the control thread too; before, it finds none of its numbers.
  void SetLoopRuns() { loop_runs_ = true; }
  // host:port; empty: metrics are not served.
  std::string metrics_address() const;
  // Stops serving, while the control thread still answers.
  void StopServing() { server_.reset(); }

 private:
  MetricsSample Sample() const;
  void OnJobEnd(const JobRecord& job);
  void OnExits(const std::string& launch, const std::optional<RankExits>& exits);
  void Tell(EndedJob ended);

  const MonitoringContext context_;
  const double start_time_seconds_ = static_cast<double>(time(nullptr));
  std::atomic<bool> loop_runs_ = false;
  std::optional<RecordWriter> records_;
  std::map<std::string, EndedJob> untold_;  // by launch: exit codes are to come
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace ferry::daemon
