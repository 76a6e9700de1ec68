// The calls that Ferry does not have: files. docs/mpi.md lists them.
//
// The public headers are the table. Each declares its calls by FERRY_MPI(result, name, parameters);
// read a second time, with another FERRY_MPI, they define them.
#include "ferry/mpi/mpi.h"
#include "mpi/api/function.h"
#include "mpi/init/fail.h"

// No call looks at what it is given.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#undef FERRY_MPI_FILES_H_
#undef FERRY_MPI_WINDOWS_H_

// FERRY_FAIL is the function that the call returns.
#define FERRY_DEFINE(result, name, parameters)                                          \
  FERRY_MPI_CALL(result, MPI_##name, parameters) { return FERRY_FAIL(FERRY_MPI_NAME); } \
  static_assert(true)

// The second of its arguments: nothing where function.h has a line for the call, which then makes
// two arguments of the first.
#define FERRY_SECOND(first, second, ...) second
#define FERRY_UNLESS(...) FERRY_SECOND(__VA_ARGS__, )
#define FERRY_MPI(result, name, parameters) \
  FERRY_UNLESS(FERRY_ELSEWHERE_##name, FERRY_DEFINE(result, name, parameters))

namespace ferry::mpi {
namespace {

int FailFiles(const char* call) {
  return Fail(
      call, nullptr, MPI_ERR_UNSUPPORTED_OPERATION,
      "Ferry has no MPI-IO yet (docs/mpi.md): write by the system's calls, as pwrite, at the "
      "offsets that MPI_Exscan gives each rank");
}

}  // namespace
}  // namespace ferry::mpi

extern "C" {

#define FERRY_FAIL ferry::mpi::FailFiles
#include "ferry/mpi/ferry_mpi/files.h"

#undef FERRY_FAIL
#define FERRY_FAIL ferry::mpi::FailUnsupported
#include "ferry/mpi/ferry_mpi/windows.h"
}
