#include "daemon/control/control_server.h"

#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/address_list.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/log.h"
#include "common/net_address.h"
#include "common/version.h"
#include "daemon/admin/admin_report.h"
#include "daemon/attach/attach_server.h"
#include "daemon/control/monitoring.h"
#include "daemon/control/run_directory.h"
#include "daemon/control/watchdog.h"
#include "daemon/grpc/grpc_acceptor.h"
#include "daemon/grpc/unread_answers.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_regions.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/launchers.h"
#include "daemon/links/link_policy.h"
#include "daemon/links/link_wishes.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "daemon/services/services.h"
#include "daemon/sockets/connection_acceptor.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/tls/secrets.h"
#include "daemon/tls/tls_credentials.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdlePoll(20);   // while draining, for the data plane's last operations
constexpr milliseconds kLongPoll(500);  // and for jobs, whose ends are told
constexpr milliseconds kLastNews(500);  // for the other nodes to hear that our ranks ended
constexpr milliseconds kGrpcGrace(200);
constexpr uint64_t kLongestWaitMs = 365ULL * 24 * 3600 * 1000;
// The limits of each socket: the connections of one user, beside his ranks' (launchers, and
// processes that have not attached yet); the number of users that may reach that limit at a time;
// and the part of our descriptors (one in so many) that all together may take.
constexpr uint64_t kStrayConnections = 64;
constexpr uint64_t kFullUsers = 8;
constexpr uint64_t kPartOfDescriptors = 4;

using config::ServesAll;

// Options have been checked.
AddressList NodesFrom(const config::Options& options) {
  StatusOr<AddressList> nodes = AddressList::Parse(options.node_addresses);
  return nodes.ok() ? std::move(*nodes) : AddressList();
}

RegistryLimits LimitsFrom(const config::Options& options, const std::vector<NicStatistics>& nics) {
  return {options.max_ranks,
          options.max_local_ranks,
          options.attach_timeout_ms,
          {.sessions = options.quota_sessions,
           .regions = options.quota_regions,
           .pinned_bytes = options.quota_pinned_bytes,
           .jobs = options.quota_jobs,
           .requests = options.quota_requests,
           .links = options.quota_links,
           .nodes = options.quota_nodes,
           .ranks = options.quota_ranks},
          LinkPolicyFrom(options, nics, std::thread::hardware_concurrency()),
          {options.fabric_address, options.control_address},
          options.peer_timeout_ms,
          options.quota_sessions == 0 && ServesAll(options) ? options.max_local_ranks : 0,
          !nics.empty() && nics.front().takes_dmabufs,
          options.profile_bytes,
          std::ranges::any_of(nics, [](const auto& nic) { return nic.deferred_entries != 0; })};
}

ConnectionLimits ConnectionLimitsFrom(const config::Options& options) {
  const uint64_t of_user = options.max_local_ranks + kStrayConnections;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const uint64_t in_all =
      std::min<uint64_t>(kFullUsers * of_user, files.rlim_cur / kPartOfDescriptors);
  return {std::min(of_user, std::max<uint64_t>(in_all / 2, 1)), in_all};
}

// Null where daemons are to speak without TLS.
StatusOr<std::unique_ptr<TlsCredentials>> LoadTlsCredentials(const config::Options& options) {
  if (options.tls_cert_file.empty()) {
    return std::unique_ptr<TlsCredentials>();
  }
  return TlsCredentials::Load({options.tls_ca_file, options.tls_cert_file, options.tls_key_file});
}

// Limits the messages: strangers cause most of them, and shall not fill the log.
void LogFromGrpc(gpr_log_func_args* line) {
  static RateLimiter limiter(10, 1'000'000'000);
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    LogLimited(limiter, spdlog::level::warn, "grpc: {}", line->message);
  } else {
    spdlog::debug("grpc: {}", line->message);
  }
}

