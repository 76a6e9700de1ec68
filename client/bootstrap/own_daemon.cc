#include "client/bootstrap/own_daemon.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr char kHelperFlag[] = "--daemon";  // of tools/ferryrun/daemons.h
constexpr std::string_view kServes = "serves ";

std::string OwnFolder() {
  Dl_info self{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &self) == 0 || self.dli_fname == nullptr) {
    return "";
  }
  return std::filesystem::canonical(self.dli_fname, ignored).parent_path().string();
}

// The first of those places that has a ferryrun; else the bare name, for PATH.
std::string FindFerryrun() {
  for (const std::string& place : PlacesOfFerryrun(OwnFolder())) {
    if (access(place.c_str(), X_OK) == 0) {
      return place;
    }
  }
  return "ferryrun";
}

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

StatusOr<Ends> MakeEnds() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return StatusFromErrno(errno, "cannot make a pipe");
  }
  Ends made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Moves them above the standard streams: if one of those is closed, a lower number would be
  // overwritten.
  for (UniqueFd* end : {&made.read, &made.write}) {
    if (end->get() <= STDERR_FILENO) {
      end->Reset(fcntl(end->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    }
  }
  return made;
}

// posix_spawn's attributes, freed with it.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // Starts it in its own process group, which signals to the rank's group do not reach, with no
  // signal blocked.
  int Start(const std::string& program, int in, int out, pid_t* pid) {
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    std::string name = program;
    std::string flag = kHelperFlag;
    char* const arguments[] = {name.data(), flag.data(), nullptr};
    return posix_spawnp(pid, program.c_str(), &actions_, &attributes_, arguments,
                        const_cast<char* const*>(config::ProcessEnvironment()));
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::vector<std::string> PlacesOfFerryrun(const std::string& library_folder) {
  if (library_folder.empty()) {
    return {};
  }
  std::vector<std::string> places;
  for (const char* place :
       {"/../bin/ferryrun", "/../../bin/ferryrun", "/../tools/ferryrun/ferryrun", "/ferryrun"}) {
    places.push_back(library_folder + place);
  }
  return places;
}

StatusOr<std::unique_ptr<OwnDaemon>> OwnDaemon::Start() {
  StatusOr<Ends> life = MakeEnds();
  FERRY_RETURN_IF_ERROR(life.status());
  StatusOr<Ends> words = MakeEnds();
  FERRY_RETURN_IF_ERROR(words.status());
  std::unique_ptr<OwnDaemon> daemon(new OwnDaemon());
  const std::string program = FindFerryrun();
  SpawnPlan plan;
  const int error_number = plan.Start(program, life->read.get(), words->write.get(), &daemon->pid_);
  if (error_number != 0) {
    daemon->pid_ = -1;
    return Status(
        ErrorCode::kNotFound,
        "no ferryd serves this node, and " + program +
            ", which would start one for this job, cannot be run: " + std::strerror(error_number));
  }
  daemon->life_ = std::move(life->write);
  daemon->words_ = std::move(words->read);
  words->write.Reset();
  StatusOr<std::string> said = daemon->Read();
  FERRY_RETURN_IF_ERROR(said.status());
  if (!said->starts_with(kServes)) {
    return Status(ErrorCode::kNoDaemon,
                  "no ferryd serves this node, and none could be started for this job: " +
                      (said->empty() ? program + " said nothing" : *said));
  }
  daemon->run_directory_ = said->substr(kServes.size());
  return daemon;
}

// Reads all that ferryrun says: one line if the daemon serves, several if it cannot.
StatusOr<std::string> OwnDaemon::Read() {
  std::string said;
  char bytes[512];
  while (!(said.starts_with(kServes) && said.ends_with('\n'))) {
    const ssize_t size = read(words_.get(), bytes, sizeof(bytes));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return StatusFromErrno(errno, "cannot read what ferryrun says");
    }
    if (size == 0) {
      break;
    }
    said.append(bytes, static_cast<size_t>(size));
  }
  while (said.ends_with('\n')) {
    said.pop_back();
  }
  return said;
}

OwnDaemon::~OwnDaemon() {
  life_.Reset();
  if (pid_ > 0) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace ferry::client
