#include "client/mpi/api/partitioned_requests.h"

#include <string>

#include "client/mpi/base/handle_table.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {

int FindAllPartitioned(const char* call, int count, const MPI_Request handles[],
                       std::vector<Request*>* found) {
  FERRY_RETURN_ERROR(CheckRunning(call));
  if (count < 0 || (count != 0 && handles == nullptr)) {
    return Fail(call, nullptr, MPI_ERR_ARG,
                count < 0 ? "count is " + std::to_string(count) : "the array of requests is null");
  }
  for (int i = 0; i < count; ++i) {
    const std::string name = "request " + std::to_string(i);
    Request* const request = requests.Find(handles[i]);
    if (request == nullptr) {
      return Fail(call, nullptr, MPI_ERR_REQUEST,
                  name + " does not exist: is it null, or was it freed?");
    }
    if (request->partitioned() == nullptr) {
      return Fail(call, request->comm(), MPI_ERR_REQUEST, name + " is not partitioned");
    }
    found->push_back(request);
  }
  return MPI_SUCCESS;
}

}  // namespace ferry::mpi