// Errors are logged for debugging only: strangers' messages cause them, too, and their calls fail.
void LogFromProtobuf(google::protobuf::LogLevel level, const char*, int,
                     const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(fatal ? spdlog::level::critical : spdlog::level::debug, "protobuf: {}", message);
}

}  // namespace

struct ControlServer::Parts {
  Parts(const config::Options& options, DataPlane& data_plane, RunDirectory directory,
        std::unique_ptr<TlsCredentials> tls_credentials)
      : options(options),
        data_plane(data_plane),
        directory(std::move(directory)),
        tls(std::move(tls_credentials)),
        registry(loop.context(), data_plane, LimitsFrom(options, data_plane.Nics())),
        links(loop, registry.nodes(), {options.heartbeat_interval_ms, options.peer_timeout_ms},
              tls.get(), NodesFrom(options)),
        launchers(registry),
        connection_limits(ConnectionLimitsFrom(options)),
        attach(loop.context(), registry, launchers, options.attach_timeout_ms, connection_limits),
        peer_service(MakePeerService(
            loop, links, registry, data_plane,
            [this](const std::string& peer) { return peer_acceptor.CertificateOf(peer); })),
        wishes(loop, [this](const std::string& job_id, uint32_t rank,
                            uint32_t peer) { registry.link_books().Want(job_id, rank, peer); }),
        monitoring({this->options, loop, registry, links, data_plane}),
        watchdog(loop, data_plane, this->directory.ControlSocket(),
                 [this] { return user_acceptor.Dial(); }),
        signals(loop.context()),
        peer_acceptor(loop.context(), "the control port", connection_limits),
        user_acceptor(loop.context(), "control.sock", connection_limits),
        admin_acceptor(loop.context(), "admin.sock", connection_limits) {
    registry.set_links(&links);
    registry.set_on_change([this] { changes.Notify(); });
  }

  Status StartPeerServer();
  Status StartUserServer();
  Status StartAdminServer();
  StatusOr<std::unique_ptr<grpc::Server>> ServeAtSocket(grpc::ServerBuilder& builder,
                                                        GrpcAcceptor& acceptor,
                                                        const std::string& path, unsigned mode);
  void SetIdentity(int port);
  StatusOr<std::string> WhyOf(const Session& session);
  void AwaitLeaving();
  void WaitForSignal();
  std::string Summary() const;
  void OnSignal(int number);
  void StopWithin(std::optional<uint64_t> wait_ms);
  void Drain(const std::function<void()>& on_stop);
  RunningWork StillRunning(bool signalled);
  void Stop();

  const config::Options options;
  DataPlane& data_plane;
  RunDirectory directory;
  const std::unique_ptr<TlsCredentials> tls;  // null without
  ControlLoop loop;
  ChangeSignal changes;
  JobRegistry registry;
  PeerLinks links;
  Launchers launchers;
  const ConnectionLimits connection_limits;  // of each acceptor
  AttachServer attach;
  std::optional<Reporter> reporter;
  UnreadAnswers unread_answers;  // of users
  std::unique_ptr<grpc::Service> launcher_service;
  std::unique_ptr<grpc::Service> admin_service;
  const std::unique_ptr<grpc::Service> peer_service;
  LinkWishes wishes;
  Monitoring monitoring;
  Watchdog watchdog;
  boost::asio::signal_set signals;
  std::function<void()> on_hangup;
  std::string control_address;
  GrpcAcceptor peer_acceptor;
  GrpcAcceptor user_acceptor;
  GrpcAcceptor admin_acceptor;
  std::unique_ptr<grpc::Server> peer_server;
  std::unique_ptr<grpc::Server> user_server;
  std::unique_ptr<grpc::Server> admin_server;
  bool running = false;

  std::mutex mutex;
  std::condition_variable stop_requested;
  bool stop = false;
  bool signalled = false;
  std::optional<uint64_t> stop_deadline_ns;  // of the wait for running jobs
};

// ---- Start ----

