#include "client/bootstrap/pmi_job.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "client/bootstrap/environment_meeting.h"
#include "client/bootstrap/job_life.h"
#include "client/bootstrap/launched_task.h"
#include "client/bootstrap/meeting_place.h"
#include "client/bootstrap/meeting_watch.h"
#include "client/bootstrap/own_daemon.h"
#include "client/bootstrap/pmi2_library.h"
#include "client/bootstrap/pmi_wire.h"
#include "client/bootstrap/pmix_library.h"
#include "common/clock.h"
#include "common/hex_text.h"
#include "common/number_text.h"
#include "common/thread.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr char kJobName[] = "ferry.job";          // of rank 0: "ID SECRET RADIX"
constexpr char kLeaderName[] = "ferry.leader";    // of every rank: "LEADER PROGRAM", two numbers
constexpr char kDaemonName[] = "ferry.daemon";    // of a leader: Outcome of "ADDRESS RUN_DIRECTORY"
constexpr char kCreatedName[] = "ferry.created";  // of a leader: Outcome of nothing
constexpr size_t kIdBytes = 6;
constexpr size_t kSecretBytes = 32;

std::string RandomText(size_t size) {
  std::vector<uint8_t> bytes(size);
  // Up to 256 bytes come whole; it fails only where the kernel has no random numbers at all.
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return HexText(bytes);
}

// "0 words", or an error as "CODE sentence".
std::string Outcome(const Status& status, const std::string& words) {
  return std::to_string(static_cast<int>(status.code())) + " " +
         (status.ok() ? words : status.message());
}

StatusOr<uint32_t> ReadNumber(std::string_view text) {
  const std::optional<uint32_t> number = NumberIn<uint32_t>(text);
  if (!number) {
    return Status(ErrorCode::kCorrupt,
                  "the launcher passed on \"" + std::string(text) + "\", no number");
  }
  return *number;
}

// The words of a leader's outcome, or its error, which names the rank.
StatusOr<std::string> ReadOutcome(uint32_t leader, const std::string& text) {
  const size_t space = text.find(' ');
  const StatusOr<uint32_t> code = ReadNumber(std::string_view(text).substr(0, space));
  FERRY_RETURN_IF_ERROR(code.status());
  const std::string words = space == text.npos ? "" : text.substr(space + 1);
  if (*code != 0) {
    return Status(static_cast<ErrorCode>(*code),
                  "the node of rank " + std::to_string(leader) + ": " + words);
  }
  return words;
}

// The job that rank 0 has drawn for all.
struct DrawnJob {
  std::string id;
  std::string secret;
  uint32_t tree_radix = 0;
};

// Says nothing of the secret where something is wrong.
StatusOr<DrawnJob> ReadJob(const std::string& text) {
  const size_t first = text.find(' ');
  const size_t second = first == text.npos ? text.npos : text.find(' ', first + 1);
  const std::optional<uint32_t> radix =
      second == text.npos ? std::nullopt
                          : NumberIn<uint32_t>(std::string_view(text).substr(second + 1));
  if (!radix) {
    return Status(
        ErrorCode::kCorrupt,
        "the launcher passed on a job of rank 0 without a name, a secret or a radix: have "
        "all ranks the same libferry?");
  }
  return DrawnJob{text.substr(0, first), text.substr(first + 1, second - first - 1), *radix};
}

// Which rank is on which node. Every rank works it out by itself, with the same result.
struct Nodes {
  std::vector<uint32_t> leaders;       // by node
  std::vector<uint32_t> node_of_rank;  // by rank
  uint32_t app_size = 0;               // ranks that run the same program as this one
  std::vector<DaemonPlace> daemons;    // by node
};

