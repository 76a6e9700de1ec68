// The checks of `ferryctl doctor`: each takes facts, wherever they come from, and finds out if
// Ferry can work with them. A check is a pure function, unless its comment names the files that it
// reads. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/machine.h"

namespace ferry::tools {

enum class Verdict { kOk, kWarning, kProblem };

struct Finding {
  std::string name;  // the thing that was checked
  Verdict verdict = Verdict::kOk;
  std::string found;  // the state found, in words
  std::string mend;   // what to do about it; empty when nothing
};

// A libferry.
struct LibraryFacts {
  std::string path;     // empty: none was found
  std::string version;  // the result of ferry_version; empty: it has no such function
};

// The certificate of a file that expires first.
struct CertificateLife {
  std::string subject;       // "CN = node0"
  std::string until;         // "Nov 20 15:10:00 2027 GMT"
  int64_t seconds_left = 0;  // negative: expired so long ago
};

// Reads the PEM file `path`. kNotFound: cannot be read; kInvalidArgument: holds no certificate.
StatusOr<CertificateLife> ReadCertificateLife(const std::string& path);

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// Checks the limit of locked memory: RDMA providers pin the memory that they register.
Finding CheckMemlock(uint64_t soft_bytes, uint64_t hard_bytes, uint64_t needed_bytes);
// Checks the limit of open files: ferryd holds about five descriptors a rank.
Finding CheckOpenFiles(uint64_t hard, uint64_t max_local_ranks);
// Checks kernel.yama.ptrace_scope; none: the kernel has no Yama.
Finding CheckPtraceScope(std::optional<int> scope);
// Checks how many cores this process may run on, of those that are online.
Finding CheckCores(uint32_t allowed, uint32_t online);
// Checks a kernel feature: `error_number` is 0 if trying it worked, else errno. `without`: the
// verdict if it is lacking.
Finding CheckKernelFeature(const std::string& name, const std::string& use, int error_number,
                           Verdict without);

// Checks a run directory: reads it, and the holder of its lock. `uid` is the user that asks;
// `is_served`: a daemon there has answered that user.
Finding CheckRunDirectory(const std::string& path, uid_t uid, bool is_served = false);
// `loaded`: the result of reading all options; `file`: the configuration file, if one is named.
Finding CheckOptions(const std::string& file, const Status& loaded);

struct Provider {
  std::string name;
  bool usable = false;  // has reliable datagrams, messages and RMA, as Ferry needs
};
// Checks libfabric's providers; `wanted` is the option.
Finding CheckProviders(const std::vector<Provider>& providers, const std::string& wanted,
                       const std::string& version);

// A daemon's answer about itself; `connected` says why there is none.
struct DaemonFacts {
  Status connected;
  uint32_t pid = 0;
  uint32_t layout_version = 0;
  uint32_t protocol_version = 0;
  std::string state;
  std::string provider;
  std::string control_address;
};
Finding CheckDaemon(const DaemonFacts& facts);
// Checks the users' socket. `called`: the result of the call with which every job begins there.
Finding CheckUsersSocket(const Status& called);
// Checks that the systemd unit in which the daemon runs, if it runs in one, lets it reach the
// network of its own control address. Reads its control group and systemd's files of
// ferryd.service, below `root`.
Finding CheckUnit(const DaemonFacts& facts, const std::string& root = "");
Finding CheckVersions(const DaemonFacts& facts);
// Checks the library that ranks would load beside the daemon, or this program's own release.
Finding CheckLibrary(const LibraryFacts& library, const DaemonFacts& facts);
// Checks the certificate at `path`, which `option` names; `life` is how long it is valid.
Finding CheckCertificate(const std::string& option, const std::string& path,
                         const StatusOr<CertificateLife>& life);
struct Gpu {
  std::string backend;
  std::string name;
  std::string note;
};
Finding CheckGpus(const DaemonFacts& facts, const std::vector<Gpu>& gpus,
                  const std::string& backend);

// A NIC as the daemon reports it; texts are empty where it does not know.
struct NicPlace {
  std::string name;
  std::string cpus;           // near it
  std::string progress_cpus;  // those of the thread that serves it; empty: any
};

// Checks the places of NICs, GPUs and ferryd's progress thread.
Finding CheckTopology(const StatusOr<topology::Machine>& machine,
                      const std::vector<NicPlace>& nics);

// Times of messages between two ranks of this node, one way.
struct JobFacts {
  Status ran;
  double few_us = 0;  // of `few_bytes`
  uint64_t few_bytes = 0;
  double many_us = 0;
  uint64_t many_bytes = 0;
};
// Checks the tiny job that was run; nothing: it could not be tried.
Finding CheckJob(const std::optional<JobFacts>& facts);

struct MallocFacts {
  std::string path;                     // of libferry_malloc.so; empty: ferryrun finds none
  std::string loader_says = {};         // of a program that it is preloaded into; empty: nothing
  int memfd_error = 0;                  // errno of making the file that it shares, or 0
  uint64_t file_bytes = kUnlimited;     // ulimit -f
  uint64_t address_bytes = kUnlimited;  // ulimit -v
  uint64_t quota_bytes = 0;             // quota_pinned_bytes; 0: no limit
  bool is_wanted = false;               // the option malloc asks for it
};

// Checks that ferryrun --malloc would find and preload Ferry's malloc here, and that other ranks
// could map its memory. Where it cannot work, messages go as they would without it: a warning,
// unless ferryrun could not start a job that the options ask for.
Finding CheckMalloc(const MallocFacts& facts);

}  // namespace ferry::tools