Status ControlServer::Parts::StartPeerServer() {
  if (tls == nullptr) {
    FERRY_RETURN_IF_ERROR(CheckLoopback(options.control_address));
  } else {
    spdlog::info("TLS between daemons: {}", tls->Describe());
  }
  const HostPort address{options.control_address, static_cast<uint16_t>(options.control_port)};
  StatusOr<UniqueFd> listener = ListenTcp(address, "control_port");
  FERRY_RETURN_IF_ERROR(listener.status());
  const int port = PortOf(listener->get());
  peer_acceptor.Sift(tls == nullptr ? GrpcAcceptor::Tls() : [this] { return tls->ForServer(); });
  grpc::ServerBuilder builder;
  peer_acceptor.AddTo(builder, options.attach_timeout_ms);
  builder.RegisterService(peer_service.get());
  peer_server = builder.BuildAndStart();
  if (peer_server == nullptr || port == 0) {
    return {ErrorCode::kSystem, "cannot serve the control plane at " + address.Text()};
  }
  peer_acceptor.Start(std::move(*listener));
  SetIdentity(port);
  return {};
}

void ControlServer::Parts::SetIdentity(int port) {
  // No client can call 0.0.0.0, and no certificate is for it: then the address has the node's name.
  const bool anywhere = IsWildcard(options.control_address);
  control_address =
      HostPort{anywhere ? options.node_name : options.control_address, static_cast<uint16_t>(port)}
          .Text();
  control::NodeIdentity self;
  self.set_name(options.node_name);
  self.set_incarnation(RandomId());
  self.set_layout_version(kLayoutVersion);
  self.set_protocol_version(kProtocolVersion);
  self.set_control_address(control_address);
  self.set_provider(data_plane.Nic().provider);
  self.set_direct_links(registry.link_books().allowed().ok());
  links.set_self(std::move(self), [this](uint64_t guest) {
    const std::vector<std::byte> address = data_plane.FabricAddressFor(guest);
    return std::string(reinterpret_cast<const char*>(address.data()), address.size());
  });
}

StatusOr<std::unique_ptr<grpc::Server>> ControlServer::Parts::ServeAtSocket(
    grpc::ServerBuilder& builder, GrpcAcceptor& acceptor, const std::string& path, unsigned mode) {
  StatusOr<UniqueFd> listener = ListenUnix(path, SOCK_STREAM, mode);
  FERRY_RETURN_IF_ERROR(listener.status());
  acceptor.AddTo(builder, options.attach_timeout_ms);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return Status(ErrorCode::kSystem, "cannot serve at " + path);
  }
  acceptor.Start(std::move(*listener));
  return server;
}

// Two servers, so that nothing but a file's mode decides who may reach the service Admin.
Status ControlServer::Parts::StartUserServer() {
  grpc::ServerBuilder builder;
  builder.RegisterService(launcher_service.get());
  unread_answers.Watch(builder);
  user_acceptor.Sift();  // any user may connect, and send things for which gRPC would wait
  auto server = ServeAtSocket(builder, user_acceptor, directory.ControlSocket(),
                              ServesAll(options) ? 0666 : 0600);
  FERRY_RETURN_IF_ERROR(server.status());
  user_server = std::move(*server);
  return {};
}

Status ControlServer::Parts::StartAdminServer() {
  grpc::ServerBuilder builder;
  builder.RegisterService(admin_service.get());
  auto server = ServeAtSocket(builder, admin_acceptor, directory.AdminSocket(), 0600);
  FERRY_RETURN_IF_ERROR(server.status());
  admin_server = std::move(*server);
  return {};
}

StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(
    const config::Options& options, DataPlane& data_plane,
    std::function<control::GpusReply()> gpus) {
  // The distribution's Abseil would keep a graph of all locks that gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_function(LogFromGrpc);
  // For good: the end of gRPC waits up to 10 s for a poller that it has started for a long reply.
  [[maybe_unused]] static const bool kept = (grpc_init(), true);
  google::protobuf::SetLogHandler(LogFromProtobuf);
  auto tls = LoadTlsCredentials(options);
  FERRY_RETURN_IF_ERROR(tls.status());
  StatusOr<RunDirectory> directory = RunDirectory::Open(options.run_directory, ServesAll(options));
  FERRY_RETURN_IF_ERROR(directory.status());
  if (ServesAll(options) && !directory->IsOpenToAll()) {
    const std::string closed = "run directory " + directory->path() +
                               " is closed to other users: chmod 0755 it to serve them";
    if (options.users == "all") {
      return Status(ErrorCode::kRunDirectory, closed);
    }
    spdlog::warn("{}", closed);
  }
  std::unique_ptr<ControlServer> server(new ControlServer(
      std::make_unique<Parts>(options, data_plane, std::move(*directory), std::move(*tls))));
  Parts& parts = *server->parts_;
  FERRY_RETURN_IF_ERROR(parts.monitoring.Start());
  const std::string metrics_address = parts.monitoring.metrics_address();
  parts.reporter.emplace(ReporterContext{parts.loop, parts.registry, parts.links, data_plane,
                                         parts.directory.path(), std::move(gpus), metrics_address});
  parts.launcher_service =
      MakeLauncherService(parts.loop, parts.launchers, *parts.reporter, parts.unread_answers);
  parts.admin_service = MakeAdminService(
      {parts.loop, parts.registry, parts.links, data_plane, parts.changes, *parts.reporter,
       [&parts](std::optional<uint64_t> wait_ms) { parts.StopWithin(wait_ms); },
       [&parts] { return parts.admin_acceptor.Callers(); }});
  // Calls that come early wait for the loop.
  FERRY_RETURN_IF_ERROR(parts.StartPeerServer());
  FERRY_RETURN_IF_ERROR(parts.StartUserServer());
  FERRY_RETURN_IF_ERROR(parts.StartAdminServer());
  parts.attach.set_control_address(parts.control_address);
  parts.attach.set_why([&parts](const Session& session) { return parts.WhyOf(session); });
  FERRY_RETURN_IF_ERROR(parts.attach.Listen(parts.directory.AttachSocket(), ServesAll(options)));
  FERRY_RETURN_IF_ERROR(parts.directory.WriteInfo(
      {options.node_name, parts.control_address, parts.links.Incarnation(), metrics_address}));
  if (const std::string alone = parts.registry.WhyAlone(); !alone.empty()) {
    spdlog::warn("no network: {}; serves jobs of this node alone", alone);
  }
  parts.loop.Start();
  parts.monitoring.SetLoopRuns();
  parts.running = true;
  spdlog::info("ferryd {} serves {} and {}", kFerryVersion, parts.directory.path(),
               parts.control_address);
  return server;
}

ControlServer::ControlServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ControlServer::~ControlServer() { parts_->Stop(); }

const std::string& ControlServer::control_address() const { return parts_->control_address; }

const std::string& ControlServer::run_directory() const { return parts_->directory.path(); }

// Says what the rank of that session waits for. Not on the control thread.
StatusOr<std::string> ControlServer::Parts::WhyOf(const Session& session) {
  control::WhyRequest question;
  question.set_job_id(session.job_id);
  question.set_rank(session.rank);
  control::WhyReply answer;
  FERRY_RETURN_IF_ERROR(reporter->FillWhy(session.uid, question, &answer));
  return answer.ranks_size() == 1 ? answer.ranks(0).verdict() : "";
}

// ---- Signals ----

void ControlServer::Parts::WaitForSignal() {
  signals.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) {
      return;
    }
    if (number == SIGHUP) {
      if (on_hangup) {
        on_hangup();
      }
    } else {
      OnSignal(number);
    }
    WaitForSignal();
  });
}

