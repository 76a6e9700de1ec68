// Error handlers (MPI 5.0, section 9.3). Sessions, windows and files, which Ferry does not have,
// can have handlers made for them; the null file has a handler, too: that of files that cannot be
// opened.
#include "client/mpi/base/error_handler.h"

#include <mutex>
#include <string>
#include <utility>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/error_codes.h"
#include "client/mpi/runtime/fail.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

using Owner = ErrorHandler::Owner;

template <typename Argument>
int CreateHandler(Call call, bool has_function, Argument argument, MPI_Errhandler* handle) {
  call.Need(handle, "errhandler");
  if (!has_function) {
    call.Refuse(MPI_ERR_ARG, "the function is a null pointer");
  }
  return call.Then([&] { call.Give(MakeRef<ErrorHandler>(argument), handle); });
}

// A handler of a program's for objects of one kind.
ErrorHandler* FindFor(Call& call, Owner owner, MPI_Errhandler handle) {
  ErrorHandler* const handler = call.Find(handle);
  if (handler != nullptr && !handler->IsFor(owner)) {
    call.Refuse(MPI_ERR_ERRHANDLER, "the error handler was made for another kind of object");
  }
  return call.ok() ? handler : nullptr;
}

// A handle for a handler that an object has. Of predefined ones the handle that everybody knows.
void Hand(Call& call, Ref<ErrorHandler> handler, MPI_Errhandler* handle) {
  switch (handler->kind) {
    case ErrorHandler::Kind::kUser:
      call.Give(std::move(handler), handle);
      return;
    case ErrorHandler::Kind::kFatal:
      *handle = MPI_ERRORS_ARE_FATAL;
      break;
    case ErrorHandler::Kind::kAbort:
      *handle = MPI_ERRORS_ABORT;
      break;
    case ErrorHandler::Kind::kReturn:
      *handle = MPI_ERRORS_RETURN;
      break;
  }
}

void CheckCode(Call& call, int code) {
  int error_class = 0;
  call.Refuse(ProcessErrorCodes().ClassOf(code, &error_class));
}

std::string SaidByProgram(int code) {
  std::string text;
  (void)ProcessErrorCodes().TextOf(code, &text);
  return "the program reports error " + std::to_string(code) + " (" + text + ")";
}

// ---- The handler of MPI_FILE_NULL --------------------------------------------------------------

std::mutex file_mutex;
Ref<ErrorHandler> file_handler;  // null: MPI_ERRORS_RETURN

Ref<ErrorHandler> FileHandler() {
  std::lock_guard lock(file_mutex);
  return file_handler ? file_handler
                      : Ref<ErrorHandler>::Share(error_handlers.Find(MPI_ERRORS_RETURN));
}

void NeedFileNull(Call& call, MPI_File file) {
  call.NeedRunning();
  if (file != MPI_FILE_NULL) {
    call.Refuse(MPI_ERR_FILE, "the file does not exist: Ferry opens no files");
  }
}

int NoObject(const char* name, int error_class, const char* kind, const void* handle) {
  return FailHandle(name, nullptr, error_class, kind, handle);
}

}  // namespace

FERRY_MPI_CALL(int, Errhandler_free, (MPI_Errhandler * errhandler)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errhandler, "errhandler");
  if (!call.ok() || call.Find(*errhandler) == nullptr) {
    return call.result();
  }
  // Predefined ones stay: a program may free what MPI_Comm_get_errhandler gave it.
  if (ErrorHandler* const freed = error_handlers.Remove(*errhandler)) {
    freed->Release();
  }
  *errhandler = MPI_ERRHANDLER_NULL;
  return call.result();
}

// ---- Communicators ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Comm_create_errhandler,
               (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  ErrorHandler* const handler = FindFor(call, Owner::kComm, errhandler);
  return call.Then([&] { found->SetErrorHandler(Ref<ErrorHandler>::Share(handler)); });
}

FERRY_MPI_CALL(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, found->error_handler(), errhandler); });
}

FERRY_MPI_CALL(int, Comm_call_errhandler, (MPI_Comm comm, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  (void)Fail(FERRY_MPI_NAME, found, errorcode, SaidByProgram(errorcode));
  return MPI_SUCCESS;
}

// ---- Files --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, File_create_errhandler,
               (MPI_File_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  NeedFileNull(call, file);
  ErrorHandler* const handler = FindFor(call, Owner::kFile, errhandler);
  return call.Then([&] {
    std::lock_guard lock(file_mutex);
    file_handler = Ref<ErrorHandler>::Share(handler);
  });
}

FERRY_MPI_CALL(int, File_get_errhandler, (MPI_File file, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  NeedFileNull(call, file);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, FileHandler(), errhandler); });
}

FERRY_MPI_CALL(int, File_call_errhandler, (MPI_File file, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  NeedFileNull(call, file);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  const Ref<ErrorHandler> handler = FileHandler();
  const std::string sentence = "MPI_File_call_errhandler: " + SaidByProgram(errorcode);
  if (handler->kind == ErrorHandler::Kind::kUser) {
    handler->file_function(&file, &errorcode);
  } else if (handler->kind == ErrorHandler::Kind::kReturn) {
    Remember(errorcode, sentence);
  } else {
    Process::Abort(errorcode, sentence);
  }
  return call.result();
}

// ---- Sessions and windows: there are none -------------------------------------------------------

FERRY_MPI_CALL(int, Session_create_errhandler,
               (MPI_Session_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, Owner::kSession, errhandler);
}

FERRY_MPI_CALL(int, Session_set_errhandler, (MPI_Session session, MPI_Errhandler)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_SESSION, "MPI_Session", session);
}

FERRY_MPI_CALL(int, Session_get_errhandler, (MPI_Session session, MPI_Errhandler*)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_SESSION, "MPI_Session", session);
}

FERRY_MPI_CALL(int, Session_call_errhandler, (MPI_Session session, int)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_SESSION, "MPI_Session", session);
}

FERRY_MPI_CALL(int, Win_create_errhandler,
               (MPI_Win_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, Owner::kWindow, errhandler);
}

FERRY_MPI_CALL(int, Win_set_errhandler, (MPI_Win win, MPI_Errhandler)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_WIN, "MPI_Win", win);
}

FERRY_MPI_CALL(int, Win_get_errhandler, (MPI_Win win, MPI_Errhandler*)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_WIN, "MPI_Win", win);
}

FERRY_MPI_CALL(int, Win_call_errhandler, (MPI_Win win, int)) {
  return NoObject(FERRY_MPI_NAME, MPI_ERR_WIN, "MPI_Win", win);
}

}  // namespace ferry::mpi
