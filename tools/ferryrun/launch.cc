#include "tools/ferryrun/launch.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "config/environment.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/agent_tree.h"
#include "tools/ferryrun/binding.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/deadlock_watch.h"
#include "tools/ferryrun/exit_codes.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/job_measures.h"
#include "tools/ferryrun/node_plan.h"
#include "tools/ferryrun/placement.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_commands.h"
#include "tools/ferryrun/rank_files.h"
#include "tools/ferryrun/rank_lives.h"
#include "tools/ferryrun/rank_process.h"
#include "tools/ferryrun/rank_servers.h"
#include "tools/ferryrun/rank_terminal.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/slots.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kAnswerTimeoutMs = 60000;  // for a login, and a daemon's start
constexpr uint64_t kMoreMs = 5000;            // for the answer of an agent that came at the last
constexpr time_t kClockSkewS = 24 * 3600;
constexpr time_t kValidS = 400L * 24 * 3600;

bool IsLoopback(const std::string& control_address) {
  return control_address.starts_with("127.") || control_address.starts_with("[::1]") ||
         control_address.starts_with("localhost:");
}

// One run; members in the order of their lives.
class Launch {
 public:
  Launch(const Arguments& arguments, config::Options options, std::string launcher,
         JobLayout layout, SignalSource signals)
      : arguments_(arguments),
        options_(std::move(options)),
        launcher_(std::move(launcher)),
        layout_(std::move(layout)),
        signals_(std::move(signals)),
        hosts_(layout_.nodes.size()),
        job_nodes_(layout_.nodes.size()),
        bindings_(layout_.nodes.size()) {}

  int Run();

 private:
  bool IsRemote(size_t node) const { return layout_.nodes[node].remote; }
  uint32_t LocalNodes() const {
    return static_cast<uint32_t>(std::count_if(layout_.nodes.begin(), layout_.nodes.end(),
                                               [](const NodePlan& node) { return !node.remote; }));
  }
  bool SpansHosts() const {
    return LocalNodes() < layout_.nodes.size() && layout_.nodes.size() > 1;
  }

  Status MakeFiles();
  void NoteExits(const Job& job, const RankLives& lives, int exit_code);
  Status MakeSlots();
  void SetRules();
  Status BindHere();
  Status ReachHosts();
  Status FindDaemons();
  Status Serve();
  Status ServeThere(const std::optional<CertificateAndKey>& authority);
  Status StartHere(const std::optional<CertificateAndKey>& authority);
  int RunRanks();
  // The exit code, as a shell reports it, if the user ended the run.
  int FailToStart(const Status& status) {
    if (files_) {
      files_->Withdraw();
    }
    return Fail(signals_.interrupt() ? 128 + *signals_.interrupt() : kCannotStart, status);
  }
  Status CreateJob(const Job& job, const AgentJob& for_agents);
  void AddHosts(Supervisor* supervisor) const;
  Status StartRanks(const Job& job, const RankCommands& commands, Supervisor* supervisor);
  std::vector<uint32_t> NodesHere() const;
  std::vector<std::string> RunDirectoriesHere() const;
  bool WasAbsent(const Job& job, uint32_t rank, const std::string& how, uint32_t program) const;
  void TellPlaces(const Job& job) const;
  AgentSetUp SetUpOf(size_t node) const;
  void StopAll();

  const Arguments& arguments_;
  const config::Options options_;
  const std::string launcher_;  // HostSource
  const JobLayout layout_;
  const std::vector<uint32_t> index_of_rank_ = IndexesOf(layout_);
  const std::string name_space_ = DrawNameSpace();  // of the job in PMIx
  SignalSource signals_;
  BindingRules rules_here_;                         // of the ranks of this machine
  std::vector<BindingRules> rules_;                 // by node, if another host
  BoundRanks bound_;                                // here, in their order
  std::vector<std::unique_ptr<RemoteHost>> hosts_;  // by node; null: here
  std::string address_;                             // of this host for the others
  bool private_ = false;                            // daemons for this job alone
  std::optional<Slots> slots_;                      // of the ranks here
  PrivateDaemons daemons_;
  std::vector<ServingDaemon> serving_;              // here
  std::vector<JobNode> job_nodes_;                  // by node
  std::vector<std::vector<std::string>> bindings_;  // by node, if another host: of its ranks
  std::vector<CreatedJob> created_;                 // here
  std::optional<RankFiles> files_;                  // of the ranks' output
  std::optional<TerminalSize> terminal_;            // of each rank
  std::optional<JobMeasures> measures_;             // once there are its files
};

