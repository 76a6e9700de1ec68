#include "mpi/queues/queue_reader.h"

#include <algorithm>
#include <cstring>

#include "shm/layout/descriptor.h"
#include "shm/layout/match_layout.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/session_layout.h"

namespace ferry::mpi {
namespace {

using shm::RequestState;

constexpr uint32_t kContextsPerCommunicator = 8;
// OpenSHMEM has the contexts from here on.
constexpr uint32_t kContextLimit = uint32_t{1} << 31;
// Bounds of what a rank may have: a stopped one may have written anything.
constexpr uint32_t kMostRequests = 1 << 20;
constexpr uint32_t kMostEntries = 1 << 20;
constexpr uint32_t kMostRanks = 1 << 21;

bool IsOfProgram(uint32_t context) {
  return context >= kContextsPerCommunicator && context < kContextLimit &&
         context % kContextsPerCommunicator == 0;
}

const char* NoteOf(RequestState state, bool is_send) {
  switch (state) {
    case RequestState::kQueued:
      return "it waits for room in shared memory";
    case RequestState::kPosted:
      return "no message that fits has come";
    case RequestState::kLanded:
      return "the message is there";
    case RequestState::kTransferring:
      return is_send ? "announced to its receiver" : "the message is being copied";
    case RequestState::kRemoteWait:
      return is_send ? "announced to another node" : "the message comes from another node";
    case RequestState::kMatched:
      return "of a pair that was matched for life";
    default:
      return nullptr;
  }
}

bool IsAtMatch(RequestState state) {
  return state == RequestState::kLanded || state == RequestState::kTransferring ||
         state == RequestState::kRemoteWait;
}

void AddRequest(const shm::RequestLayout& slot, std::map<uint32_t, QueuesOfCommunicator>* queues) {
  const auto state = static_cast<RequestState>(slot.state);
  const bool is_send = slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend);
  const char* const note = NoteOf(state, is_send);
  if (note == nullptr || !IsOfProgram(slot.context)) {
    return;
  }
  QueuedMessage message;
  message.peer = slot.peer;
  message.tag = slot.tag;
  message.size_bytes = slot.size_bytes;
  message.buffer = slot.user_address;
  message.note = note;
  message.order = slot.start_ns;
  if (!is_send && IsAtMatch(state)) {
    message.matched = true;
    message.actual_peer = slot.status_source;
    message.actual_tag = slot.status_tag;
    message.actual_bytes = slot.message_bytes;
  }
  QueuesOfCommunicator& own = (*queues)[slot.context / kContextsPerCommunicator];
  (is_send ? own.sends : own.receives).push_back(message);
}

void AddUnexpected(const shm::MatchEntry& entry, std::map<uint32_t, QueuesOfCommunicator>* queues) {
  if (entry.state != static_cast<uint32_t>(shm::MatchState::kUnexpected) ||
      !IsOfProgram(entry.context)) {
    return;
  }
  QueuedMessage message;
  message.peer = message.actual_peer = entry.source;
  message.tag = message.actual_tag = entry.tag;
  message.size_bytes = message.actual_bytes = entry.size_bytes;
  message.note = entry.kind == static_cast<uint8_t>(shm::DescriptorKind::kEager)
                     ? "its data is here"
                     : "its data is with the sender";
  message.order = entry.sequence;
  (*queues)[entry.context / kContextsPerCommunicator].unexpected.push_back(message);
}

template <typename T>
bool FetchAll(const FetchMemory& fetch, uint64_t address, uint32_t count, std::vector<T>* all) {
  all->resize(count);
  return count == 0 || fetch(address, count * sizeof(T), all->data());
}

void Sort(std::vector<QueuedMessage>* messages) {
  std::stable_sort(messages->begin(), messages->end(),
                   [](const auto& a, const auto& b) { return a.order < b.order; });
}

}  // namespace

bool ReadQueues(const shm::DebugSession& session, const FetchMemory& fetch,
                std::map<uint32_t, QueuesOfCommunicator>* queues) {
  queues->clear();
  if (session.request_limit > kMostRequests || session.job_size > kMostRanks) {
    return false;
  }
  uint32_t fresh = 0;
  if (!fetch(session.address + offsetof(shm::SessionLayout, request_fresh), sizeof(fresh),
             &fresh)) {
    return false;
  }
  std::vector<shm::RequestLayout> requests;
  if (!FetchAll(fetch, session.address + shm::SessionRequestsOffset(),
                std::min(fresh, session.request_limit), &requests)) {
    return false;
  }
  for (const shm::RequestLayout& slot : requests) {
    AddRequest(slot, queues);
  }
  const uint64_t match =
      session.address + shm::PlacesOfSession(session.job_size, session.request_limit).match;
  uint32_t counts[3] = {};  // capacity, free_first, fresh
  static_assert(offsetof(shm::MatchTableLayout, fresh) == 8);
  if (!fetch(match, sizeof(counts), counts)) {
    return false;
  }
  std::vector<shm::MatchEntry> entries;
  if (!FetchAll(fetch, match + sizeof(shm::MatchTableLayout),
                std::min({counts[2], counts[0], kMostEntries}), &entries)) {
    return false;
  }
  for (const shm::MatchEntry& entry : entries) {
    AddUnexpected(entry, queues);
  }
  (*queues)[kNumberOfWorld];
  (*queues)[kNumberOfSelf];
  for (auto& [number, own] : *queues) {
    Sort(&own.sends);
    Sort(&own.receives);
    Sort(&own.unexpected);
  }
  return true;
}

}  // namespace ferry::mpi
