#include "client/mpi/runtime/process.h"

#include <sys/utsname.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/include/ferry/ferry.h"
#include "client/mpi/base/error_handler.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/datatype/basic_type.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/op/op.h"
#include "common/library_words.h"
#include "config/environment.h"

namespace ferry::mpi {
namespace {

struct State {
  std::atomic<Phase> phase{Phase::kBefore};
  std::thread::id main_thread;
  Ref<Comm> world;
  Ref<Comm> self;
  std::vector<std::function<Failure()>> at_finalize;
};

// Not destroyed at exit: threads of the program may still run.
State& state = *new State();

int FerryLevel(int level) {
  return level >= MPI_THREAD_MULTIPLE     ? FERRY_THREAD_MULTIPLE
         : level >= MPI_THREAD_SERIALIZED ? FERRY_THREAD_SERIALIZED
         : level >= MPI_THREAD_FUNNELED   ? FERRY_THREAD_FUNNELED
                                          : FERRY_THREAD_SINGLE;
}

Failure Connect(int required) {
  if (ferry_front_end_join(FerryLevel(required)) != FERRY_SUCCESS) {
    return {MPI_ERR_OTHER, ferry_last_error()};
  }
  front_end = ferry_front_end(client::kFrontEndVersion);
  if (front_end == nullptr) {
    return {MPI_ERR_OTHER, "libferry and libmpi_abi are not of one release: install both anew"};
  }
  Threads::Begin(required);
  return {};
}

Failure Disconnect() {
  if (ferry_front_end_leave() != FERRY_SUCCESS) {
    return {MPI_ERR_OTHER, ferry_last_error()};
  }
  front_end = nullptr;
  Threads::End();
  return {};
}

// Predefined objects are never freed: those that have no handle any more are kept here.
std::vector<Object*>& kept = *new std::vector<Object*>();

// Puts the objects that the standard predefines, other than communicators, into their tables.
void MakePredefined() {
  error_handlers.SetPredefined(MPI_ERRORS_ARE_FATAL, new ErrorHandler(ErrorHandler::Kind::kFatal));
  error_handlers.SetPredefined(MPI_ERRORS_ABORT, new ErrorHandler(ErrorHandler::Kind::kAbort));
  error_handlers.SetPredefined(MPI_ERRORS_RETURN, new ErrorHandler(ErrorHandler::Kind::kReturn));
  groups.SetPredefined(MPI_GROUP_EMPTY, new Group(RankSet()));
  for (const BasicType& basic : BasicTypes()) {
    datatypes.SetPredefined(basic.handle, new Datatype(basic));
  }
  for (const PredefinedOp& op : PredefinedOps()) {
    ops.SetPredefined(op.handle, new Op(op.kind, op.handle, op.name));
  }
}

// Takes datatypes and operations out again, so that their handles stand for nothing. The objects
// stay: a program may still hold datatypes made of them.
void ForgetPredefined() {
  for (const BasicType& basic : BasicTypes()) {
    kept.push_back(datatypes.Find(basic.handle));
    datatypes.SetPredefined(basic.handle, nullptr);
  }
  for (const PredefinedOp& op : PredefinedOps()) {
    kept.push_back(ops.Find(op.handle));
    ops.SetPredefined(op.handle, nullptr);
  }
}

Ref<Comm> MakePredefinedComm(MPI_Comm handle, const char* name, uint32_t number, RankSet group,
                             int rank) {
  Ref<Comm> comm = MakeRef<Comm>(
      number, std::move(group), rank,
      Ref<ErrorHandler>::Share(error_handlers.Find(Process::initial_error_handler())));
  comm->SetHandle(handle);
  comm->SetName(name);
  comms.SetPredefined(handle, comm.get());
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

}  // namespace

Failure Process::Initialize(int required, int* provided, Failure (*agree)()) {
  if (phase() != Phase::kBefore) {
    return {MPI_ERR_OTHER, phase() == Phase::kRunning
                               ? "MPI was initialised before"
                               : "MPI_Finalize was called; MPI cannot be initialised again"};
  }
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    return {MPI_ERR_ARG, "the thread level " + std::to_string(required) +
                             " is none of MPI_THREAD_SINGLE, FUNNELED, SERIALIZED and MULTIPLE"};
  }
  FERRY_RETURN_FAILURE(Connect(required));
  if (Failure failure = agree(); !failure.ok()) {
    (void)Disconnect();  // what was wrong before it says more
    return failure;
  }
  MakePredefined();
  MakeCommunicators();
  state.main_thread = std::this_thread::get_id();
  if (provided != nullptr) {
    *provided = required;
  }
  state.phase.store(Phase::kRunning, std::memory_order_release);
  return {};
}

Failure Process::Finalize() {
  while (!state.at_finalize.empty()) {
    const std::function<Failure()> action = std::move(state.at_finalize.back());
    state.at_finalize.pop_back();
    FERRY_RETURN_FAILURE(action());
  }
  FERRY_RETURN_FAILURE(Disconnect());
  comms.SetPredefined(MPI_COMM_WORLD, nullptr);
  comms.SetPredefined(MPI_COMM_SELF, nullptr);
  ForgetPredefined();
  state.phase.store(Phase::kAfter, std::memory_order_release);
  return {};
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
bool Process::IsMainThread() { return std::this_thread::get_id() == state.main_thread; }
Comm& Process::world() { return *state.world; }
Comm& Process::self() { return *state.self; }

void Process::AtFinalize(std::function<Failure()> action) {
  state.at_finalize.push_back(std::move(action));
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
  if (Process::phase() == Phase::kRunning) {
    facts.memory_alloc_kinds = front_end->options().memory_alloc_kinds;
    const uint64_t told = front_end->options().app_size;
    facts.max_processes = told != 0 ? static_cast<int>(told) : Process::world().size();
  }
  return facts;
}

const MemoryKinds& ServedMemoryKinds() {
  static const MemoryKinds& kinds = *new MemoryKinds(front_end->options().gpu_backend);
  return kinds;
}

Ref<Info> MakeEnvironment() {
  StartFacts facts = FactsOfStart();
  DescribeOwnCommand(&facts);
  return MakeRef<Info>(DescribeStart(facts));
}

}  // namespace ferry::mpi
