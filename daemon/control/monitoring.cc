#include "daemon/control/monitoring.h"

#include <utility>

#include "common/clock.h"
#include "common/log_event.h"
#include "daemon/admin/admin_report.h"
#include "daemon/jobs/job_programs.h"
#include "daemon/records/record_folder.h"

namespace ferry::daemon {

Monitoring::~Monitoring() {
  for (auto& [launch, ended] : untold_) {
    Tell(std::move(ended));
  }
}

Status Monitoring::Start() {
  const config::Options& options = context_.options;
  if (!options.job_records.empty()) {
    StatusOr<RecordFolder> folder =
        RecordFolder::Open(options.job_records, options.job_records_kept);
    FERRY_RETURN_IF_ERROR(folder.status());
    records_.emplace([folder = std::make_shared<RecordFolder>(std::move(*folder))](
                         uid_t user, const std::string& name, const std::string& text) {
      return folder->Write(user, name, text);
    });
  }
  context_.registry.set_on_job_end([this](const JobRecord& job) { OnJobEnd(job); });
  context_.registry.set_on_exits(
      [this](const std::string& launch, const std::optional<RankExits>& exits) {
        OnExits(launch, exits);
      });
  if (options.metrics_address.empty()) {
    return {};
  }
  MetricsSources sources;
  sources.sample = [this] { return Sample(); };
  sources.health.control = [this](std::function<void(const ServedWork&)> answer) {
    context_.loop.Post([&registry = context_.registry, answer = std::move(answer)] {
      answer({registry.draining(), registry.jobs().size(), registry.local_ranks()});
    });
  };
  sources.health.progress = [this](std::function<void()> answer) {
    context_.data_plane.Probe(std::move(answer));
  };
  auto server = MetricsServer::Start({options.metrics_address, options.metrics_access == "loopback",
                                      options.metrics_readers, options.node_name},
                                     std::move(sources));
  FERRY_RETURN_IF_ERROR(server.status());
  server_ = std::move(*server);
  spdlog::info("metrics at http://{}/metrics", server_->address());
  return {};
}

std::string Monitoring::metrics_address() const {
  return server_ == nullptr ? "" : server_->address();
}

MetricsSample Monitoring::Sample() const {
  MetricsSample sample;
  sample.node_name = context_.options.node_name;
  sample.nics = context_.data_plane.Nics();
  sample.registered = context_.data_plane.Registered();
  sample.turns = context_.data_plane.TurnDurations();
  sample.process = ReadProcess();
  sample.process.start_time_seconds = start_time_seconds_;
  if (loop_runs_) {
    context_.loop.Run([&] {
      FillMetrics(context_.registry, &sample);
      FillPeers(context_.links.Report(), &sample);
    });
  }
  return sample;
}

void Monitoring::OnJobEnd(const JobRecord& job) {
  EndedJob ended = Account(job, {context_.options.node_name, CpuTimeUs(), RealtimeNs(),
                                 context_.data_plane.Traffic(job.spec.id), MonotonicNs()});
  if (context_.registry.programs().ExitsCome(job)) {
    untold_.insert_or_assign(job.series->spec.id, std::move(ended));
  } else {
    Tell(std::move(ended));
  }
}

void Monitoring::OnExits(const std::string& launch, const std::optional<RankExits>& exits) {
  if (auto found = untold_.extract(launch); !found.empty()) {
    NoteExits(exits, &found.mapped());
    Tell(std::move(found.mapped()));
  }
}

void Monitoring::Tell(EndedJob ended) {
  LogEvent(spdlog::level::info,
           {.event = "job_end",
            .job = ended.id,
            .uid = ended.uid,
            .more = "\"record\":{" + RecordMembers(ended, "") + "}"},
           Sentence(ended));
  if (records_.has_value()) {
    records_->Put(std::move(ended));
  }
}

}  // namespace ferry::daemon
