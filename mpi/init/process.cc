#include "mpi/init/process.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/api/front_end_life.h"
#include "common/library_words.h"
#include "config/environment.h"
#include "include/ferry/ferry.h"
#include "mpi/base/error_handler.h"
#include "mpi/base/handle_table.h"
#include "mpi/base/tool_watch.h"
#include "mpi/comm/call_notes.h"
#include "mpi/datatype/basic_type.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/op.h"
#include "shm/wait_policy.h"

namespace ferry::mpi {
namespace {

using Actions = std::vector<std::function<Failure()>>;

struct State {
  std::mutex mutex;  // held while the process joins, leaves, or begins to run
  std::atomic<Phase> phase{Phase::kBefore};
  std::atomic<int> users{0};  // the world model, and each open session
  std::atomic<bool> has_joined{false};
  std::atomic<bool> has_used_sessions{false};
  bool ends = false;  // the process would have left the job at its end, but was using MPI yet
  pid_t owner = 0;    // the process that has used sessions; children that are forked are no ranks
  std::thread::id main_thread;
  int thread_level = MPI_THREAD_SINGLE;
  Ref<Comm> world;
  Ref<Comm> self;
  Actions at_finalize;
  Actions at_leave;
};

// Not destroyed at exit: threads of the program may still run.
State& state = *new State();

int FerryLevel(int level) {
  return level >= MPI_THREAD_MULTIPLE     ? FERRY_THREAD_MULTIPLE
         : level >= MPI_THREAD_SERIALIZED ? FERRY_THREAD_SERIALIZED
         : level >= MPI_THREAD_FUNNELED   ? FERRY_THREAD_FUNNELED
                                          : FERRY_THREAD_SINGLE;
}

// The names of the calls by which the program begins MPI and has to end it.
struct Calls {
  const char* entry;
  const char* exit;
};
constexpr Calls kWorldCalls = {"MPI_Init", "MPI_Finalize"};
constexpr Calls kSessionCalls = {"MPI_Session_init", "MPI_Session_finalize"};

Failure Connect(int required) {
  if (ferry_front_end_join(FerryLevel(required)) != FERRY_SUCCESS) {
    return {MPI_ERR_OTHER, ferry_last_error()};
  }
  front_end = ferry_front_end(client::kFrontEndVersion);
  if (front_end == nullptr) {
    return {MPI_ERR_OTHER, "libferry and libmpi_abi are not of one release: install both anew"};
  }
  shm::SetCrowdedHook(front_end->crowded_hook());
  Threads::Begin(required);
  if (ToolWatch* const watch = CurrentToolWatch(); watch != nullptr) {
    watch->Connected();
  }
  return {};
}

Failure Disconnect() {
  if (ToolWatch* const watch = CurrentToolWatch(); watch != nullptr) {
    watch->Disconnecting();
  }
  EndNotedCalls();  // libferry notes what follows
  if (ferry_front_end_leave() != FERRY_SUCCESS) {
    return {MPI_ERR_OTHER, ferry_last_error()};
  }
  front_end = nullptr;
  Threads::End();
  return {};
}

// Puts the objects that the standard predefines, other than communicators and error handlers, into
// their tables.
void MakePredefined() {
  groups.SetPredefined(MPI_GROUP_EMPTY, new Group(RankSet()));
  for (const BasicType& basic : BasicTypes()) {
    datatypes.SetPredefined(basic.handle, new Datatype(basic));
  }
  for (const PredefinedOp& op : PredefinedOps()) {
    ops.SetPredefined(op.handle, new Op(op.kind, op.handle, op.name));
  }
}

// Datatypes and operations have no handles while MPI does not run. The objects stay: a program may
// still hold datatypes made of them.
struct Hidden {
  std::vector<std::pair<MPI_Datatype, Datatype*>> datatypes;
  std::vector<std::pair<MPI_Op, Op*>> ops;
};
Hidden& hidden = *new Hidden();

void HidePredefined() {
  for (const BasicType& basic : BasicTypes()) {
    hidden.datatypes.emplace_back(basic.handle, datatypes.Find(basic.handle));
    datatypes.SetPredefined(basic.handle, nullptr);
  }
  for (const PredefinedOp& op : PredefinedOps()) {
    hidden.ops.emplace_back(op.handle, ops.Find(op.handle));
    ops.SetPredefined(op.handle, nullptr);
  }
}

void ShowPredefined() {
  for (const auto& [handle, datatype] : hidden.datatypes) {
    datatypes.SetPredefined(handle, datatype);
  }
  for (const auto& [handle, op] : hidden.ops) {
    ops.SetPredefined(handle, op);
  }
  hidden = {};
}

Ref<Comm> MakePredefinedComm(MPI_Comm handle, const char* name, uint32_t number, RankSet group,
                             int rank) {
  Ref<Comm> comm = MakeRef<Comm>(
      number, std::move(group), rank,
      Ref<ErrorHandler>::Share(error_handlers.Find(Process::initial_error_handler())));
  comm->SetHandle(handle);
  comm->SetName(name);
  return comm;
}

void MakeCommunicators() {
  const auto rank = static_cast<int>(front_end->rank());
  const auto size = static_cast<int>(front_end->size());
  state.world = MakePredefinedComm(MPI_COMM_WORLD, "MPI_COMM_WORLD", kWorldNumber,
                                   RankSet::Strided(0, 1, size), rank);
  state.self = MakePredefinedComm(MPI_COMM_SELF, "MPI_COMM_SELF", kSelfNumber,
                                  RankSet::Strided(rank, 1, 1), 0);
}

// ---- Joining and leaving. All under the lock ----------------------------------------------------

Failure Join(int level, const Process::Joining& joining) {
  FERRY_RETURN_FAILURE(Connect(level));
  if (Failure failure = joining.agree(); !failure.ok()) {
    (void)Disconnect();  // what was wrong before it says more
    return failure;
  }
  Process::MakeErrorHandlers();
  MakePredefined();
  MakeCommunicators();
  state.has_joined.store(true, std::memory_order_release);
  joining.prepare();
  return {};
}

// One more that uses MPI, at this thread level.
Failure BeginUse(int level, const Process::Joining& joining, const Calls& calls) {
  if (!Process::IsRunning()) {
    ferry_front_end_begin(calls.entry, calls.exit);
  }
  if (!Process::HasJoined()) {
    FERRY_RETURN_FAILURE(Join(level, joining));
  } else {
    Threads::Raise(level);
    if (!Process::IsRunning()) {
      ShowPredefined();
    }
  }
  state.users.fetch_add(1, std::memory_order_release);
  return {};
}

Failure RunAll(Actions* actions) {
  while (!actions->empty()) {
    const std::function<Failure()> action = std::move(actions->back());
    actions->pop_back();
    FERRY_RETURN_FAILURE(action());
  }
  return {};
}

Failure Leave() {
  FERRY_RETURN_FAILURE(RunAll(&state.at_leave));
  FERRY_RETURN_FAILURE(Disconnect());
  state.has_joined.store(false, std::memory_order_release);
  return {};
}

// A process that has used sessions leaves the job when it ends: in good order if all that it began
// has ended, also if other handlers of atexit do that later. Else the others learn that it has
// died. A program that has called ferry_init may have ended the connection itself.
void LeaveAtEnd() {
  state.ends = Process::IsRunning();
  if (!state.ends && getpid() == state.owner && Process::HasJoined() && ferry_initialized() != 0) {
    (void)Leave();  // there is no caller to report to
  }
}

void LeaveAtExit(int /*exit_code*/, void* /*argument*/) {
  const std::unique_lock lock(state.mutex, std::try_to_lock);
  if (lock.owns_lock()) {  // else a thread joins or leaves just now
    LeaveAtEnd();
  }
}

void EndUse() {
  if (state.users.fetch_sub(1, std::memory_order_release) != 1) {
    return;
  }
  HidePredefined();
  ferry_front_end_end();
  if (state.ends) {
    LeaveAtEnd();
  }
}

}  // namespace

Failure Process::Initialize(int required, int* provided, const Joining& joining) {
  std::lock_guard lock(state.mutex);
  if (phase() != Phase::kBefore) {
    return {MPI_ERR_OTHER, phase() == Phase::kRunning
                               ? "MPI was initialised before"
                               : "MPI_Finalize was called; MPI cannot be initialised again, but "
                                 "sessions can be opened any number of times (MPI_Session_init)"};
  }
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    return {MPI_ERR_ARG, "the thread level " + std::to_string(required) +
                             " is none of MPI_THREAD_SINGLE, FUNNELED, SERIALIZED and MULTIPLE"};
  }
  FERRY_RETURN_FAILURE(BeginUse(required, joining, kWorldCalls));
  comms.SetPredefined(MPI_COMM_WORLD, state.world.get());
  comms.SetPredefined(MPI_COMM_SELF, state.self.get());
  state.main_thread = std::this_thread::get_id();
  state.thread_level = required;
  if (provided != nullptr) {
    *provided = required;
  }
  state.phase.store(Phase::kRunning, std::memory_order_release);
  return {};
}

