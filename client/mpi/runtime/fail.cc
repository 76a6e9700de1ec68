#include "client/mpi/runtime/fail.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client/mpi/runtime/process.h"
#include "common/library_words.h"

namespace ferry::mpi {
namespace {

struct Last {
  int error_class = 0;
  std::string sentence;
};
thread_local Last last;

std::string HexText(const void* handle) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", handle);
  return handle == nullptr ? "0x0" : text;
}

const char* NotRunning() {
  return Process::phase() == Phase::kBefore ? "call MPI_Init or MPI_Init_thread first"
                                            : "MPI_Finalize was called";
}

// The communicator of a window has the window's handler and handle (window/window.h).
void CallProgram(const ErrorHandler& handler, const Comm& comm, int code) {
  if (handler.owner == ErrorHandler::Owner::kWindow) {
    auto handle = reinterpret_cast<MPI_Win>(comm.handle());
    handler.win_function(&handle, &code);
  } else {
    MPI_Comm handle = comm.handle();
    handler.comm_function(&handle, &code);
  }
}

[[noreturn]] void Die(int error_class, const std::string& sentence) {
  if (Process::phase() != Phase::kRunning) {
    SayToUser(-1, sentence);
    std::exit(error_class);
  }
  Process::Abort(error_class, sentence);
}

}  // namespace

void Remember(int error_class, std::string sentence) { last = {error_class, std::move(sentence)}; }

const std::string& LastMessage(int error_class) {
  static const std::string none;
  return last.error_class == error_class ? last.sentence : none;
}

int Fail(const char* call, Comm* comm, const Failure& failure) {
  return Fail(call, comm, failure.error_class, failure.text);
}

int Fail(const char* call, Comm* comm, int error_class, std::string text) {
  std::string sentence = std::string(call) + ": " + std::move(text);
  if (comm == nullptr && Process::phase() == Phase::kRunning) {
    comm = &Process::self();
  }
  const Ref<ErrorHandler> handler = comm == nullptr ? nullptr : comm->error_handler();
  if (!handler ? Process::initial_error_handler() != MPI_ERRORS_RETURN
               : handler->kind == ErrorHandler::Kind::kFatal ||
                     handler->kind == ErrorHandler::Kind::kAbort) {
    Die(error_class, sentence);
  }
  Remember(error_class, std::move(sentence));
  if (handler && handler->kind == ErrorHandler::Kind::kUser) {
    CallProgram(*handler, *comm, error_class);
  }
  return error_class;
}

int FailComm(const char* call, MPI_Comm handle) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  return Fail(call, nullptr, MPI_ERR_COMM,
              handle == MPI_COMM_NULL
                  ? "the communicator is MPI_COMM_NULL"
                  : "the communicator " + HexText(handle) + " does not exist: was it freed?");
}

int FailHandle(const char* call, Comm* comm, int error_class, const char* kind,
               const void* handle) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  return Fail(call, comm, error_class,
              "the " + std::string(kind) + " " + HexText(handle) +
                  " does not exist: is it null, or was it freed?");
}

int FailUnsupported(const char* call) {
  return Fail(call, nullptr, MPI_ERR_UNSUPPORTED_OPERATION,
              "Ferry does not have this call yet (docs/mpi.md lists those it has)");
}

int CheckRunning(const char* call) {
  return Process::phase() == Phase::kRunning ? MPI_SUCCESS
                                             : Fail(call, nullptr, MPI_ERR_OTHER, NotRunning());
}

}  // namespace ferry::mpi
