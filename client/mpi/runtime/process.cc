#include "client/mpi/runtime/process.h"

#include <atomic>
#include <cstdio>
#include <utility>
#include <vector>

#include "client/include/ferry/ferry.h"
#include "client/mpi/runtime/predefined.h"
#include "client/mpi/runtime/tables.h"
#include "common/library_words.h"
#include "config/environment.h"

namespace ferry::mpi {

client::FrontEnd* front_end = nullptr;

namespace {

struct State {
  std::atomic<Phase> phase{Phase::kBefore};
  int thread_level = MPI_THREAD_SINGLE;
  std::thread::id main_thread;
  bool own_connection = false;  // ferry_init was ours to call
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
  if (ferry_initialized() == 0) {
    if (ferry_init_alone(FerryLevel(required), nullptr) != FERRY_SUCCESS) {
      return {MPI_ERR_OTHER, ferry_last_error()};
    }
    state.own_connection = true;
  }
  front_end = ferry_front_end(client::kFrontEndVersion);
  if (front_end == nullptr) {
    return {MPI_ERR_OTHER, "libferry and libmpi_abi are not of one release: install both anew"};
  }
  if (required >= MPI_THREAD_MULTIPLE) {
    Process::AllowThreads();
  } else {
    threads_may_meet.store(false, std::memory_order_relaxed);
  }
  return {};
}

Failure Disconnect() {
  if (state.own_connection && ferry_finalize() != FERRY_SUCCESS) {
    return {MPI_ERR_OTHER, ferry_last_error()};
  }
  front_end = nullptr;
  threads_may_meet.store(true, std::memory_order_relaxed);
  return {};
}

void MakeCommunicators() {
  const auto rank = static_cast<int>(front_end->rank());
  const auto size = static_cast<int>(front_end->size());
  const Ref<ErrorHandler> handler =
      Ref<ErrorHandler>::Share(error_handlers.Find(Process::initial_error_handler()));
  state.world = MakeRef<Comm>(kWorldNumber, RankSet::Strided(0, 1, size), rank, handler);
  state.world->SetHandle(MPI_COMM_WORLD);
  state.world->SetName("MPI_COMM_WORLD");
  state.self = MakeRef<Comm>(kSelfNumber, RankSet::Strided(rank, 1, 1), 0, handler);
  state.self->SetHandle(MPI_COMM_SELF);
  state.self->SetName("MPI_COMM_SELF");
  comms.SetPredefined(MPI_COMM_WORLD, state.world.get());
  comms.SetPredefined(MPI_COMM_SELF, state.self.get());
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
  if (Failure failure = Connect(required); !failure.ok()) {
    return failure;
  }
  if (Failure failure = agree(); !failure.ok()) {
    (void)Disconnect();  // what was wrong before it says more
    return failure;
  }
  MakePredefined();
  MakeCommunicators();
  state.thread_level = required;
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
    if (Failure failure = action(); !failure.ok()) {
      return failure;
    }
  }
  if (Failure failure = Disconnect(); !failure.ok()) {
    return failure;
  }
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
int Process::thread_level() { return state.thread_level; }
bool Process::IsMainThread() { return std::this_thread::get_id() == state.main_thread; }
Comm& Process::world() { return *state.world; }
Comm& Process::self() { return *state.self; }

void Process::AllowThreads() {
  if (!AreThreadsAllowed()) {
    front_end->AllowThreads();
    threads_may_meet.store(true, std::memory_order_relaxed);
    threads_allowed_.store(true, std::memory_order_release);
  }
}

void Process::RestrictThreads() {
  helper_at_rest_.store(false, std::memory_order_relaxed);  // looked at once for each rest
  if (state.thread_level < MPI_THREAD_MULTIPLE) {
    front_end->RestrictThreads();
    threads_may_meet.store(false, std::memory_order_relaxed);
    threads_allowed_.store(false, std::memory_order_release);
  }
}

void Process::AtFinalize(std::function<Failure()> action) {
  state.at_finalize.push_back(std::move(action));
}

int ErrorClassOf(ErrorCode error) {
  switch (error) {
    case ErrorCode::kOk:
    case ErrorCode::kCancelled:
      return MPI_SUCCESS;
    case ErrorCode::kTruncated:
      return MPI_ERR_TRUNCATE;
    case ErrorCode::kInvalidRank:
      return MPI_ERR_RANK;
    case ErrorCode::kInvalidTag:
      return MPI_ERR_TAG;
    case ErrorCode::kOutOfMemory:
      return MPI_ERR_NO_MEM;
    case ErrorCode::kInvalidBuffer:
      return MPI_ERR_BUFFER;
    case ErrorCode::kInvalidRequest:
      return MPI_ERR_REQUEST;
    case ErrorCode::kInvalidArgument:
      return MPI_ERR_ARG;
    case ErrorCode::kPeerDied:
    case ErrorCode::kNotFound:
    case ErrorCode::kNodeUnreachable:
      return MPI_ERR_PROC_ABORTED;
    case ErrorCode::kUnsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
      return MPI_ERR_OTHER;
  }
}

Failure FailureOf(const Status& status) { return {ErrorClassOf(status.code()), status.message()}; }

Failure FailureOfQueue(const Status& status) {
  return status.code() == ErrorCode::kCancelled ? Failure{MPI_ERR_OTHER, status.message()}
                                                : FailureOf(status);
}

Failure FailureOf(ErrorCode error) {
  if (ErrorClassOf(error) == MPI_SUCCESS) {
    return {};
  }
  const Status status = front_end->Explain(error);
  return {ErrorClassOf(error), status.ToString()};
}

}  // namespace ferry::mpi