// Before anything that starts threads: the guard is a copy of this process.
Status Launch::MakeSlots() {
  if (LocalNodes() == 0) {
    return {};
  }
  StatusOr<Slots> slots = Slots::Create();
  FERRY_RETURN_IF_ERROR(slots.status());
  slots_.emplace(std::move(*slots));
  return {};
}

// Before anything starts that would have to end again.
Status Launch::MakeFiles() {
  if (!arguments_.output.empty()) {
    StatusOr<RankFiles> files =
        RankFiles::Create(arguments_.output, static_cast<uint32_t>(layout_.node_of_rank.size()));
    FERRY_RETURN_IF_ERROR(files.status());
    files_.emplace(std::move(*files));
  }
  StatusOr<JobMeasures> measures = JobMeasures::Create(arguments_, options_);
  FERRY_RETURN_IF_ERROR(measures.status());
  measures_.emplace(std::move(*measures));
  return {};
}

// Every rank may have as many cores as OpenMP starts threads in it.
void Launch::SetRules() {
  std::vector<uint64_t> threads_of_part;
  for (const Part& part : arguments_.parts) {
    threads_of_part.push_back(
        OpenMpThreads(ValueOf("OMP_NUM_THREADS", EnvironmentOf(arguments_, part))));
  }
  rules_here_ = {.binding = ParseBinding(options_.bind_to), .mapping = arguments_.mapping};
  rules_.assign(layout_.nodes.size(), rules_here_);
  for (size_t rank = 0; rank < layout_.node_of_rank.size(); ++rank) {
    const uint32_t node = layout_.node_of_rank[rank];
    BindingRules& rules = IsRemote(node) ? rules_[node] : rules_here_;
    rules.threads.push_back(threads_of_part[layout_.part_of_rank[rank]]);
    if (!arguments_.rank_lines.empty()) {
      rules.slots.push_back(arguments_.rank_lines[rank].slot);
    }
  }
}

Status Launch::BindHere() {
  SetRules();
  // One daemon is often idle, but those of several nodes on one machine carry messages all the
  // time.
  const uint64_t daemons = LocalNodes() > 1 ? LocalNodes() : 0;
  StatusOr<BoundRanks> bound = BoundRanks::Bind(rules_here_, daemons);
  FERRY_RETURN_IF_ERROR(bound.status());
  bound_ = std::move(*bound);
  return {};
}

AgentSetUp Launch::SetUpOf(size_t node) const {
  config::Options options = options_;
  options.config_file.clear();  // it has been read
  // Removes settings that follow from this host and not from the user: they differ there.
  if (config::IsDefaultRunDirectory(options.run_directory, config::ProcessEnvironment())) {
    options.run_directory.clear();
  }
  if (options.node_name == config::HostName()) {
    options.node_name.clear();
  }
  return {.host = layout_.nodes[node].host,
          .network = arguments_.network,
          .options = config::EnvironmentFor(options),
          .names_run_directory = arguments_.names_run_directory,
          .private_daemon = arguments_.private_daemons,
          .needs_address = SpansHosts(),
          .ferryd = arguments_.ferryd,
          .grace_ms = arguments_.grace_ms,
          .deadlock_check_s = arguments_.deadlock_check_s};
}

