// `ferryctl web`: looks at the daemons for the page, and serves it (web/).
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/admin/private_directory.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/commands.h"
#include "tools/ferryctl/job_names.h"
#include "tools/ferryctl/views.h"
#include "tools/ferryctl/web/look.h"
#include "tools/ferryctl/web/server.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;
constexpr uint64_t kMeetNs = 5 * kNsPerS;      // daemons come and go
constexpr uint64_t kDevicesNs = 15 * kNsPerS;  // to ask for them, ferryd may wait for a driver
// The counters of so many ranks are asked for at each look; of more, ranks have turns.
constexpr int kRanksCounted = 64;

// Asks the daemons of this user what the page shows. One thread; blocks as they do.
class Looker {
 public:
  explicit Looker(const CtlArguments& arguments) : arguments_(arguments) {}

  Look Take() {
    Look look;
    look.uid = geteuid();
    const uint64_t now_ns = MonotonicNs();
    if (met_ns_ == 0 || now_ns - met_ns_ > kMeetNs) {
      met_ns_ = now_ns;
      const Status status = Meet();
      trouble_ = status.ok() ? "" : status.message();
    }
    look.trouble = trouble_;
    for (const MetDaemon& daemon : met_) {
      look.daemons.push_back(LookAt(daemon, now_ns));
      AddNames(look.daemons.back().status, &look);
    }
    look.labels = labels_ = Labels(look);
    look.monotonic_ns = MonotonicNs();
    look.unix_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count());
    return look;
  }

  // The answer of `ferryctl why JOB.RANK`, from the first daemon that knows the rank.
  std::string Why(const RankQuestion& question) {
    control::WhyRequest request;
    request.set_job_id(question.job_id);
    request.set_rank(question.rank);
    Status status = met_.empty() ? Meet() : Status();
    if (status.ok()) {
      status = {ErrorCode::kNotFound, "that rank is not here any more"};
    }
    for (const MetDaemon& daemon : met_) {
      control::WhyReply reply;
      if (!daemon.observer.ok()) {
        continue;
      }
      status = daemon.observer->Ask(request, &reply);
      if (status.ok()) {
        const auto label = labels_.find(question.job_id);
        return WhyView(question.job_id, label == labels_.end() ? question.job_id : label->second,
                       Ranks::kOne, reply)
            .text;
      }
      if (status.code() != ErrorCode::kNotFound) {
        break;
      }
    }
    return status.message() + "\n";
  }

 private:
  struct Memory {  // of a daemon, from look to look
    int turn = 0;
    uint64_t devices_ns = 0;
    control::GpusReply gpus;
  };

  Status Meet() {
    StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments_);
    if (!met.ok()) {
      met_.clear();
      return met.status();
    }
    met_ = std::move(*met);
    std::erase_if(memories_, [&](const auto& memory) {
      return std::none_of(met_.begin(), met_.end(), [&](const MetDaemon& daemon) {
        return daemon.place.run_directory == memory.first;
      });
    });
    return met_.empty() ? Status(ErrorCode::kNoDaemon,
                                 "no ferryd serves you here; ferryrun starts a private one for its "
                                 "job then")
                        : Status();
  }

  // Leaves what is of the job that the user has named, if any.
  void KeepMeant(DaemonLook* look) const {
    if (arguments_.job.empty()) {
      return;
    }
    const control::StatusReply* const status = &look->status;
    const StatusOr<std::string> meant = MeantJob(JobsOf(std::span(&status, 1)), arguments_.job);
    if (!meant.ok() && meant.status().code() != ErrorCode::kNotFound) {  // it means several now
      look->trouble = meant.status().message();
    }
    const std::string job_id = meant.ok() ? *meant : arguments_.job;
    Keep(job_id, look->status.mutable_jobs());
    Keep(job_id, look->sessions.mutable_sessions());
    Keep(job_id, look->links.mutable_links());
    Keep(job_id, look->links.mutable_totals());
  }
  template <typename Item>
  static void Keep(const std::string& job_id, google::protobuf::RepeatedPtrField<Item>* items) {
    items->erase(std::remove_if(items->begin(), items->end(),
                                [&](const Item& item) { return item.job_id() != job_id; }),
                 items->end());
  }

  // The user database may be far away: each name is asked for once.
  void AddNames(const control::StatusReply& status, Look* look) {
    const auto add = [&](uint32_t uid) {
      const auto [name, is_new] = names_.try_emplace(uid);
      if (is_new) {
        name->second = UserName(uid);
      }
      look->user_names[uid] = name->second;
    };
    for (const control::JobStatus& job : status.jobs()) {
      add(job.uid());
    }
    for (const control::UserStatus& user : status.users()) {
      add(user.uid());
    }
  }

  static std::map<std::string, std::string> Labels(const Look& look) {
    std::vector<const control::StatusReply*> statuses;
    for (const DaemonLook& daemon : look.daemons) {
      statuses.push_back(&daemon.status);
    }
    const JobList jobs = JobsOf(statuses);
    std::map<std::string, std::string> labels;
    for (const control::JobStatus& job : jobs) {
      labels[job.job_id()] = LabelOf(jobs, job.job_id());
    }
    return labels;
  }

  DaemonLook LookAt(const MetDaemon& met, uint64_t now_ns) {
    DaemonLook look;
    look.run_directory = met.place.run_directory;
    look.kind = DaemonKindText(met.place.kind);
    Status status = met.observer.status();
    if (status.ok()) {
      status = AskAll(*met.observer, now_ns, &memories_[look.run_directory], &look);
    }
    if (!status.ok()) {
      look.trouble = status.message();
      met_ns_ = 0;  // it may have been replaced
    }
    return look;
  }

  // Ends at the first question without an answer: a daemon that stands still costs one timeout.
  Status AskAll(const Observer& daemon, uint64_t now_ns, Memory* memory, DaemonLook* look) const {
    FERRY_RETURN_IF_ERROR(daemon.Ask(control::StatusRequest(), &look->status));
    FERRY_RETURN_IF_ERROR(daemon.Ask(control::SessionsRequest(), &look->sessions));
    FERRY_RETURN_IF_ERROR(daemon.Ask(control::LinksRequest(), &look->links));
    KeepMeant(look);
    for (const control::JobStatus& job : look->status.jobs()) {
      const Status status = AskWhy(daemon, job.job_id(), &look->why);
      if (status.code() == ErrorCode::kLimitExceeded) {  // the rest can still be told
        look->trouble = status.message();
        continue;
      }
      FERRY_RETURN_IF_ERROR(status);
    }
    FERRY_RETURN_IF_ERROR(AskCounters(daemon, memory, look));
    FERRY_RETURN_IF_ERROR(daemon.Ask(control::NicsRequest(), &look->nics));
    if (memory->devices_ns == 0 || now_ns - memory->devices_ns > kDevicesNs) {
      memory->devices_ns = now_ns;
      FERRY_RETURN_IF_ERROR(daemon.Ask(control::GpusRequest(), &memory->gpus));
    }
    look->gpus = memory->gpus;
    return {};
  }

  // A job that is not there any more has just ended.
  static Status UnlessGone(const Status& status) {
    return status.code() == ErrorCode::kNotFound ? Status() : status;
  }

  static Status AskWhy(const Observer& daemon, const std::string& job_id, control::WhyReply* all) {
    control::WhyRequest request;
    request.set_job_id(job_id);
    request.set_all_ranks(true);
    control::WhyReply reply;
    FERRY_RETURN_IF_ERROR(UnlessGone(daemon.Ask(request, &reply)));
    for (control::RankWait& wait : *reply.mutable_ranks()) {
      wait.set_job_id(job_id);
      *all->add_ranks() = std::move(wait);
    }
    return {};
  }

  static Status AskCounters(const Observer& daemon, Memory* memory, DaemonLook* look) {
    const auto& sessions = look->sessions.sessions();
    control::CountersRequest request;
    request.set_rank(-1);
    if (sessions.size() <= kRanksCounted) {
      return UnlessGone(daemon.Ask(request, &look->counters));
    }
    for (int i = 0; i < kRanksCounted; ++i) {
      const control::SessionStatus& session = sessions[memory->turn % sessions.size()];
      memory->turn = (memory->turn + 1) % sessions.size();
      request.set_job_id(session.job_id());
      request.set_rank(static_cast<int32_t>(session.rank()));
      control::CountersReply reply;
      FERRY_RETURN_IF_ERROR(UnlessGone(daemon.Ask(request, &reply)));
      look->counters.MergeFrom(reply);
    }
    return {};
  }

  const CtlArguments& arguments_;
  std::vector<MetDaemon> met_;
  uint64_t met_ns_ = 0;
  std::string trouble_;
  std::map<std::string, Memory> memories_;     // by run directory
  std::map<uint32_t, std::string> names_;      // of users
  std::map<std::string, std::string> labels_;  // of the last look, by job id
};

