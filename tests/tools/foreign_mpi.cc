// A program of MPICH or Open MPI, as its library is installed: FAMILY ACTION [RANK]. It opens the
// library when it runs, so that it can be built where there is none.
//
// "sum" adds up the ranks' numbers; the other actions are of one rank: "abort" ends the job with
// code 37, "leave" exits well and never finalizes, "die" is killed.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// Handles are numbers of the size of int in MPICH, and pointers in Open MPI; both pass as this.
using Handle = uintptr_t;

void* library = nullptr;
bool is_mpich = false;

template <typename Result, typename... Arguments>
Result Call(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(99);
  }
  return function(arguments...);
}

Handle Predefined(uint32_t number, const char* name) {
  return is_mpich ? number : reinterpret_cast<Handle>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  is_mpich = std::strcmp(argv[1], "mpich") == 0;
  library = dlopen(is_mpich ? "libmpich.so.12" : "libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 98;
  }
  const std::string action = argv[2];
  const Handle world = Predefined(0x44000000, "ompi_mpi_comm_world");
  int rank = -1;
  int size = -1;
  Call<int>("MPI_Init", nullptr, nullptr);
  Call<int>("MPI_Comm_rank", world, &rank);
  Call<int>("MPI_Comm_size", world, &size);
  if (action == "sum") {
    int sum = -1;
    Call<int>("MPI_Allreduce", &rank, &sum, 1, Predefined(0x4c000405, "ompi_mpi_int"),
              Predefined(0x58000003, "ompi_mpi_op_sum"), world);
    std::printf("rank %d of %d: sum %d\n", rank, size, sum);
    std::fflush(stdout);
  } else if (argc > 3 && rank == std::atoi(argv[3])) {
    if (action == "abort") {
      Call<int>("MPI_Abort", world, 37);
    } else if (action == "leave") {
      _exit(0);
    } else if (action == "die") {
      raise(SIGKILL);
    }
  }
  Call<int>("MPI_Barrier", world);
  Call<int>("MPI_Finalize");
  return 0;
}