// Starts an agent on every other host.
Status Launch::ReachHosts() {
  AgentPlan plan{.hosts = {},
                 .options = options_,
                 .radix = arguments_.launch_radix,
                 .grace_ms = arguments_.grace_ms,
                 .network = arguments_.network};
  if (!launcher_.empty()) {
    plan.options.launcher = launcher_;
  }
  if (arguments_.launch_timeout_s > 0) {
    plan.start_limit_ms = arguments_.launch_timeout_s * 1000;
  }
  std::vector<size_t> nodes;
  for (size_t node = 0; node < layout_.nodes.size(); ++node) {
    if (IsRemote(node)) {
      nodes.push_back(node);
      plan.hosts.push_back(layout_.nodes[node].host);
    }
  }
  StatusOr<std::vector<std::unique_ptr<RemoteHost>>> hosts = StartAgents(plan);
  FERRY_RETURN_IF_ERROR(hosts.status());
  for (size_t i = 0; i < nodes.size(); ++i) {
    hosts_[nodes[i]] = std::move((*hosts)[i]);
    hosts_[nodes[i]]->Send(FrameKind::kSetUp, 0, ToText(SetUpOf(nodes[i])));
  }
  if (SpansHosts() && LocalNodes() > 0) {
    const auto here = std::find_if(layout_.nodes.begin(), layout_.nodes.end(),
                                   [](const NodePlan& node) { return !node.remote; });
    StatusOr<std::string> address = AddressOfThisHost(here->host, arguments_.network);
    if (!address.ok()) {
      return {address.status().code(), "host " + here->host + ": " + address.status().message()};
    }
    address_ = *address;
  }
  return {};
}

// Running daemons serve a job if every host has one that the others reach; else all are private.
Status Launch::FindDaemons() {
  private_ = arguments_.private_daemons || LocalNodes() > 1;
  std::string lacking;
  const auto weigh = [&](size_t node, const std::string& control_address) {
    job_nodes_[node].control_address = control_address;
    if (control_address.empty() || (SpansHosts() && IsLoopback(control_address))) {
      lacking += (lacking.empty() ? "" : ", ") + layout_.nodes[node].host;
      private_ = true;
    }
  };
  for (size_t node = 0; node < layout_.nodes.size(); ++node) {
    if (IsRemote(node)) {
      const uint64_t limit_ms = arguments_.launch_timeout_s * 1000 + kMoreMs;
      const StatusOr<Frame> answer =
          hosts_[node]->Await(FrameKind::kFound, std::max(kAnswerTimeoutMs, limit_ms), &signals_);
      FERRY_RETURN_IF_ERROR(answer.status());
      const StatusOr<AgentFound> found = ReadFound(answer->payload);
      FERRY_RETURN_IF_ERROR(found.status());
      weigh(node, found->control_address);
    } else if (!arguments_.private_daemons && LocalNodes() == 1) {
      StatusOr<std::optional<ServingDaemon>> running =
          FindRunningDaemon(options_, arguments_.names_run_directory);
      FERRY_RETURN_IF_ERROR(running.status());
      weigh(node, *running ? (*running)->control_address : "");
      if (*running) {
        serving_.push_back(std::move(**running));
      }
    }
  }
  if (private_ && arguments_.names_run_directory && !arguments_.private_daemons &&
      LocalNodes() <= 1) {
    return {ErrorCode::kNoDaemon,
            "the daemon of " + options_.run_directory + " on " + lacking +
                " listens on a loopback address only, so other hosts cannot reach it (options "
                "control_address and tls_*); --private starts daemons for this job alone"};
  }
  return {};
}

Status Launch::StartHere(const std::optional<CertificateAndKey>& authority) {
  PrivatePlan plan{.program = arguments_.ferryd,
                   .count = LocalNodes(),
                   .address = SpansHosts() ? address_ : "",
                   .authority = authority};
  for (size_t node = 0; node < layout_.nodes.size() && IsRemote(node); ++node) {
    plan.first_node = static_cast<uint32_t>(node) + 1;  // with hosts, this one has one node
  }
  FERRY_RETURN_IF_ERROR(daemons_.Start(plan, options_, &signals_));
  StatusOr<std::vector<ServingDaemon>> serving = daemons_.Connect();
  FERRY_RETURN_IF_ERROR(serving.status());
  serving_ = std::move(*serving);
  return {};
}

