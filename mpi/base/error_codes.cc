#include "mpi/base/error_codes.h"

#include <cstring>
#include <limits>

namespace ferry::mpi {
namespace {

struct Predefined {
  int error_class;
  const char* name;
  const char* text;
};

#define FERRY_ERROR(name) name, #name
constexpr Predefined kPredefined[] = {
    {FERRY_ERROR(MPI_SUCCESS), "no error"},
    {FERRY_ERROR(MPI_ERR_BUFFER), "invalid buffer"},
    {FERRY_ERROR(MPI_ERR_COUNT), "invalid count"},
    {FERRY_ERROR(MPI_ERR_TYPE), "invalid datatype"},
    {FERRY_ERROR(MPI_ERR_TAG), "invalid tag"},
    {FERRY_ERROR(MPI_ERR_COMM), "invalid communicator"},
    {FERRY_ERROR(MPI_ERR_RANK), "invalid rank"},
    {FERRY_ERROR(MPI_ERR_REQUEST), "invalid request"},
    {FERRY_ERROR(MPI_ERR_ROOT), "invalid root"},
    {FERRY_ERROR(MPI_ERR_GROUP), "invalid group"},
    {FERRY_ERROR(MPI_ERR_OP), "invalid operation"},
    {FERRY_ERROR(MPI_ERR_TOPOLOGY), "invalid topology"},
    {FERRY_ERROR(MPI_ERR_DIMS), "invalid extent of a dimension"},
    {FERRY_ERROR(MPI_ERR_ARG), "invalid argument"},
    {FERRY_ERROR(MPI_ERR_UNKNOWN), "unknown error"},
    {FERRY_ERROR(MPI_ERR_TRUNCATE), "the message is longer than the buffer"},
    {FERRY_ERROR(MPI_ERR_OTHER), "another error"},
    {FERRY_ERROR(MPI_ERR_INTERN), "an error inside the library"},
    {FERRY_ERROR(MPI_ERR_PENDING), "the request is not complete"},
    {FERRY_ERROR(MPI_ERR_IN_STATUS), "the statuses hold the errors"},
    {FERRY_ERROR(MPI_ERR_ACCESS), "permission denied"},
    {FERRY_ERROR(MPI_ERR_AMODE), "invalid access mode of a file"},
    {FERRY_ERROR(MPI_ERR_ASSERT), "invalid assertion"},
    {FERRY_ERROR(MPI_ERR_BAD_FILE), "invalid file name"},
    {FERRY_ERROR(MPI_ERR_BASE), "invalid base address"},
    {FERRY_ERROR(MPI_ERR_CONVERSION), "a conversion function failed"},
    {FERRY_ERROR(MPI_ERR_DISP), "invalid displacement"},
    {FERRY_ERROR(MPI_ERR_DUP_DATAREP), "the data representation exists"},
    {FERRY_ERROR(MPI_ERR_FILE_EXISTS), "the file exists"},
    {FERRY_ERROR(MPI_ERR_FILE_IN_USE), "the file is in use"},
    {FERRY_ERROR(MPI_ERR_FILE), "invalid file"},
    {FERRY_ERROR(MPI_ERR_INFO_KEY), "invalid info key"},
    {FERRY_ERROR(MPI_ERR_INFO_NOKEY), "no such info key"},
    {FERRY_ERROR(MPI_ERR_INFO_VALUE), "invalid info value"},
    {FERRY_ERROR(MPI_ERR_INFO), "invalid info object"},
    {FERRY_ERROR(MPI_ERR_IO), "input or output failed"},
    {FERRY_ERROR(MPI_ERR_KEYVAL), "invalid attribute key"},
    {FERRY_ERROR(MPI_ERR_LOCKTYPE), "invalid lock type"},
    {FERRY_ERROR(MPI_ERR_NAME), "no such published name"},
    {FERRY_ERROR(MPI_ERR_NO_MEM), "out of memory"},
    {FERRY_ERROR(MPI_ERR_NOT_SAME), "an argument differs between processes"},
    {FERRY_ERROR(MPI_ERR_NO_SPACE), "no space is left"},
    {FERRY_ERROR(MPI_ERR_NO_SUCH_FILE), "no such file"},
    {FERRY_ERROR(MPI_ERR_PORT), "invalid port"},
    {FERRY_ERROR(MPI_ERR_QUOTA), "the quota is used up"},
    {FERRY_ERROR(MPI_ERR_READ_ONLY), "the file or file system is read-only"},
    {FERRY_ERROR(MPI_ERR_RMA_ATTACH), "memory cannot be attached"},
    {FERRY_ERROR(MPI_ERR_RMA_CONFLICT), "conflicting accesses to a window"},
    {FERRY_ERROR(MPI_ERR_RMA_RANGE), "the target is not part of the window"},
    {FERRY_ERROR(MPI_ERR_RMA_SHARED), "memory cannot be shared"},
    {FERRY_ERROR(MPI_ERR_RMA_SYNC), "wrong synchronisation of a window"},
    {FERRY_ERROR(MPI_ERR_SERVICE), "invalid service name"},
    {FERRY_ERROR(MPI_ERR_SIZE), "invalid size"},
    {FERRY_ERROR(MPI_ERR_SPAWN), "processes could not be started"},
    {FERRY_ERROR(MPI_ERR_UNSUPPORTED_DATAREP), "unsupported data representation"},
    {FERRY_ERROR(MPI_ERR_UNSUPPORTED_OPERATION), "unsupported operation"},
    {FERRY_ERROR(MPI_ERR_WIN), "invalid window"},
    {FERRY_ERROR(MPI_ERR_RMA_FLAVOR), "wrong flavour of window"},
    {FERRY_ERROR(MPI_ERR_PROC_ABORTED), "a process has aborted"},
    {FERRY_ERROR(MPI_ERR_VALUE_TOO_LARGE), "a value is too large for the argument"},
    {FERRY_ERROR(MPI_ERR_SESSION), "invalid session"},
    {FERRY_ERROR(MPI_ERR_ERRHANDLER), "invalid error handler"},
    {FERRY_ERROR(MPI_ERR_ABI), "an error of the binary interface"},
    {FERRY_ERROR(MPI_T_ERR_CANNOT_INIT), "the tool interface cannot be initialised now"},
    {FERRY_ERROR(MPI_T_ERR_NOT_ACCESSIBLE), "what the tool asks for is not accessible"},
    {FERRY_ERROR(MPI_T_ERR_NOT_INITIALIZED), "the tool interface is not initialised"},
    {FERRY_ERROR(MPI_T_ERR_NOT_SUPPORTED), "not supported by the tool interface"},
    {FERRY_ERROR(MPI_T_ERR_MEMORY), "the tool interface is out of memory"},
    {FERRY_ERROR(MPI_T_ERR_INVALID), "invalid use of the tool interface"},
    {FERRY_ERROR(MPI_T_ERR_INVALID_INDEX), "invalid index"},
    {FERRY_ERROR(MPI_T_ERR_INVALID_ITEM), "invalid item"},
    {FERRY_ERROR(MPI_T_ERR_INVALID_SESSION), "invalid tool session"},
    {FERRY_ERROR(MPI_T_ERR_INVALID_HANDLE), "invalid tool handle"},
    {FERRY_ERROR(MPI_T_ERR_INVALID_NAME), "no variable has this name"},
    {FERRY_ERROR(MPI_T_ERR_OUT_OF_HANDLES), "no more tool handles"},
    {FERRY_ERROR(MPI_T_ERR_OUT_OF_SESSIONS), "no more tool sessions"},
    {FERRY_ERROR(MPI_T_ERR_CVAR_SET_NOT_NOW), "the control variable cannot be set now"},
    {FERRY_ERROR(MPI_T_ERR_CVAR_SET_NEVER), "the control variable cannot be set"},
    {FERRY_ERROR(MPI_T_ERR_PVAR_NO_WRITE), "the performance variable cannot be written"},
    {FERRY_ERROR(MPI_T_ERR_PVAR_NO_STARTSTOP), "the performance variable runs all the time"},
    {FERRY_ERROR(MPI_T_ERR_PVAR_NO_ATOMIC), "the performance variable has no atomic access"},
    {FERRY_ERROR(MPI_ERR_LASTCODE), "the last predefined error code"},
};
#undef FERRY_ERROR

const Predefined* FindPredefined(int error_class) {
  for (const Predefined& each : kPredefined) {
    if (each.error_class == error_class) {
      return &each;
    }
  }
  return nullptr;
}

Failure Bad(int number, const char* why) {
  return Failure{MPI_ERR_ARG, std::to_string(number) + why};
}

constexpr char kUnknown[] = " is neither an error class nor an error code";
constexpr char kForeign[] = " is no error class or code of the program's own";
constexpr char kHasText[] = " has a text, which must be removed first";

}  // namespace

const char* PredefinedErrorName(int error_class) {
  const Predefined* found = FindPredefined(error_class);
  return found == nullptr ? nullptr : found->name;
}

bool ErrorCodes::IsClass(int number) const {
  auto found = added_.find(number);
  return found != added_.end() ? found->second.error_class == number
                               : FindPredefined(number) != nullptr;
}

Failure ErrorCodes::ClassOf(int code, int* error_class) const {
  std::lock_guard lock(mutex_);
  auto found = added_.find(code);
  if (found == added_.end() && FindPredefined(code) == nullptr) {
    return Bad(code, kUnknown);
  }
  *error_class = found != added_.end() ? found->second.error_class : code;
  return Failure{};
}

Failure ErrorCodes::TextOf(int code, std::string* text) const {
  if (const Predefined* found = FindPredefined(code)) {
    *text = std::string(found->name) + ": " + found->text;
    return Failure{};
  }
  std::lock_guard lock(mutex_);
  auto found = added_.find(code);
  if (found == added_.end()) {
    return Bad(code, kUnknown);
  }
  *text = found->second.text;
  return Failure{};
}

int ErrorCodes::LastUsed() const {
  std::lock_guard lock(mutex_);
  return added_.empty() ? static_cast<int>(MPI_ERR_LASTCODE) : added_.rbegin()->first;
}

// With the lock held. A class of 0 stands for the new number itself.
Failure ErrorCodes::Add(int error_class, int* number) {
  int last = added_.empty() ? static_cast<int>(MPI_ERR_LASTCODE) : added_.rbegin()->first;
  if (last == std::numeric_limits<int>::max()) {
    return Failure{MPI_ERR_INTERN, "no numbers are left for error codes"};
  }
  *number = last + 1;
  added_[*number] = Entry{error_class == 0 ? *number : error_class, ""};
  return Failure{};
}

Failure ErrorCodes::AddClass(int* error_class) {
  std::lock_guard lock(mutex_);
  return Add(0, error_class);
}

Failure ErrorCodes::AddCode(int error_class, int* code) {
  std::lock_guard lock(mutex_);
  if (!IsClass(error_class) || error_class == MPI_SUCCESS) {
    return Bad(error_class, " is no error class");
  }
  return Add(error_class, code);
}

Failure ErrorCodes::AddText(int code, const char* text) {
  if (text == nullptr) {
    return Failure{MPI_ERR_ARG, "string is null"};
  }
  if (strnlen(text, MPI_MAX_ERROR_STRING) == MPI_MAX_ERROR_STRING) {
    return Failure{MPI_ERR_ARG,
                   "string is longer than " + std::to_string(MPI_MAX_ERROR_STRING - 1) + " bytes"};
  }
  std::lock_guard lock(mutex_);
  auto found = added_.find(code);
  if (found == added_.end()) {
    return Bad(code, kForeign);
  }
  found->second.text = text;
  return Failure{};
}

Failure ErrorCodes::RemoveClass(int error_class) {
  std::lock_guard lock(mutex_);
  auto found = added_.find(error_class);
  if (found == added_.end() || found->second.error_class != error_class) {
    return Bad(error_class, " is no error class of the program's own");
  }
  for (const auto& [code, entry] : added_) {
    if (code != error_class && entry.error_class == error_class) {
      return Bad(error_class, " has error codes, which must be removed first");
    }
  }
  if (!found->second.text.empty()) {
    return Bad(error_class, kHasText);
  }
  added_.erase(found);
  return Failure{};
}

Failure ErrorCodes::RemoveCode(int code) {
  std::lock_guard lock(mutex_);
  auto found = added_.find(code);
  if (found == added_.end() || found->second.error_class == code) {
    return Bad(code, " is no error code of the program's own");
  }
  if (!found->second.text.empty()) {
    return Bad(code, kHasText);
  }
  added_.erase(found);
  return Failure{};
}

Failure ErrorCodes::RemoveText(int code) {
  std::lock_guard lock(mutex_);
  auto found = added_.find(code);
  if (found == added_.end()) {
    return Bad(code, kForeign);
  }
  found->second.text.clear();
  return Failure{};
}

// Not destroyed at exit: threads of the program may still run.
ErrorCodes& ProcessErrorCodes() {
  static auto& codes = *new ErrorCodes();
  return codes;
}

}  // namespace ferry::mpi