StatusOr<Nodes> ReadNodes(Exchange* exchange) {
  Nodes nodes;
  std::unordered_map<uint32_t, uint32_t> node_of_leader;
  for (uint32_t rank = 0; rank < exchange->size(); ++rank) {
    const StatusOr<std::string> text = exchange->Get(rank, kLeaderName);
    FERRY_RETURN_IF_ERROR(text.status());
    const size_t space = std::min(text->find(' '), text->size() - 1);
    const StatusOr<uint32_t> leader = ReadNumber(std::string_view(*text).substr(0, space));
    const StatusOr<uint32_t> app = ReadNumber(std::string_view(*text).substr(space + 1));
    FERRY_RETURN_IF_ERROR(leader.status());
    FERRY_RETURN_IF_ERROR(app.status());
    nodes.app_size += *app == exchange->app().value_or(0) ? 1 : 0;
    const auto [node, is_new] =
        node_of_leader.emplace(*leader, static_cast<uint32_t>(nodes.leaders.size()));
    nodes.node_of_rank.push_back(node->second);
    if (is_new) {
      nodes.leaders.push_back(*leader);
    }
  }
  for (const uint32_t leader : nodes.leaders) {
    const StatusOr<std::string> text = exchange->Get(leader, kDaemonName);
    FERRY_RETURN_IF_ERROR(text.status());
    const StatusOr<std::string> words = ReadOutcome(leader, *text);
    FERRY_RETURN_IF_ERROR(words.status());
    const size_t space = words->find(' ');
    nodes.daemons.push_back({.run_directory = words->substr(std::min(space, words->size() - 1) + 1),
                             .control_address = words->substr(0, space)});
  }
  return nodes;
}

bool IsLoopback(const std::string& control_address) {
  return control_address.starts_with("127.") || control_address.starts_with("[::1]") ||
         control_address.starts_with("localhost:");
}

Status CreateHere(const Nodes& nodes, uint32_t node, const config::Options& options,
                  JobStarter* starter) {
  NewJob job{options.job_id,
             options.job_secret,
             node,
             nodes.node_of_rank,
             {},
             static_cast<uint32_t>(options.tree_radix)};
  for (const DaemonPlace& daemon : nodes.daemons) {
    job.addresses.push_back(daemon.control_address);
  }
  return starter->CreateJob(job);
}

// The first value that a leader puts: the daemon it found.
std::string FindHere(const Exchange& exchange, JobStarter* starter) {
  const bool alone = exchange.local_ranks().size() == exchange.size();
  StatusOr<DaemonPlace> daemon = starter->Find(alone);
  if (daemon.ok() && !alone && IsLoopback(daemon->control_address)) {
    daemon = Status(ErrorCode::kNodeUnreachable,
                    "its ferryd listens at " + daemon->control_address +
                        ", which other nodes cannot reach (options control_address and tls_*)");
  }
  return daemon.ok() ? Outcome({}, daemon->control_address + " " + daemon->run_directory)
                     : Outcome(daemon.status(), "");
}

// Tells the user, for the ranks of this node, that ranks still gather.
class GatheringWatch {
 public:
  GatheringWatch(const Exchange& exchange, uint64_t patience_ms)
      : exchange_(exchange), watch_(JobLife::Instance().entry(), exchange.rank(), patience_ms) {
    const bool speaks = exchange.local_ranks().front() == exchange.rank();
    if (patience_ms == 0 || !speaks) {
      return;
    }
    if (auto thread = StartThread("ferry-gather", "that watches the launcher", [this] { Run(); });
        thread.ok()) {
      thread_ = std::move(*thread);
    }
  }
  ~GatheringWatch() {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  GatheringWatch(const GatheringWatch&) = delete;
  GatheringWatch& operator=(const GatheringWatch&) = delete;

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      const uint64_t now_ns = MonotonicNs();
      const uint64_t rest_ns = watch_.due_ns() > now_ns ? watch_.due_ns() - now_ns : 0;
      if (!changed_.wait_for(lock, std::chrono::nanoseconds(rest_ns),
                             [this] { return is_over_; }) &&
          watch_.IsDue()) {
        const std::string missing = exchange_.Missing();
        if (missing.empty()) {
          watch_.Skip();
        } else {
          watch_.Tell(" for all ranks of the job to call it; " + missing);
        }
      }
    }
  }

  const Exchange& exchange_;
  MeetingWatch watch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

// The exchange of a rank that is alone in its job.
class Monologue : public Exchange {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return 1; }
  const std::vector<uint32_t>& local_ranks() const override { return self_; }
  Status Put(const std::string& name, const std::string& words) override {
    words_[name] = words;
    return {};
  }
  Status Fence() override { return {}; }
  StatusOr<std::string> Get(uint32_t, const std::string& name) override {
    const auto found = words_.find(name);
    return found == words_.end() ? StatusOr<std::string>(Status(ErrorCode::kNotFound, name))
                                 : found->second;
  }

 private:
  const std::vector<uint32_t> self_{0};
  std::map<std::string, std::string> words_;
};

// The daemon, over the attach socket.
class NodeDaemon : public JobStarter {
 public:
  explicit NodeDaemon(const config::Options& options) : options_(options) {}

