#include "daemon/metrics/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>
#include <vector>

#include "common/net_address.h"
#include "daemon/metrics/metrics_page.h"

namespace ferry::daemon {
namespace {

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<MetricsSample()> sample) : sample_(std::move(sample)) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return MetricFamilies(sample_());
  }

 private:
  const std::function<MetricsSample()> sample_;
};

class Server final : public MetricsServer {
 public:
  // Throws what CivetWeb throws.
  Server(const HostPort& address, std::function<MetricsSample()> sample)
      : collector_(std::make_shared<Collector>(std::move(sample))),
        exposer_(std::vector<std::string>{"listening_ports", address.Text(), "num_threads", "2"}) {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    address_ =
        HostPort{address.host, ports.empty() ? address.port : static_cast<uint16_t>(ports.front())}
            .Text();
    exposer_.RegisterCollectable(collector_);
  }
  const std::string& address() const override { return address_; }

 private:
  const std::shared_ptr<Collector> collector_;
  prometheus::Exposer exposer_;
  std::string address_;
};

Status Refuse(const std::string& why) { return {ErrorCode::kConfiguration, why}; }

}  // namespace

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsOptions& options, std::function<MetricsSample()> sample) {
  StatusOr<HostPort> address = ParseHostPort(options.address, PortZero::kAllow);
  if (!address.ok()) {
    return Refuse("metrics_address: " + address.status().message());
  }
  if (address->host == "localhost") {
    address->host = "127.0.0.1";
  }
  if (options.loopback_only && !CheckLoopback(address->host).ok()) {
    return Refuse("metrics_address " + options.address +
                  " can be read from other machines, without a password: use a loopback address "
                  "(127.0.0.1), or allow it with metrics_access = \"anyone\"");
  }
  FERRY_RETURN_IF_ERROR(ProbeListen(*address, "metrics_address"));
  try {
    return std::unique_ptr<MetricsServer>(std::make_unique<Server>(*address, std::move(sample)));
  } catch (const std::exception& error) {
    return Status(ErrorCode::kSystem,
                  "cannot serve metrics at " + options.address + ": " + error.what());
  }
}

}  // namespace ferry::daemon
