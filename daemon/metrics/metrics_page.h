// The metrics of ferryd as Prometheus knows them: names, units, types and help
// (https://prometheus.io/docs/practices/naming), in its text format.
//
// Each family has one type, also for readers of OpenMetrics, to whom a counter `x_total` is the
// family `x`. Labels are bounded by the present jobs of this node, the 8 paths, the NICs and the
// peer nodes. Any thread; blocks only as UserNames does.
#pragma once

#include <prometheus/metric_family.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/metrics/metrics_sample.h"
#include "daemon/metrics/user_names.h"

namespace ferry::daemon {

// The one who reads the page, which has the series of the node for all, and those of jobs for whom
// they concern.
struct MetricsReader {
  bool sees_all_jobs = false;
  std::optional<uid_t> uid = {};  // of a process of this machine

  bool MaySee(uid_t owner) const { return sees_all_jobs || uid == owner; }
};

std::vector<prometheus::MetricFamily> MetricFamilies(const MetricsSample& sample,
                                                     const MetricsReader& reader, UserNames* users);
// The whole page.
std::string MetricsText(const MetricsSample& sample, const MetricsReader& reader, UserNames* users);

}  // namespace ferry::daemon
