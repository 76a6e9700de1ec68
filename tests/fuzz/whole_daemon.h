// A daemon in this process with everything that ferryd has: control plane, progress plane, a
// network over loopback, worker processes for the jobs of others.
//
// One thread, but for the daemon's own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "config/options.h"
#include "daemon/control/control_server.h"
#include "daemon/hook_relay.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.grpc.pb.h"

namespace ferry::fuzz {

// Its holdings for jobs, as its administrator sees them.
struct Holdings {
  bool answers = false;
  std::string jobs;  // with states and users
  uint32_t sessions = 0;
  uint32_t regions = 0;
  uint64_t operations = 0;  // of the network, under way
  friend bool operator==(const Holdings&, const Holdings&) = default;
  std::string Text() const;
};

class WholeDaemon {
 public:
  // Runs below `directory`, which every user may enter.
  WholeDaemon(const std::string& directory, const std::string& name);
  ~WholeDaemon();
  WholeDaemon(const WholeDaemon&) = delete;
  WholeDaemon& operator=(const WholeDaemon&) = delete;

  std::string attach_socket() const { return options_.run_directory + "/attach.sock"; }
  std::string control_socket() const { return "unix:" + options_.run_directory + "/control.sock"; }
  const std::string& run_directory() const { return options_.run_directory; }
  const std::string& address() const { return server_->control_address(); }
  control::NodeIdentity identity();
  std::string FabricAddress() const;
  grpc::Status CreateJob(const control::CreateJobRequest& request);
  // Waits for the answer for half a minute.
  Holdings Holds();

 private:
  const config::Options options_;
  daemon::HookRelay relay_;
  std::unique_ptr<daemon::DataPlane> plane_;
  std::unique_ptr<daemon::ControlServer> server_;
  std::unique_ptr<control::Admin::Stub> admin_;
};

}  // namespace ferry::fuzz
