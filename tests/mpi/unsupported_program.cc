// Calls everything that Ferry does not have yet, in a job of one rank. Prints the calls that did
// not fail as docs/mpi.md says, and how many did. tests/mpi/programs_test.cc reads it.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "ferry/mpi/mpi.h"
#include "tests/mpi/declared_calls.h"

namespace {

// No call looks at its arguments; with the calling conventions of C, one type of function calls
// them all.
using Call = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);

bool FailsAsItShould(const std::string& name) {
  const auto call = reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name.c_str()));
  if (call == nullptr) {
    std::printf("%s is not there\n", name.c_str());
    return false;
  }
  const int code = call(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                        nullptr, nullptr, nullptr);
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  const bool good =
      code == MPI_ERR_UNSUPPORTED_OPERATION && std::string(text).find(name) != std::string::npos;
  if (!good) {
    std::printf("%s returned %d: %s\n", name.c_str(), code, text);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int good = 0;
  for (const std::string& name : ferry::mpi::CallsNotThereYet()) {
    good += FailsAsItShould(name) ? 1 : 0;
  }
  std::printf("%d calls are not there yet\n", good);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
