#include "tools/ferryrun/daemons.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/file_size.h"
#include "config/environment.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr int kLastLines = 10;
constexpr off_t kLastBytes = 8192;
constexpr uint64_t kNsPerMs = 1'000'000;

// Standard error goes to a file, not to a pipe, so that a daemon that outlives ferryrun for a
// moment can still write; without a name, nothing needs to be removed.
StatusOr<UniqueFd> MakeLog(const std::string& folder) {
  std::string path = folder + "/log.XXXXXX";
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC | O_APPEND));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "cannot make a log file in " + folder);
  }
  unlink(path.c_str());
  return fd;
}

std::vector<std::string> DaemonEnvironment(config::Options options) {
  options.config_file.clear();  // it has been read
  options.fabric_port = 0;      // several daemons share this machine
  options.control_port = 0;
  options.node_addresses.clear();  // those of the cluster's daemons
  options.job_id.clear();
  options.job_secret.clear();
  options.rank = options.size = options.node = 0;
  std::vector<std::string> environment = config::ForeignEnvironment(config::ProcessEnvironment());
  // A service manager that waits for a notice does not wait for this daemon's. The user has already
  // been told of unknown variables.
  std::erase_if(environment, [](const std::string& entry) {
    return entry.starts_with("NOTIFY_SOCKET=") || entry.starts_with("WATCHDOG_") ||
           entry.starts_with("FERRY_");
  });
  for (std::string& entry : config::EnvironmentFor(options)) {
    environment.push_back(std::move(entry));
  }
  return environment;
}

int RemainingMs(uint64_t deadline_ns) {
  const uint64_t now_ns = MonotonicNs();
  return now_ns >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now_ns) / 1'000'000 + 1);
}

constexpr uint64_t kStartPatienceMs = 10000;
// Certificates live as long as a job; clocks of hosts may differ.
constexpr time_t kClockSkewS = 24 * 3600;
constexpr time_t kValidS = 400L * 24 * 3600;

StatusOr<ServingDaemon> Meet(const std::string& run_directory, uint64_t attach_timeout_ms,
                             const std::string& daemon_user) {
  StatusOr<LauncherClient> client =
      LauncherClient::Connect(run_directory, attach_timeout_ms, daemon_user);
  FERRY_RETURN_IF_ERROR(client.status());
  std::string address = client->daemon().node().control_address();
  return ServingDaemon{std::move(*client), run_directory, std::move(address)};
}

Status WritePrivately(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file.valid() ? WriteAll(file.get(), text, path)
                      : StatusFromErrno(errno, "cannot write " + path);
}

constexpr uint64_t kGraceMs = 5000;
constexpr int kCannotStart = 1;

int SayWhyNot(const Status& status) {
  std::printf("%s\n", status.message().c_str());
  return kCannotStart;
}

// Waits until no process holds the other end of standard input, or a signal asks for the end.
void WaitForEnd(PrivateDaemon* daemon, SignalSource* signals) {
  while (true) {
    pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {signals->fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) <= 0) {
      continue;
    }
    char byte = 0;
    if (fds[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) {
      return;
    }
    while (const std::optional<int> signal = signals->Next()) {
      ProcessEnd end;
      if (IsEnding(*signal) || HasEnded(daemon->pid(), &end)) {
        return;
      }
    }
  }
}

}  // namespace