Status Launch::ServeThere(const std::optional<CertificateAndKey>& authority) {
  for (size_t node = 0; node < layout_.nodes.size(); ++node) {
    if (IsRemote(node)) {
      hosts_[node]->Send(FrameKind::kServe, 0,
                         ToText(AgentServe{.private_daemon = private_,
                                           .node = static_cast<uint32_t>(node),
                                           .authority = authority ? authority->certificate : "",
                                           .authority_key = authority ? authority->key : "",
                                           .binding = rules_[node],
                                           .tells_bindings = arguments_.report_bindings,
                                           .name_space = name_space_}));
    }
  }
  return {};
}

// A daemon for every node, and what the job must know of each.
Status Launch::Serve() {
  std::optional<CertificateAndKey> authority;
  if (private_ && SpansHosts() && options_.tls_ca_file.empty()) {
    const time_t now = time(nullptr);
    StatusOr<CertificateAndKey> made =
        MakeAuthority("ferryrun", {now - kClockSkewS, now + kValidS});
    FERRY_RETURN_IF_ERROR(made.status());
    authority = std::move(*made);
  }
  FERRY_RETURN_IF_ERROR(ServeThere(authority));
  if (private_ && LocalNodes() > 0) {
    serving_.clear();
    FERRY_RETURN_IF_ERROR(StartHere(authority));
  }
  size_t here = 0;
  for (size_t node = 0; node < layout_.nodes.size(); ++node) {
    if (!IsRemote(node)) {
      job_nodes_[node] = {serving_[here].run_directory, serving_[here].control_address};
      ++here;
      continue;
    }
    const StatusOr<Frame> answer =
        hosts_[node]->Await(FrameKind::kServing, kAnswerTimeoutMs, &signals_);
    FERRY_RETURN_IF_ERROR(answer.status());
    const StatusOr<AgentServing> serving = ReadServing(answer->payload);
    FERRY_RETURN_IF_ERROR(serving.status());
    const uint64_t told = arguments_.report_bindings ? layout_.nodes[node].ranks : 0;
    if (serving->bindings.size() != told) {
      return {ErrorCode::kCorrupt, "host " + layout_.nodes[node].host + " names other ranks"};
    }
    job_nodes_[node] = {serving->run_directory, serving->control_address};
    bindings_[node] = serving->bindings;
  }
  return {};
}

Status Launch::CreateJob(const Job& job, const AgentJob& for_agents) {
  const auto frame = std::make_shared<std::string>();
  if (LocalNodes() < layout_.nodes.size()) {
    AppendFrame(FrameKind::kJob, 0, ToText(for_agents), frame.get());
  }
  for (const std::unique_ptr<RemoteHost>& host : hosts_) {
    if (host != nullptr) {
      host->SendShared(frame);
    }
  }
  for (uint32_t node = 0; node < layout_.nodes.size(); ++node) {
    if (IsRemote(node)) {
      hosts_[node]->Send(FrameKind::kCreateJob, 0, NumberPayload(static_cast<int32_t>(node)));
    }
  }
  size_t here = 0;
  for (uint32_t node = 0; node < layout_.nodes.size(); ++node) {
    if (IsRemote(node)) {
      FERRY_RETURN_IF_ERROR(
          hosts_[node]->Await(FrameKind::kCreated, kAnswerTimeoutMs, &signals_).status());
      continue;
    }
    StatusOr<CreatedJob> created =
        CreatedJob::Create(serving_[here++].client, job.RequestFor(node));
    FERRY_RETURN_IF_ERROR(created.status());
    created_.push_back(std::move(*created));
  }
  return {};
}

void Launch::AddHosts(Supervisor* supervisor) const {
  for (const std::unique_ptr<RemoteHost>& host : hosts_) {
    if (host != nullptr) {
      supervisor->AddHost(host.get());
    }
  }
}

