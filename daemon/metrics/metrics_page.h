// The metrics of ferryd as Prometheus knows them: names, units, types and help
// (https://prometheus.io/docs/practices/naming). Pure; any thread.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/metrics/metrics_sample.h"

namespace ferry::daemon {

// Labels are bounded by what is there at the moment: jobs of this node, the 8 paths, peer nodes.
std::vector<prometheus::MetricFamily> MetricFamilies(const MetricsSample& sample);

}  // namespace ferry::daemon