StatusOr<PrivateDaemon> PrivateDaemon::Start(const std::string& program, uint32_t node,
                                             const std::string& folder, config::Options options) {
  PrivateDaemon daemon;
  daemon.node_ = node;
  daemon.run_directory_ = folder + "/" + std::to_string(node);
  StatusOr<UniqueFd> log = MakeLog(folder);
  FERRY_RETURN_IF_ERROR(log.status());
  daemon.log_ = std::move(*log);
  StatusOr<Pipe> ready = MakePipe();
  FERRY_RETURN_IF_ERROR(ready.status());
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));

  options.run_directory = daemon.run_directory_;
  options.node_name = "node" + std::to_string(node);
  options.users = "own";
  const int ready_fd = ready->write.get();
  const StatusOr<pid_t> pid =
      Spawn({.path = program,
             .arguments = {program, "--ready-fd", std::to_string(ready_fd), "--remove-parent"},
             .environment = DaemonEnvironment(std::move(options)),
             .stdin_fd = null.get(),
             .stdout_fd = daemon.log_.get(),
             .stderr_fd = daemon.log_.get(),
             .inherited_fd = ready_fd,
             .parent_death_signal = SIGTERM});
  FERRY_RETURN_IF_ERROR(pid.status());
  daemon.pid_ = *pid;
  daemon.ready_ = std::move(ready->read);
  return daemon;
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : node_(other.node_),
      pid_(std::exchange(other.pid_, -1)),
      end_was_reported_(other.end_was_reported_),
      was_killed_(other.was_killed_),
      run_directory_(std::move(other.run_directory_)),
      control_address_(std::move(other.control_address_)),
      ready_(std::move(other.ready_)),
      log_(std::move(other.log_)) {}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0) {
    WaitUntilStopped(0);
  }
}

Status PrivateDaemon::WaitUntilReady(uint64_t patience_ms, SignalSource* signals, int life_fd) {
  const uint64_t due_ns = MonotonicNs() + patience_ms * 1'000'000;
  bool is_told = false;
  while (true) {
    pollfd fds[] = {{ready_.get(), POLLIN, 0}, {signals->fd(), POLLIN, 0}, {life_fd, POLLRDHUP, 0}};
    if (poll(fds, 3, is_told ? -1 : RemainingMs(due_ns)) == 0 && !is_told) {
      is_told = true;
      std::fprintf(stderr,
                   "ferryrun: %s has not begun to serve for %" PRIu64
                   " ms; waiting for it (an interrupt ends that)%s\n",
                   Name().c_str(), patience_ms, LastWords().c_str());
    }
    FERRY_RETURN_IF_ERROR(signals->CheckInterrupt());
    if (fds[2].revents != 0) {
      return {ErrorCode::kCancelled, "whoever wanted a ferryd has gone"};
    }
    char text[256];
    const ssize_t size = fds[0].revents != 0 ? read(ready_.get(), text, sizeof(text)) : -1;
    if (size == 0) {  // the write end is gone and it never wrote a line
      const std::string name = Name();
      const ProcessEnd end = WaitUntilStopped(MonotonicNs() + kGraceMs * kNsPerMs);
      return {ErrorCode::kDaemonDied, name + " could not start: it " + Describe(end) + LastWords()};
    }
    if (size > 0 && memchr(text, '\n', static_cast<size_t>(size)) != nullptr) {
      return ReadAddress();
    }
  }
}

Status PrivateDaemon::ReadAddress() {
  const std::string path = run_directory_ + "/ferryd.json";
  std::ifstream file(path);
  const nlohmann::json about = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!about.is_object() || !about.contains("control_address") ||
      !about["control_address"].is_string()) {
    return {ErrorCode::kVersionMismatch, path +
                                             " names no control_address: ferryd and ferryrun "
                                             "must come from one release"};
  }
  control_address_ = about["control_address"];
  return {};
}

std::string PrivateDaemon::Name() const {
  return "ferryd of node " + std::to_string(node_) + " (pid " + std::to_string(pid_) + ")";
}

