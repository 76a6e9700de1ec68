#include "tools/doctor/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "client/malloc/heap_sizes.h"
#include "common/counted.h"
#include "common/openssl_ptr.h"
#include "common/unique_fd.h"
#include "common/version_text.h"

namespace ferry::tools {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;

std::string Text(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

CertificateLife LifeOf(X509* certificate) {
  CertificateLife life;
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, end) == 1) {  // from now
    life.seconds_left = days * kSecondsPerDay + seconds;
  }
  const BioPtr subject(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(subject.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  life.subject = Text(subject.get());
  const BioPtr until(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(until.get(), end);
  life.until = Text(until.get());
  return life;
}

constexpr uint64_t kFilesOfDaemon = 64;
constexpr uint64_t kFilesPerRank = 8;
constexpr int64_t kWarnDays = 30;
constexpr char kOneRelease[] = "install ferryd, libferry and the tools from one release";

std::string Bytes(uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : std::to_string(bytes >> 20) + " MiB";
}

// ---- The unit ----

constexpr char kUnit[] = "ferryd.service";

std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Of the unit and what overrides it, in systemd's order.
std::vector<std::string> UnitLines(const std::string& root) {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"/etc/systemd/system/", "/run/systemd/system/",
                             "/usr/local/lib/systemd/system/", "/lib/systemd/system/"}) {
    if (const std::filesystem::path unit = root + folder + kUnit; std::filesystem::exists(unit)) {
      files.push_back(unit);
      break;
    }
  }
  for (const char* folder :
       {"/lib/systemd/system/", "/run/systemd/system/", "/etc/systemd/system/"}) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(root + folder + kUnit + ".d", error)) {
      files.push_back(entry.path());
    }
  }
  std::vector<std::string> lines;
  for (const std::filesystem::path& path : files) {
    std::istringstream text(FileText(path));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(line);
    }
  }
  return lines;
}

// Returns true if the unit is denied no address, or allowed more than its own node. An empty value
// revokes the earlier ones.
bool NamesNetworks(const std::vector<std::string>& lines) {
  constexpr std::string_view kDeny = "IPAddressDeny=";
  constexpr std::string_view kAllow = "IPAddressAllow=";
  bool is_denied = false;
  bool is_allowed = false;
  for (const std::string_view line : lines) {
    if (line.starts_with(kDeny)) {
      is_denied = line.size() > kDeny.size();
    } else if (line.starts_with(kAllow)) {
      const std::string_view networks = line.substr(kAllow.size());
      is_allowed = !networks.empty() && (is_allowed || networks != "localhost");
    }
  }
  return !is_denied || is_allowed;
}

using topology::CpuSet;
using topology::Device;
using topology::DeviceKind;
using topology::Machine;

std::vector<const Device*> DevicesOf(const Machine& machine, DeviceKind kind) {
  std::vector<const Device*> devices;
  for (const Device& device : machine.devices) {
    if (device.kind == kind) {
      devices.push_back(&device);
    }
  }
  return devices;
}

std::string NameOf(const Device& device) {
  return device.names.empty() ? device.pci : device.names.front();
}

std::string AtNode(const Device& device) { return " at node " + std::to_string(device.node); }

std::string Describe(const Machine& machine) {
  std::string text = std::to_string(machine.nodes.size()) +
                     (machine.nodes.size() == 1 ? " NUMA node" : " NUMA nodes");
  for (const topology::NumaNode& node : machine.nodes) {
    text += ", " + std::to_string(node.number) + ": " +
            (node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus.Text());
  }
  const std::vector<const Device*> nics = DevicesOf(machine, DeviceKind::kNic);
  for (const Device* nic : nics) {
    text += "; NIC " + NameOf(*nic) + AtNode(*nic);
  }
  for (const Device* gpu : DevicesOf(machine, DeviceKind::kGpu)) {
    text += "; GPU " + gpu->pci + AtNode(*gpu);
    if (!nics.empty()) {
      const Device& nic = *nics[topology::ChooseNic(machine, nics, {gpu->cpus, gpu, 0})];
      text += ", " + std::to_string(topology::Distance(machine, *gpu, nic)) + " from NIC " +
              NameOf(nic);
    }
  }
  return text;
}

bool IsFar(const NicPlace& nic) {
  const StatusOr<CpuSet> near = CpuSet::Parse(nic.cpus);
  const StatusOr<CpuSet> thread = CpuSet::Parse(nic.progress_cpus);
  return near.ok() && thread.ok() && !near->Intersects(*thread);
}