Failure Process::Finalize() {
  FERRY_RETURN_FAILURE(RunAll(&state.at_finalize));  // without the lock: programs' callbacks run
  std::lock_guard lock(state.mutex);
  if (!HasUsedSessions()) {
    FERRY_RETURN_FAILURE(Leave());
  }
  comms.SetPredefined(MPI_COMM_WORLD, nullptr);
  comms.SetPredefined(MPI_COMM_SELF, nullptr);
  EndUse();
  state.phase.store(Phase::kAfter, std::memory_order_release);
  return {};
}

Failure Process::OpenSession(int thread_level, const Joining& joining) {
  std::lock_guard lock(state.mutex);
  if (!HasJoined() && phase() == Phase::kAfter) {
    return {MPI_ERR_OTHER,
            "MPI_Finalize has left the job, which nobody can join twice: open the first session "
            "before MPI_Finalize; then others can be opened after it"};
  }
  // Above MPI_THREAD_SINGLE, threads of other sessions may call at the same time.
  FERRY_RETURN_FAILURE(
      BeginUse(thread_level == MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, joining,
               kSessionCalls));
  if (!state.has_used_sessions.exchange(true)) {
    state.owner = getpid();
    (void)on_exit(LeaveAtExit, nullptr);
  }
  return {};
}

