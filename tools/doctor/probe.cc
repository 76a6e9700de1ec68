#include "tools/doctor/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/own_program.h"
#include "common/topology/discover.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/admin/daemon_client.h"
#include "tools/doctor/checks.h"
#include "tools/ferryrun/process.h"
#include "tools/flags/option_flags.h"
#include "transports/loader/loader.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kTimeoutMs = 3000;
constexpr char kLibrary[] = "libferry.so.0";
// Paths from the program's directory: beside its prefix's bin, and in a build tree.
constexpr const char* kPlaces[] = {"/../lib/", "/../../client/"};
constexpr char kPtraceScope[] = "/proc/sys/kernel/yama/ptrace_scope";

rlimit Limit(int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit;
}

uint64_t Number(rlim_t limit) { return limit == RLIM_INFINITY ? kUnlimited : limit; }

std::optional<int> PtraceScope() {
  const UniqueFd file(open(kPtraceScope, O_RDONLY | O_CLOEXEC));
  char digit = 0;
  if (!file.valid() || read(file.get(), &digit, 1) != 1 || digit < '0' || digit > '9') {
    return std::nullopt;
  }
  return digit - '0';
}

uint32_t AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 0;
}

// Each tries the call that Ferry will make: 0 or errno.

int TryMemfd() {
  const UniqueFd fd(memfd_create("ferryctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), 4096) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return errno;
  }
  return 0;
}

int TryPidfd() {
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return fd.valid() ? 0 : errno;
}

int TryProcessVm() {
  char from = 'x';
  char to = 0;
  const iovec local{&to, 1};
  const iovec remote{&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

// The libferry that programs on this machine would load: the one installed with this program, else
// the loader's. It stays loaded: this program is short.
LibraryFacts FindLibrary() {
  std::vector<std::string> candidates;
  for (const char* place : kPlaces) {
    candidates.push_back(OwnDirectory() + place + kLibrary);
  }
  candidates.emplace_back(kLibrary);
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      continue;
    }
    LibraryFacts facts{candidate, ""};
    if (link_map* map = nullptr; dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
      facts.path = map->l_name;
    }
    using VersionFunction = const char* (*)();
    if (auto version = reinterpret_cast<VersionFunction>(dlsym(library, "ferry_version"));
        version != nullptr) {
      facts.version = version();
    }
    return facts;
  }
  return {};
}

// The first line that a program writes that does nothing but have the library preloaded.
std::string WhatTheLoaderSays(const std::string& library) {
  StatusOr<Pipe> words = MakePipe();
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!words.ok() || !nothing.valid()) {
    return "";
  }
  const StatusOr<pid_t> child = Spawn({.path = "/bin/sh",
                                       .arguments = {"sh", "-c", ":"},
                                       .environment = {"LD_PRELOAD=" + library},
                                       .stdin_fd = nothing.get(),
                                       .stdout_fd = nothing.get(),
                                       .stderr_fd = words->write.get(),
                                       .parent_death_signal = SIGKILL});
  words->write.Reset();
  if (!child.ok()) {
    return child.status().message();
  }
  std::string said;
  char part[512];
  for (ssize_t size = 0; (size = read(words->read.get(), part, sizeof(part))) > 0;) {
    said.append(part, static_cast<size_t>(size));
  }
  Reap(*child);
  return said.substr(0, said.find('\n'));
}

// Starts a program with the library.
MallocFacts LookForMalloc() {
  MallocFacts facts;
  if (const StatusOr<std::string> library = FindMallocLibrary(); library.ok()) {
    facts.path = *library;
    facts.loader_says = WhatTheLoaderSays(*library);
  }
  return facts;
}

std::vector<Provider> ListProviders() {
  std::vector<Provider> providers;
  for (const transport::ListedProvider& listed : transport::ListProviders()) {
    providers.push_back({listed.name, listed.usable});
  }
  return providers;
}

// Finds the daemon that ferryrun would ask: that of the run directory, or else, unless the options
// name a run directory, the node's. `options` then names its place. A daemon for other users does
// not count.
StatusOr<Observer> MeetDaemon(config::Options* options) {
  StatusOr<Observer> daemon =
      Observer::Connect(options->run_directory, kTimeoutMs, options->daemon_user);
  if (daemon.status().code() != ErrorCode::kNoDaemon ||
      !config::IsDefaultRunDirectory(options->run_directory, config::ProcessEnvironment())) {
    return daemon;
  }
  StatusOr<Observer> nodes =
      Observer::Connect(config::kSystemRunDirectory, kTimeoutMs, options->daemon_user);
  if (nodes.status().code() == ErrorCode::kNoDaemon ||
      nodes.status().code() == ErrorCode::kPermissionDenied) {
    return daemon;
  }
  options->run_directory = config::kSystemRunDirectory;
  return nodes;
}

