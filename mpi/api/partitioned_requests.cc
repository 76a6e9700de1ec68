#include "mpi/api/partitioned_requests.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/number_text.h"
#include "mpi/base/handle_table.h"
#include "mpi/info/info.h"
#include "mpi/init/fail.h"

namespace ferry::mpi {
namespace {

// Reads the value of a key, which is a number of at least 1; stores nothing if the key is absent.
Failure ReadNumber(const Info& info, const char* key, std::optional<uint64_t>* number) {
  const std::optional<std::string> text = info.Find(key);
  if (!text) {
    return {};
  }
  const uint64_t value = NumberIn<uint64_t>(*text).value_or(0);
  if (value == 0) {
    return {MPI_ERR_INFO_VALUE,
            std::string(key) + " is \"" + *text + "\", not a number of at least 1"};
  }
  *number = value;
  return {};
}

}  // namespace

Failure ReadUnitLimits(MPI_Info handle, UnitLimits* limits) {
  if (handle == MPI_INFO_NULL) {
    return {};
  }
  const Info* const info = infos.Find(handle);
  if (info == nullptr) {
    return {MPI_ERR_INFO, "info names no info object: was it freed?"};
  }
  std::optional<uint64_t> min_bytes;
  std::optional<uint64_t> max_units;
  FERRY_RETURN_FAILURE(ReadNumber(*info, "ferry_partitioned_min_bytes", &min_bytes));
  FERRY_RETURN_FAILURE(ReadNumber(*info, "ferry_partitioned_max_units", &max_units));
  limits->min_bytes = min_bytes.value_or(0);
  limits->max_units =
      static_cast<uint32_t>(std::min<uint64_t>(max_units.value_or(UINT32_MAX), UINT32_MAX));
  return {};
}

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
