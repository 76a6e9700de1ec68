#include "daemon/ferryd.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/number_text.h"
#include "common/open_files.h"
#include "common/unique_fd.h"
#include "common/version.h"
#include "config/environment.h"
#include "config/loader.h"
#include "config/reference.h"
#include "daemon/control/control_server.h"
#include "daemon/hook_relay.h"

namespace ferry::daemon {
namespace {

// ---- The service manager that started ferryd: the protocol of sd_notify(3) ----
// Which one that is stands in the environment (NOTIFY_SOCKET); without one nothing happens. A call
// is one small datagram. Any thread.

constexpr int kKeepEnvironment = 0;
constexpr uint64_t kNsPerUs = 1'000;

// `state`, and `status` as a line for `systemctl status`.
std::string Words(const std::string& state, const std::string& status) {
  return state + "\nSTATUS=" + status;
}

// Tells that ferryd serves. Blocks while the manager's queue is full: it may not miss this. A
// failure is not reported; a manager that missed it says so itself.
void TellReady(const std::string& status) {
  (void)sd_notify(kKeepEnvironment, Words("READY=1", status).c_str());
}

// Tells the rest, which a manager with a full queue misses. sd_notify would wait for it, and the
// control thread with it, so that one manager that reads nothing would stop all jobs.
void Tell(const std::string& state, const std::string& status) {
  const auto path = config::FindVariable(config::ProcessEnvironment(), "NOTIFY_SOCKET");
  sockaddr_un manager{};
  manager.sun_family = AF_UNIX;
  if (!path || path->empty() || path->size() >= sizeof(manager.sun_path)) {
    return;
  }
  path->copy(manager.sun_path, path->size());
  if (path->starts_with('@')) {
    manager.sun_path[0] = '\0';  // a name of Linux, which is no file
  }
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path->size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::string words = Words(state, status);
  (void)sendto(fd.get(), words.data(), words.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&manager), bytes);
}

void TellAlive(const std::string& status) { Tell("WATCHDOG=1", status); }

// Returns how long the manager waits for a sign of life before it ends this process; 0 when it does
// not watch. Signs should come twice as often.
uint64_t WatchdogNs() {
  uint64_t microseconds = 0;
  return sd_watchdog_enabled(kKeepEnvironment, &microseconds) > 0 ? microseconds * kNsPerUs : 0;
}

// ---- Memory ----

// Limits the memory that ferryd keeps after callers made it allocate some for moments. Left to
// itself, the C library has as many heaps as there are threads, up to eight for each CPU, each of
// which keeps what it once had to hold; and where a block of megabytes was freed, it keeps as much
// from then on at each heap's end.
void KeepLittleMemory() {
  constexpr int kMostHeaps = 4;  // for two or three threads that do much at a time
  constexpr int kLargeBytes = 1 << 20;
  (void)mallopt(M_ARENA_MAX, kMostHeaps);
  (void)mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  (void)mallopt(M_TRIM_THRESHOLD, kLargeBytes);
}

// ---- The program ----

constexpr int kCannotStart = 1;
constexpr int kBadUsage = 2;

// The command line: ferryd's own flags, and the rest, which are options of config/.
struct Arguments {
  bool help = false;
  bool version = false;
  bool remove_parent = false;
  UniqueFd ready;
  std::vector<std::string> options;
};

Status BadFlag(const std::string& why) { return {ErrorCode::kConfiguration, why}; }

// The value of `--name VALUE` or `--name=VALUE` at argv[*index], or nothing if it is another flag.
std::optional<std::string> TakeValue(std::string_view name, int argc, char** argv, int* index) {
  const std::string_view argument = argv[*index];
  if (argument.starts_with(name) && argument.size() > name.size() && argument[name.size()] == '=') {
    return std::string(argument.substr(name.size() + 1));
  }
  if (argument != name) {
    return std::nullopt;
  }
  return ++*index < argc ? argv[*index] : "";
}

StatusOr<Arguments> ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      arguments.help = true;
    } else if (argument == "--version") {
      arguments.version = true;
    } else if (argument == "--remove-parent") {
      arguments.remove_parent = true;
    } else if (const auto file = TakeValue("--config", argc, argv, &i)) {
      if (file->empty()) {
        return BadFlag("flag --config needs a file");
      }
      arguments.options.push_back("--config_file=" + *file);
    } else if (const auto number = TakeValue("--ready-fd", argc, argv, &i)) {
      const int fd = NumberIn<int>(*number).value_or(-1);
      if (fd < 0) {
        return BadFlag("flag --ready-fd needs the number of an open descriptor, not \"" + *number +
                       "\"");
      }
      arguments.ready.Reset(fd);
    } else {
      arguments.options.emplace_back(argument);
    }
  }
  return arguments;
}

void PrintHelp() {
  std::printf(
      "ferryd %s: carries the GPU and host buffers of the jobs on this node\n\n"
      "usage: ferryd [--config FILE] [--ready-fd N] [--remove-parent] [--OPTION VALUE]...\n\n"
      "  --config FILE    read options from this TOML file (the same as --config_file)\n"
      "  --ready-fd N     write a line to descriptor N once ferryd serves\n"
      "  --remove-parent  after serving, also remove the run directory's folder if it is empty\n"
      "  --version        print the version and those of layout and protocol\n"
      "  --help           print this\n\n"
      "SIGTERM or SIGINT drains and stops, a second one stops at once.\n"
      "Each option may also be set in the file, or in the environment (FERRY_LOG_LEVEL).\n\n%s",
      kFerryVersion, config::FlagsHelp().c_str());
}