// ---- The browser ----

// A file that leads to the address, which other users could read on a command line.
class Signpost {
 public:
  static StatusOr<Signpost> Make(const std::string& address) {
    const auto environment = config::ProcessEnvironment();
    const auto value = [&](const char* name) {
      return std::string(config::FindVariable(environment, name).value_or(""));
    };
    StatusOr<PrivateDirectory> directory =
        PrivateDirectory::Create(PrivateBase(value("XDG_RUNTIME_DIR"), value("TMPDIR")));
    FERRY_RETURN_IF_ERROR(directory.status());
    const std::string path = directory->path() + "/ferry.html";
    const std::string text =
        "<!doctype html><meta http-equiv=refresh content=\"0;url=" + address + "\">\n";
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid() ||
        write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return StatusFromErrno(errno, "write " + path);
    }
    return Signpost(std::move(*directory), path);
  }

  // Does not wait for the browser. kSystem: there is no xdg-open.
  Status Open() const {
    std::string program = "xdg-open";
    std::string path = path_;
    char* const words[] = {program.data(), path.data(), nullptr};
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Of a group of its own, so that Ctrl-C here does not end it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, program.c_str(), nullptr, &attributes, words,
                                   const_cast<char* const*>(config::ProcessEnvironment()));
    posix_spawnattr_destroy(&attributes);
    return error == 0 ? Status() : StatusFromErrno(error, "cannot run xdg-open");
  }

 private:
  Signpost(PrivateDirectory directory, std::string path)
      : directory_(std::move(directory)), path_(std::move(path)) {}

  PrivateDirectory directory_;
  std::string path_;
};

