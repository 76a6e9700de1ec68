#include "tests/faults/segment_peek.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/unique_fd.h"
#include "shm/atomic.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

shm::Mapping MapForReading(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!fd.valid() || fstat(fd.get(), &about) != 0 || about.st_size < 4096) {
    return {};
  }
  void* base =
      mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_SHARED, fd.get(), 0);
  return base == MAP_FAILED
             ? shm::Mapping()
             : shm::Mapping(static_cast<std::byte*>(base), static_cast<uint64_t>(about.st_size));
}

}  // namespace

SegmentPeek::SegmentPeek(pid_t daemon, pid_t rank) {
  for (const std::string& path : tests::MemfdsOf(daemon)) {
    shm::Mapping mapping = MapForReading(path);
    if (!mapping.valid()) {
      continue;
    }
    const auto& header = *reinterpret_cast<const shm::SegmentHeader*>(mapping.base());
    if (header.magic != shm::kSegmentMagic || header.creator_pid != static_cast<uint32_t>(rank)) {
      continue;
    }
    const bool is_session = header.kind == static_cast<uint32_t>(shm::SegmentKind::kSession);
    (is_session ? session_ : inbox_) = std::move(mapping);
  }
}

pid_t SegmentPeek::LeaseHolder() const {
  const shm::LeaseLayout& lease = session().lease;
  const uint32_t holder = shm::LoadAcquire(lease.word) & ~(shm::kLeaseWanted | shm::kLeaseBiased);
  const uint32_t thread = holder != 0 ? holder : shm::LoadAcquire(lease.owner);
  return thread == shm::kLeaseWorker ? 0 : static_cast<pid_t>(thread);
}

bool SegmentPeek::HasClaimedChunk() const {
  const shm::SegmentHeader& header = session().header;
  const auto* transfers = reinterpret_cast<const shm::TransferLayout*>(
      inbox_.base() + shm::InboxTransferOffset(header.local_size));
  const uint32_t used = shm::LoadAcquire(session().request_fresh);
  for (uint32_t i = 1; i < used && i < header.request_limit; ++i) {
    const shm::TransferLayout& transfer = transfers[i];
    if (shm::LoadAcquire(transfer.state) != static_cast<uint32_t>(shm::TransferState::kMatched) ||
        transfer.chunk_bytes == 0) {
      continue;
    }
    const uint64_t chunks = (transfer.size_bytes + transfer.chunk_bytes - 1) / transfer.chunk_bytes;
    const uint64_t claimed = shm::LoadAcquire(transfer.claim) & 0xffff'ffffU;
    if (claimed >= chunks && shm::LoadAcquire(transfer.done_chunks) < chunks) {
      return true;
    }
  }
  return false;
}

}  // namespace ferry::faults