StatusOr<config::Options> LoadOptions(const std::vector<std::string>& flags) {
  std::vector<const char*> pointers;
  pointers.reserve(flags.size());
  for (const std::string& flag : flags) {
    pointers.push_back(flag.c_str());
  }
  for (const std::string& sentence : config::UnknownVariables(config::ProcessEnvironment())) {
    std::fprintf(stderr, "ferryd: warning: %s\n", sentence.c_str());
  }
  return config::LoadOptions(pointers, config::ProcessEnvironment());
}

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

// `how`: SIG_BLOCK or SIG_UNBLOCK. Threads made while they are blocked inherit that, so that
// signals come to the main thread, once it is ready.
void MaskSignals(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) {
    sigaddset(&set, number);
  }
  pthread_sigmask(how, &set, nullptr);
}

// With the control server its handler goes too, and a signal would end us before our files are
// removed. One may well come now: a launcher that is killed sends its own once for each of its
// threads as they end, one after the other.
void ForgetSignals() {
  for (const int number : kSignals) {
    signal(number, SIG_IGN);
  }
}

// For a launcher that was killed: no other process is left to remove the folder that it made.
void RemoveParent(const std::string& run_directory) {
  const std::filesystem::path parent = std::filesystem::path(run_directory).parent_path();
  if (!parent.empty()) {
    rmdir(parent.c_str());
  }
}

// Libraries end a process that gets no stack for one of their threads, without a message that
// helps.
Status CheckAddressSpace() {
  constexpr size_t kNeededBytes = size_t{256} << 20;
  void* room = mmap(nullptr, kNeededBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    return StatusFromErrno(errno, "ferryd needs " + std::to_string(kNeededBytes >> 20) +
                                      " MiB more address space than it may have (`ulimit -v`)");
  }
  munmap(room, kNeededBytes);
  return {};
}

// They do so, too, if they get no descriptor.
Status CheckDescriptors() {
  constexpr size_t kNeeded = 16;
  std::vector<UniqueFd> room;
  while (room.size() < kNeeded) {
    room.emplace_back(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!room.back().valid() && (errno == EMFILE || errno == ENFILE)) {
      return StatusFromErrno(
          errno, "ferryd needs " + std::to_string(kNeeded) + " descriptors more to serve at all");
    }
  }
  return {};
}

Status Serve(const config::Options& options, Arguments& arguments, const MakeParts& make_parts) {
  MaskSignals(SIG_BLOCK);
  signal(SIGCHLD, SIG_DFL);  // else ferryd would not learn how a worker process ended
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // of a log file that may not grow
  FERRY_RETURN_IF_ERROR(CheckAddressSpace());
  HookRelay relay;
  StatusOr<DaemonParts> parts = make_parts(options, relay.Hooks());
  FERRY_RETURN_IF_ERROR(parts.status());
  FERRY_RETURN_IF_ERROR(CheckAddressSpace());
  FERRY_RETURN_IF_ERROR(CheckDescriptors());
  auto server = ControlServer::Start(options, *parts->data_plane, std::move(parts->gpus));
  FERRY_RETURN_IF_ERROR(server.status());
  relay.Attach(server->get());
  (*server)->HandleSignals([&server = **server] {
    // The time is what Type=notify-reload wants (systemd 253); older ones ignore it.
    Tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(MonotonicNs() / kNsPerUs), "reloading");
    server.ReloadTls();
    Tell("READY=1", "serves");
  });
  MaskSignals(SIG_UNBLOCK);
  constexpr std::string_view kReady = "ready\n";
  UniqueFd& ready = arguments.ready;
  const bool told =
      !ready.valid() || write(ready.get(), kReady.data(), kReady.size()) > 0 || errno == EPIPE;
  Status status =
      told ? Status() : StatusFromErrno(errno, "writing to the descriptor of --ready-fd");
  ready.Reset();
  if (status.ok()) {
    TellReady("serves " + (*server)->run_directory());
    if (const uint64_t watchdog_ns = WatchdogNs(); watchdog_ns > 0) {
      (*server)->StartWatchdog(watchdog_ns / 2, TellAlive);
    }
    (*server)->RunUntilStopped([] { Tell("STOPPING=1", "waits for its ranks to leave"); });
  }
  MaskSignals(SIG_BLOCK);
  relay.Attach(nullptr);
  server->reset();
  ForgetSignals();
  if (arguments.remove_parent) {
    RemoveParent(options.run_directory);
  }
  return status;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "ferryd: %s\n", status.message().c_str());
  return status.code() == ErrorCode::kConfiguration ? kBadUsage : kCannotStart;
}

}  // namespace

int RunFerryd(int argc, char** argv, const MakeParts& make_parts) {
  StatusOr<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments.ok()) {
    return Fail(arguments.status());
  }
  if (arguments->help) {
    PrintHelp();
    return 0;
  }
  if (arguments->version) {
    std::printf("ferryd %s (layout version %u, protocol version %u)\n", kFerryVersion,
                kLayoutVersion, kProtocolVersion);
    return 0;
  }
  const StatusOr<config::Options> options = LoadOptions(arguments->options);
  if (!options.ok()) {
    return Fail(options.status());
  }
  const LogSettings log{options->log_level, options->log_format, options->log_file};
  if (Status status = SetUpLog("ferryd", log); !status.ok()) {
    return Fail(status);
  }
  RaiseOpenFiles();
  KeepLittleMemory();
  Status status;
  try {
    status = Serve(*options, *arguments, make_parts);
  } catch (const std::bad_alloc&) {
    status = {ErrorCode::kOutOfMemory, "no memory is left"};
  } catch (const std::exception& error) {  // of libraries, such as Asio, that get no descriptor
    status = {ErrorCode::kSystem, std::string("cannot serve: ") + error.what()};
  }
  return status.ok() ? 0 : Fail(status);
}

}  // namespace ferry::daemon
