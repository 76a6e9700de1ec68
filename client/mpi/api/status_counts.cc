// How much a status says to have come, in elements of a datatype (MPI 5.0, sections 3.2.5, 5.1.11
// and 13.3).
#include <limits>

#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/request/status.h"

namespace ferry::mpi {
namespace {

// Answers with count(type, bytes).
template <typename Number, typename Count>
int GetNumber(const char* call, const MPI_Status* status, MPI_Datatype datatype, Number* result,
              Count&& count) {
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, status, "status", result, "count");
      error != MPI_SUCCESS) {
    return error;
  }
  PutNumber(result, count(*type, BytesOf(*status)));
  return MPI_SUCCESS;
}

int64_t Whole(const Datatype& type, int64_t bytes) { return type.ElementCount(bytes); }
int64_t Basic(const Datatype& type, int64_t bytes) { return type.BasicElementCount(bytes); }

int SetElements(const char* call, MPI_Status* status, MPI_Datatype datatype, int64_t count) {
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, status, "status"); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckCount(call, "count", count); error != MPI_SUCCESS) {
    return error;
  }
  const int64_t bytes = type->BytesOfBasicElements(count);
  if (bytes == MPI_UNDEFINED) {
    return Fail(call, nullptr, MPI_ERR_COUNT,
                "the datatype cannot hold " + std::to_string(count) + " basic elements");
  }
  SetBytes(status, bytes);
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Get_count, (const MPI_Status* status, MPI_Datatype datatype, int* count)) {
  return GetNumber("MPI_Get_count", status, datatype, count, Whole);
}

FERRY_MPI_CALL(int, Get_count_c,
               (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return GetNumber("MPI_Get_count_c", status, datatype, count, Whole);
}

FERRY_MPI_CALL(int, Get_elements, (const MPI_Status* status, MPI_Datatype datatype, int* count)) {
  return GetNumber("MPI_Get_elements", status, datatype, count, Basic);
}

FERRY_MPI_CALL(int, Get_elements_c,
               (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return GetNumber("MPI_Get_elements_c", status, datatype, count, Basic);
}

FERRY_MPI_CALL(int, Get_elements_x,
               (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return GetNumber("MPI_Get_elements_x", status, datatype, count, Basic);
}

FERRY_MPI_CALL(int, Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, int count)) {
  return SetElements("MPI_Status_set_elements", status, datatype, count);
}

FERRY_MPI_CALL(int, Status_set_elements_c,
               (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return SetElements("MPI_Status_set_elements_c", status, datatype, count);
}

FERRY_MPI_CALL(int, Status_set_elements_x,
               (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return SetElements("MPI_Status_set_elements_x", status, datatype, count);
}