void ExamineDaemon(config::Options options, std::vector<Finding>* findings) {
  const StatusOr<Observer> client = MeetDaemon(&options);
  findings->push_back(CheckRunDirectory(options.run_directory, geteuid(), client.ok()));
  DaemonFacts facts;
  facts.connected = client.status();
  std::vector<Gpu> gpus;
  std::vector<NicPlace> nics;
  if (client.ok()) {
    const control::StatusReply& daemon = client->daemon();
    facts.pid = daemon.pid();
    facts.state = daemon.state();
    facts.provider = daemon.node().provider();
    facts.control_address = daemon.node().control_address();
    facts.layout_version = daemon.node().layout_version();
    facts.protocol_version = daemon.node().protocol_version();
    control::GpusReply reply;
    if (client->Ask(control::GpusRequest(), &reply).ok()) {
      for (const control::GpuStatus& gpu : reply.gpus()) {
        gpus.push_back({gpu.backend(), gpu.name(), gpu.note()});
      }
    }
    control::NicsReply nics_reply;
    if (client->Ask(control::NicsRequest(), &nics_reply).ok()) {
      for (const control::NicStatus& nic : nics_reply.nics()) {
        nics.push_back({nic.domain(), nic.cpus(), nic.progress_cpus()});
      }
    }
  }
  findings->push_back(CheckDaemon(facts));
  if (facts.connected.code() != ErrorCode::kNoDaemon) {
    findings->push_back(CheckUsersSocket(
        LauncherClient::Connect(options.run_directory, kTimeoutMs, options.daemon_user).status()));
  }
  findings->push_back(CheckUnit(facts));
  findings->push_back(CheckVersions(facts));
  findings->push_back(CheckLibrary(FindLibrary(), facts));
  findings->push_back(CheckGpus(facts, gpus, options.gpu_backend));
  findings->push_back(CheckTopology(topology::ReadThisMachine(), nics));
}

// The files that a ferryd with these options would read.
void ExamineCertificates(const config::Options& options, std::vector<Finding>* findings) {
  const std::pair<const char*, const std::string&> files[] = {
      {"tls_cert_file", options.tls_cert_file}, {"tls_ca_file", options.tls_ca_file}};
  for (const auto& [option, path] : files) {
    if (!path.empty()) {
      findings->push_back(CheckCertificate(option, path, ReadCertificateLife(path)));
    }
  }
}

}  // namespace

std::vector<Finding> Examine(const std::vector<std::string>& flags) {
  std::vector<Finding> findings;
  const StatusOr<config::Options> loaded = LoadOptions(flags);
  // If the options are not understood, the other checks use the defaults.
  const config::Options options = loaded.ok() ? *loaded : config::Options();
  findings.push_back(CheckOptions(options.config_file, loaded.status()));
  if (loaded.ok()) {
    ExamineDaemon(options, &findings);
    ExamineCertificates(options, &findings);
  }
  findings.push_back(
      CheckProviders(ListProviders(), options.provider, transport::LibraryVersion()));
  const rlimit memlock = Limit(RLIMIT_MEMLOCK);
  const uint64_t pinned = options.staging_blocks * options.staging_block_bytes + options.heap_bytes;
  findings.push_back(CheckMemlock(Number(memlock.rlim_cur), Number(memlock.rlim_max), pinned));
  findings.push_back(
      CheckOpenFiles(Number(Limit(RLIMIT_NOFILE).rlim_max), options.max_local_ranks));
  findings.push_back(CheckPtraceScope(PtraceScope()));
  findings.push_back(
      CheckCores(AllowedCores(), static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN))));
  const int memfd_error = TryMemfd();
  findings.push_back(CheckKernelFeature("memfd", "ranks and daemon share no memory", memfd_error,
                                        Verdict::kProblem));
  findings.push_back(CheckKernelFeature(
      "pidfd", "the death of a rank whose children go on is noticed later, by its connection",
      TryPidfd(), Verdict::kWarning));
  findings.push_back(CheckKernelFeature("process_vm", "private memory is staged through the heap",
                                        TryProcessVm(), Verdict::kWarning));
  MallocFacts preloaded = LookForMalloc();
  preloaded.memfd_error = memfd_error;
  preloaded.file_bytes = Number(Limit(RLIMIT_FSIZE).rlim_cur);
  preloaded.address_bytes = Number(Limit(RLIMIT_AS).rlim_cur);
  preloaded.quota_bytes = options.quota_pinned_bytes;
  preloaded.is_wanted = options.malloc == "ferry";
  findings.push_back(CheckMalloc(preloaded));
  return findings;
}

bool IsHealthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.verdict == Verdict::kProblem; });
}

}  // namespace ferry::tools