// Of which the heap takes half.
constexpr uint64_t kLeastAddressBytes = 2 * malloc_heap::kLeastReservedBytes;

}  // namespace

StatusOr<CertificateLife> ReadCertificateLife(const std::string& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) {
    const int error = errno;
    ERR_clear_error();
    return Status(ErrorCode::kNotFound, path + ": " + strerror(error));
  }
  std::optional<CertificateLife> first;
  while (true) {
    const X509Ptr certificate(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) {
      break;
    }
    CertificateLife life = LifeOf(certificate.get());
    if (!first || life.seconds_left < first->seconds_left) {
      first = std::move(life);
    }
  }
  ERR_clear_error();
  if (!first) {
    return Status(ErrorCode::kInvalidArgument, path + " holds no certificate in PEM form");
  }
  return *first;
}

// ---- Limits ----

Finding CheckMemlock(uint64_t soft_bytes, uint64_t hard_bytes, uint64_t needed_bytes) {
  Finding finding{"locked memory", Verdict::kOk, "limit " + Bytes(soft_bytes), ""};
  if (soft_bytes >= needed_bytes) {
    return finding;
  }
  finding.verdict = Verdict::kWarning;
  finding.found += ", less than the " + Bytes(needed_bytes) +
                   " of staging memory and one heap: RDMA providers (verbs, efa, cxi) cannot "
                   "register it; tcp can";
  finding.mend = hard_bytes >= needed_bytes
                     ? "raise the soft limit: ulimit -l unlimited"
                     : "LimitMEMLOCK=infinity in the unit of ferryd, or `* - memlock unlimited` in "
                       "/etc/security/limits.conf and a new login";
  return finding;
}

Finding CheckOpenFiles(uint64_t hard, uint64_t max_local_ranks) {
  const uint64_t needed = kFilesOfDaemon + kFilesPerRank * max_local_ranks;
  Finding finding{"open files", Verdict::kOk,
                  "limit " + (hard == kUnlimited ? "unlimited" : std::to_string(hard)), ""};
  if (hard < needed) {
    finding.verdict = Verdict::kWarning;
    finding.found += ", less than the " + std::to_string(needed) + " that " +
                     std::to_string(max_local_ranks) + " ranks (max_local_ranks) may need";
    finding.mend = "raise it: nofile " + std::to_string(needed) +
                   " in /etc/security/limits.conf, or LimitNOFILE in the unit";
  }
  return finding;
}

Finding CheckPtraceScope(std::optional<int> scope) {
  Finding finding{"ptrace scope", Verdict::kOk, "", ""};
  if (!scope.has_value()) {
    finding.found = "the kernel has no Yama: processes of a user reach each other's memory";
  } else if (*scope == 0) {
    finding.found = "0: processes of a user reach each other's memory";
  } else {
    finding.verdict = Verdict::kWarning;
    finding.found = std::to_string(*scope) +
                    ": ranks may not reach each other's private memory, so large messages there "
                    "are staged through the heap, one copy more";
    finding.mend =
        "sysctl kernel.yama.ptrace_scope=0, or allocate buffers with ferry_alloc, which needs none";
  }
  return finding;
}

Finding CheckCores(uint32_t allowed, uint32_t online) {
  Finding finding{"cores", Verdict::kOk,
                  std::to_string(allowed) + " of " + std::to_string(online) + " may be used", ""};
  if (allowed < 2) {
    finding.verdict = Verdict::kWarning;
    finding.found += ": ranks, the progress thread and the copy workers share one";
    finding.mend = "give the job more cores (Slurm: --cpus-per-task, or --overcommit aside)";
  } else if (allowed < online) {
    finding.found += " (an affinity mask or a cgroup)";
  }
  return finding;
}

Finding CheckJob(const std::optional<JobFacts>& facts) {
  Finding finding{"a job", Verdict::kOk, "", ""};
  if (!facts) {
    finding.found = "not tried: ferryrun, ferry-meter or libmpi_abi is not beside ferryctl";
  } else if (!facts->ran.ok()) {
    finding.verdict = Verdict::kProblem;
    finding.found = "two ranks of this node did not exchange messages: " + facts->ran.message();
    finding.mend = "the lines above are those of that job; ferryrun -n 2 true may say more";
  } else {
    char text[160];
    std::snprintf(text, sizeof(text),
                  "two ranks of this node: %.2f us for %llu B, %.1f GB/s for %llu KiB",
                  facts->few_us, static_cast<unsigned long long>(facts->few_bytes),
                  static_cast<double>(facts->many_bytes) / facts->many_us / 1e3,
                  static_cast<unsigned long long>(facts->many_bytes >> 10));
    finding.found = text;
  }
  return finding;
}

