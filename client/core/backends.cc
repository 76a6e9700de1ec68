#include "client/core/backends.h"

#include "gpu_backends/loader/loader.h"

namespace ferry::client {

StatusOr<std::unique_ptr<gpu::BackendRegistry>> OpenBackends(const config::Options& options) {
  StatusOr<std::unique_ptr<gpu::GpuBackend>> backend = gpu::OpenBackend(options);
  FERRY_RETURN_IF_ERROR(backend.status());
  auto registry = std::make_unique<gpu::BackendRegistry>();
  FERRY_RETURN_IF_ERROR(registry->Add(std::move(*backend)));
  return registry;
}

}  // namespace ferry::client