  // Finds the daemon of the run directory; where no option names one, the system's; failing that,
  // starts one of the job's own. kNoDaemon, kPermissionDenied, kTimeout.
  StatusOr<DaemonPlace> Find(bool alone) override;
  Status CreateJob(const NewJob& job) override { return attach_->CreateJob(job); }

 private:
  Status Meet(DaemonPlace* place);

  const config::Options options_;
  std::unique_ptr<OwnDaemon> own_;  // destroyed last, once no connection to it is left
  std::unique_ptr<AttachConnection> attach_;
};

// Fills in the address of the daemon of that run directory.
Status NodeDaemon::Meet(DaemonPlace* place) {
  auto attach = std::make_unique<AttachConnection>();
  FERRY_RETURN_IF_ERROR(
      attach->Connect(place->run_directory, options_.attach_timeout_ms, options_.daemon_user));
  const StatusOr<attach::UserReply> user = attach->IdentifyUser();
  FERRY_RETURN_IF_ERROR(user.status());
  place->control_address = user->control_address;
  attach_ = std::move(attach);
  return {};
}

StatusOr<DaemonPlace> NodeDaemon::Find(bool alone) {
  DaemonPlace place{.run_directory = options_.run_directory, .control_address = ""};
  Status met = Meet(&place);
  const bool usual =
      config::IsDefaultRunDirectory(place.run_directory, config::ProcessEnvironment());
  if (met.code() == ErrorCode::kNoDaemon && usual &&
      place.run_directory != config::kSystemRunDirectory) {
    place.run_directory = config::kSystemRunDirectory;
    met = Meet(&place);
  }
  const bool none =
      met.code() == ErrorCode::kNoDaemon || (met.code() == ErrorCode::kPermissionDenied && usual);
  if (none && alone) {
    StatusOr<std::unique_ptr<OwnDaemon>> own = OwnDaemon::Start();
    FERRY_RETURN_IF_ERROR(own.status());
    own_ = std::move(*own);
    place.run_directory = own_->run_directory();
    met = Meet(&place);
  } else if (none) {
    return Status(ErrorCode::kNoDaemon,
                  met.message() + " (a job of several nodes needs a ferryd on each)");
  }
  FERRY_RETURN_IF_ERROR(met);
  return place;
}

template <typename Kind>
StatusOr<std::unique_ptr<Exchange>> AsExchange(StatusOr<std::unique_ptr<Kind>> opened) {
  FERRY_RETURN_IF_ERROR(opened.status());
  return std::unique_ptr<Exchange>(std::move(*opened));
}

StatusOr<std::unique_ptr<Exchange>> OpenExchange(const char* const* environment,
                                                 const config::Options& options) {
  switch (FindExchange(environment)) {
    case ExchangeKind::kPmix:
      return AsExchange(PmixLibrary::Open());
    case ExchangeKind::kPmi1:
      return AsExchange(PmiWire::Open(environment, options.attach_timeout_ms));
    case ExchangeKind::kPmi2Library:
      return AsExchange(Pmi2Library::Open(environment));
    case ExchangeKind::kMeetingPlace: {
      const StatusOr<MeetingPlace> place = ReadMeetingPlace(environment, options);
      FERRY_RETURN_IF_ERROR(place.status());
      return AsExchange(EnvironmentMeeting::Open(*place, options.attach_timeout_ms));
    }
    case ExchangeKind::kNone:
      break;
  }
  return Status(ErrorCode::kInternal, "no launcher started this process");
}

}  // namespace

