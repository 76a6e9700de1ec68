// Error classes, codes and their strings (MPI 5.0, sections 9.4 and 9.5), which may be used before
// MPI_Init and after MPI_Finalize; and error handlers (section 9.3). The null file has a handler,
// too: that of files that cannot be opened.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/file_call.h"
#include "mpi/api/function.h"
#include "mpi/base/error_codes.h"
#include "mpi/base/error_handler.h"
#include "mpi/comm/call_notes.h"
#include "mpi/init/fail.h"
#include "mpi/init/process.h"
#include "mpi/io/file.h"

namespace ferry::mpi {
namespace {

using Owner = ErrorHandler::Owner;

// The handles of a program's own handlers. A handle that MPI_Comm_get_errhandler or its like gives
// has to be freed as if it were of a new handler (MPI 5.0, section 9.3.4); but programs compare it
// with the handle that they have set. So a handler has one handle, which lasts until it was freed
// as often as it was given.
class OwnHandles {
 public:
  // A handler that was just made has this handle.
  void Begin(ErrorHandler* handler, MPI_Errhandler handle) {
    std::lock_guard lock(mutex_);
    given_[handler] = {handle, 1};
  }
  // Gives the handler's handle once more; one anew if the program has freed the last one. Null: no
  // memory.
  MPI_Errhandler Again(Ref<ErrorHandler> handler) {
    std::lock_guard lock(mutex_);
    Given& given = given_[handler.get()];
    if (given.times == 0) {
      given.handle = error_handlers.Add(handler.get());
      if (given.handle == nullptr) {
        given_.erase(handler.get());
        return nullptr;
      }
      (void)handler.Leave();  // is the handle's now
    }
    ++given.times;
    return given.handle;
  }
  // Takes the handle back once. Returns the handler, whose handle and reference to it are gone from
  // the table; null: the program still has the handle, or it is a predefined one.
  ErrorHandler* End(ErrorHandler* handler) {
    std::lock_guard lock(mutex_);
    const auto found = given_.find(handler);
    if (found == given_.end() || --found->second.times > 0) {
      return nullptr;
    }
    const MPI_Errhandler handle = found->second.handle;
    given_.erase(found);
    return error_handlers.Remove(handle);
  }

 private:
  struct Given {
    MPI_Errhandler handle = nullptr;
    size_t times = 0;
  };
  std::mutex mutex_;  // guards what follows
  std::unordered_map<ErrorHandler*, Given> given_;
};

// Is never destroyed: programs may free handlers until the process has ended.
OwnHandles& own_handles = *new OwnHandles();

template <typename Argument>
int CreateHandler(Call call, bool has_function, Argument argument, MPI_Errhandler* handle) {
  call.Need(handle, "errhandler");
  if (!has_function) {
    call.Refuse(MPI_ERR_ARG, "the function is a null pointer");
  }
  return call.Then([&] {
    Ref<ErrorHandler> made = MakeRef<ErrorHandler>(argument);
    ErrorHandler* const handler = made.get();
    call.Give(std::move(made), handle);
    if (call.ok()) {
      own_handles.Begin(handler, *handle);
    }
  });
}

// Stores the handle of the error handler of an object; of a predefined one MPI's constant.
void Hand(Call& call, Ref<ErrorHandler> handler, MPI_Errhandler* handle) {
  switch (handler->kind) {
    case ErrorHandler::Kind::kUser: {
      const MPI_Errhandler own = own_handles.Again(std::move(handler));
      if (own == nullptr) {
        call.Refuse(MPI_ERR_NO_MEM, "no memory for another error handler");
      } else {
        *handle = own;
      }
      return;
    }
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

// Returns the file; null: the handle is MPI_FILE_NULL, which has a handler, too, or the call has
// failed.
File* FindFileOrNull(Call& call, MPI_File handle) {
  call.NeedRunning();
  return handle == MPI_FILE_NULL ? nullptr : FindFile(call, handle);
}

Ref<ErrorHandler> HandlerOf(const File* file) {
  return file == nullptr ? NullFileHandler() : file->error_handler();
}

}  // namespace

// ---- Classes and codes --------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Error_class, (int errorcode, int* errorclass)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorclass, "errorclass");
  return call.Then([&] { return ProcessErrorCodes().ClassOf(errorcode, errorclass); });
}

// Gives the meaning of a predefined class, and the sentence of this thread's last call to fail with
// it.
FERRY_MPI_CALL(int, MPI_Error_string, (int errorcode, char* string, int* resultlen)) {
  Call call(FERRY_MPI_NAME);
  call.Need(string, "string", resultlen, "resultlen");
  std::string text;
  if (call.ok()) {
    call.Refuse(ProcessErrorCodes().TextOf(errorcode, &text));
  }
  FERRY_RETURN_ERROR(call.result());
  if (PredefinedErrorName(errorcode) != nullptr && errorcode != MPI_SUCCESS) {
    const std::string& last = LastMessage(errorcode);
    text += last.empty() ? "" : "; " + last;
  }
  text.resize(std::min(text.size(), size_t{MPI_MAX_ERROR_STRING - 1}));
  CopyValue(text, MPI_MAX_ERROR_STRING - 1, string);
  *resultlen = static_cast<int>(text.size());
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Add_error_class, (int* errorclass)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorclass, "errorclass");
  return call.Then([&] { return ProcessErrorCodes().AddClass(errorclass); });
}

FERRY_MPI_CALL(int, MPI_Add_error_code, (int errorclass, int* errorcode)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorcode, "errorcode");
  return call.Then([&] { return ProcessErrorCodes().AddCode(errorclass, errorcode); });
}

