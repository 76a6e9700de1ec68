#include "mpi/init/fail.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/library_words.h"
#include "common/per_thread.h"
#include "mpi/comm/call_notes.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

struct Last {
  int error_class = 0;
  std::string sentence;
};

const char* NotRunning() {
  if (Process::HasUsedSessions()) {
    return "no session is open, and MPI is not between MPI_Init and MPI_Finalize: call "
           "MPI_Session_init first";
  }
  return Process::phase() == Phase::kBefore ? "call MPI_Init or MPI_Init_thread first"
                                            : "MPI_Finalize was called";
}

// In the words of the interface, which programs know.
std::string CommText(MPI_Comm handle) {
  return handle == MPI_COMM_WORLD  ? "MPI_COMM_WORLD"
         : handle == MPI_COMM_SELF ? "MPI_COMM_SELF"
                                   : HexText(handle);
}

[[noreturn]] void Die(int error_class, const std::string& sentence) {
  if (!Process::HasJoined()) {
    SayToUser(-1, sentence);
    std::exit(error_class);
  }
  Process::Abort(error_class, sentence);
}

}  // namespace

void Remember(int error_class, std::string sentence) {
  OfThisThread<Last>() = {error_class, std::move(sentence)};
}

const std::string& LastMessage(int error_class) {
  static const std::string& none = *new std::string();
  const Last& last = OfThisThread<Last>();
  return last.error_class == error_class ? last.sentence : none;
}

int Fail(const char* call, Comm* comm, const Failure& failure) {
  return Fail(call, comm, failure.error_class, failure.text);
}

int Fail(const char* call, Comm* comm, int error_class, std::string text) {
  if (comm == nullptr && Process::phase() == Phase::kRunning) {
    comm = &Process::self();
  }
  const Failure failure{error_class, std::move(text)};
  return comm == nullptr ? FailBy(call, nullptr, nullptr, failure)
                         : FailBy(call, comm->error_handler(), comm->handle(), failure);
}

int FailBy(const char* call, const Ref<ErrorHandler>& handler, void* object,
           const Failure& failure) {
  std::string sentence = std::string(call) + ": " + failure.text;
  if (!handler ? Process::initial_error_handler() != MPI_ERRORS_RETURN
               : handler->kind == ErrorHandler::Kind::kFatal ||
                     handler->kind == ErrorHandler::Kind::kAbort) {
    Die(failure.error_class, sentence);
  }
  Remember(failure.error_class, std::move(sentence));
  if (handler && handler->kind == ErrorHandler::Kind::kUser) {
    const OutsideCalls outside;
    handler->Tell(object, failure.error_class);
  }
  return failure.error_class;
}

int FailComm(const char* call, MPI_Comm handle) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  const bool is_of_world = handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF;
  return Fail(call, nullptr, MPI_ERR_COMM,
              handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL"
              : is_of_world
                  ? CommText(handle) +
                        " is there between MPI_Init and MPI_Finalize; of a session's group, "
                        "MPI_Comm_create_from_group makes a communicator"
                  : "the communicator " + CommText(handle) + " does not exist: was it freed?");
}

int FailHandle(const char* call, Comm* comm, int error_class, const char* kind,
               const void* handle) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  return Fail(call, comm, error_class, NoSuchHandle(kind, handle));
}

std::string HexText(const void* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  return address == nullptr ? "0x0" : text;
}

std::string NoSuchHandle(const char* kind, const void* handle) {
  return "the " + std::string(kind) + " " + HexText(handle) +
         " does not exist: is it null, or was it freed?";
}

int CheckRunning(const char* call) {
  return Process::IsRunning() ? MPI_SUCCESS : Fail(call, nullptr, MPI_ERR_OTHER, NotRunning());
}

int CheckInWorld(const char* call) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  return Process::phase() == Phase::kRunning
             ? MPI_SUCCESS
             : Fail(call, nullptr, MPI_ERR_OTHER,
                    Process::phase() == Phase::kBefore
                        ? "MPI_Init was not called: it takes more than a session"
                        : "MPI_Finalize was called: it takes more than a session");
}

}  // namespace ferry::mpi
