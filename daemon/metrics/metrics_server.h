// Serves the metrics page to Prometheus over HTTP, at /metrics.
//
// Off unless an address is configured. One thread serves all connections, and calls `sample` for
// each scrape; it sleeps between them. A connection has 5 s for its request; where too many
// connections have not sent theirs (16 of one address, 64 in all), the server closes the oldest of
// them.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "daemon/metrics/metrics_sample.h"

namespace ferry::daemon {

// The metrics of ferryd as Prometheus knows them: names, units, types and help
// (https://prometheus.io/docs/practices/naming). Pure; any thread. Labels are bounded by the
// present jobs of this node, the 8 paths, and the peer nodes.
std::vector<prometheus::MetricFamily> MetricFamilies(const MetricsSample& sample);

struct MetricsOptions {
  std::string address;  // host:port, port 0 = a free one
  bool loopback_only = true;
};

class MetricsServer {
 public:
  // `sample` may block; it must return as long as the server lives. Errors: kConfiguration (no
  // host:port, or a host that is not loopback though it must be), kAlreadyExists (the port is in
  // use), kInvalidArgument (not an address of this machine), kSystem.
  static StatusOr<std::unique_ptr<MetricsServer>> Start(const MetricsOptions& options,
                                                        std::function<MetricsSample()> sample);
  virtual ~MetricsServer() = default;
  // host:port with the port really bound.
  virtual const std::string& address() const = 0;
};

}  // namespace ferry::daemon