std::string PrivateDaemon::LastWords() const {
  struct stat file {};
  fstat(log_.get(), &file);
  std::string tail(static_cast<size_t>(std::min(file.st_size, kLastBytes)), '\0');
  const ssize_t size =
      pread(log_.get(), tail.data(), tail.size(), file.st_size - static_cast<off_t>(tail.size()));
  tail.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  while (!tail.empty() && tail.back() == '\n') {
    tail.pop_back();
  }
  if (tail.empty()) {
    return "; it wrote no log";
  }
  size_t start = tail.size();
  for (int line = 0; line < kLastLines && start != tail.npos; ++line) {
    start = start == 0 ? tail.npos : tail.rfind('\n', start - 1);
  }
  std::string words = "; its last log lines:\n  ";
  for (const char c : std::string_view(tail).substr(start == tail.npos ? 0 : start + 1)) {
    words += c;
    if (c == '\n') {
      words += "  ";
    }
  }
  return words;
}

void PrivateDaemon::AskToStop() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
  }
}

ProcessEnd PrivateDaemon::WaitUntilStopped(uint64_t kill_ns) {
  ProcessEnd end;
  if (pid_ <= 0) {
    return end;
  }
  while (!HasEnded(pid_, &end) && kill(pid_, 0) == 0) {
    if (!was_killed_ && MonotonicNs() >= kill_ns) {
      was_killed_ = true;
      kill(pid_, SIGKILL);
    }
    AwaitChild();
  }
  Reap(pid_);
  pid_ = -1;
  return end;
}

StatusOr<std::optional<ServingDaemon>> FindRunningDaemon(const config::Options& options,
                                                         bool names_run_directory) {
  StatusOr<ServingDaemon> daemon =
      Meet(options.run_directory, options.attach_timeout_ms, options.daemon_user);
  if (daemon.status().code() == ErrorCode::kNoDaemon &&
      config::IsDefaultRunDirectory(options.run_directory, config::ProcessEnvironment())) {
    daemon = Meet(config::kSystemRunDirectory, options.attach_timeout_ms, options.daemon_user);
    if (daemon.status().code() == ErrorCode::kPermissionDenied) {
      return std::optional<ServingDaemon>();  // there is one, but not for this user
    }
  }
  if (daemon.ok()) {
    return std::optional(std::move(*daemon));
  }
  if (daemon.status().code() == ErrorCode::kNoDaemon && !names_run_directory) {
    return std::optional<ServingDaemon>();
  }
  return Status(daemon.status().code(),
                daemon.status().message() + "; --private starts a daemon for this job alone");
}

// Its own certificate, of an authority that all daemons of the job know.
Status PrivateDaemons::UseCertificate(const PrivatePlan& plan, uint32_t node,
                                      config::Options* options) {
  const time_t now = time(nullptr);
  const StatusOr<CertificateAndKey> made =
      MakeNodeCertificate(*plan.authority, {"node" + std::to_string(node), plan.address},
                          {now - kClockSkewS, now + kValidS});
  FERRY_RETURN_IF_ERROR(made.status());
  const std::string prefix = directory_->path() + "/" + std::to_string(node);
  options->tls_ca_file = prefix + ".ca";
  options->tls_cert_file = prefix + ".pem";
  options->tls_key_file = prefix + ".key";
  FERRY_RETURN_IF_ERROR(WritePrivately(options->tls_ca_file, plan.authority->certificate));
  FERRY_RETURN_IF_ERROR(WritePrivately(options->tls_cert_file, made->certificate));
  return WritePrivately(options->tls_key_file, made->key);
}

