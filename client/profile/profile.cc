#include "client/profile/profile.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "client/api/quick_clock.h"
#include "common/clock.h"
#include "shm/call_record.h"

namespace ferry::client {
namespace {

using shm::CallDescription;
using shm::CallName;
using shm::ProfileArrival;
using shm::ProfileCall;
using shm::ProfileFile;
using shm::ProfileGroup;
using shm::ProfilePeer;

constexpr uint32_t kNoGroup = UINT32_MAX;
constexpr uint32_t kMostProbes = 64;
constexpr uint32_t kMostFileProbes = 16;
constexpr uint64_t kPollGapNs = 100'000;

// The words of a call of this thread when it began to wait: some may be gone at its end.
struct Waiting {
  const CallNote* note = nullptr;
  CallDescription call;
};

Waiting& WaitingOfThread() {
  constinit thread_local Waiting waiting;
  return waiting;
}

uint32_t GroupOf(const CallDescription& call) {
  return (call.flags & shm::kCallHasGroup) != 0 ? call.group : kNoGroup;
}

// A collective's root is no rank that the call waits for.
int32_t PeerOf(const CallDescription& call) {
  return (call.flags & shm::kCallPeerIsRoot) != 0 ? shm::kCallNoRank : call.peer;
}

uint64_t BytesOf(const CallDescription& call) {
  return (call.flags & shm::kCallHasBytes) != 0 ? call.bytes : 0;
}

// FNV-1a, and a multiplication, which brings the last letters into the upper bits; never 0.
uint64_t HashOf(const char* text) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (; *text != 0; ++text) {
    hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100'0000'01b3;
  }
  return (hash * 0x9e37'79b9'7f4a'7c15) | 1;
}

enum class Access : uint8_t { kNone, kRead, kWrite };

Access AccessOf(CallName name) {
  switch (name) {
    case CallName::kMpiFileReadAt:
    case CallName::kMpiFileRead:
    case CallName::kMpiFileReadShared:
    case CallName::kMpiFileReadAtAll:
    case CallName::kMpiFileReadAll:
    case CallName::kMpiFileReadOrdered:
      return Access::kRead;
    case CallName::kMpiFileWriteAt:
    case CallName::kMpiFileWrite:
    case CallName::kMpiFileWriteShared:
    case CallName::kMpiFileWriteAtAll:
    case CallName::kMpiFileWriteAll:
    case CallName::kMpiFileWriteOrdered:
      return Access::kWrite;
    default:
      return Access::kNone;
  }
}

}  // namespace

Profile::Profile(shm::ProfileLayout* layout, uint32_t peers, const bool* shared)
    : layout_(*layout),
      peers_(reinterpret_cast<ProfilePeer*>(layout + 1)),
      peer_count_(peers),
      shared_(*shared) {
  layout_.totals.arrival_stride = 1;
}

// ---- Calls --------------------------------------------------------------------------------------

void Profile::WaitBegan(CallNote* note) {
  Waiting& waiting = WaitingOfThread();
  waiting.call = {};
  waiting.note = note;
  note->describe(*note, &waiting.call);
}

void Profile::End(CallNote* note, bool inner) {
  // Of few calls: to find what is the thread's takes a call.
  Waiting* const waiting = note->begin_ns != 0 ? &WaitingOfThread() : nullptr;
  const bool has_said = waiting != nullptr && waiting->note == note;
  if (has_said) {
    waiting->note = nullptr;
  }
  if (inner || note->entered_ns == 0) {
    return;
  }
  CallDescription call;
  note->describe(*note, &call);
  const bool is_of_file = shm::KindOf(call.name) == shm::CallKind::kFile;
  if (has_said && !is_of_file && (call.flags & shm::kCallHasGroup) == 0 &&
      call.peer == shm::kCallNoRank) {
    call = waiting->call;
  }
  const bool has_waited = note->begin_ns != 0;
  const uint64_t now_ns =
      std::max(has_waited ? MonotonicNs() : QuickMonotonicNs(), note->entered_ns);
  const uint64_t time_ns = now_ns - note->entered_ns;
  const uint64_t waited_ns = has_waited ? now_ns - note->begin_ns : 0;
  const int cpu = waited_ns != 0 ? sched_getcpu() : -1;
  const SharedLock lock(&lock_, shared_);
  shm::ProfileTotals& totals = layout_.totals;
  totals.last_ns = std::max(totals.last_ns, now_ns);
  totals.ferry_ns += time_ns;
  totals.waited_ns += waited_ns;
  ++totals.calls;
  totals.last_poll_ns = 0;  // a look before a wait is part of that, and no polling
  if (cpu >= 0) {
    totals.migrations += last_cpu_ >= 0 && cpu != last_cpu_ ? 1 : 0;
    last_cpu_ = cpu;
  }
  Add(call, time_ns, waited_ns);
  if (is_of_file && call.file != nullptr) {
    AddFile(call, time_ns, waited_ns);
  }
  if (note->has_number && shm::KindOf(call.name) == shm::CallKind::kCollective) {
    AddArrival(*note, call, now_ns);
  }
}

void Profile::Add(const CallDescription& call, uint64_t time_ns, uint64_t waited_ns) {
  ProfileCall* const place = Find(call);
  if (place == nullptr) {
    ++layout_.totals.unlisted_calls;
    layout_.totals.unlisted_ns += time_ns;
    return;
  }
  place->bytes += BytesOf(call);
  place->time_ns += time_ns;
  place->waited_ns += waited_ns;
  place->longest_ns = std::max(place->longest_ns, time_ns);
  place->waits += waited_ns != 0 ? 1 : 0;
  ++place->count;
}

// The place of such calls, a new one if there is none. Null: all around are taken.
ProfileCall* Profile::Find(const CallDescription& call) {
  const uint32_t group = GroupOf(call);
  const int32_t peer = PeerOf(call);
  const auto name = static_cast<uint16_t>(call.name);
  const auto inner = static_cast<uint16_t>(call.inner);
  const uint64_t key = (uint64_t{group} << 32 | static_cast<uint32_t>(peer)) ^
                       (uint64_t{name} << 48 | uint64_t{inner} << 20);
  const auto hash = static_cast<uint32_t>((key * 0x9e37'79b9'7f4a'7c15ULL) >> 40);
  for (uint32_t i = 0; i < kMostProbes; ++i) {
    ProfileCall& place = layout_.calls[(hash + i) % shm::kProfileCalls];
    if (place.count == 0) {
      place.name = name;
      place.inner = inner;
      place.group = group;
      place.peer = peer;
      NameGroup(call);
      return &place;
    }
    if (place.name == name && place.inner == inner && place.group == group && place.peer == peer) {
      return &place;
    }
  }
  return nullptr;
}

// A communicator that is named later keeps the name that it had at first.
void Profile::NameGroup(const CallDescription& call) {
  if ((call.flags & shm::kCallHasGroup) == 0 || call.write_name == nullptr) {
    return;
  }
  for (ProfileGroup& place : layout_.groups) {
    if (place.is_used == 0) {
      place.group = call.group;
      call.write_name(call.group_object, place.name);
      place.is_used = 1;
      return;
    }
    if (place.group == call.group) {
      return;
    }
  }
}

// ---- Files --------------------------------------------------------------------------------------

// The place of a file, a new one if there is none. Null: all around are taken.
ProfileFile* Profile::FindFile(const char* name) {
  const uint64_t hash = HashOf(name);
  for (uint32_t i = 0; i < kMostFileProbes; ++i) {
    ProfileFile& place = layout_.files[((hash >> 40) + i) % shm::kProfileFiles];
    if (place.name_hash == hash) {
      return &place;
    }
    if (place.name_hash == 0) {
      const size_t length = std::strlen(name);
      const size_t kept = std::min(length, sizeof(place.name));
      std::memcpy(place.name, name + (length - kept), kept);
      place.name_hash = hash;
      return &place;
    }
  }
  return nullptr;
}

void Profile::AddFile(const CallDescription& call, uint64_t time_ns, uint64_t waited_ns) {
  ProfileFile* const place = FindFile(call.file);
  if (place == nullptr) {
    ++layout_.totals.unlisted_file_calls;
    return;
  }
  const Access access = AccessOf(call.name);
  place->opens += call.name == CallName::kMpiFileOpen ? 1 : 0;
  if (access == Access::kRead) {
    ++place->reads;
    place->read_bytes += BytesOf(call);
  } else if (access == Access::kWrite) {
    ++place->writes;
    place->written_bytes += BytesOf(call);
  }
  ++place->calls;
  place->time_ns += time_ns;
  place->waited_ns += waited_ns;
  place->longest_ns = std::max(place->longest_ns, time_ns);
}

void Profile::AddArrival(const CallNote& note, const CallDescription& call, uint64_t now_ns) {
  shm::ProfileTotals& totals = layout_.totals;
  if ((call.flags & shm::kCallHasGroup) == 0 || note.number % totals.arrival_stride != 0) {
    return;
  }
  if (totals.arrival_count == shm::kProfileArrivals) {
    const uint64_t stride = totals.arrival_stride * 2;
    const auto end = std::remove_if(
        layout_.arrivals, layout_.arrivals + shm::kProfileArrivals,
        [stride](const ProfileArrival& arrival) { return arrival.number % stride != 0; });
    totals.arrival_count = static_cast<uint64_t>(end - layout_.arrivals);
    totals.arrival_stride = stride;
    if (note.number % stride != 0 || totals.arrival_count == shm::kProfileArrivals) {
      return;
    }
  }
  ProfileArrival& place = layout_.arrivals[totals.arrival_count];
  place.number = note.number;
  place.enter_ns = note.entered_ns;
  place.leave_ns = now_ns;
  place.bytes = BytesOf(call);
  place.group = call.group;
  place.name = static_cast<uint16_t>(call.name);
  ++totals.arrival_count;
}

// ---- Messages -----------------------------------------------------------------------------------

void Profile::NoteSent(int32_t peer, uint64_t bytes, uint64_t waited_ns) {
  const SharedLock lock(&lock_, shared_);
  CountSent(peer, bytes);
  if (ProfilePeer* const place = PeerAt(peer); place != nullptr && waited_ns != 0) {
    ++place->late_receives;
    place->late_receive_ns += waited_ns;
  }
}

void Profile::NoteReceived(int32_t source, uint64_t bytes, uint64_t waited_ns) {
  const SharedLock lock(&lock_, shared_);
  CountReceived(source, bytes);
  if (ProfilePeer* const place = PeerAt(source); place != nullptr && waited_ns != 0) {
    ++place->late_sends;
    place->late_send_ns += waited_ns;
  }
}

void Profile::NoteLateReceive(int32_t peer, uint64_t waited_ns) {
  const SharedLock lock(&lock_, shared_);
  if (ProfilePeer* const place = PeerAt(peer); place != nullptr) {
    ++place->late_receives;
    place->late_receive_ns += waited_ns;
  }
}

void Profile::NotePoll() {
  const uint64_t now_ns = QuickMonotonicNs();
  const SharedLock lock(&lock_, shared_);
  shm::ProfileTotals& totals = layout_.totals;
  ++totals.polls;
  if (totals.last_poll_ns != 0 && now_ns - totals.last_poll_ns < kPollGapNs) {
    totals.polled_ns += now_ns - totals.last_poll_ns;
  }
  totals.last_poll_ns = now_ns;
}

}  // namespace ferry::client
