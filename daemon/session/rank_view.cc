#include "daemon/session/rank_view.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <tuple>

#include "common/process_stat.h"
#include "shm/atomic.h"
#include "shm/counters.h"
#include "shm/lane.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/match_layout.h"

namespace ferry::daemon {
namespace {

using shm::LoadRelaxed;
using shm::RequestLayout;
using shm::RequestState;

std::span<const RequestLayout> UsedRequests(const Session& session) {
  const auto* requests = reinterpret_cast<const RequestLayout*>(session.session_map.base() +
                                                                shm::SessionRequestsOffset());
  // Slots from `request_fresh` on were never used: reading them would only make their pages.
  return {requests, std::min(LoadRelaxed(session.layout()->request_fresh), session.request_limit)};
}

uint32_t CreditsOut(const shm::PeerWords& words) {
  return LoadRelaxed(words.sent) - LoadRelaxed(words.credited);
}

// Calls `visit` with the index of each entry of a session's array by rank, but for those on pages
// that were never written: of peers with whom the rank has never had to do. To read these would
// make them.
template <typename Entry, typename Visitor>
void ForEachTouched(const Session& session, const Entry* entries, Visitor&& visit) {
  const off_t first = reinterpret_cast<const std::byte*>(entries) - session.session_map.base();
  const off_t end = first + static_cast<off_t>(session.job_size * sizeof(Entry));
  const int fd = session.session_fd.get();
  uint64_t next = 0;
  for (off_t at = first; next < session.job_size;) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 || data >= end) {
      return;
    }
    const off_t hole = lseek(fd, data, SEEK_HOLE);
    at = hole <= data ? end : std::min(hole, end);
    const auto from = static_cast<uint64_t>(data - first) / sizeof(Entry);
    const uint64_t until = (static_cast<uint64_t>(at - first) + sizeof(Entry) - 1) / sizeof(Entry);
    for (next = std::max(next, from); next < until; ++next) {
      visit(static_cast<uint32_t>(next));
    }
  }
}

RequestState StateOf(const RequestLayout& slot) {
  return static_cast<RequestState>(LoadRelaxed(slot.state));
}

// Returns true if the rank, or one of its threads, waits for something.
bool IsWaiting(const RequestLayout& slot, RequestState state) {
  return IsUnfinished(state) &&
         (state != RequestState::kPosted || (LoadRelaxed(slot.flags) & shm::kRequestServes) == 0);
}

RequestView ReadRequest(const RequestLayout& slot, uint32_t index, RequestState state) {
  RequestView view;
  view.index = index;
  view.generation = LoadRelaxed(slot.generation);
  view.state = state;
  view.send = LoadRelaxed(slot.kind) == static_cast<uint32_t>(shm::RequestKind::kSend);
  view.context = LoadRelaxed(slot.context);
  view.peer = LoadRelaxed(slot.peer);
  view.tag = LoadRelaxed(slot.tag);
  view.size_bytes = LoadRelaxed(slot.size_bytes);
  view.start_ns = LoadRelaxed(slot.start_ns);
  const bool is_match = LoadRelaxed(slot.kind) == static_cast<uint32_t>(shm::RequestKind::kMatch);
  view.awaited = is_match ? LoadRelaxed(slot.match_entry) : 0;
  view.transfer_rank = LoadRelaxed(slot.transfer_rank);
  view.transfer_index = LoadRelaxed(slot.transfer_index);
  view.transfer_generation = LoadRelaxed(slot.transfer_generation);
  view.lost = LoadRelaxed(slot.link_end) == static_cast<uint32_t>(shm::LinkEnd::kHeld);
  view.served = (LoadRelaxed(slot.flags) & shm::kRequestServed) != 0;
  return view;
}

const shm::MatchTableLayout* MatchTable(const Session& session) {
  return reinterpret_cast<const shm::MatchTableLayout*>(
      session.session_map.base() +
      shm::PlacesOfSession(session.job_size, session.request_limit).match);
}

void ReadUnexpected(const Session& session, RankView* view) {
  const shm::MatchTableLayout* table = MatchTable(session);
  if (LoadRelaxed(table->unexpected_count) == 0) {
    return;
  }
  const auto* entries = reinterpret_cast<const shm::MatchEntry*>(table + 1);
  const uint32_t end =
      std::min({LoadRelaxed(table->fresh), session.match_capacity, kMaxUnexpectedRead});
  std::map<std::tuple<uint32_t, uint32_t, int32_t, bool>, size_t> groups;
  for (uint32_t i = 1; i < end; ++i) {
    const shm::MatchEntry& entry = entries[i];
    if (LoadRelaxed(entry.state) != static_cast<uint32_t>(shm::MatchState::kUnexpected)) {
      continue;
    }
    UnexpectedView message;
    message.source = static_cast<uint32_t>(LoadRelaxed(entry.source));
    message.tag = LoadRelaxed(entry.tag);
    message.context = LoadRelaxed(entry.context);
    message.size_bytes = LoadRelaxed(entry.size_bytes);
    message.announced =
        LoadRelaxed(entry.kind) != static_cast<uint8_t>(shm::DescriptorKind::kEager);
    const auto [group, is_new] = groups.try_emplace(
        {message.source, message.context, message.tag, message.announced}, view->unexpected.size());
    if (!is_new) {
      ++view->unexpected[group->second].count;
    } else if (view->unexpected.size() < kMaxUnexpectedShown) {
      view->unexpected.push_back(message);
    } else {
      groups.erase(group);
    }
  }
}

