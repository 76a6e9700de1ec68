// Error classes, codes and their strings (MPI 5.0, sections 9.4 and 9.5). They may be used before
// MPI_Init and after MPI_Finalize.
#include <algorithm>
#include <string>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/error_codes.h"
#include "client/mpi/runtime/fail.h"

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Error_class, (int errorcode, int* errorclass)) {
  Call call("MPI_Error_class");
  call.Need(errorclass, "errorclass");
  return call.ok() ? call.Return(ProcessErrorCodes().ClassOf(errorcode, errorclass))
                   : call.result();
}

// Gives the meaning of a predefined class, and the sentence of this thread's last call to fail with
// it.
FERRY_MPI_CALL(int, Error_string, (int errorcode, char* string, int* resultlen)) {
  Call call("MPI_Error_string");
  call.Need(string, "string");
  call.Need(resultlen, "resultlen");
  std::string text;
  if (call.ok()) {
    call.Refuse(ProcessErrorCodes().TextOf(errorcode, &text));
  }
  if (!call.ok()) {
    return call.result();
  }
  if (PredefinedErrorName(errorcode) != nullptr && errorcode != MPI_SUCCESS) {
    const std::string& last = LastMessage(errorcode);
    text += last.empty() ? "" : "; " + last;
  }
  text.resize(std::min(text.size(), size_t{MPI_MAX_ERROR_STRING - 1}));
  CopyValue(text, MPI_MAX_ERROR_STRING - 1, string);
  *resultlen = static_cast<int>(text.size());
  return call.result();
}

FERRY_MPI_CALL(int, Add_error_class, (int* errorclass)) {
  Call call("MPI_Add_error_class");
  call.Need(errorclass, "errorclass");
  return call.ok() ? call.Return(ProcessErrorCodes().AddClass(errorclass)) : call.result();
}

FERRY_MPI_CALL(int, Add_error_code, (int errorclass, int* errorcode)) {
  Call call("MPI_Add_error_code");
  call.Need(errorcode, "errorcode");
  return call.ok() ? call.Return(ProcessErrorCodes().AddCode(errorclass, errorcode))
                   : call.result();
}

FERRY_MPI_CALL(int, Add_error_string, (int errorcode, const char* string)) {
  Call call("MPI_Add_error_string");
  return call.Return(ProcessErrorCodes().AddText(errorcode, string));
}

FERRY_MPI_CALL(int, Remove_error_class, (int errorclass)) {
  Call call("MPI_Remove_error_class");
  return call.Return(ProcessErrorCodes().RemoveClass(errorclass));
}

FERRY_MPI_CALL(int, Remove_error_code, (int errorcode)) {
  Call call("MPI_Remove_error_code");
  return call.Return(ProcessErrorCodes().RemoveCode(errorcode));
}

FERRY_MPI_CALL(int, Remove_error_string, (int errorcode)) {
  Call call("MPI_Remove_error_string");
  return call.Return(ProcessErrorCodes().RemoveText(errorcode));
}