void ControlServer::HandleSignals(std::function<void()> on_hangup) {
  parts_->on_hangup = std::move(on_hangup);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now {};
    if (number == SIGINT && sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
      continue;  // a shell that starts ferryd in the background means it so
    }
    boost::system::error_code error;
    parts_->signals.add(number, error);
    if (error) {
      spdlog::warn("signal {} cannot be handled: {}", number, error.message());
    }
  }
  parts_->WaitForSignal();
}

void ControlServer::ReloadTls() {
  TlsCredentials* const tls = parts_->tls.get();
  if (tls == nullptr) {
    return spdlog::info("reload: no TLS files to read; restart ferryd for its options");
  }
  if (const Status status = tls->Reload(); !status.ok()) {
    return spdlog::error("reload: the TLS files read before stay in use: {}", status.message());
  }
  spdlog::info("reload: new connections use the TLS files as they are now: {}", tls->Describe());
}

// ---- Watchdog ----

std::string ControlServer::Parts::Summary() const {
  return Counted(registry.local_ranks(), "rank") + " and " +
         Counted(registry.jobs().size(), "job") + " at " + directory.path();
}

void ControlServer::StartWatchdog(uint64_t interval_ns,
                                  std::function<void(const std::string& status)> alive) {
  parts_->loop.Run([this, interval_ns, &alive] {
    parts_->watchdog.Start(
        std::chrono::nanoseconds(interval_ns),
        [parts = parts_.get(), alive = std::move(alive)] { alive("serves " + parts->Summary()); });
  });
}

// ---- Stop ----

// The first signal asks the daemon to end soon, a second one to end at once.
void ControlServer::Parts::OnSignal(int number) {
  bool again = false;
  {
    std::lock_guard lock(mutex);
    again = std::exchange(signalled, true);
  }
  const char* const name = sigabbrev_np(number);
  if (again) {
    spdlog::info("SIG{} again: stops at once", name);
  } else {
    spdlog::info("SIG{}: takes no more jobs, and stops once {} ranks have left, or after {} ms",
                 name, registry.local_ranks(), options.drain_timeout_ms);
  }
  StopWithin(again ? 0 : options.drain_timeout_ms);
}

void ControlServer::Parts::StopWithin(std::optional<uint64_t> wait_ms) {
  {
    std::lock_guard lock(mutex);
    stop = true;
    if (wait_ms.has_value()) {
      const uint64_t deadline_ns = MonotonicNs() + std::min(*wait_ms, kLongestWaitMs) * 1'000'000;
      stop_deadline_ns = std::min(stop_deadline_ns.value_or(deadline_ns), deadline_ns);
    }
  }
  stop_requested.notify_all();
  changes.Notify();
}

void ControlServer::EndSession(const std::string& job_id, uint32_t rank, const Status& why) {
  parts_->loop.Post([this, job_id, rank, why] { parts_->registry.EndSession(job_id, rank, why); });
}

void ControlServer::FailJob(const std::string& job_id, const Status& why) {
  parts_->loop.Post([this, job_id, why] { parts_->registry.FailHere(job_id, why); });
}

void ControlServer::NoteReach(const std::string& job_id, uint32_t rank) {
  parts_->loop.Post([this, job_id, rank] { parts_->registry.members().OnReach(job_id, rank); });
}

void ControlServer::NoteImport(const std::string& job_id, uint32_t rank, uint32_t region,
                               const Status& status) {
  parts_->loop.Post([this, job_id, rank, region, status] {
    parts_->registry.regions().OnImport(job_id, rank, region, status);
  });
}

void ControlServer::WantLink(const std::string& job_id, uint32_t rank, uint32_t peer) {
  parts_->wishes.Put(job_id, rank, peer);
}

void ControlServer::WantWay(const std::string& job_id, uint32_t node) {
  parts_->loop.Post([this, job_id, node] { parts_->registry.nodes().WantWay(job_id, node); });
}

