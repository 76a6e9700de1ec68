// Serves the metrics page to Prometheus over HTTP, at /metrics, and the state of ferryd to load
// balancers and orchestrators, at /health and /health/live.
//
// Off unless an address is configured. One thread serves all connections and never blocks; another
// one makes the pages, and calls `sample` for each scrape. Both sleep between requests. A
// connection has 5 s for its request; where too many connections have not sent theirs (16 of one
// address, 64 in all), the server closes the oldest of them. All who reach the address read
// the node's series; MetricsAccess says who reads those of jobs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "daemon/metrics/health.h"
#include "daemon/metrics/metrics_sample.h"

namespace ferry::daemon {

struct MetricsOptions {
  std::string address;  // host:port, port 0 = a free one
  bool loopback_only = true;
  std::string readers;  // of all jobs' series, as MetricsAccess::Parse takes them
  std::string node_name;
};

struct MetricsSources {
  // May block; it must return as long as the server lives.
  std::function<MetricsSample()> sample;
  HealthSources health;
};

class MetricsServer {
 public:
  // Errors: kConfiguration (no host:port, a host that is not loopback though it must be, a reader
  // that is none), kAlreadyExists (the port is in use), kInvalidArgument (not an address of this
  // machine), kSystem.
  static StatusOr<std::unique_ptr<MetricsServer>> Start(const MetricsOptions& options,
                                                        MetricsSources sources);
  // Blocks while a sample is taken.
  virtual ~MetricsServer() = default;
  // host:port with the port really bound.
  virtual const std::string& address() const = 0;
};

}  // namespace ferry::daemon