Status PrivateDaemons::Start(const PrivatePlan& plan, const config::Options& options,
                             SignalSource* signals) {
  attach_timeout_ms_ = options.attach_timeout_ms;
  std::string program = plan.program;
  if (program.empty()) {
    StatusOr<std::string> found = FindFerryd();
    FERRY_RETURN_IF_ERROR(found.status());
    program = *found;
  }
  const char* const* environment = config::ProcessEnvironment();
  const auto runtime = config::FindVariable(environment, "XDG_RUNTIME_DIR");
  const auto temporary = config::FindVariable(environment, "TMPDIR");
  StatusOr<PrivateDirectory> directory = PrivateDirectory::Create(
      PrivateBase(std::string(runtime.value_or("")), std::string(temporary.value_or(""))));
  FERRY_RETURN_IF_ERROR(directory.status());
  directory_.emplace(std::move(*directory));
  std::vector<std::string> files;
  for (uint32_t node = plan.first_node; node < plan.first_node + plan.count; ++node) {
    config::Options own = options;
    if (!plan.address.empty()) {
      own.control_address = own.fabric_address = plan.address;
    }
    if (plan.authority) {
      FERRY_RETURN_IF_ERROR(UseCertificate(plan, node, &own));
      files.insert(files.end(), {own.tls_ca_file, own.tls_cert_file, own.tls_key_file});
    }
    StatusOr<PrivateDaemon> daemon = PrivateDaemon::Start(program, node, directory_->path(), own);
    FERRY_RETURN_IF_ERROR(daemon.status());
    processes_.push_back(std::move(*daemon));
  }
  for (PrivateDaemon& daemon : processes_) {
    FERRY_RETURN_IF_ERROR(daemon.WaitUntilReady(kStartPatienceMs, signals, plan.life_fd));
  }
  for (const std::string& file : files) {
    unlink(file.c_str());  // they have read them; a killed ferryrun leaves none behind
  }
  return {};
}

StatusOr<std::vector<ServingDaemon>> PrivateDaemons::Connect() const {
  std::vector<ServingDaemon> serving;
  for (const PrivateDaemon& process : processes_) {
    StatusOr<ServingDaemon> daemon =
        Meet(process.run_directory(), attach_timeout_ms_, /*daemon_user=*/"");
    FERRY_RETURN_IF_ERROR(daemon.status());
    daemon->control_address = process.control_address();
    serving.push_back(std::move(*daemon));
  }
  return serving;
}

std::vector<std::string> PrivateDaemons::Stop(uint64_t grace_ms) {
  std::vector<std::string> complaints;
  for (PrivateDaemon& daemon : processes_) {
    daemon.AskToStop();
  }
  const uint64_t kill_ns = MonotonicNs() + grace_ms * kNsPerMs;  // of all: they stop side by side
  for (PrivateDaemon& daemon : processes_) {
    const std::string name = daemon.Name();
    const bool served = !daemon.control_address().empty();
    const ProcessEnd end = daemon.WaitUntilStopped(kill_ns);
    // One that was still starting ends by our signal itself, with nothing to remove.
    const bool as_it_should = end.ok() || (!served && end.signal == SIGTERM);
    if (!as_it_should && !daemon.end_was_reported()) {
      complaints.push_back(name + " did not stop as it should: it " + Describe(end) +
                           (daemon.was_killed()
                                ? ", since it took longer than " + std::to_string(grace_ms) +
                                      " ms (--grace-ms): it hangs, or was stopped"
                                : "") +
                           daemon.LastWords());
    }
  }
  return complaints;
}

int RunDaemonHelper() {
  close_range(STDERR_FILENO + 1, ~0U, 0);  // what the application had open is not ours to hold
  StatusOr<config::Options> options = config::OptionsFromEnvironment(config::ProcessEnvironment());
  if (!options.ok()) {
    return SayWhyNot(options.status());
  }
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return SayWhyNot(signals.status());
  }
  PrivateDaemons daemons;
  if (const Status status =
          daemons.Start({.program = "", .life_fd = STDIN_FILENO}, *options, &*signals);
      !status.ok()) {
    return SayWhyNot(status);
  }
  PrivateDaemon& daemon = daemons.processes().front();
  std::printf("serves %s\n", daemon.run_directory().c_str());
  std::fflush(stdout);
  WaitForEnd(&daemon, &*signals);
  for (const std::string& complaint : daemons.Stop(kGraceMs)) {
    std::fprintf(stderr, "ferryrun: %s\n", complaint.c_str());
  }
  return 0;
}

}  // namespace ferry::tools
