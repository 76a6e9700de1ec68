#include "tests/fuzz/whole_daemon.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "daemon/progress/progress_plane.h"
#include "tests/support/patience.h"
#include "transports/loader/loader.h"

namespace ferry::fuzz {
namespace {

using tests::kPatience;

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "no daemon: %s\n", value.status().message().c_str());
    abort();
  }
  return std::move(*value);
}

config::Options OptionsOf(const std::string& directory, const std::string& name) {
  config::Options options;
  options.run_directory = directory + "/" + name;
  options.node_name = name;
  options.worker_program = directory + "/ferry-worker";
  options.max_local_ranks = 64;
  options.max_ranks = 64;
  options.heartbeat_interval_ms = 50;
  options.peer_timeout_ms = 60'000;  // a busy machine is no cut link
  options.drain_timeout_ms = 100;
  options.gpu_backend = "host";
  return options;
}

template <typename Request, typename Reply>
grpc::Status Ask(control::Admin::Stub& admin,
                 grpc::Status (control::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Reply*),
                 const Request& request, Reply* reply) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  return (admin.*method)(&context, request, reply);
}

}  // namespace

std::string Holdings::Text() const {
  return answers ? jobs + std::to_string(sessions) + " sessions, " + std::to_string(regions) +
                       " regions, " + std::to_string(operations) + " operations"
                 : "no answer";
}

WholeDaemon::WholeDaemon(const std::string& directory, const std::string& name)
    : options_(OptionsOf(directory, name)) {
  transport::TransportOptions network = transport::TransportOptionsFrom(options_);
  plane_ = Must(daemon::CreateProgressPlane(options_, Must(transport::OpenTransport(network)),
                                            relay_.Hooks()));
  server_ = Must(daemon::ControlServer::Start(options_, *plane_, nullptr));
  relay_.Attach(server_.get());
  admin_ = control::Admin::NewStub(grpc::CreateChannel(
      "unix:" + options_.run_directory + "/admin.sock", grpc::InsecureChannelCredentials()));
}

WholeDaemon::~WholeDaemon() {
  relay_.Attach(nullptr);
  server_.reset();
}

control::NodeIdentity WholeDaemon::identity() {
  control::StatusReply status;
  (void)Ask(*admin_, &control::Admin::Stub::Status, control::StatusRequest(), &status);
  return status.node();
}

std::string WholeDaemon::FabricAddress() const {
  const std::vector<std::byte> address = plane_->FabricAddressFor(0);
  return {reinterpret_cast<const char*>(address.data()), address.size()};
}

grpc::Status WholeDaemon::CreateJob(const control::CreateJobRequest& request) {
  control::CreateJobReply reply;
  return Ask(*admin_, &control::Admin::Stub::CreateJob, request, &reply);
}

Holdings WholeDaemon::Holds() {
  control::StatusReply status;
  control::NicsReply nics;
  Holdings held;
  held.answers =
      Ask(*admin_, &control::Admin::Stub::Status, control::StatusRequest(), &status).ok() &&
      Ask(*admin_, &control::Admin::Stub::Nics, control::NicsRequest(), &nics).ok();
  for (const control::JobStatus& job : status.jobs()) {
    held.jobs += job.job_id() + " (" + job.state() + ", uid " + std::to_string(job.uid()) + "), ";
  }
  held.sessions = status.sessions();
  held.regions = status.regions();
  for (const control::NicStatus& nic : nics.nics()) {
    held.operations += nic.outstanding() + nic.staging_busy();
  }
  return held;
}

}  // namespace ferry::fuzz
