// The gRPC service Admin. The file mode of its socket (0600) says who may call: root and the user
// that ferryd runs as.
//
// Calls run on gRPC's pool and reach the jobs through the control loop; Drain and Watch wait there.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "common/log_event.h"
#include "daemon/admin/admin_report.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/services/services.h"
#include "daemon/trace/trace_format.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxWatchers = 16;           // each holds a thread
constexpr milliseconds kMaxWait(10'000);   // of one call
constexpr milliseconds kHangUpCheck(500);  // a watcher that left is noticed within this time

// "Status" is a method of the service; the class needs its full name here.
using Outcome = ::ferry::Status;

class AdminService final : public control::Admin::Service {
 public:
  explicit AdminService(AdminContext context) : context_(std::move(context)) {}

  // ---- Jobs ----

  grpc::Status CreateJob(grpc::ServerContext*, const control::CreateJobRequest* request,
                         control::CreateJobReply*) override {
    StatusOr<JobSpec> spec = SpecFrom(*request);
    const uid_t owner = spec.ok() ? spec->owner : 0;
    const Outcome outcome =
        spec.ok() ? context_.loop.Run([&] { return context_.registry.CreateJob(std::move(*spec)); })
                  : spec.status();
    if (outcome.ok()) {
      LogEvent(spdlog::level::info, {.event = "job_begin", .job = request->job_id(), .uid = owner},
               "job " + request->job_id() + ": created, " + Counted(request->size(), "rank") +
                   " on " + Counted(static_cast<uint64_t>(request->node_addresses_size()), "node"));
    } else {
      spdlog::warn("job not created: {}", outcome.message());
    }
    return ToGrpc(outcome);
  }

  grpc::Status DestroyJob(grpc::ServerContext*, const control::DestroyJobRequest* request,
                          control::DestroyJobReply*) override {
    return ToGrpc(
        context_.loop.Run([&] { return context_.registry.DestroyJob(request->job_id()); }));
  }

  // ---- Reports ----

  grpc::Status Status(grpc::ServerContext*, const control::StatusRequest*,
                      control::StatusReply* reply) override {
    context_.reporter.FillStatus({}, reply);
    return grpc::Status::OK;
  }

  grpc::Status Sessions(grpc::ServerContext*, const control::SessionsRequest*,
                        control::SessionsReply* reply) override {
    context_.reporter.FillSessions({}, reply);
    return grpc::Status::OK;
  }

  grpc::Status Counters(grpc::ServerContext*, const control::CountersRequest* request,
                        control::CountersReply* reply) override {
    return ToGrpc(context_.reporter.FillCounters({}, *request, reply));
  }

  grpc::Status Nics(grpc::ServerContext*, const control::NicsRequest*,
                    control::NicsReply* reply) override {
    context_.reporter.FillNics(reply);
    return grpc::Status::OK;
  }

  grpc::Status Gpus(grpc::ServerContext*, const control::GpusRequest*,
                    control::GpusReply* reply) override {
    context_.reporter.FillGpus(reply);
    return grpc::Status::OK;
  }

  grpc::Status Why(grpc::ServerContext*, const control::WhyRequest* request,
                   control::WhyReply* reply) override {
    return ToGrpc(context_.reporter.FillWhy({}, *request, reply));
  }

  grpc::Status Links(grpc::ServerContext*, const control::LinksRequest*,
                     control::LinksReply* reply) override {
    context_.reporter.FillLinks({}, reply);
    return grpc::Status::OK;
  }

  grpc::Status TakeLinks(grpc::ServerContext*, const control::TakeLinksRequest* request,
                         control::TakeLinksReply* reply) override {
    const StatusOr<uint32_t> count = context_.loop.Run([&] {
      return context_.registry.link_books().TakeBack(
          request->job_id(), request->has_rank() ? request->rank() : kAnyRank,
          request->has_peer() ? request->peer() : kAnyRank, request->may_ask_again());
    });
    if (count.ok()) {
      reply->set_links(*count);
      spdlog::info("job {}: the administrator takes {} direct links back", request->job_id(),
                   *count);
    }
    return ToGrpc(count.status());
  }

  grpc::Status JobProfile(grpc::ServerContext*, const control::JobProfileRequest* request,
                          grpc::ServerWriter<control::JobProfilePart>* writer) override {
    return ToGrpc(context_.reporter.SendProfile(
        {}, *request,
        [writer](const control::JobProfilePart& part) { return writer->Write(part); }));
  }

  // ---- Trace ----

  grpc::Status StartTrace(grpc::ServerContext*, const control::StartTraceRequest*,
                          control::StartTraceReply*) override {
    return ToGrpc(context_.data_plane.StartTrace());
  }

  grpc::Status StopTrace(grpc::ServerContext*, const control::StopTraceRequest*,
                         grpc::ServerWriter<control::TracePiece>* writer) override {
    StatusOr<TraceDump> dump = context_.data_plane.StopTrace();
    if (!dump.ok()) {
      return ToGrpc(dump.status());
    }
    TraceSource source;
    source.node_name = context_.loop.Run([&] { return context_.links.self().name(); });
    source.pid = static_cast<uint32_t>(getpid());
    control::TracePiece piece;
    piece.set_records(dump->ring.kept());
    piece.set_dropped(dump->ring.dropped());
    FormatTrace(std::move(*dump), source, [&](std::string_view text) {
      piece.set_text(std::string(text));
      const bool wanted = writer->Write(piece);
      piece.Clear();
      return wanted;
    });
    return grpc::Status::OK;
  }

  grpc::Status Faults(grpc::ServerContext*, const control::FaultsRequest* request,
                      control::FaultsReply* reply) override {
    for (const FaultReport& report : context_.data_plane.Faults(request->release())) {
      control::FaultStatus* fault = reply->add_faults();
      fault->set_point(report.point);
      fault->set_at(report.at);
      fault->set_action(report.action);
      fault->set_passed(report.passed);
      fault->set_state(report.state);
    }
    return grpc::Status::OK;
  }

  // ---- Life ----

  // Returns once no job runs, or after the time that the request gives; the daemon goes on
  // draining.
  grpc::Status Drain(grpc::ServerContext* context, const control::DrainRequest* request,
                     control::DrainReply* reply) override {
    if (!request->goes_on()) {
      context_.loop.Run([&] { Drain("ferryctl drain"); });
    }
    const auto deadline =
        steady_clock::now() + std::min(milliseconds(request->wait_ms()), kMaxWait);
    uint64_t seen = 0;
    while (true) {
      const auto [work, drains] = context_.loop.Run(
          [&] { return std::pair(CountRunning(context_.registry), context_.registry.draining()); });
      reply->set_ranks(work.ranks);
      reply->set_jobs(work.jobs);
      reply->set_undrained(!drains);
      const auto now = steady_clock::now();
      if (work.jobs == 0 || !drains || now >= deadline || context->IsCancelled() ||
          context_.changes.closed()) {
        return grpc::Status::OK;
      }
      const auto left = std::chrono::ceil<milliseconds>(deadline - now);
      seen = context_.changes.Wait(seen, std::min(kHangUpCheck, left));
    }
  }

  grpc::Status Undrain(grpc::ServerContext*, const control::UndrainRequest*,
                       control::UndrainReply* reply) override {
    return ToGrpc(context_.loop.Run([&] {
      reply->set_was_draining(context_.registry.draining());
      return context_.registry.Undrain();
    }));
  }

  grpc::Status Shutdown(grpc::ServerContext*, const control::ShutdownRequest* request,
                        control::ShutdownReply* reply) override {
    const RunningWork work = context_.loop.Run([&] { return CountRunning(context_.registry); });
    reply->set_ranks(work.ranks);
    reply->set_jobs(work.jobs);
    std::optional<uint64_t> wait_ms;
    if (request->has_wait_ms()) {
      wait_ms = request->wait_ms();
    }
    context_.loop.Run([&] { Drain("ferryctl shutdown"); });
    context_.request_stop(request->now() ? 0 : wait_ms);
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context, const control::WatchRequest* request,
                     grpc::ServerWriter<control::StatusReply>* writer) override {
    {
      std::lock_guard lock(watchers_mutex_);
      if (watchers_ >= kMaxWatchers) {
        return ToGrpc({ErrorCode::kLimitExceeded,
                       "there are " + std::to_string(watchers_) + " watchers already"});
      }
      ++watchers_;
    }
    const milliseconds interval(request->interval_ms() == 0 ? UINT32_MAX : request->interval_ms());
    uint64_t written_ns = 0;
    uint64_t seen = 0;
    uint64_t count = 0;
    while (!context->IsCancelled() && !context_.changes.closed()) {
      const bool due = milliseconds((MonotonicNs() - written_ns) / 1'000'000) >= interval;
      if (written_ns == 0 || due || count != seen) {
        seen = count;
        written_ns = MonotonicNs();
        control::StatusReply reply;
        context_.reporter.FillStatus({}, &reply);
        if (!writer->Write(reply)) {
          break;
        }
      }
      count = context_.changes.Wait(seen, std::min(kHangUpCheck, interval));
    }
    std::lock_guard lock(watchers_mutex_);
    --watchers_;
    return grpc::Status::OK;
  }

 private:
  // On the control thread.
  void Drain(const char* command) {
    if (!context_.registry.draining()) {
      LogEvent(spdlog::level::info, {.event = "drain"},
               "takes no more jobs: " + context_.callers() + " asked for it (" + command + ")");
      context_.registry.Drain();
    }
  }

  AdminContext context_;
  std::mutex watchers_mutex_;
  int watchers_ = 0;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(AdminContext context) {
  return std::make_unique<AdminService>(std::move(context));
}

}  // namespace ferry::daemon
