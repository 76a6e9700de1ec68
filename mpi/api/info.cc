// Info objects (MPI 5.0, chapter 10). They may be used before MPI_Init and after MPI_Finalize.
#include "mpi/info/info.h"

#include <optional>
#include <string>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

Info* FindToChange(Call& call, MPI_Info handle) {
  if (handle == MPI_INFO_ENV) {
    call.Refuse(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
  }
  return call.Find(handle);
}

std::optional<std::string> ValueOf(Call& call, MPI_Info handle, const char* key, int* flag) {
  const Info* const info = call.Find(handle);
  call.Need(flag, "flag");
  std::optional<std::string> value;
  if (call.ok()) {
    call.Refuse(info->Get(key, &value));
  }
  if (call.ok()) {
    *flag = value ? 1 : 0;
  }
  return value;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Info_create, (MPI_Info * info)) {
  Call call(FERRY_MPI_NAME);
  call.Need(info, "info");
  return call.Then([&] { call.Give(MakeRef<Info>(), info); });
}

FERRY_MPI_CALL(int, MPI_Info_create_env, (int argc, char* argv[], MPI_Info* info)) {
  Call call(FERRY_MPI_NAME);
  call.NeedCount(argc, "argc");
  call.Need(info, "info");
  return call.Then([&] {
    StartFacts facts = FactsOfStart();
    DescribeCommand(argc, argv, &facts);
    call.Give(MakeRef<Info>(DescribeStart(facts)), info);
  });
}

FERRY_MPI_CALL(int, MPI_Info_dup, (MPI_Info info, MPI_Info* newinfo)) {
  Call call(FERRY_MPI_NAME);
  const Info* const found = call.Find(info);
  call.Need(newinfo, "newinfo");
  return call.Then([&] { call.Give(found->Copy(), newinfo); });
}

FERRY_MPI_CALL(int, MPI_Info_free, (MPI_Info * info)) {
  Call call(FERRY_MPI_NAME);
  call.Need(info, "info");
  if (!call.ok() || call.Find(*info) == nullptr) {
    return call.result();
  }
  Info* const freed = infos.Remove(*info);
  if (freed == nullptr) {
    call.Refuse(MPI_ERR_INFO, "MPI_INFO_ENV is predefined and cannot be freed");
    return call.result();
  }
  freed->Release();
  *info = MPI_INFO_NULL;
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Info_set, (MPI_Info info, const char* key, const char* value)) {
  Call call(FERRY_MPI_NAME);
  Info* const found = FindToChange(call, info);
  return call.Then([&] { return found->Set(key, value); });
}

FERRY_MPI_CALL(int, MPI_Info_delete, (MPI_Info info, const char* key)) {
  Call call(FERRY_MPI_NAME);
  Info* const found = FindToChange(call, info);
  return call.Then([&] { return found->Remove(key); });
}

FERRY_MPI_CALL(int, MPI_Info_get_nkeys, (MPI_Info info, int* nkeys)) {
  Call call(FERRY_MPI_NAME);
  const Info* const found = call.Find(info);
  call.Need(nkeys, "nkeys");
  return call.Then([&] { *nkeys = found->count(); });
}

FERRY_MPI_CALL(int, MPI_Info_get_nthkey, (MPI_Info info, int n, char* key)) {
  Call call(FERRY_MPI_NAME);
  const Info* const found = call.Find(info);
  call.Need(key, "key");
  std::string text;
  if (call.ok()) {
    call.Refuse(found->KeyAt(n, &text));
  }
  return call.Then([&] { CopyValue(text, MPI_MAX_INFO_KEY - 1, key); });
}

FERRY_MPI_CALL(int, MPI_Info_get_string,
               (MPI_Info info, const char* key, int* buflen, char* value, int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.Need(buflen, "buflen");
  if (call.ok()) {
    call.NeedCount(*buflen, "buflen");
    call.NeedArray(value, *buflen, "value");
  }
  const std::optional<std::string> found = ValueOf(call, info, key, flag);
  if (found) {
    CopyString(*found, buflen, value);
  }
  return call.result();
}

// ---- Deprecated ---------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Info_get_valuelen,
               (MPI_Info info, const char* key, int* valuelen, int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.Need(valuelen, "valuelen");
  const std::optional<std::string> found = ValueOf(call, info, key, flag);
  if (found) {
    *valuelen = static_cast<int>(found->size());
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Info_get,
               (MPI_Info info, const char* key, int valuelen, char* value, int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.NeedCount(valuelen, "valuelen");
  call.Need(value, "value");
  const std::optional<std::string> found = ValueOf(call, info, key, flag);
  if (found) {
    CopyValue(*found, valuelen, value);
  }
  return call.result();
}

}  // namespace ferry::mpi