// Fowler, Noll and Vo's hash, word by word.
void Mix(uint64_t word, uint64_t* hash) { *hash = (*hash ^ word) * 0x100000001b3ULL; }

// Returns true if the statistic may change while no message of the program moves.
bool IsOfProtocol(shm::Statistic id) {
  using enum shm::Statistic;
  return id == kLeaseHandovers || id == kLinkMessagesSent || id == kLinkMessagesReceived ||
         id == kLinkBytesSent || id == kLinkBytesReceived || id == kLinksOpen;
}

uint64_t Backlog(const shm::LaneLayout* lane) {
  if (LoadRelaxed(lane->producer.state) != static_cast<uint32_t>(shm::LaneState::kOpen)) {
    return 0;
  }
  return shm::LaneConsumer(const_cast<shm::LaneLayout*>(lane)).Backlog();
}

}  // namespace

// ---- Processes ----

ProcessState ReadProcessState(pid_t pid) {
  switch (ReadProcessStat(pid).state) {
    case 'R':
      return ProcessState::kRuns;
    case 'S':
    case 'I':
      return ProcessState::kSleeps;
    case 'D':
      return ProcessState::kUninterruptible;
    case 'T':
      return ProcessState::kStopped;
    case 't':
      return ProcessState::kTraced;
    case '\0':  // no process, or no descriptor left to read of it
      return kill(pid, 0) != 0 && errno == ESRCH ? ProcessState::kEnded : ProcessState::kRuns;
    default:
      return ProcessState::kEnded;
  }
}

bool HasRunningThread(pid_t pid) {
  constexpr int kMostThreads = 256;
  std::error_code failure;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", failure);
  for (int count = 0; !failure && count < kMostThreads && threads != end(threads); ++count) {
    const std::string name = threads->path().filename().string();
    if (ReadProcessState(static_cast<pid_t>(std::atoi(name.c_str()))) == ProcessState::kRuns) {
      return true;
    }
    threads.increment(failure);
  }
  return false;
}

// ---- Ranks ----

bool IsUnfinished(RequestState state) {
  switch (state) {
    case RequestState::kQueued:
    case RequestState::kPosted:
    case RequestState::kLanded:
    case RequestState::kTransferring:
    case RequestState::kRemoteWait:
    case RequestState::kMatched:
      return true;
    case RequestState::kFree:
    case RequestState::kInactive:
    case RequestState::kComplete:
      return false;
  }
  return false;
}

uint32_t CountUnfinished(const Session& session) {
  const auto used = UsedRequests(session);
  return static_cast<uint32_t>(std::count_if(
      used.begin(), used.end(), [](const auto& slot) { return IsWaiting(slot, StateOf(slot)); }));
}

