// Collects what the metrics page shows from the jobs, at the moment of a scrape.
//
// Thread: the control thread, for MetricsOf; reads of shared memory as in rank_view.h.
#pragma once

#include "daemon/control/job_registry.h"
#include "daemon/metrics/metrics_sample.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Jobs, ranks and their sums; the rest of the sample is the caller's.
void FillMetrics(const JobRegistry& registry, MetricsSample* sample);
void FillPeers(const std::vector<control::PeerStatus>& peers, MetricsSample* sample);
// CPU time, memory and descriptors of this process. Any thread.
ProcessSample ReadProcess();

}  // namespace ferry::daemon
