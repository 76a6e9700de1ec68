#include "daemon/control/reporter.h"

#include <unistd.h>

#include <utility>

#include "common/clock.h"
#include "daemon/control/admin_report.h"
#include "daemon/control/node_asker.h"

namespace ferry::daemon {

Reporter::Reporter(ReporterContext context)
    : context_(std::move(context)), started_ns_(MonotonicNs()) {}

void Reporter::FillStatus(Viewer viewer, control::StatusReply* reply) {
  reply->set_pid(static_cast<uint32_t>(getpid()));
  reply->set_uptime_ms((MonotonicNs() - started_ns_) / 1'000'000);
  reply->set_run_directory(context_.run_directory);
  reply->set_metrics_address(context_.metrics_address);
  ReportProcess(reply);
  if (!viewer.has_value()) {
    ReportRegistrations(context_.data_plane.Registered(), reply->mutable_registrations());
  }
  context_.loop.Run([&] {
    *reply->mutable_node() = context_.links.self();
    if (!viewer.has_value()) {
      for (control::PeerStatus& peer : context_.links.Report()) {
        *reply->add_peers() = std::move(peer);
      }
    }
    ReportStatus(context_.registry, viewer, reply);
  });
}

void Reporter::FillSessions(Viewer viewer, control::SessionsReply* reply) {
  context_.loop.Run([&] { ReportSessions(context_.registry, viewer, context_.data_plane, reply); });
}

Status Reporter::FillCounters(Viewer viewer, const control::CountersRequest& request,
                              control::CountersReply* reply) {
  return context_.loop.Run(
      [&] { return ReportCounters(context_.registry, viewer, request, reply); });
}

Status Reporter::FillWhy(Viewer viewer, const control::WhyRequest& request,
                         control::WhyReply* reply) {
  const Status outcome = context_.loop.Run([&] {
    return ReportWhy(context_.registry, viewer, context_.data_plane, request, MonotonicNs(),
                     &quiet_, reply);
  });
  NodeAsker asker(context_.loop, context_.registry, context_.links, context_.data_plane, &quiet_);
  WhyFollower follower(&asker);
  for (control::RankWait& wait : *reply->mutable_ranks()) {
    follower.Follow(wait.job_id(), &wait);
  }
  return outcome;
}

void Reporter::FillNics(control::NicsReply* reply) {
  for (const NicStatistics& nic : context_.data_plane.Nics()) {
    ReportNic(nic, reply->add_nics());
  }
}

void Reporter::FillGpus(control::GpusReply* reply) {
  if (context_.gpus != nullptr) {
    *reply = context_.gpus();
  }
}

}  // namespace ferry::daemon
