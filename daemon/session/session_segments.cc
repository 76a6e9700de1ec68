#include "daemon/session/session_segments.h"

#include <errno.h>
#include <stddef.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/process_memory.h"
#include "daemon/sockets/disposal.h"
#include "shm/segment.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kMaxRequestLimit = 16U << 20;
constexpr uint32_t kMaxMatchCapacity = 1U << 30;
constexpr uint64_t kMaxDeviceBytes = uint64_t{1} << 46;  // no device has as many

Status Bad(const char* segment, const std::string& why) {
  return {ErrorCode::kCorrupt, std::string(segment) + " segment: " + why};
}

std::string Differs(const char* what, uint64_t said, uint64_t expected) {
  return std::string(what) + " is " + std::to_string(said) + " in its header, but should be " +
         std::to_string(expected);
}

// More than the machine has: no mapping of ours is ever that large.
Status CheckSize(uint64_t size_bytes, const std::string& name) {
  struct sysinfo machine {};
  sysinfo(&machine);
  const uint64_t most = (uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
  if (size_bytes != 0 && size_bytes <= most) {
    return {};
  }
  return {ErrorCode::kCorrupt, name + " of " + std::to_string(size_bytes) +
                                   " bytes: it must have 1 to " + std::to_string(most) +
                                   ", as many as this machine has memory"};
}

// Checks that the region lies in its dma-buf, whose length every holder can read. The NIC's driver
// checks that, too, but wrong regions are not to get that far.
Status CheckDmabuf(int fd, const attach::RegionRequest& request, const std::string& name) {
  const off_t end = lseek(fd, 0, SEEK_END);
  const uint64_t length = end < 0 ? 0 : static_cast<uint64_t>(end);
  if (request.dmabuf_offset <= length && request.size_bytes <= length - request.dmabuf_offset) {
    return {};
  }
  return {ErrorCode::kCorrupt, name + ": its dma-buf has " + std::to_string(length) +
                                   " bytes, not " + std::to_string(request.size_bytes) +
                                   " from offset " + std::to_string(request.dmabuf_offset) + " on"};
}

// Reads `to` from a file that was checked, without mapping it.
template <typename T>
Status ReadAt(int fd, uint64_t offset, const char* name, T* to) {
  const ssize_t size = pread(fd, to, sizeof(T), static_cast<off_t>(offset));
  if (size < 0) {
    return StatusFromErrno(errno, std::string("reading the ") + name + " segment");
  }
  return size == sizeof(T) ? Status() : Bad(name, "it is too small for what it says of itself");
}

// The request limit in the header of a segment, once its file and what the header says agree.
StatusOr<uint32_t> ReadRequestLimit(int fd, uint64_t size_bytes, shm::SegmentKind kind,
                                    const Session& session, const char* name) {
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, std::string(name) + " segment"));
  const auto named = [name](const Status& status) {
    return Status(status.code(), std::string(name) + " " + status.message());
  };
  if (const auto file = shm::CheckSegmentFile(fd, size_bytes); !file.ok()) {
    return named(file.status());
  }
  shm::SegmentHeader header{};
  FERRY_RETURN_IF_ERROR(ReadAt(fd, 0, name, &header));
  if (const Status status = shm::CheckHeader(header, size_bytes, kind); !status.ok()) {
    return status.code() == ErrorCode::kWouldBlock ? Bad(name, "its header was never published")
                                                   : named(status);
  }
  if (header.rank != session.rank) {
    return Bad(name, Differs("the rank", header.rank, session.rank));
  }
  if (header.job_size != session.job_size) {
    return Bad(name, Differs("the job's size", header.job_size, session.job_size));
  }
  if (header.local_size != session.local_size) {
    return Bad(name, Differs("the number of local ranks", header.local_size, session.local_size));
  }
  if (header.request_limit == 0 || header.request_limit > kMaxRequestLimit) {
    return Bad(name, "a request limit of " + std::to_string(header.request_limit) +
                         " is out of range (1 to " + std::to_string(kMaxRequestLimit) + ")");
  }
  return header.request_limit;
}

Status ExpectSize(const char* name, uint64_t size_bytes, uint64_t expected) {
  return size_bytes == expected ? Status()
                                : Bad(name, "it has " + std::to_string(size_bytes) +
                                                " bytes, but what it says of "
                                                "itself takes " +
                                                std::to_string(expected));
}

// The capacity of the match table, once it is sure that the segment is as large as that takes.
StatusOr<uint32_t> ReadCapacity(int fd, uint64_t size_bytes, uint32_t job_size,
                                uint32_t request_limit) {
  const uint64_t offset = shm::PlacesOfSession(job_size, request_limit).match;
  if (size_bytes < offset + sizeof(shm::MatchTableLayout)) {
    return Bad("session", "it is too small for " + std::to_string(request_limit) +
                              " requests and a job of " + std::to_string(job_size) + " ranks");
  }
  uint32_t capacity = 0;
  FERRY_RETURN_IF_ERROR(
      ReadAt(fd, offset + offsetof(shm::MatchTableLayout, capacity), "session", &capacity));
  if (capacity > kMaxMatchCapacity) {
    return Bad("session",
               "it is too small for a match table of " + std::to_string(capacity) + " entries");
  }
  FERRY_RETURN_IF_ERROR(
      ExpectSize("session", size_bytes, shm::SessionSizeBytes(job_size, request_limit, capacity)));
  return capacity;
}

}  // namespace