RankView ReadRank(const Session& session) {
  RankView view;
  view.process = ReadProcessState(session.pid);
  const shm::WakeLayout& wake = session.inbox()->wake;
  view.inside = LoadRelaxed(wake.inside) != 0;
  view.asleep = LoadRelaxed(wake.sleepers) != 0;
  view.poison = static_cast<ErrorCode>(LoadRelaxed(wake.poison));
  const shm::Statistics statistics(session.layout()->counters);
  for (const shm::StatisticLabel& label : shm::StatisticLabels()) {
    const uint64_t value = statistics.Read(label.id);
    Mix(value, &view.fingerprint);
    if (!IsOfProtocol(label.id)) {
      Mix(value, &view.mark);
    }
  }
  view.calls = shm::ReadCalls(session.layout()->calls, session.job_size);
  for (const shm::CallView& call : view.calls.calls) {
    Mix(call.slot ^ call.generation << 8, &view.mark);
  }
  uint32_t index = 0;
  for (const RequestLayout& slot : UsedRequests(session)) {
    if (const RequestState state = StateOf(slot); IsWaiting(slot, state)) {
      ++view.unfinished;
      if (view.requests.size() < kMaxRequestsShown) {
        view.requests.push_back(ReadRequest(slot, index, state));
        for (uint64_t* const hash : {&view.fingerprint, &view.mark}) {
          Mix(index ^ uint64_t{view.requests.back().generation} << 32, hash);
          Mix(static_cast<uint64_t>(state), hash);
        }
        Mix(view.requests.back().start_ns, &view.mark);
      }
    }
    ++index;
  }
  std::stable_sort(view.requests.begin(), view.requests.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  ReadUnexpected(session, &view);
  return view;
}

QueueView ReadQueues(const Session& session) {
  const shm::MatchTableLayout* table = MatchTable(session);
  return {LoadRelaxed(table->posted_count), LoadRelaxed(table->unexpected_count),
          LoadRelaxed(session.layout()->queued_sends)};
}

// ---- Places ----

uint64_t LaneBacklog(const Session& receiver, uint32_t sender_lane) {
  if (sender_lane >= shm::LaneCount(receiver.local_size)) {
    return 0;
  }
  return Backlog(reinterpret_cast<const shm::LaneLayout*>(receiver.inbox_map.base() +
                                                          shm::InboxLaneOffset(sender_lane)));
}

uint64_t CommandBacklog(const Session& sender) { return Backlog(&sender.layout()->to_daemon); }

uint32_t CreditsOut(const Session& sender, uint32_t peer) {
  if (peer >= sender.job_size) {
    return 0;
  }
  return CreditsOut(sender.by_rank().peers[peer]);
}

uint64_t CreditsOut(const Session& sender) {
  const shm::PeerWords* const peers = sender.by_rank().peers;
  uint64_t sum = 0;
  ForEachTouched(sender, peers, [&](uint32_t peer) { sum += CreditsOut(peers[peer]); });
  return sum;
}

std::vector<uint32_t> PeersByDaemons(const Session& session) {
  const shm::LinkWords* const links = session.by_rank().links;
  std::vector<uint32_t> peers;
  ForEachTouched(session, links, [&](uint32_t peer) {
    if (LoadRelaxed(links[peer].messages) != 0) {
      peers.push_back(peer);
    }
  });
  return peers;
}

PathView ReadPath(const Session& session, uint32_t peer) {
  if (peer >= session.job_size) {
    return {};
  }
  const shm::SessionByRank by_rank = session.by_rank();
  const shm::PeerWords& words = by_rank.peers[peer];
  const shm::LinkWords& link = by_rank.links[peer];
  return {static_cast<shm::PeerPath>(LoadRelaxed(words.path)),
          static_cast<shm::PeerPath>(LoadRelaxed(words.inward_path)), LoadRelaxed(link.messages),
          LoadRelaxed(link.bytes)};
}

uint64_t ReadTraffic(const Session& session, uint32_t peer) {
  if (peer >= session.job_size) {
    return 0;
  }
  const shm::SessionByRank by_rank = session.by_rank();
  const shm::PeerWords& words = by_rank.peers[peer];
  const uint64_t sent = LoadRelaxed(words.sent) + LoadRelaxed(by_rank.one_sided[peer].done);
  return sent << 32 | LoadRelaxed(words.drained);
}

PeerCounts ReadPeerCounts(const Session& session, uint32_t peer) {
  if (peer >= session.job_size) {
    return {};
  }
  const shm::PeerWords& words = session.by_rank().peers[peer];
  return {LoadRelaxed(words.sent), LoadRelaxed(words.drained)};
}

bool HasLinkTransfers(const Session& session, uint32_t peer) {
  const uint32_t link_lane = shm::LinkLane(session.local_size);
  const auto rank = static_cast<int32_t>(peer);
  return std::ranges::any_of(UsedRequests(session), [&](const RequestLayout& slot) {
    if (StateOf(slot) != RequestState::kRemoteWait) {
      return false;
    }
    const bool sends = LoadRelaxed(slot.kind) == static_cast<uint32_t>(shm::RequestKind::kSend);
    return sends ? LoadRelaxed(slot.peer) == rank &&
                       (LoadRelaxed(slot.flags) & shm::kRequestByLink) != 0
                 : LoadRelaxed(slot.status_source) == rank && LoadRelaxed(slot.lane) == link_lane;
  });
}

TransferView ReadTransfer(const Session& owner, uint32_t index) {
  TransferView view;
  if (index >= owner.request_limit) {
    return view;
  }
  const auto& slot = reinterpret_cast<const shm::TransferLayout*>(
      owner.inbox_map.base() + shm::InboxTransferOffset(owner.local_size))[index];
  view.state = static_cast<shm::TransferState>(LoadRelaxed(slot.state));
  view.generation = LoadRelaxed(slot.generation);
  view.size_bytes = LoadRelaxed(slot.size_bytes);
  view.chunks_done = LoadRelaxed(slot.done_chunks);
  view.chunks_claimed = shm::ClaimedChunks(LoadRelaxed(slot.claim));
  view.error = static_cast<ErrorCode>(LoadRelaxed(slot.error));
  const uint64_t chunk_bytes = std::max(LoadRelaxed(slot.chunk_bytes), 1U);
  const uint64_t chunks = view.size_bytes / chunk_bytes + (view.size_bytes % chunk_bytes != 0);
  view.chunks = static_cast<uint32_t>(std::clamp<uint64_t>(chunks, 1, UINT32_MAX));
  return view;
}

}  // namespace ferry::daemon