Status Launch::StartRanks(const Job& job, const RankCommands& commands, Supervisor* supervisor) {
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    if (RemoteHost* host = hosts_[job.NodeOf(rank)].get(); host != nullptr) {
      FERRY_RETURN_IF_ERROR(supervisor->StartThere(host, commands.There(rank)));
      continue;
    }
    RankCommand command = commands.Here(rank);
    command.cpus = bound_.CpusOf(index_of_rank_[rank]);
    command.terminal = terminal_;
    FERRY_RETURN_IF_ERROR(supervisor->StartHere(std::move(command)));
  }
  return {};
}

std::vector<uint32_t> Launch::NodesHere() const {
  std::vector<uint32_t> nodes;
  for (uint32_t node = 0; node < layout_.nodes.size(); ++node) {
    if (!IsRemote(node)) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

std::vector<std::string> Launch::RunDirectoriesHere() const {
  std::vector<std::string> directories;
  for (const uint32_t node : NodesHere()) {
    directories.push_back(job_nodes_[node].run_directory);
  }
  return directories;
}

// Asks the daemon of a rank here, whose process has ended.
bool Launch::WasAbsent(const Job& job, uint32_t rank, const std::string& how,
                       uint32_t program) const {
  const auto node = layout_.nodes.begin() + job.NodeOf(rank);
  const auto before = std::count_if(layout_.nodes.begin(), node,
                                    [](const NodePlan& other) { return !other.remote; });
  const StatusOr<bool> absent =
      created_[static_cast<size_t>(before)].TellRankEnded(rank, how, program);
  return absent.ok() && *absent;
}

// For those who asked.
void Launch::TellPlaces(const Job& job) const {
  bool has_picture = false;
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    const uint32_t node = job.NodeOf(rank);
    std::string text = "rank " + std::to_string(rank);
    if (arguments_.verbose) {
      const std::string& host = layout_.nodes[node].host;
      text += " on node " + std::to_string(node) + (host.empty() ? "" : ", host " + host);
    }
    if (arguments_.report_bindings) {
      const size_t index = index_of_rank_[rank];
      const std::string where = IsRemote(node) ? bindings_[node][index] : bound_.Text(index);
      text += ": " + where;
      has_picture |= where.ends_with(']');
    }
    std::fprintf(stderr, "ferryrun: %s\n", text.c_str());
  }
  if (has_picture) {
    std::fprintf(stderr, "ferryrun: %s\n", kPictureLegend);
  }
}

int Launch::RunRanks() {
  const JobLabels labels = LabelsOf(arguments_, config::ProcessEnvironment());
  const Job job(job_nodes_, layout_.node_of_rank, static_cast<uint32_t>(options_.tree_radix),
                labels);
  const RankCommands commands(arguments_, layout_, options_, job);
  if (!files_ && job.size() <= kMostTerminals) {
    terminal_ = TerminalOfOutput();
  }
  AgentJob for_agents = commands.ForAgents();
  for_agents.terminal = terminal_;
  Status created = CreateJob(job, for_agents);
  if (created.ok()) {
    created = signals_.CheckInterrupt();  // that came while daemons were met
  }
  if (!created.ok()) {
    return FailToStart(created);
  }
  if (arguments_.verbose || arguments_.report_bindings) {
    TellPlaces(job);
  }
  std::optional<RankServers> servers;
  if (LocalNodes() > 0) {
    servers.emplace(ServedJobOf(job.CommonRequest(), job.node_of_rank(), name_space_, NodesHere()));
  }
  Supervisor supervisor(
      {.ranks = job.size(),
       .job_id = job.id(),
       .run_directories = RunDirectoriesHere(),
       .programs = commands.ProgramsHere(),
       .unserved = commands.UnservedHere(),
       .label = arguments_.label,
       .files = files_ ? &*files_ : nullptr,
       .keep_going = arguments_.keep_going,
       .grace_ms = arguments_.grace_ms,
       .timeout_s = arguments_.timeout_s,
       .ask_absent = [this, &job](uint32_t rank, const std::string& how,
                                  uint32_t program) { return WasAbsent(job, rank, how, program); },
       .on_ranks_ended = [&] { measures_->Gather(job, labels); }},
      &signals_, slots_ ? &*slots_ : nullptr, &daemons_.processes());
  supervisor.Serve(servers ? &*servers : nullptr, MachineOfRank(layout_));
  AddHosts(&supervisor);
  measures_->Begin(job, {layout_, hosts_, serving_, &supervisor});
  if (const int signal = supervisor.last_ending_signal(); signal != 0) {
    return Fail(128 + signal, {ErrorCode::kCancelled, "interrupted before the job started"});
  }
  if (const Status started = StartRanks(job, commands, &supervisor); !started.ok()) {
    return Fail(ExitCodeOf(started), started);
  }
  const auto deadlocks = DeadlockWatch::Start(serving_, job.id(), arguments_.deadlock_check_s);
  supervisor.Tell(deadlocks.get());
  const uint64_t began_ns = MonotonicNs();
  const int exit_code = supervisor.Run();
  if (supervisor.has_lost_daemon_here()) {
    for (CreatedJob& created_here : created_) {
      created_here.GiveUp();
    }
  }
  NoteExits(job, supervisor.lives(), exit_code);
  measures_->Write({labels, MonotonicNs() - began_ns, exit_code});
  return exit_code;
}

// Tells the daemons here how the processes of their ranks have ended.
void Launch::NoteExits(const Job& job, const RankLives& lives, int exit_code) {
  std::vector<RankExits> exits(layout_.nodes.size(), RankExits{.job = exit_code});
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    lives.CountExit(rank, &exits[job.NodeOf(rank)]);
  }
  const std::vector<uint32_t> nodes = NodesHere();
  for (size_t i = 0; i < nodes.size(); ++i) {
    created_[i].NoteExits(exits[nodes[i]]);
  }
}