Finding CheckKernelFeature(const std::string& name, const std::string& use, int error_number,
                           Verdict without) {
  if (error_number == 0) {
    return {name, Verdict::kOk, "works", ""};
  }
  return {name, without, "fails (" + std::string(strerror(error_number)) + "): " + use,
          error_number == ENOSYS ? "a later kernel: docs/operations.md says which"
                                 : "a seccomp profile or a container forbids it: allow it there"};
}

// ---- Files ----

Finding CheckRunDirectory(const std::string& path, uid_t uid, bool is_served) {
  Finding finding{"run directory", Verdict::kOk, path, ""};
  const auto judge = [&](Verdict verdict, const std::string& found, const std::string& mend) {
    finding.verdict = verdict;
    finding.found += found;
    finding.mend = mend;
    return finding;
  };
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    const std::string parent = path.substr(0, std::max<size_t>(path.rfind('/'), 1));
    if (errno == ENOENT && access(parent.c_str(), W_OK) == 0) {
      return judge(Verdict::kOk, " does not exist; ferryd makes it", "");
    }
    return judge(Verdict::kProblem, ": " + std::string(strerror(errno)),
                 "make " + parent + " writable, or choose another with --run_directory");
  }
  if (!S_ISDIR(info.st_mode)) {
    return judge(Verdict::kProblem, " is not a directory",
                 "remove it, or choose another with --run_directory");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return judge(Verdict::kProblem, " can be written by other users", "chmod 0755 " + path);
  }
  const UniqueFd lock(open((path + "/ferryd.lock").c_str(), O_RDONLY | O_CLOEXEC));
  const bool held = lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
  if (held || is_served) {  // the lock of another user's cannot be looked at
    return judge(Verdict::kOk, ": a ferryd of uid " + std::to_string(info.st_uid) + " serves it",
                 "");
  }
  if (access((path + "/control.sock").c_str(), F_OK) == 0 && (lock.valid() || errno == ENOENT)) {
    return judge(Verdict::kWarning, " holds the socket of a dead ferryd",
                 "nothing: the next ferryd there removes it");
  }
  if (info.st_uid != uid) {
    return judge(Verdict::kWarning,
                 " is owned by uid " + std::to_string(info.st_uid) + ", not by yours (" +
                     std::to_string(uid) + "): a ferryd of yours cannot use it",
                 "start ferryd as that user, or choose another with --run_directory");
  }
  return judge(Verdict::kOk, " is there and no ferryd serves it", "");
}

Finding CheckOptions(const std::string& file, const Status& loaded) {
  const std::string from = file.empty() ? "defaults, environment and flags" : file;
  if (loaded.ok()) {
    return {"options", Verdict::kOk, from + ": understood", ""};
  }
  return {"options", Verdict::kProblem, loaded.message(),
          "mend the line; `ferryctl config` shows what is in effect"};
}

// ---- Network, devices, daemon ----

Finding CheckProviders(const std::vector<Provider>& providers, const std::string& wanted,
                       const std::string& version) {
  std::string usable;
  bool found = false;
  for (const Provider& provider : providers) {
    if (provider.usable) {
      usable += (usable.empty() ? "" : ", ") + provider.name;
      found |= wanted == "auto" || provider.name.starts_with(wanted);  // tcp: tcp;ofi_rxm
    }
  }
  Finding finding{"providers", Verdict::kOk, usable + "; libfabric " + version, ""};
  if (!found) {
    finding.verdict = Verdict::kProblem;
    finding.found += "; not " + wanted + ", which the option provider asks for";
    finding.mend = "provider = \"auto\", or one of these";
  }
  return finding;
}

Finding CheckDaemon(const DaemonFacts& facts) {
  if (facts.connected.ok()) {
    return {
        "daemon", Verdict::kOk,
        "pid " + std::to_string(facts.pid) + ", " + facts.state + ", provider " + facts.provider,
        ""};
  }
  // Without one ferryrun starts its own.
  const bool none = facts.connected.code() == ErrorCode::kNoDaemon;
  return {"daemon", none ? Verdict::kOk : Verdict::kProblem, facts.connected.message(),
          none ? "" : "see `journalctl -u ferryd`, or what ferryd wrote to standard error"};
}

