// The gRPC service Admin. The file mode of its socket (0600) says who may call: root and the user
// that ferryd runs as.
//
// Calls run on gRPC's pool and reach the jobs through the control loop; Drain and Watch wait there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "daemon/control/control_loop.h"
#include "daemon/control/job_registry.h"
#include "daemon/control/peer_links.h"
#include "daemon/control/reporter.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

// Counts the changes of a status, and wakes those who wait for one. Any thread.
class ChangeSignal {
 public:
  void Notify();
  // For good: every wait returns at once.
  void Close();
  // Returns the count once it differs from `seen`, or after `timeout`.
  uint64_t Wait(uint64_t seen, std::chrono::milliseconds timeout);
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
  bool closed_ = false;
};

// The parts that the service needs; all must outlive it, and the loop must run until the server has
// shut down.
struct AdminContext {
  ControlLoop& loop;
  JobRegistry& registry;
  PeerLinks& links;
  DataPlane& data_plane;
  ChangeSignal& changes;
  Reporter& reporter;
  // Makes ControlServer::RunUntilStopped end: waits for running jobs for at most `wait_ms`;
  // without, for as long as they take. Asked again, the shorter time counts.
  std::function<void(std::optional<uint64_t> wait_ms)> request_stop;
};

class AdminService final : public control::Admin::Service {
 public:
  explicit AdminService(AdminContext context);

  grpc::Status CreateJob(grpc::ServerContext* context, const control::CreateJobRequest* request,
                         control::CreateJobReply* reply) override;
  grpc::Status DestroyJob(grpc::ServerContext* context, const control::DestroyJobRequest* request,
                          control::DestroyJobReply* reply) override;
  grpc::Status Status(grpc::ServerContext* context, const control::StatusRequest* request,
                      control::StatusReply* reply) override;
  grpc::Status Sessions(grpc::ServerContext* context, const control::SessionsRequest* request,
                        control::SessionsReply* reply) override;
  grpc::Status Counters(grpc::ServerContext* context, const control::CountersRequest* request,
                        control::CountersReply* reply) override;
  grpc::Status Nics(grpc::ServerContext* context, const control::NicsRequest* request,
                    control::NicsReply* reply) override;
  grpc::Status Gpus(grpc::ServerContext* context, const control::GpusRequest* request,
                    control::GpusReply* reply) override;
  grpc::Status Why(grpc::ServerContext* context, const control::WhyRequest* request,
                   control::WhyReply* reply) override;
  // Returns once no job runs, or after the time that the request gives; the daemon goes on
  // draining.
  grpc::Status Drain(grpc::ServerContext* context, const control::DrainRequest* request,
                     control::DrainReply* reply) override;
  grpc::Status Shutdown(grpc::ServerContext* context, const control::ShutdownRequest* request,
                        control::ShutdownReply* reply) override;
  grpc::Status StartTrace(grpc::ServerContext* context, const control::StartTraceRequest* request,
                          control::StartTraceReply* reply) override;
  grpc::Status StopTrace(grpc::ServerContext* context, const control::StopTraceRequest* request,
                         grpc::ServerWriter<control::TracePiece>* writer) override;
  grpc::Status Faults(grpc::ServerContext* context, const control::FaultsRequest* request,
                      control::FaultsReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const control::WatchRequest* request,
                     grpc::ServerWriter<control::StatusReply>* writer) override;

 private:
  AdminContext context_;
  std::mutex watchers_mutex_;
  int watchers_ = 0;
};

}  // namespace ferry::daemon
