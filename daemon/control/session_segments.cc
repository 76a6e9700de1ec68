#include "daemon/control/session_segments.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "common/process_memory.h"
#include "shm/atomic.h"
#include "shm/segment_check.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kMaxRequestLimit = 16U << 20;
constexpr uint32_t kMaxMatchCapacity = 1U << 30;

Status Bad(const char* segment, const std::string& why) {
  return {ErrorCode::kCorrupt, std::string(segment) + " segment: " + why};
}

std::string Differs(const char* what, uint64_t said, uint64_t expected) {
  return std::string(what) + " is " + std::to_string(said) + " in its header, but should be " +
         std::to_string(expected);
}

StatusOr<shm::Mapping> MapChecked(int fd, uint64_t size_bytes, shm::SegmentKind kind,
                                  const char* name) {
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd, size_bytes);
  if (!mapping.ok()) {
    return Status(mapping.status().code(), std::string(name) + " " + mapping.status().message());
  }
  if (Status status = shm::CheckHeader(*mapping, kind); !status.ok()) {
    if (status.code() == ErrorCode::kWouldBlock) {
      return Bad(name, "its header was never published");
    }
    return Status(status.code(), std::string(name) + " " + status.message());
  }
  return mapping;
}

// The request limit in the header, which must be that of the session's rank.
StatusOr<uint32_t> CheckedRequestLimit(const shm::Mapping& mapping, const Session& session,
                                       const char* name) {
  const auto& header = *reinterpret_cast<const shm::SegmentHeader*>(mapping.base());
  if (const uint32_t rank = shm::LoadRelaxed(header.rank); rank != session.rank) {
    return Bad(name, Differs("the rank", rank, session.rank));
  }
  if (const uint32_t size = shm::LoadRelaxed(header.job_size); size != session.job_size) {
    return Bad(name, Differs("the job's size", size, session.job_size));
  }
  if (const uint32_t size = shm::LoadRelaxed(header.local_size); size != session.local_size) {
    return Bad(name, Differs("the number of local ranks", size, session.local_size));
  }
  const uint32_t limit = shm::LoadRelaxed(header.request_limit);
  if (limit == 0 || limit > kMaxRequestLimit) {
    return Bad(name, "a request limit of " + std::to_string(limit) + " is out of range (1 to " +
                         std::to_string(kMaxRequestLimit) + ")");
  }
  return limit;
}

// The capacity of the match table, once it is sure that the table lies within the segment.
StatusOr<uint32_t> CheckedCapacity(const shm::Mapping& mapping, uint32_t request_limit) {
  const uint64_t offset = shm::SessionMatchOffset(request_limit);
  if (mapping.size_bytes() < offset + sizeof(shm::MatchTableLayout)) {
    return Bad("session", "it is too small for " + std::to_string(request_limit) + " requests");
  }
  const auto* table = reinterpret_cast<const shm::MatchTableLayout*>(mapping.base() + offset);
  const uint32_t capacity = shm::LoadRelaxed(table->capacity);
  if (capacity > kMaxMatchCapacity ||
      shm::SessionSizeBytes(request_limit, capacity) > mapping.size_bytes()) {
    return Bad("session",
               "it is too small for a match table of " + std::to_string(capacity) + " entries");
  }
  return capacity;
}

}  // namespace

Status AdoptSegments(UniqueFd session_fd, uint64_t session_bytes, UniqueFd inbox_fd,
                     uint64_t inbox_bytes, Session* session) {
  auto session_map =
      MapChecked(session_fd.get(), session_bytes, shm::SegmentKind::kSession, "session");
  FERRY_RETURN_IF_ERROR(session_map.status());
  auto inbox_map = MapChecked(inbox_fd.get(), inbox_bytes, shm::SegmentKind::kInbox, "inbox");
  FERRY_RETURN_IF_ERROR(inbox_map.status());
  const auto limit = CheckedRequestLimit(*session_map, *session, "session");
  FERRY_RETURN_IF_ERROR(limit.status());
  const auto inbox_limit = CheckedRequestLimit(*inbox_map, *session, "inbox");
  FERRY_RETURN_IF_ERROR(inbox_limit.status());
  if (*inbox_limit != *limit) {
    return Bad("inbox", Differs("the request limit", *inbox_limit, *limit));
  }
  if (inbox_map->size_bytes() < shm::InboxSizeBytes(session->local_size, *limit)) {
    return Bad("inbox", "it is too small for its lanes and transfers");
  }
  const auto capacity = CheckedCapacity(*session_map, *limit);
  FERRY_RETURN_IF_ERROR(capacity.status());
  session->request_limit = *limit;
  session->match_capacity = *capacity;
  session->session_map = std::move(*session_map);
  session->inbox_map = std::move(*inbox_map);
  session->session_fd = std::move(session_fd);
  session->inbox_fd = std::move(inbox_fd);
  return {};
}

StatusOr<std::shared_ptr<Region>> AdoptRegion(UniqueFd fd, const attach::RegionRequest& request) {
  auto region = std::make_shared<Region>();
  region->id = request.region;
  region->by_stream = (request.flags & attach::kRegionByStream) != 0;
  if (!region->by_stream) {
    StatusOr<shm::Mapping> mapping = shm::MapSegment(fd.get(), request.size_bytes);
    if (!mapping.ok()) {
      return Status(mapping.status().code(),
                    "region " + std::to_string(request.region) + ": " + mapping.status().message());
    }
    region->mapping = std::move(*mapping);
  } else if (request.size_bytes == 0 ||
             request.size_bytes != shm::RoundUpToPage(request.size_bytes)) {
    return Status(ErrorCode::kCorrupt, "region " + std::to_string(request.region) + ": " +
                                           std::to_string(request.size_bytes) +
                                           " bytes of device memory are no whole number of pages");
  }
  region->device_bytes = request.size_bytes;
  region->device = request.device;
  region->allocation_id = request.allocation_id;
  std::copy(std::begin(request.handle), std::end(request.handle), region->handle.begin());
  region->fd = std::move(fd);
  return region;
}

bool ProbePrivateMemory(pid_t pid, uid_t uid) {
  if (uid != geteuid()) {
    return false;  // the job's worker process will tell
  }
  return IsProcessMemoryReachable(pid);
}

}  // namespace ferry::daemon