std::shared_ptr<Session> MakeSession() {
  return {new Session(), [](Session* ended) {
            MemoryWatch::Forget(ended->session_map);
            MemoryWatch::Forget(ended->inbox_map);
            Disposal& disposal = Disposal::Instance();
            disposal.Release(std::move(ended->session_map), std::move(ended->session_fd));
            disposal.Release(std::move(ended->inbox_map), std::move(ended->inbox_fd));
            delete ended;
          }};
}

Status AdoptSegments(UniqueFd* session_fd, uint64_t session_bytes, UniqueFd* inbox_fd,
                     uint64_t inbox_bytes, MemoryWatch& watch, Session* session) {
  // Nothing is mapped before all sizes agree; what is used later is what was checked here.
  const auto limit = ReadRequestLimit(session_fd->get(), session_bytes, shm::SegmentKind::kSession,
                                      *session, "session");
  FERRY_RETURN_IF_ERROR(limit.status());
  const auto inbox_limit =
      ReadRequestLimit(inbox_fd->get(), inbox_bytes, shm::SegmentKind::kInbox, *session, "inbox");
  FERRY_RETURN_IF_ERROR(inbox_limit.status());
  if (*inbox_limit != *limit) {
    return Bad("inbox", Differs("the request limit", *inbox_limit, *limit));
  }
  FERRY_RETURN_IF_ERROR(
      ExpectSize("inbox", inbox_bytes, shm::InboxSizeBytes(session->local_size, *limit)));
  const auto capacity = ReadCapacity(session_fd->get(), session_bytes, session->job_size, *limit);
  FERRY_RETURN_IF_ERROR(capacity.status());
  StatusOr<shm::Mapping> session_map = shm::MapSegment(session_fd->get(), session_bytes);
  FERRY_RETURN_IF_ERROR(session_map.status());
  StatusOr<shm::Mapping> inbox_map = shm::MapSegment(inbox_fd->get(), inbox_bytes);
  FERRY_RETURN_IF_ERROR(inbox_map.status());
  session->request_limit = *limit;
  session->match_capacity = *capacity;
  session->session_map = std::move(*session_map);
  session->inbox_map = std::move(*inbox_map);
  watch.Guard(session->session_map, {session->job_id, session->rank});
  watch.Guard(session->inbox_map, {session->job_id, session->rank});
  session->session_fd = std::move(*session_fd);
  session->inbox_fd = std::move(*inbox_fd);
  return {};
}

StatusOr<std::shared_ptr<Region>> AdoptRegion(UniqueFd* fd, UniqueFd* dmabuf,
                                              const attach::RegionRequest& request,
                                              const Session& session, MemoryWatch& watch) {
  std::shared_ptr<Region> region(new Region(), [](Region* ended) {
    MemoryWatch::Forget(ended->mapping);
    Disposal::Instance().Release(std::move(ended->mapping), std::move(ended->fd));
    Disposal::Instance().Close(std::move(ended->dmabuf));
    delete ended;
  });
  region->id = request.region;
  region->by_stream = (request.flags & attach::kRegionByStream) != 0;
  region->lent = (request.flags & attach::kRegionLent) != 0;
  const std::string name = "region " + std::to_string(request.region);
  if (!region->by_stream) {
    FERRY_RETURN_IF_ERROR(CheckSize(request.size_bytes, name));
    StatusOr<shm::Mapping> mapping = region->lent ? shm::MapPart(fd->get(), request.size_bytes)
                                                  : shm::MapSegment(fd->get(), request.size_bytes);
    if (!mapping.ok()) {
      return Status(mapping.status().code(), name + ": " + mapping.status().message());
    }
    region->mapping = std::move(*mapping);
    watch.Guard(region->mapping, {session.job_id, session.rank});
  } else if (request.size_bytes == 0 || request.size_bytes > kMaxDeviceBytes) {
    return Status(ErrorCode::kCorrupt, name + ": " + std::to_string(request.size_bytes) +
                                           " bytes of device memory are not between 1 and " +
                                           std::to_string(kMaxDeviceBytes) + " bytes");
  }
  const auto is_no_handle = [](const UniqueFd* passed) {
    return passed != nullptr && KindOf(passed->get()) == PassedKind::kOther;
  };
  if (region->by_stream && (is_no_handle(fd) || is_no_handle(dmabuf))) {
    return Status(ErrorCode::kCorrupt, name + ": its descriptor is no handle of device memory");
  }
  if (dmabuf != nullptr) {
    FERRY_RETURN_IF_ERROR(CheckDmabuf(dmabuf->get(), request, name));
  }
  region->device_bytes = request.size_bytes;
  region->device = request.device;
  region->allocation_id = request.allocation_id;
  std::copy(std::begin(request.handle), std::end(request.handle), region->handle.begin());
  if (fd != nullptr) {
    region->fd = std::move(*fd);
  }
  if (dmabuf != nullptr) {
    region->dmabuf = std::move(*dmabuf);
    region->dmabuf_offset = request.dmabuf_offset;
    region->backend.assign(request.backend, strnlen(request.backend, sizeof(request.backend)));
  }
  return region;
}

bool ProbePrivateMemory(pid_t pid, uid_t uid) {
  if (uid != geteuid()) {
    return false;  // the job's worker process will tell
  }
  return IsProcessMemoryReachable(pid);
}

}  // namespace ferry::daemon