// ---- The address ----

// A file with the address, as long as the page is there. Its reader finds the whole of it, or none.
class AddressFile {
 public:
  explicit AddressFile(std::string path) : path_(std::move(path)) {}
  ~AddressFile() {
    if (is_written_) {
      unlink(path_.c_str());
    }
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

  // Replaces what an earlier page has left. kSystem: it cannot be written.
  Status Write(const std::string& address) {
    const std::string text = address + "\n";
    const std::string draft = path_ + ".new";
    unlink(draft.c_str());
    {
      // Not through a link that another user has put there.
      const UniqueFd file(
          open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!file.valid() ||
          write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return StatusFromErrno(errno, "write " + draft);
      }
    }
    if (rename(draft.c_str(), path_.c_str()) != 0) {
      return StatusFromErrno(errno, "write " + path_);
    }
    is_written_ = true;
    return {};
  }

 private:
  const std::string path_;
  bool is_written_ = false;
};

}  // namespace

Status Web(const CtlArguments& arguments) {
  // Before there are other threads: they have the same mask.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&ends, signal);
  }
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const bool is_service = !arguments.address_file.empty();
  if (!is_service) {
    FERRY_RETURN_IF_ERROR(ChooseDaemons(arguments).status());  // else its reason is told at once
  }

  Looker looker(arguments);
  WebOptions options;
  options.port = arguments.port;
  const StatusOr<std::unique_ptr<WebServer>> started = WebServer::Start(
      options,
      {[&] { return looker.Take(); }, [&](const RankQuestion& rank) { return looker.Why(rank); }});
  FERRY_RETURN_IF_ERROR(started.status());
  const WebServer& server = **started;
  AddressFile address_file(arguments.address_file);
  if (is_service) {  // whose output is a log
    FERRY_RETURN_IF_ERROR(address_file.Write(server.address()));
  } else {
    arguments.json ? PrintJson({{"address", server.address()}, {"port", server.port()}}, -1)
                   : Print("until it is interrupted, for you only:\n  " + server.address() + "\n");
  }
  std::optional<Signpost> signpost;
  if (arguments.open) {
    StatusOr<Signpost> made = Signpost::Make(server.address());
    FERRY_RETURN_IF_ERROR(made.status());
    signpost.emplace(std::move(*made));
    if (const Status opened = signpost->Open(); !opened.ok()) {
      std::fprintf(stderr, "ferryctl: %s; open the address yourself\n", opened.message().c_str());
    }
  }
  int signal = 0;
  sigwait(&ends, &signal);
  return {};
}

}  // namespace ferry::tools
