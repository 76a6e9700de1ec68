#include "engine/session_view.h"

#include <string>

#include "common/version.h"
#include "shm/atomic.h"
#include "shm/match_table.h"
#include "shm/word_copy.h"

namespace ferry::engine {
namespace {

void FillHeader(shm::SegmentHeader* header, const SegmentPlan& plan, shm::SegmentKind kind,
                uint64_t size_bytes, uint32_t creator_pid) {
  header->magic = shm::kSegmentMagic;
  header->kind = static_cast<uint32_t>(kind);
  header->size_bytes = size_bytes;
  header->creator_pid = creator_pid;
  header->rank = plan.rank;
  header->job_size = plan.job_size;
  header->local_size = plan.local_size;
  header->request_limit = plan.request_limit;
  header->unexpected_limit = plan.unexpected_limit;
}

// Copies the header, which its owner can change at any time, and checks the copy. A view goes by
// the copy alone, so that it stays inside the mapping.
Status ReadHeader(const shm::SegmentHeader& shared, shm::SegmentKind kind, uint64_t size_bytes,
                  shm::SegmentHeader* header) {
  // Pairs with InitializeSegments: a version that is there vouches for the rest of the header.
  const uint32_t version = shm::LoadAcquire(shared.layout_version);
  if (version == 0) {
    return {ErrorCode::kWouldBlock, "the segment is not initialised yet"};
  }
  shm::CopyWords(header, &shared, sizeof(*header));  // by a call: no word is read again
  if (header->magic != shm::kSegmentMagic || header->kind != static_cast<uint32_t>(kind)) {
    return {ErrorCode::kCorrupt, "not a Ferry segment of the expected kind"};
  }
  if (version != kLayoutVersion) {
    return {ErrorCode::kVersionMismatch, "the segment has layout version " +
                                             std::to_string(version) + ", this process has " +
                                             std::to_string(kLayoutVersion)};
  }
  if (header->size_bytes != size_bytes) {
    return {ErrorCode::kCorrupt, "the segment says it has " + std::to_string(header->size_bytes) +
                                     " bytes but has " + std::to_string(size_bytes)};
  }
  if (header->job_size == 0 || header->rank >= header->job_size || header->local_size == 0 ||
      header->local_size > shm::kMaxLocalRanks || header->request_limit < 2 ||
      header->unexpected_limit < 2) {
    return {ErrorCode::kCorrupt, "the segment's header holds impossible sizes"};
  }
  return {};
}

}  // namespace

void InitializeSegments(const SegmentPlan& plan, uint32_t creator_pid, std::byte* session,
                        std::byte* inbox) {
  auto* session_layout = reinterpret_cast<shm::SessionLayout*>(session);
  auto* inbox_layout = reinterpret_cast<shm::InboxLayout*>(inbox);
  FillHeader(&session_layout->header, plan, shm::SegmentKind::kSession, plan.session_bytes(),
             creator_pid);
  FillHeader(&inbox_layout->header, plan, shm::SegmentKind::kInbox, plan.inbox_bytes(),
             creator_pid);
  session_layout->request_fresh = 1;  // slot 0 names no request
  shm::MatchTable::Initialize(
      reinterpret_cast<shm::MatchTableLayout*>(
          session + shm::PlacesOfSession(plan.job_size, plan.request_limit).match),
      plan.unexpected_limit);
  // Pairs with CheckHeader: publishes everything above.
  shm::StoreRelease(inbox_layout->header.layout_version, kLayoutVersion);
  shm::StoreRelease(session_layout->header.layout_version, kLayoutVersion);
}

StatusOr<InboxView> ViewInbox(std::byte* base, uint64_t size_bytes) {
  if (size_bytes < sizeof(shm::InboxLayout)) {
    return Status(ErrorCode::kCorrupt, "the inbox segment is too small");
  }
  auto* layout = reinterpret_cast<shm::InboxLayout*>(base);
  shm::SegmentHeader header;
  FERRY_RETURN_IF_ERROR(ReadHeader(layout->header, shm::SegmentKind::kInbox, size_bytes, &header));
  if (shm::InboxSizeBytes(header.local_size, header.request_limit) != size_bytes) {
    return Status(ErrorCode::kCorrupt, "the inbox segment's size does not fit its header");
  }
  InboxView view;
  view.layout = layout;
  view.size_bytes = size_bytes;
  view.rank = header.rank;
  view.local_size = header.local_size;
  view.request_limit = header.request_limit;
  return view;
}

StatusOr<SessionView> ViewSession(std::byte* session, uint64_t session_bytes, std::byte* inbox,
                                  uint64_t inbox_bytes) {
  if (session_bytes < sizeof(shm::SessionLayout)) {
    return Status(ErrorCode::kCorrupt, "the session segment is too small");
  }
  auto* layout = reinterpret_cast<shm::SessionLayout*>(session);
  shm::SegmentHeader header;
  FERRY_RETURN_IF_ERROR(
      ReadHeader(layout->header, shm::SegmentKind::kSession, session_bytes, &header));
  const StatusOr<InboxView> inbox_view = ViewInbox(inbox, inbox_bytes);
  FERRY_RETURN_IF_ERROR(inbox_view.status());
  SessionView view;
  view.layout = layout;
  view.size_bytes = session_bytes;
  view.inbox = *inbox_view;
  view.rank = header.rank;
  view.job_size = header.job_size;
  view.request_limit = header.request_limit;
  if (view.rank != view.inbox.rank || view.request_limit != view.inbox.request_limit ||
      shm::SessionSizeBytes(view.job_size, view.request_limit, header.unexpected_limit) !=
          session_bytes ||
      shm::LoadRelaxed(view.match()->capacity) != header.unexpected_limit) {
    return Status(ErrorCode::kCorrupt, "the session and inbox segments do not belong together");
  }
  view.by_rank = shm::SessionByRank::In(session, view.job_size, view.request_limit);
  return view;
}

}  // namespace ferry::engine
