#include "daemon/control/admin_service.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/control/admin_report.h"
#include "daemon/control/grpc_status.h"
#include "daemon/trace/trace_format.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxWatchers = 16;           // each holds a thread
constexpr milliseconds kMaxWait(10'000);   // of one call
constexpr milliseconds kHangUpCheck(500);  // a watcher that left is noticed within this time

// "Status" is a method of the service; the class needs its full name here.
using Outcome = ::ferry::Status;

}  // namespace

// ---- ChangeSignal ----

void ChangeSignal::Notify() {
  std::lock_guard lock(mutex_);
  ++count_;
  changed_.notify_all();
}

void ChangeSignal::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

uint64_t ChangeSignal::Wait(uint64_t seen, milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return closed_ || count_ != seen; });
  return count_;
}

bool ChangeSignal::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

// ---- Jobs ----

AdminService::AdminService(AdminContext context) : context_(std::move(context)) {}

grpc::Status AdminService::CreateJob(grpc::ServerContext*, const control::CreateJobRequest* request,
                                     control::CreateJobReply*) {
  StatusOr<JobSpec> spec = SpecFrom(*request);
  const Outcome outcome =
      spec.ok() ? context_.loop.Run([&] { return context_.registry.CreateJob(std::move(*spec)); })
                : spec.status();
  if (outcome.ok()) {
    spdlog::info("job {}: created, {} ranks on {} nodes", request->job_id(), request->size(),
                 request->node_addresses_size());
  } else {
    spdlog::warn("job not created: {}", outcome.message());
  }
  return ToGrpc(outcome);
}

grpc::Status AdminService::DestroyJob(grpc::ServerContext*,
                                      const control::DestroyJobRequest* request,
                                      control::DestroyJobReply*) {
  return ToGrpc(context_.loop.Run([&] { return context_.registry.DestroyJob(request->job_id()); }));
}

// ---- Reports ----

grpc::Status AdminService::Status(grpc::ServerContext*, const control::StatusRequest*,
                                  control::StatusReply* reply) {
  context_.reporter.FillStatus({}, reply);
  return grpc::Status::OK;
}

grpc::Status AdminService::Sessions(grpc::ServerContext*, const control::SessionsRequest*,
                                    control::SessionsReply* reply) {
  context_.reporter.FillSessions({}, reply);
  return grpc::Status::OK;
}

grpc::Status AdminService::Counters(grpc::ServerContext*, const control::CountersRequest* request,
                                    control::CountersReply* reply) {
  return ToGrpc(context_.reporter.FillCounters({}, *request, reply));
}

grpc::Status AdminService::Nics(grpc::ServerContext*, const control::NicsRequest*,
                                control::NicsReply* reply) {
  context_.reporter.FillNics(reply);
  return grpc::Status::OK;
}

grpc::Status AdminService::Gpus(grpc::ServerContext*, const control::GpusRequest*,
                                control::GpusReply* reply) {
  context_.reporter.FillGpus(reply);
  return grpc::Status::OK;
}

grpc::Status AdminService::Why(grpc::ServerContext*, const control::WhyRequest* request,
                               control::WhyReply* reply) {
  return ToGrpc(context_.reporter.FillWhy({}, *request, reply));
}

// ---- Trace ----

grpc::Status AdminService::StartTrace(grpc::ServerContext*, const control::StartTraceRequest*,
                                      control::StartTraceReply*) {
  return ToGrpc(context_.data_plane.StartTrace());
}

grpc::Status AdminService::StopTrace(grpc::ServerContext*, const control::StopTraceRequest*,
                                     grpc::ServerWriter<control::TracePiece>* writer) {
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

grpc::Status AdminService::Faults(grpc::ServerContext*, const control::FaultsRequest* request,
                                  control::FaultsReply* reply) {
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

grpc::Status AdminService::Drain(grpc::ServerContext* context, const control::DrainRequest* request,
                                 control::DrainReply* reply) {
  context_.loop.Run([&] { context_.registry.Drain(); });
  const auto deadline = steady_clock::now() + std::min(milliseconds(request->wait_ms()), kMaxWait);
  uint64_t seen = 0;
  while (true) {
    const RunningWork work = context_.loop.Run([&] { return CountRunning(context_.registry); });
    reply->set_ranks(work.ranks);
    reply->set_jobs(work.jobs);
    const auto now = steady_clock::now();
    if (work.jobs == 0 || now >= deadline || context->IsCancelled() || context_.changes.closed()) {
      return grpc::Status::OK;
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - now);
    seen = context_.changes.Wait(seen, std::min(kHangUpCheck, left));
  }
}

grpc::Status AdminService::Shutdown(grpc::ServerContext*, const control::ShutdownRequest* request,
                                    control::ShutdownReply* reply) {
  const RunningWork work = context_.loop.Run([&] { return CountRunning(context_.registry); });
  reply->set_ranks(work.ranks);
  reply->set_jobs(work.jobs);
  std::optional<uint64_t> wait_ms;
  if (request->has_wait_ms()) {
    wait_ms = request->wait_ms();
  }
  context_.request_stop(request->now() ? 0 : wait_ms);
  return grpc::Status::OK;
}

grpc::Status AdminService::Watch(grpc::ServerContext* context, const control::WatchRequest* request,
                                 grpc::ServerWriter<control::StatusReply>* writer) {
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

}  // namespace ferry::daemon
