// The tool information interface: start and end (MPI 5.0, section 15.3.4), and what its calls
// share.
#include "mpi/api/tool_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi/api/function.h"
#include "mpi/init/fail.h"

namespace ferry::mpi {
namespace {

// Not destroyed at exit: a tool may call from its own destructors.
std::mutex& ToolMutex() {
  static auto& mutex = *new std::mutex();
  return mutex;
}

}  // namespace

int& ToolCall::uses() {
  static int uses = 0;
  return uses;
}

ToolCall::ToolCall(const char* name, AtAnyTime) : name_(name), lock_(ToolMutex()) {}

ToolCall::ToolCall(const char* name) : ToolCall(name, AtAnyTime()) {
  if (uses() == 0) {
    Refuse(MPI_T_ERR_NOT_INITIALIZED, "call MPI_T_init_thread first");
  }
}

void ToolCall::Refuse(int code, std::string text) {
  if (ok()) {
    result_ = code;
    Remember(code, std::string(name_) + ": " + std::move(text));
  }
}

void ToolCall::Refuse(const Failure& failure) {
  if (!failure.ok()) {
    Refuse(failure.error_class, failure.text);
  }
}

void ToolCall::Need(const void* pointer, const char* argument) {
  if (pointer == nullptr) {
    Refuse(MPI_T_ERR_INVALID, std::string(argument) + " is a null pointer");
  }
}

void ToolCall::NeedIndex(int index, size_t size, const char* what) {
  if (index >= 0 && static_cast<size_t>(index) < size) {
    return;
  }
  Refuse(MPI_T_ERR_INVALID_INDEX, "the index " + std::to_string(index) + " is not one of the " +
                                      std::to_string(size) + " " + what);
}

void PutText(const std::string& text, char* to, int* length) {
  if (length == nullptr) {
    return;
  }
  size_t size = text.size();
  if (to != nullptr && *length > 0) {
    size = std::min(size, static_cast<size_t>(*length) - 1);
    std::memcpy(to, text.data(), size);
    to[size] = '\0';
  }
  *length = static_cast<int>(size) + 1;
}

FERRY_MPI_CALL(int, MPI_T_init_thread, (int required, int* provided)) {
  ToolBeginning call(FERRY_MPI_NAME);
  call.Need(provided, "provided");
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    call.Refuse(MPI_T_ERR_INVALID, "the thread level " + std::to_string(required) +
                                       " is none of MPI_THREAD_SINGLE, FUNNELED, SERIALIZED and "
                                       "MULTIPLE");
  }
  return call.Then([&] {
    ++ToolCall::uses();
    *provided = MPI_THREAD_MULTIPLE;
  });
}

FERRY_MPI_CALL(int, MPI_T_finalize, (void)) {
  ToolCall call(FERRY_MPI_NAME);
  return call.Then([&] {
    if (--ToolCall::uses() == 0) {
      FreeControlHandles();
      FreePerformanceSessions();
      FreeEventRegistrations();
    }
  });
}

}  // namespace ferry::mpi