Finding CheckUsersSocket(const Status& called) {
  if (called.ok()) {
    return {"control.sock", Verdict::kOk, "answers", ""};
  }
  switch (called.code()) {
    case ErrorCode::kPermissionDenied:  // a private daemon of somebody else
    case ErrorCode::kVersionMismatch:   // which has a line of its own
      return {"control.sock", Verdict::kOk, called.message(), ""};
    case ErrorCode::kLimitExceeded:
      return {"control.sock", Verdict::kProblem, called.message(),
              "end what holds these connections: `ss -xp` shows whose they are"};
    default:
      return {"control.sock", Verdict::kProblem,
              "jobs can be neither started nor joined: " + called.message(),
              "see `journalctl -u ferryd`; restart ferryd"};
  }
}

Finding CheckUnit(const DaemonFacts& facts, const std::string& root) {
  const auto is = [](Verdict verdict, const std::string& found, const char* mend) {
    return Finding{"unit", verdict, found, mend};
  };
  if (!facts.connected.ok() ||
      FileText(root + "/proc/" + std::to_string(facts.pid) + "/cgroup").find(kUnit) ==
          std::string::npos) {
    return is(Verdict::kOk, "ferryd does not run as a service of systemd", "");
  }
  const bool is_local = facts.control_address.starts_with("127.") ||
                        facts.control_address.starts_with("localhost") ||
                        facts.control_address.starts_with("[::1]");
  const std::string who = std::string(kUnit) + ": ferryd at " + facts.control_address;
  if (is_local || NamesNetworks(UnitLines(root))) {
    return is(Verdict::kOk, who + " may reach its network", "");
  }
  return is(Verdict::kProblem, who + " may reach this node only (IPAddressDeny=any)",
            "name the networks of the nodes by IPAddressAllow= in `systemctl edit ferryd`, then "
            "systemctl restart ferryd");
}

Finding CheckVersions(const DaemonFacts& facts) {
  Finding finding{"versions", Verdict::kOk, "ferryctl " + VersionText(), ""};
  if (facts.connected.code() == ErrorCode::kVersionMismatch) {
    finding.verdict = Verdict::kProblem;
    finding.found += "; " + facts.connected.message();
    finding.mend = std::string(kOneRelease) + ", restart ferryd";
  } else if (facts.connected.ok()) {
    finding.found += "; the daemon has the same";
  }
  return finding;
}

Finding CheckLibrary(const LibraryFacts& library, const DaemonFacts& facts) {
  Finding finding{"libferry", Verdict::kOk, library.path + ": " + library.version, ""};
  if (library.path.empty()) {
    finding.found = "the loader finds none: programs must bring theirs (rpath, LD_LIBRARY_PATH)";
    return finding;
  }
  const bool asked = facts.connected.ok();
  const std::string wanted =
      asked ? WireVersionText(facts.layout_version, facts.protocol_version) : WireVersionText();
  const std::string of = asked ? "the daemon has " : "ferryctl has ";
  if (library.version.find("(" + wanted + ")") == std::string::npos) {
    finding.verdict = Verdict::kProblem;
    finding.found = library.path + ": " +
                    (library.version.empty() ? "of a release that does not tell its version"
                                             : library.version) +
                    "; " + of + wanted + ": ranks with this library are refused";
    finding.mend = std::string(kOneRelease) + "; `ldd PROGRAM` shows which one a program loads";
  } else if (library.version != VersionText()) {
    finding.verdict = Verdict::kWarning;
    finding.found += "; ferryctl is " + VersionText() + ": they work together";
    finding.mend = kOneRelease;
  }
  return finding;
}

Finding CheckCertificate(const std::string& option, const std::string& path,
                         const StatusOr<CertificateLife>& life) {
  if (!life.ok()) {
    return {option, Verdict::kProblem, life.status().message(),
            "name a readable PEM file, or leave all three tls_ options empty; `ferryctl certs` "
            "makes some to try"};
  }
  const std::string what = path + ": " + life->subject;
  const int64_t days = life->seconds_left / kSecondsPerDay;
  const char* mend = "replace the file, then SIGHUP ferryd (systemctl reload ferryd)";
  if (life->seconds_left <= 0) {
    return {option, Verdict::kProblem,
            what + " expired on " + life->until + ": daemons refuse each other", mend};
  }
  if (days < kWarnDays) {
    return {option, Verdict::kWarning,
            what + " expires in " + std::to_string(days) + " days, on " + life->until, mend};
  }
  return {option, Verdict::kOk, what + " is valid until " + life->until, ""};
}

