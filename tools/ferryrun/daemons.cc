#include "tools/ferryrun/daemons.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "common/file_size.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/ferryrun/program.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kCallTimeoutMs = 5000;
constexpr uint64_t kStartTimeoutMs = 10000;
// Certificates live as long as a job; clocks of hosts may differ.
constexpr time_t kClockSkewS = 24 * 3600;
constexpr time_t kValidS = 400L * 24 * 3600;

StatusOr<ServingDaemon> Meet(const std::string& run_directory) {
  StatusOr<LauncherClient> client = LauncherClient::Connect(run_directory, kCallTimeoutMs);
  FERRY_RETURN_IF_ERROR(client.status());
  std::string address = client->daemon().node().control_address();
  return ServingDaemon{std::move(*client), run_directory, std::move(address)};
}

Status WritePrivately(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file.valid() ? WriteAll(file.get(), text, path)
                      : StatusFromErrno(errno, "cannot write " + path);
}

}  // namespace

StatusOr<std::optional<ServingDaemon>> FindRunningDaemon(const config::Options& options,
                                                         bool names_run_directory) {
  StatusOr<ServingDaemon> daemon = Meet(options.run_directory);
  const std::string usual = config::DefaultRunDirectory(config::ProcessEnvironment());
  if (daemon.status().code() == ErrorCode::kNoDaemon && options.run_directory == usual) {
    daemon = Meet(config::kSystemRunDirectory);
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
    FERRY_RETURN_IF_ERROR(daemon.WaitUntilReady(kStartTimeoutMs, signals));
  }
  for (const std::string& file : files) {
    unlink(file.c_str());  // they have read them; a killed ferryrun leaves none behind
  }
  return {};
}

StatusOr<std::vector<ServingDaemon>> PrivateDaemons::Connect() const {
  std::vector<ServingDaemon> serving;
  for (const PrivateDaemon& process : processes_) {
    StatusOr<ServingDaemon> daemon = Meet(process.run_directory());
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
  for (PrivateDaemon& daemon : processes_) {
    const std::string name = daemon.Name();
    const bool served = !daemon.control_address().empty();
    const ProcessEnd end = daemon.WaitUntilStopped(grace_ms);
    // One that was still starting ends by our signal itself, with nothing to remove.
    const bool as_it_should = end.ok() || (!served && end.signal == SIGTERM);
    if (!as_it_should && !daemon.end_was_reported()) {
      complaints.push_back(name + " did not stop as it should: it " + Describe(end) +
                           daemon.LastWords());
    }
  }
  return complaints;
}

}  // namespace ferry::tools
