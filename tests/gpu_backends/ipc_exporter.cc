// Exports device memory, writes the vendor's handle to descriptor 1, and ends when descriptor 0
// does, as a process that is killed: nothing is freed.
//
//     ipc_exporter hip|cuda LIBRARY
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "gpu_backends/cuda/cuda_backend.h"
#include "gpu_backends/hip/hip_backend.h"

int main(int argc, char** argv) {
  using namespace ferry;  // NOLINT(google-build-using-namespace): a small program
  if (argc != 3) {
    return 2;
  }
  StatusOr<std::unique_ptr<gpu::GpuBackend>> backend = std::string_view(argv[1]) == "hip"
                                                           ? gpu::CreateHipBackend({argv[2]})
                                                           : gpu::CreateCudaBackend({argv[2]});
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().ToString().c_str());
    return 1;
  }
  const StatusOr<void*> memory = (*backend)->AllocateDevice(0, 4096);
  if (!memory.ok()) {
    std::fprintf(stderr, "%s\n", memory.status().ToString().c_str());
    return 1;
  }
  const StatusOr<gpu::IpcHandle> handle = (*backend)->ExportIpc(*memory);
  if (!handle.ok()) {
    std::fprintf(stderr, "%s\n", handle.status().ToString().c_str());
    return 1;
  }
  const auto size = static_cast<ssize_t>(handle->opaque.size());
  char end = 0;
  if (write(STDOUT_FILENO, handle->opaque.data(), handle->opaque.size()) != size ||
      read(STDIN_FILENO, &end, 1) != 0) {
    return 1;
  }
  _exit(0);
}