Finding CheckGpus(const DaemonFacts& facts, const std::vector<Gpu>& gpus,
                  const std::string& backend) {
  // "auto" is known by what the daemon made of it.
  Finding finding{"devices", Verdict::kOk,
                  "backend " + (gpus.empty() ? backend : gpus.front().backend), ""};
  if (!facts.connected.ok()) {
    finding.found += "; a daemon would list its devices";
    return finding;
  }
  finding.found += ": " + Counted(gpus.size(), "device");
  for (const Gpu& gpu : gpus) {
    if (!gpu.note.empty()) {
      finding.verdict = Verdict::kWarning;
      finding.found += "; " + gpu.name + ": " + gpu.note;
      finding.mend = "see the vendor's tools whether the device works";
    }
  }
  return finding;
}

Finding CheckTopology(const StatusOr<Machine>& machine, const std::vector<NicPlace>& nics) {
  if (!machine.ok()) {
    return {"topology", Verdict::kWarning, machine.status().message() + ": nothing is placed",
            "see whether `lstopo` (hwloc) works here; /sys must be readable"};
  }
  Finding finding{"topology", Verdict::kOk, Describe(*machine), ""};
  for (const NicPlace& nic : nics) {
    if (IsFar(nic)) {
      finding.verdict = Verdict::kWarning;
      finding.found += "; the progress thread runs on CPUs " + nic.progress_cpus +
                       ", far from its NIC " + nic.name + " (CPUs " + nic.cpus + ")";
      finding.mend = "progress_affinity = \"auto\", or CPUs of these";
    }
  }
  return finding;
}

Finding CheckMalloc(const MallocFacts& facts) {
  Finding finding{"malloc", Verdict::kOk, facts.path + ": for ferryrun --malloc", ""};
  const auto warn = [&](const std::string& found, const std::string& mend) {
    finding.verdict = Verdict::kWarning;
    finding.found = found;
    finding.mend = mend;
    return finding;
  };
  if (facts.path.empty()) {
    warn("there is no libferry_malloc.so: ferryrun --malloc starts nothing",
         "install the one of this release, in lib/ferry beside libferry");
    finding.verdict = facts.is_wanted ? Verdict::kProblem : Verdict::kWarning;
    return finding;
  }
  if (!facts.loader_says.empty()) {
    return warn(facts.path + " is not preloaded: " + facts.loader_says,
                "install the one that was built for this system; `ldd " + facts.path +
                    "` names what is missing");
  }
  const std::string is_private = ": malloc's memory stays private, with ferryrun --malloc, too";
  if (facts.memfd_error != 0) {
    return warn("no memfd (" + std::string(strerror(facts.memfd_error)) + ")" + is_private,
                "see the line memfd");
  }
  if (facts.file_bytes < malloc_heap::kLeastFileBytes) {
    return warn("files may have " + Bytes(facts.file_bytes) + is_private, "ulimit -f unlimited");
  }
  if (facts.address_bytes < kLeastAddressBytes) {
    return warn("programs may have " + Bytes(facts.address_bytes) + " of addresses" + is_private,
                "ulimit -v unlimited");
  }
  if (facts.quota_bytes != 0 && facts.quota_bytes < malloc_heap::kFirstFileBytes) {
    return warn("quota_pinned_bytes is " + Bytes(facts.quota_bytes) +
                    ", and malloc's memory begins with " + Bytes(malloc_heap::kFirstFileBytes) +
                    is_private,
                "raise quota_pinned_bytes by that for each rank of the node, or set it to 0");
  }
  if (facts.file_bytes != kUnlimited) {
    return warn("files may have " + Bytes(facts.file_bytes) +
                    ": with ferryrun --malloc no more of a rank's memory is shared",
                "ulimit -f unlimited");
  }
  if (facts.address_bytes != kUnlimited) {
    return warn("programs may have " + Bytes(facts.address_bytes) +
                    " of addresses: with ferryrun --malloc half of them are malloc's",
                "ulimit -v unlimited");
  }
  return finding;
}

}  // namespace ferry::tools