void Launch::StopAll() {
  // A private daemon ends with its job, and only its records want the ranks' exit codes. To ask one
  // after the other would take as long as all of those that are slow, or hang, take together.
  if (private_ && options_.job_records.empty()) {
    std::for_each(created_.begin(), created_.end(), [](const CreatedJob& job) { job.GiveUp(); });
  }
  created_.clear();
  for (const std::unique_ptr<RemoteHost>& host : hosts_) {
    if (host != nullptr && !host->ended()) {
      host->Send(FrameKind::kStop, 0, "");
    }
  }
  serving_.clear();  // a gRPC server waits for idle clients to hang up
  for (const std::string& complaint : daemons_.Stop(arguments_.grace_ms)) {
    std::fprintf(stderr, "ferryrun: %s\n", complaint.c_str());
  }
  const uint64_t end_ns = MonotonicNs() + arguments_.grace_ms * 1'000'000;  // for all together
  for (std::unique_ptr<RemoteHost>& host : hosts_) {
    if (host != nullptr) {
      const uint64_t now_ns = MonotonicNs();
      host->AwaitEnd(now_ns < end_ns ? (end_ns - now_ns) / 1'000'000 : 0);
    }
    host.reset();
  }
}

int Launch::Run() {
  Status status = BindHere();
  if (!status.ok()) {
    return Fail(kUsageError, status);
  }
  status = MakeSlots();
  if (status.ok()) {
    status = MakeFiles();
  }
  if (status.ok()) {
    status = ReachHosts();
  }
  if (status.ok()) {
    status = FindDaemons();
  }
  if (status.ok()) {
    status = Serve();
  }
  const int exit_code = status.ok() ? RunRanks() : FailToStart(status);
  StopAll();
  return exit_code;
}

}  // namespace

int RunLaunch(const Arguments& arguments, config::Options options, std::string launcher,
              JobLayout layout, SignalSource signals) {
  return Launch(arguments, std::move(options), std::move(launcher), std::move(layout),
                std::move(signals))
      .Run();
}

}  // namespace ferry::tools
