// Two ranks whose kernels on an OpenCL run time ready partitions and await the other's:
// partitioned COPY SHAPE...
#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/ranks/partitioned_kernels.h"
#include "tests/opencl/ranks/shapes.h"
#include "tests/opencl/runtime.h"

namespace {

using ferry::opencl::Argument;
using ferry::opencl::LaunchShape;

struct Side {
  Side(bool is_send, int partitions, int bytes) : memory(static_cast<size_t>(partitions) * bytes) {
    if (is_send) {
      OK(MPI_Psend_init(memory.at(0), partitions, bytes, MPI_BYTE, Peer(), 1, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request));
    } else {
      OK(MPI_Precv_init(memory.at(0), partitions, bytes, MPI_BYTE, Peer(), 1, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request));
    }
  }
  void MakePrequest() {
    MPI_Info info = info_with("ferry_partitioned_copy", copy_wish.c_str());
    OK(MPIX_Prequest_create(request, 0, info, &prequest));
    OK(MPI_Info_free(&info));
  }
  ~Side() {
    OK(MPIX_Prequest_free(&prequest));
    OK(MPI_Request_free(&request));
  }

  Buffer memory;
  MPI_Request request = MPI_REQUEST_NULL;
  MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
};

void ReadyAndAwait(ferry::opencl::Program& program, const LaunchShape& shape, int partitions,
                   int bytes, bool by_threads) {
  step = by_threads ? "partitions of threads" : "partitions of groups";
  Side send(true, partitions, bytes);
  Side receive(false, partitions, bytes);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= 4; ++round) {
    OK(MPI_Start(&receive.request));
    OK(MPI_Start(&send.request));
    std::vector<uint32_t> wrong(shape.groups * shape.size, 99);
    const auto seed_of = [round](int of) { return static_cast<uint32_t>(of + 2 * round); };
    program.Launch(
        "ready_and_await", shape.groups, shape.size,
        {Argument::Pointer(send.prequest), Argument::Pointer(receive.prequest),
         Argument::Pointer(send.memory.at(0)), Argument::Pointer(receive.memory.at(0)),
         Argument::Value(partitions), Argument::Value(static_cast<uint64_t>(bytes)),
         Argument::Value(seed_of(rank)), Argument::Value(seed_of(Peer())),
         Argument::Value(static_cast<int>(by_threads)), Argument::Pointer(wrong.data())});
    for (const uint32_t found : wrong) {
      CHECK(found == 0);
    }
    OK(MPI_Wait(&receive.request, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send.request, MPI_STATUS_IGNORE));
  }
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  copy_wish = argv[1];
  {
    ferry::opencl::Program program("#include \"tests/opencl/ranks/partitioned.cl\"\n");
    for (const LaunchShape& shape : ferry::opencl::ShapesOf(argc - 1, argv + 1)) {
      for (const bool by_threads : {false, true}) {
        ReadyAndAwait(program, shape, 9, 1000, by_threads);
        ReadyAndAwait(program, shape, 40, 12, by_threads);
      }
    }
  }
  return end_well("all kernels were right");
}
