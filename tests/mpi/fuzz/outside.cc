#include "tests/mpi/fuzz/outside.h"

#include <fnmatch.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ferry::mpi {
namespace {

constexpr unsigned kCallLimitS = 10;

// MPI 5.0, table 11.1, and the conversions of section 20.3.4.
constexpr const char* kAtAnyTime[] = {
    "MPI_Initialized",
    "MPI_Finalized",
    "MPI_Get_version",
    "MPI_Get_library_version",
    "MPI_Info_*",
    "MPI_Abi_*",
    "MPI_Error_*",
    "MPI_Add_error_*",
    "MPI_Remove_error_*",
    "MPI_*_toint",
    "MPI_*_fromint",
    "MPI_Aint_*",
    "MPI_*_create_errhandler",
    "MPI_Errhandler_free",
    "MPI_*_create_keyval",
    "MPI_*_free_keyval",
    "MPI_Keyval_*",
    "MPI_Session_*",
    "MPI_Status_*",
    "MPI_Test_cancelled",
    "MPI_Get_count*",
    "MPI_Get_elements*",
    "MPI_Get_address",
};

bool MayBeMadeAtAnyTime(const std::string& call) {
  return std::any_of(std::begin(kAtAnyTime), std::end(kAtAnyTime), [&call](const char* pattern) {
    return fnmatch(pattern, call.c_str(), 0) == 0;
  });
}

struct PredefinedHandle {
  const char* type;
  uint64_t handle;
};

// An argument that a program would pass if it had forgotten MPI_Init.
uint64_t Plausible(const Parameter& parameter, std::array<char, 8192>* memory) {
  static const PredefinedHandle kHandles[] = {
      {"MPI_Comm", reinterpret_cast<uint64_t>(MPI_COMM_WORLD)},
      {"MPI_Datatype", reinterpret_cast<uint64_t>(MPI_INT)},
      {"MPI_Op", reinterpret_cast<uint64_t>(MPI_SUM)},
      {"MPI_Group", reinterpret_cast<uint64_t>(MPI_GROUP_EMPTY)},
      {"MPI_Info", reinterpret_cast<uint64_t>(MPI_INFO_NULL)},
      {"MPI_Errhandler", reinterpret_cast<uint64_t>(MPI_ERRORS_RETURN)},
      {"MPI_Request", reinterpret_cast<uint64_t>(MPI_REQUEST_NULL)},
  };
  for (const PredefinedHandle& predefined : kHandles) {
    if (parameter.type == predefined.type) {
      return predefined.handle;
    }
  }
  const bool is_address = parameter.type.find_first_of("*[") != std::string::npos;
  return is_address ? reinterpret_cast<uint64_t>(memory->data()) : 1;
}

[[noreturn]] void MakeCall(const CallSignature& signature, int errors) {
  dup2(errors, STDERR_FILENO);
  alarm(kCallLimitS);
  static std::array<std::array<char, 8192>, 16> memory = {};
  std::array<uint64_t, 16> words = {};
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    words[i] = Plausible(signature.parameters[i], &memory[i]);
  }
  signature.call(words.data());
  _exit(0);
}

struct Ending {
  int status = 0;
  std::string said;
};

Ending CallApart(const CallSignature& signature) {
  int ends[2];
  if (pipe(ends) != 0) {
    return {-1, "no pipe"};
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    MakeCall(signature, ends[1]);
  }
  close(ends[1]);
  Ending ending;
  char part[512];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;) {
    ending.said.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

}  // namespace

int MakeCallsOutside(const std::vector<CallSignature>& signatures, const char* reason) {
  int complaints = 0;
  for (const CallSignature& signature : signatures) {
    const Ending ending = CallApart(signature);
    const bool returned = WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0;
    const bool at_any_time = MayBeMadeAtAnyTime(signature.name);
    const std::string sentence = signature.name + ": " + (at_any_time ? "" : reason);
    const bool named =
        WIFEXITED(ending.status) && !returned && ending.said.find(sentence) != std::string::npos;
    if (named || (returned && at_any_time)) {
      continue;
    }
    ++complaints;
    std::fprintf(stderr, "%s: it %s (status %d): %s\n", signature.name.c_str(),
                 returned ? "returns" : "ends otherwise than with its name", ending.status,
                 ending.said.c_str());
  }
  return complaints;
}

}  // namespace ferry::mpi
