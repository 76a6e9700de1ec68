#include "daemon/control/session_segments.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>
#include <utility>

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

// A copy of the header whose fields fit the session.
StatusOr<shm::SegmentHeader> CheckedHeader(const shm::Mapping& mapping, const Session& session,
                                           const char* name) {
  const auto* live = reinterpret_cast<const shm::SegmentHeader*>(mapping.base());
  shm::SegmentHeader header{};
  header.rank = shm::LoadRelaxed(live->rank);
  header.job_size = shm::LoadRelaxed(live->job_size);
  header.local_size = shm::LoadRelaxed(live->local_size);
  header.request_limit = shm::LoadRelaxed(live->request_limit);
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
  return header;
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
  if (!session_map.ok()) {
    return session_map.status();
  }
  auto inbox_map = MapChecked(inbox_fd.get(), inbox_bytes, shm::SegmentKind::kInbox, "inbox");
  if (!inbox_map.ok()) {
    return inbox_map.status();
  }
  const auto session_header = CheckedHeader(*session_map, *session, "session");
  if (!session_header.ok()) {
    return session_header.status();
  }
  const auto inbox_header = CheckedHeader(*inbox_map, *session, "inbox");
  if (!inbox_header.ok()) {
    return inbox_header.status();
  }
  const uint32_t limit = session_header->request_limit;
  if (inbox_header->request_limit != limit) {
    return Bad("inbox", Differs("the request limit", inbox_header->request_limit, limit));
  }
  if (inbox_map->size_bytes() < shm::InboxSizeBytes(session->local_size, limit)) {
    return Bad("inbox", "it is too small for its lanes and transfers");
  }
  const auto capacity = CheckedCapacity(*session_map, limit);
  if (!capacity.ok()) {
    return capacity.status();
  }
  session->request_limit = limit;
  session->match_capacity = *capacity;
  session->session_map = std::move(*session_map);
  session->inbox_map = std::move(*inbox_map);
  session->session_fd = std::move(session_fd);
  session->inbox_fd = std::move(inbox_fd);
  return {};
}

StatusOr<std::shared_ptr<Region>> AdoptRegion(UniqueFd fd, uint32_t id, uint64_t size_bytes) {
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd.get(), size_bytes);
  if (!mapping.ok()) {
    return Status(mapping.status().code(),
                  "region " + std::to_string(id) + ": " + mapping.status().message());
  }
  auto region = std::make_shared<Region>();
  region->id = id;
  region->mapping = std::move(*mapping);
  region->fd = std::move(fd);
  return region;
}

bool ProbePrivateMemory(pid_t pid, uid_t uid) {
  if (uid != geteuid()) {
    return false;  // root may, which says nothing about the rank's peers
  }
  // Rights are checked before the address, and nothing is mapped at 0.
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

}  // namespace ferry::daemon