void ControlServer::LoseNode(uint64_t link, const Status& why) {
  parts_->loop.Post([this, link, why] { parts_->links.Lose(link, why); });
}

void ControlServer::RunUntilStopped(const std::function<void()>& on_stop) {
  {
    std::unique_lock lock(parts_->mutex);
    parts_->stop_requested.wait(lock, [this] { return parts_->stop; });
  }
  parts_->Drain(on_stop);
  parts_->Stop();
}

// After a signal only ranks count, so that a launcher that has not noticed yet holds up nothing.
RunningWork ControlServer::Parts::StillRunning(bool signalled_now) {
  RunningWork work = loop.Run([this] { return CountRunning(registry); });
  work.jobs = signalled_now ? 0 : work.jobs;
  return work;
}

// A service manager that hears of the end gives it a time of its own: not before it is near.
void ControlServer::Parts::Drain(const std::function<void()>& on_stop) {
  loop.Run([this] { registry.Drain(/*for_good=*/true); });
  bool told = !on_stop;
  uint64_t seen = 0;
  while (true) {
    bool signalled_now = false;
    std::optional<uint64_t> deadline_ns;
    {
      std::lock_guard lock(mutex);
      signalled_now = signalled;
      deadline_ns = stop_deadline_ns;
    }
    if (signalled_now && !std::exchange(told, true)) {
      on_stop();
    }
    const RunningWork work = StillRunning(signalled_now);
    const bool waits = work.ranks != 0 || work.jobs != 0;
    const uint64_t now_ns = MonotonicNs();
    if ((!waits && data_plane.Idle()) || (deadline_ns && now_ns >= *deadline_ns)) {
      break;
    }
    const milliseconds left(deadline_ns ? (*deadline_ns - now_ns) / 1'000'000 + 1 : UINT32_MAX);
    seen = changes.Wait(seen, std::min(waits ? kLongPoll : kIdlePoll, left));
  }
  if (!told) {
    on_stop();
  }
}

// Until nothing calls the registry or the attach server any more for ranks that are gone.
void ControlServer::Parts::AwaitLeaving() {
  while (loop.Run([this] { return registry.leaving() + attach.questions(); }) != 0) {
    std::unique_lock lock(mutex);
    stop_requested.wait_for(lock, kIdlePoll);
  }
}

// The servers first, while the loop still answers their handlers; then what posts to the loop; then
// it.
void ControlServer::Parts::Stop() {
  monitoring.StopServing();
  if (std::exchange(running, false)) {
    const uint64_t left = loop.Run([this] { return registry.local_ranks(); });
    if (left != 0) {
      spdlog::warn("{} had not left in time: told that ferryd has stopped", Counted(left, "rank"));
    }
    loop.Run([this] { registry.EndAll("ferryd of node " + options.node_name + " has stopped"); });
    AwaitLeaving();
    const uint64_t deadline_ns = MonotonicNs() + 1'000'000ULL * kLastNews.count();
    while (!loop.Run([this] { return registry.nodes().quiet(); }) && MonotonicNs() < deadline_ns) {
      std::unique_lock lock(mutex);
      stop_requested.wait_for(lock, kIdlePoll);
    }
    changes.Close();
    loop.Run([this] {
      registry.TellLastJobs();
      user_acceptor.Stop();
      admin_acceptor.Stop();
      peer_acceptor.Stop();
    });
    const auto deadline = std::chrono::system_clock::now() + kGrpcGrace;
    user_server->Shutdown(deadline);
    admin_server->Shutdown(deadline);
    peer_server->Shutdown(deadline);
    links.Stop();
    loop.Run([this] { attach.Stop(); });
    AwaitLeaving();
    loop.Run([this] {
      watchdog.Stop();
      boost::system::error_code ignored;
      signals.cancel(ignored);
    });
    spdlog::info("ferryd has stopped");
  }
  loop.Stop();
}

}  // namespace ferry::daemon