void Process::CloseSession() {
  std::lock_guard lock(state.mutex);
  EndUse();
}

void Process::MakeErrorHandlers() {
  static const bool made = [] {
    for (const auto& [handle, kind] : {std::pair{MPI_ERRORS_ARE_FATAL, ErrorHandler::Kind::kFatal},
                                       std::pair{MPI_ERRORS_ABORT, ErrorHandler::Kind::kAbort},
                                       std::pair{MPI_ERRORS_RETURN, ErrorHandler::Kind::kReturn}}) {
      error_handlers.SetPredefined(handle, new ErrorHandler(kind));
    }
    return true;
  }();
  (void)made;
}

void Process::Abort(int exit_code, const std::string& sentence) {
  if (!sentence.empty()) {
    SayToUser(ferry_rank(), sentence);
  }
  std::fflush(nullptr);
  ferry_abort(exit_code);
}

// Reads the environment itself: calls may fail before there is a connection.
MPI_Errhandler Process::initial_error_handler() {
  static const MPI_Errhandler handler = [] {
    const auto options = config::OptionsFromEnvironment(config::ProcessEnvironment());
    const std::string name = options.ok() ? options->initial_errhandler : "";
    return name == "mpi_errors_return"  ? MPI_ERRORS_RETURN
           : name == "mpi_errors_abort" ? MPI_ERRORS_ABORT
                                        : MPI_ERRORS_ARE_FATAL;
  }();
  return handler;
}

Phase Process::phase() { return state.phase.load(std::memory_order_acquire); }
bool Process::IsRunning() { return state.users.load(std::memory_order_acquire) != 0; }
bool Process::HasJoined() { return state.has_joined.load(std::memory_order_acquire); }
bool Process::HasUsedSessions() { return state.has_used_sessions.load(std::memory_order_acquire); }
bool Process::IsMainThread() { return std::this_thread::get_id() == state.main_thread; }
int Process::thread_level() { return state.thread_level; }
Comm& Process::world() { return *state.world; }
Comm& Process::self() { return *state.self; }

void Process::AtFinalize(std::function<Failure()> action) {
  state.at_finalize.push_back(std::move(action));
}

void Process::AtLeave(std::function<Failure()> action) {
  state.at_leave.push_back(std::move(action));
}

// ---- How it was started -------------------------------------------------------------------------

namespace {

// The command and its arguments as the system knows them: programs may call MPI_Init without.
void DescribeOwnCommand(StartFacts* facts) {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  DescribeCommand(static_cast<int>(arguments.size()), arguments.data(), facts);
}

}  // namespace

StartFacts FactsOfStart() {
  StartFacts facts;
  std::error_code ignored;
  facts.wdir = std::filesystem::current_path(ignored).string();
  if (utsname system{}; uname(&system) == 0) {
    facts.host = system.nodename;
    facts.arch = system.machine;
  }
  if (Process::HasJoined()) {
    facts.memory_alloc_kinds = front_end->options().memory_alloc_kinds;
    const uint64_t told = front_end->options().app_size;
    facts.max_processes = told != 0 ? static_cast<int>(told) : Process::world().size();
  } else if (const auto options = config::OptionsFromEnvironment(config::ProcessEnvironment());
             options.ok() && options->size != 0) {
    // Before MPI_Init and after MPI_Finalize, what the launcher has told.
    facts.memory_alloc_kinds = options->memory_alloc_kinds;
    facts.max_processes =
        static_cast<int>(options->app_size != 0 ? options->app_size : options->size);
  }
  return facts;
}

const MemoryKinds& ServedMemoryKinds() {
  static const MemoryKinds& kinds = *new MemoryKinds(front_end->options().gpu_backend);
  return kinds;
}

Info::Entry MemoryKindsFor(const Session* session) {
  const std::string& asked = session == nullptr || session->memory_kinds.empty()
                                 ? front_end->options().memory_alloc_kinds
                                 : session->memory_kinds;
  return {"mpi_memory_alloc_kinds", ServedMemoryKinds().Supported(asked)};
}

Ref<Info> MakeEnvironment() {
  StartFacts facts = FactsOfStart();
  DescribeOwnCommand(&facts);
  return MakeRef<Info>(DescribeStart(facts));
}

}  // namespace ferry::mpi
