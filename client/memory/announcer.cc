#include "client/memory/announcer.h"

#include <cstring>
#include <utility>

namespace ferry::client {

StatusOr<uint32_t> Announcer::AnnounceHost(int fd, uint64_t size_bytes, uint32_t flags) {
  const uint32_t region = NewNumber();
  attach::RegionRequest request{};
  request.region = region;
  request.kind = static_cast<uint32_t>(attach::MemoryKind::kHostHeap);
  request.flags = flags;
  request.size_bytes = size_bytes;
  request.allocation_id = region;
  FERRY_RETURN_IF_ERROR(attach_->SendRegion(request, fd).status());
  return region;
}

Status Announcer::AnnounceDevice(gpu::GpuBackend& gpu, OwnRegion* region,
                                 const gpu::IpcHandle& handle, const gpu::DirectAccess& direct) {
  region->size_bytes = handle.size_bytes;
  region->by_stream = !direct.cpu || !direct.network;
  attach::RegionRequest request{};
  request.region = region->id;
  request.kind = static_cast<uint32_t>(attach::MemoryKind::kDevice);
  request.flags = region->by_stream ? attach::kRegionByStream : 0;
  request.size_bytes = handle.size_bytes;
  request.allocation_id = handle.allocation_id;
  request.device = static_cast<uint32_t>(region->device);
  static_assert(sizeof(request.handle) == sizeof(handle.opaque));
  std::memcpy(request.handle, handle.opaque.data(), sizeof(request.handle));
  gpu::Dmabuf dmabuf;
  if (region->by_stream && attach_->takes_dmabufs()) {
    if (StatusOr<gpu::Dmabuf> exported = gpu.ExportDmabuf(region->base); exported.ok()) {
      dmabuf = std::move(*exported);
      request.flags |= attach::kRegionDmabuf;
      request.dmabuf_offset = dmabuf.offset_bytes;
      gpu.name().copy(request.backend, sizeof(request.backend) - 1);
    }
  }
  const StatusOr<AttachAnswer> answer =
      attach_->SendRegion(request, handle.fd.get(), dmabuf.fd.valid() ? dmabuf.fd.get() : -1);
  FERRY_RETURN_IF_ERROR(answer.status());
  region->staged = (answer->reply.flags & attach::kRegionStaged) != 0;
  return {};
}

}  // namespace ferry::client
