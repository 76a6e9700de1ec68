#include "client/profile/measure.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/clock.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

using shm::ProfileHeader;

constexpr uint64_t kPartAlignment = 128;

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// On which this process may run; 0: unknown.
uint32_t OwnCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? static_cast<uint32_t>(CPU_COUNT(&cpus))
                                                        : 0;
}

ProfileHeader Plan(const Measure::Parts& parts, const config::Options& options) {
  ProfileHeader header{};
  header.version = shm::kProfileVersion;
  header.rank = parts.rank;
  header.job_size = parts.size;
  header.pid = static_cast<uint32_t>(getpid());
  header.node = parts.node;
  header.node_ranks = parts.node_ranks;
  header.is_crowded = parts.is_crowded ? 1 : 0;
  header.cpus = OwnCpus();
  header.node_cpus = static_cast<uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
  header.profile_offset = sizeof(ProfileHeader);
  if (options.profile.find("report") != std::string::npos) {
    header.peer_count = std::min(parts.size, shm::kMostProfilePeers);
    header.profile_bytes = shm::ProfileBytes(header.peer_count);
  }
  header.trace_offset = header.profile_offset + header.profile_bytes;
  if (options.profile.find("trace") != std::string::npos) {
    const uint64_t most_bytes = options.trace_bytes + sizeof(shm::TraceRingHeader);
    header.trace_bytes = RoundUp(shm::TraceRingWriter::BytesWithin(most_bytes));
  }
  return header;
}

}  // namespace

Measure::Measure(const Parts& parts, shm::Mapping mapping)
    : calls_(*parts.calls),
      mapping_(std::move(mapping)),
      own_messages_(parts.messages),
      own_queues_(parts.queues) {}

std::unique_ptr<Measure> Measure::Make(const Parts& parts, const config::Options& options) {
  ProfileHeader header = Plan(parts, options);
  if (header.profile_bytes == 0 && header.trace_bytes == 0) {
    return nullptr;
  }
  const uint64_t bytes = header.trace_offset + header.trace_bytes;
  const StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-profile", bytes);
  StatusOr<shm::Mapping> mapping =
      fd.ok() ? shm::MapSegment(fd->get(), 0) : StatusOr<shm::Mapping>(fd.status());
  if (!mapping.ok()) {
    return nullptr;
  }
  std::unique_ptr<Measure> made(new Measure(parts, std::move(*mapping)));
  std::byte* const base = made->mapping_.base();
  header.begin_ns = MonotonicNs();
  auto* const words = new (base) ProfileHeader(header);
  // Last: a reader that finds it finds the others. Readers copy what they read.
  shm::StoreRelease(words->magic, shm::kProfileMagic);
  if (!parts.attach->LeaveProfile(fd->get(), made->mapping_.size_bytes()).ok()) {
    return nullptr;
  }
  const auto watch = [&parts](CallWatcher* watcher) {
    watcher->next = parts.calls->watcher();
    parts.calls->SetWatcher(watcher);
  };
  if (header.profile_bytes != 0) {
    auto* const layout = reinterpret_cast<shm::ProfileLayout*>(base + header.profile_offset);
    watch(&made->profile_.emplace(layout, header.peer_count, parts.shared));
  }
  if (shm::TraceRingWriter::BytesWithin(header.trace_bytes) != 0) {
    watch(&made->events_.emplace(std::span(base + header.trace_offset, header.trace_bytes),
                                 parts.by_link, parts.shared));
    made->queues_.emplace(parts.queues, made->events());
    gpu::SetStreamWatcher(made->events());
  }
  made->messages_.emplace(parts.messages, parts.calls, made->profile(), made->events(),
                          options.request_limit + 1, parts.shared);
  return made;
}

Measure::~Measure() {
  calls_.SetWatcher(nullptr);
  gpu::SetStreamWatcher(nullptr);
}

void Measure::NoteEnd() {
  if (messages_.has_value()) {
    messages_->NoteEnd();
  }
  auto* const header = reinterpret_cast<ProfileHeader*>(mapping_.base());
  shm::StoreRelaxed(header->end_ns, MonotonicNs());
}

}  // namespace ferry::client
