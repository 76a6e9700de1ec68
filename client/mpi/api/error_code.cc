// Error classes, codes and their strings (MPI 5.0, sections 9.4 and 9.5). They may be used before
// MPI_Init and after MPI_Finalize.
#include <algorithm>
#include <string>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/error_codes.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {

FERRY_MPI_CALL(int, Error_class, (int errorcode, int* errorclass)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorclass, "errorclass");
  return call.Then([&] { return ProcessErrorCodes().ClassOf(errorcode, errorclass); });
}

// Gives the meaning of a predefined class, and the sentence of this thread's last call to fail with
// it.
FERRY_MPI_CALL(int, Error_string, (int errorcode, char* string, int* resultlen)) {
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

FERRY_MPI_CALL(int, Add_error_class, (int* errorclass)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorclass, "errorclass");
  return call.Then([&] { return ProcessErrorCodes().AddClass(errorclass); });
}

FERRY_MPI_CALL(int, Add_error_code, (int errorclass, int* errorcode)) {
  Call call(FERRY_MPI_NAME);
  call.Need(errorcode, "errorcode");
  return call.Then([&] { return ProcessErrorCodes().AddCode(errorclass, errorcode); });
}

FERRY_MPI_CALL(int, Add_error_string, (int errorcode, const char* string)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().AddText(errorcode, string));
}

FERRY_MPI_CALL(int, Remove_error_class, (int errorclass)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveClass(errorclass));
}

FERRY_MPI_CALL(int, Remove_error_code, (int errorcode)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveCode(errorcode));
}

FERRY_MPI_CALL(int, Remove_error_string, (int errorcode)) {
  Call call(FERRY_MPI_NAME);
  return call.Return(ProcessErrorCodes().RemoveText(errorcode));
}

}  // namespace ferry::mpi