FERRY_MPI_CALL(int, MPI_Add_error_string, (int errorcode, const char* string)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().AddText(errorcode, string));
}

FERRY_MPI_CALL(int, MPI_Remove_error_class, (int errorclass)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveClass(errorclass));
}

FERRY_MPI_CALL(int, MPI_Remove_error_code, (int errorcode)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveCode(errorcode));
}

FERRY_MPI_CALL(int, MPI_Remove_error_string, (int errorcode)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveText(errorcode));
}

// ---- Handlers -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Errhandler_free, (MPI_Errhandler * errhandler)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errhandler, "errhandler");
  ErrorHandler* const handler = call.ok() ? call.Find(*errhandler) : nullptr;
  if (handler == nullptr) {
    return call.result();
  }
  // Predefined ones stay: a program may free what MPI_Comm_get_errhandler gave it.
  if (ErrorHandler* const freed = own_handles.End(handler)) {
    freed->Release();
  }
  *errhandler = MPI_ERRHANDLER_NULL;
  return call.result();
}

// ---- Communicators ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Comm_create_errhandler,
               (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  ErrorHandler* const handler = call.FindFor(Owner::kComm, errhandler);
  return call.Then([&] { found->SetErrorHandler(Ref<ErrorHandler>::Share(handler)); });
}

FERRY_MPI_CALL(int, MPI_Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, found->error_handler(), errhandler); });
}

FERRY_MPI_CALL(int, MPI_Comm_call_errhandler, (MPI_Comm comm, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  (void)Fail(FERRY_MPI_NAME, found, errorcode, SaidByProgram(errorcode));
  return MPI_SUCCESS;
}

// ---- Files --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_File_create_errhandler,
               (MPI_File_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, MPI_File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  File* const found = FindFileOrNull(call, file);
  ErrorHandler* const handler = call.FindFor(Owner::kFile, errhandler);
  return call.Then([&] {
    found == nullptr ? SetNullFileHandler(Ref<ErrorHandler>::Share(handler))
                     : found->SetErrorHandler(Ref<ErrorHandler>::Share(handler));
  });
}

FERRY_MPI_CALL(int, MPI_File_get_errhandler, (MPI_File file, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  const File* const found = FindFileOrNull(call, file);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, HandlerOf(found), errhandler); });
}

FERRY_MPI_CALL(int, MPI_File_call_errhandler, (MPI_File file, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  const File* const found = FindFileOrNull(call, file);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  (void)FailBy(FERRY_MPI_NAME, HandlerOf(found), file, {errorcode, SaidByProgram(errorcode)});
  return MPI_SUCCESS;
}

// ---- Windows ------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Win_create_errhandler,
               (MPI_Win_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, MPI_Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  ErrorHandler* const handler = call.FindFor(Owner::kWindow, errhandler);
  return call.Then([&] { found->SetErrorHandler(Ref<ErrorHandler>::Share(handler)); });
}

FERRY_MPI_CALL(int, MPI_Win_get_errhandler, (MPI_Win win, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  const Win* const found = call.Find(win);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, found->error_handler(), errhandler); });
}

FERRY_MPI_CALL(int, MPI_Win_call_errhandler, (MPI_Win win, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  (void)Fail(FERRY_MPI_NAME, &found->comm(), errorcode, SaidByProgram(errorcode));
  return MPI_SUCCESS;
}

// ---- Sessions -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Session_create_errhandler,
               (MPI_Session_errhandler_function * function, MPI_Errhandler* errhandler)) {
  return CreateHandler(FERRY_MPI_NAME, function != nullptr, function, errhandler);
}

FERRY_MPI_CALL(int, MPI_Session_set_errhandler, (MPI_Session session, MPI_Errhandler errhandler)) {
  Call call(FERRY_MPI_NAME);
  Session* const found = call.Find(session);
  ErrorHandler* const handler = call.FindFor(Owner::kSession, errhandler);
  return call.Then([&] { found->SetErrorHandler(Ref<ErrorHandler>::Share(handler)); });
}

FERRY_MPI_CALL(int, MPI_Session_get_errhandler, (MPI_Session session, MPI_Errhandler* errhandler)) {
  Call call(FERRY_MPI_NAME);
  const Session* const found = call.Find(session);
  call.Need(errhandler, "errhandler");
  return call.Then([&] { Hand(call, found->error_handler(), errhandler); });
}

FERRY_MPI_CALL(int, MPI_Session_call_errhandler, (MPI_Session session, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  const Session* const found = call.Find(session);
  CheckCode(call, errorcode);
  FERRY_RETURN_ERROR(call.result());
  (void)FailBy(FERRY_MPI_NAME, found->error_handler(), session,
               {errorcode, SaidByProgram(errorcode)});
  return MPI_SUCCESS;
}

}  // namespace ferry::mpi
