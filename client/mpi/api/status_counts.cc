// How much a status says to have come, in elements of a datatype (MPI 5.0, sections 3.2.5, 5.1.11
// and 13.3).
#include <string>

#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/request/status.h"

namespace ferry::mpi {
namespace {

// Answers with (type.*count)(bytes).
template <typename Number>
int GetNumber(Call call, const MPI_Status* status, MPI_Datatype datatype, Number* result,
              int64_t (Datatype::*count)(int64_t) const) {
  const Datatype* const type = call.Find(datatype);
  call.Need(status, "status", result, "count");
  return call.Then([&] { PutNumber(result, (type->*count)(BytesOf(*status))); });
}

int SetElements(Call call, MPI_Status* status, MPI_Datatype datatype, int64_t count) {
  const Datatype* const type = call.Find(datatype);
  call.Need(status, "status");
  NeedLength(call, count);
  const int64_t bytes = call.ok() ? type->BytesOfBasicElements(count) : 0;
  if (bytes == MPI_UNDEFINED) {
    call.Refuse(MPI_ERR_COUNT,
                "the datatype cannot hold " + std::to_string(count) + " basic elements");
  }
  return call.Then([&] { SetBytes(status, bytes); });
}

}  // namespace

FERRY_MPI_TWINS(Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::ElementCount));

FERRY_MPI_TWINS(Get_elements, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::BasicElementCount));
FERRY_MPI_CALL(int, Get_elements_x,
               (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return GetNumber(FERRY_MPI_NAME, status, datatype, count, &Datatype::BasicElementCount);
}

FERRY_MPI_TWINS(Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, Count count),
                SetElements(FERRY_MPI_NAME, status, datatype, count));
FERRY_MPI_CALL(int, Status_set_elements_x,
               (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return SetElements(FERRY_MPI_NAME, status, datatype, count);
}

}  // namespace ferry::mpi
