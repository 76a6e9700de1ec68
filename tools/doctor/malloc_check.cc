#include "tools/doctor/malloc_check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/unique_fd.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/program.h"

namespace ferry::tools {
namespace {

// As in client/malloc/heap.cc.
constexpr uint64_t kFirstFileBytes = uint64_t{256} << 20;
constexpr uint64_t kLeastFileBytes = uint64_t{4} << 20;
constexpr uint64_t kLeastAddressBytes = uint64_t{32} << 20;

std::string Mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

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

}  // namespace

MallocFacts LookForMalloc() {
  MallocFacts facts;
  if (const StatusOr<std::string> library = FindMallocLibrary(); library.ok()) {
    facts.path = *library;
    facts.loader_says = WhatTheLoaderSays(*library);
  }
  return facts;
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
  if (facts.file_bytes < kLeastFileBytes) {
    return warn("files may have " + Mebibytes(facts.file_bytes) + is_private,
                "ulimit -f unlimited");
  }
  if (facts.address_bytes < kLeastAddressBytes) {
    return warn(
        "programs may have " + Mebibytes(facts.address_bytes) + " of addresses" + is_private,
        "ulimit -v unlimited");
  }
  if (facts.quota_bytes != 0 && facts.quota_bytes < kFirstFileBytes) {
    return warn("quota_pinned_bytes is " + Mebibytes(facts.quota_bytes) +
                    ", and malloc's memory begins with " + Mebibytes(kFirstFileBytes) + is_private,
                "raise quota_pinned_bytes by that for each rank of the node, or set it to 0");
  }
  if (facts.file_bytes != kUnlimited) {
    return warn("files may have " + Mebibytes(facts.file_bytes) +
                    ": with ferryrun --malloc no more of a rank's memory is shared",
                "ulimit -f unlimited");
  }
  if (facts.address_bytes != kUnlimited) {
    return warn("programs may have " + Mebibytes(facts.address_bytes) +
                    " of addresses: with ferryrun --malloc half of them are malloc's",
                "ulimit -v unlimited");
  }
  return finding;
}

}  // namespace ferry::tools