Status AgreeOnJob(Exchange* exchange, JobStarter* starter, config::Options* options) {
  const uint32_t leader = exchange->local_ranks().front();
  const bool leads = leader == exchange->rank();
  FERRY_RETURN_IF_ERROR(exchange->Put(
      kLeaderName, std::to_string(leader) + " " + std::to_string(exchange->app().value_or(0))));
  if (exchange->rank() == 0) {
    FERRY_RETURN_IF_ERROR(exchange->Put(kJobName, RandomText(kIdBytes) + " " +
                                                      RandomText(kSecretBytes) + " " +
                                                      std::to_string(options->tree_radix)));
  }
  if (leads) {
    FERRY_RETURN_IF_ERROR(exchange->Put(kDaemonName, FindHere(*exchange, starter)));
  }
  FERRY_RETURN_IF_ERROR(exchange->Fence());

  const StatusOr<Nodes> nodes = ReadNodes(exchange);
  FERRY_RETURN_IF_ERROR(nodes.status());
  const StatusOr<std::string> job_text = exchange->Get(0, kJobName);
  FERRY_RETURN_IF_ERROR(job_text.status());
  const StatusOr<DrawnJob> job = ReadJob(*job_text);
  FERRY_RETURN_IF_ERROR(job.status());
  options->rank = exchange->rank();
  options->size = exchange->size();
  options->node = nodes->node_of_rank[exchange->rank()];
  if (exchange->app().has_value()) {
    options->app = *exchange->app();
    options->app_size = nodes->app_size;
  }
  options->run_directory = nodes->daemons[options->node].run_directory;
  options->job_id = job->id;
  options->job_secret = job->secret;
  options->tree_radix = job->tree_radix;
  if (leads) {
    const Status created =
        CreateHere(*nodes, static_cast<uint32_t>(options->node), *options, starter);
    FERRY_RETURN_IF_ERROR(exchange->Put(kCreatedName, Outcome(created, "")));
  }
  FERRY_RETURN_IF_ERROR(exchange->Fence());
  for (const uint32_t one : nodes->leaders) {
    const StatusOr<std::string> created = exchange->Get(one, kCreatedName);
    FERRY_RETURN_IF_ERROR(created.status());
    FERRY_RETURN_IF_ERROR(ReadOutcome(one, *created).status());
  }
  return {};
}

Status CheckAlone(const char* const* environment, bool has_terminal) {
  const std::optional<LaunchedTask> task = FindLaunchedTask(environment, has_terminal);
  if (!task || task->tasks <= 1) {
    return {};
  }
  return {ErrorCode::kConfiguration,
          task->launcher + " started " + std::to_string(task->tasks) +
              (task->perhaps_more ? " or more" : "") + " processes (" + task->variable +
              "), and this one has no way to meet the others: start them with " + task->advice +
              "; if each is to be a job of its own, with ferryrun -n 1"};
}

// Variables of other launchers go on to the ranks of a torchrun that they have started, but none of
// their descriptors: one that is open is of a launcher that a rank of torchrun has started.
ExchangeKind FindExchange(const char* const* environment) {
  const bool has_place = HasMeetingPlace(environment);
  if (has_place && IsUnderTorchrun(environment) && !PmiWire::HasDescriptor(environment)) {
    return ExchangeKind::kMeetingPlace;
  }
  if (PmixLibrary::IsAround(environment)) {
    return ExchangeKind::kPmix;
  }
  if (PmiWire::IsAround(environment)) {
    return ExchangeKind::kPmi1;
  }
  if (Pmi2Library::IsAround(environment)) {
    return ExchangeKind::kPmi2Library;
  }
  return has_place ? ExchangeKind::kMeetingPlace : ExchangeKind::kNone;
}

bool PmiJob::HasLauncher(const char* const* environment) {
  return FindExchange(environment) != ExchangeKind::kNone;
}

StatusOr<std::unique_ptr<PmiJob>> PmiJob::Start(config::Options* options) {
  std::unique_ptr<PmiJob> job(new PmiJob());
  StatusOr<std::unique_ptr<Exchange>> opened = OpenExchange(config::ProcessEnvironment(), *options);
  FERRY_RETURN_IF_ERROR(opened.status());
  job->launcher_ = std::move(*opened);
  Exchange* const launcher = job->launcher_.get();
  {
    const GatheringWatch watch(*launcher, options->mpi_warn_after_ms);
    FERRY_RETURN_IF_ERROR(launcher->Meet());
    if (launcher->local_ranks().front() == launcher->rank()) {
      job->starter_ = std::make_unique<NodeDaemon>(*options);
    }
    FERRY_RETURN_IF_ERROR(AgreeOnJob(launcher, job->starter_.get(), options));
  }
  options->universe_size = std::max(launcher->universe_size().value_or(0), launcher->size());
  return job;
}

StatusOr<std::unique_ptr<PmiJob>> PmiJob::StartAlone(config::Options* options) {
  std::unique_ptr<PmiJob> job(new PmiJob());
  job->starter_ = std::make_unique<NodeDaemon>(*options);
  Monologue monologue;
  FERRY_RETURN_IF_ERROR(AgreeOnJob(&monologue, job->starter_.get(), options));
  return job;
}

Status PmiJob::Leave() { return launcher_ == nullptr ? Status() : launcher_->Fence(); }

void PmiJob::Abort(int exit_code) {
  if (launcher_ != nullptr) {
    launcher_->Abort(exit_code, "ferry_abort was called");
  }
}

}  // namespace ferry::client
