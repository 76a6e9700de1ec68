#include "tools/profile/rank_profile.h"

#include <algorithm>
#include <cstring>

#include "shm/call_record.h"

namespace ferry::tools {
namespace {

using shm::CallName;
using shm::ProfileHeader;
using shm::ProfileLayout;

constexpr uint32_t kNoGroup = UINT32_MAX;

// A copy of the T there; zeros where there are no bytes, which are those of holes.
template <typename T>
T ReadAt(const std::string& bytes, uint64_t offset) {
  T value{};
  if (offset < bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, std::min(sizeof(T), bytes.size() - offset));
  }
  return value;
}

CallName NameOf(uint16_t number) {
  return shm::IsCallName(number) ? static_cast<CallName>(number) : CallName::kNone;
}

bool IsPeer(int32_t peer, uint32_t job_size) {
  return peer == shm::kCallNoRank || peer == shm::kCallAnyRank ||
         (peer >= 0 && static_cast<uint32_t>(peer) < job_size);
}

std::string Printable(const char* text, size_t size) {
  std::string printable(text, strnlen(text, size));
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return printable;
}

Status Corrupt(const std::string& why) { return {ErrorCode::kCorrupt, why}; }

Status Check(const ProfileHeader& header, uint32_t rank, uint32_t job_size) {
  if (header.magic != shm::kProfileMagic) {
    return Corrupt("it has written no profile");
  }
  if (header.version != shm::kProfileVersion) {
    return Corrupt("its profile has version " + std::to_string(header.version) +
                   ", and ferryrun reads version " + std::to_string(shm::kProfileVersion));
  }
  if (header.rank != rank || header.job_size != job_size) {
    return Corrupt("its profile says that it is another rank's, or of another job");
  }
  const uint32_t peers = std::min(job_size, shm::kMostProfilePeers);
  const bool has_profile = header.profile_bytes != 0;
  if (has_profile &&
      (header.profile_offset != sizeof(ProfileHeader) ||
       header.profile_bytes != shm::ProfileBytes(peers) || header.peer_count != peers)) {
    return Corrupt("its profile has an impossible size");
  }
  return {};
}

void ReadCalls(const std::string& bytes, uint64_t base, uint32_t job_size, RankProfile* profile) {
  for (uint32_t i = 0; i < shm::kProfileCalls; ++i) {
    const auto call = ReadAt<shm::ProfileCall>(
        bytes, base + offsetof(ProfileLayout, calls) + i * sizeof(shm::ProfileCall));
    if (call.count != 0 && IsPeer(call.peer, job_size)) {
      profile->calls.push_back({.name = NameOf(call.name),
                                .inner = NameOf(call.inner),
                                .has_group = call.group != kNoGroup,
                                .group = call.group == kNoGroup ? 0 : call.group,
                                .peer = call.peer,
                                .count = call.count,
                                .bytes = call.bytes,
                                .time_ns = call.time_ns,
                                .waited_ns = std::min(call.waited_ns, call.time_ns),
                                .longest_ns = call.longest_ns,
                                .waits = call.waits});
    }
  }
  for (uint32_t i = 0; i < shm::kProfileGroups; ++i) {
    const auto group = ReadAt<shm::ProfileGroup>(
        bytes, base + offsetof(ProfileLayout, groups) + i * sizeof(shm::ProfileGroup));
    if (group.is_used != 0) {
      profile->groups[group.group] = Printable(group.name, sizeof(group.name));
    }
  }
}

void ReadArrivals(const std::string& bytes, uint64_t base, RankProfile* profile) {
  const uint64_t count = std::min<uint64_t>(profile->totals.arrival_count, shm::kProfileArrivals);
  for (uint64_t i = 0; i < count; ++i) {
    const auto arrival = ReadAt<shm::ProfileArrival>(
        bytes, base + offsetof(ProfileLayout, arrivals) + i * sizeof(shm::ProfileArrival));
    const CallName name = NameOf(arrival.name);
    if (name != CallName::kNone && arrival.leave_ns >= arrival.enter_ns) {
      profile->arrivals.push_back(
          {arrival.number, arrival.enter_ns, arrival.leave_ns, arrival.bytes, arrival.group, name});
    }
  }
}

void ReadFiles(const std::string& bytes, uint64_t base, RankProfile* profile) {
  for (uint32_t i = 0; i < shm::kProfileFiles; ++i) {
    const auto file = ReadAt<shm::ProfileFile>(
        bytes, base + offsetof(ProfileLayout, files) + i * sizeof(shm::ProfileFile));
    if (file.name_hash != 0 && file.calls != 0) {
      profile->files.push_back({Printable(file.name, sizeof(file.name)), file});
      shm::ProfileFile& sums = profile->files.back().sums;
      sums.waited_ns = std::min(sums.waited_ns, sums.time_ns);
    }
  }
}

void ReadPeers(const std::string& bytes, uint64_t base, uint32_t peers, RankProfile* profile) {
  for (uint32_t i = 0; i < peers; ++i) {
    const auto sums = ReadAt<shm::ProfilePeer>(
        bytes, base + sizeof(ProfileLayout) + uint64_t{i} * sizeof(shm::ProfilePeer));
    if (sums.sent != 0 || sums.received != 0) {
      profile->peers.push_back({i, sums});
    }
  }
}

void ReadAppendix(const std::string& bytes, RankProfile* profile) {
  if (bytes.size() != sizeof(shm::ProfileAppendix)) {
    return;
  }
  const auto appendix = ReadAt<shm::ProfileAppendix>(bytes, 0);
  std::copy_n(appendix.counters, shm::kStatisticCount, profile->counters.begin());
  for (uint16_t i = 0; i < shm::kMostCallNames; ++i) {
    const shm::CallTotals& totals = appendix.totals[i];
    if (NameOf(i) != CallName::kNone && (totals.calls != 0 || totals.waits != 0)) {
      profile->counted[NameOf(i)] = totals;
    }
  }
}

}  // namespace

void RankCollector::Add(uint64_t offset, std::string_view piece, uint64_t segment_bytes) {
  const uint64_t file_bytes = segment_bytes - std::min(segment_bytes, sizeof(shm::ProfileAppendix));
  if (segment_bytes != 0 && offset == file_bytes) {
    appendix_ = piece;
    return;
  }
  if (offset > kMostBytes || piece.size() > kMostBytes - offset) {
    return;
  }
  bytes_.resize(std::max<size_t>(bytes_.size(), offset + piece.size()));
  piece.copy(bytes_.data() + offset, piece.size());
}

StatusOr<RankProfile> RankCollector::Take(uint32_t rank, uint32_t job_size) const {
  const auto header = ReadAt<ProfileHeader>(bytes_, 0);
  FERRY_RETURN_IF_ERROR(Check(header, rank, job_size));
  RankProfile profile;
  profile.is_measured = true;
  profile.node = header.node;
  profile.begin_ns = header.begin_ns;
  profile.end_ns = header.end_ns;
  profile.cpus = header.cpus;
  profile.node_cpus = header.node_cpus;
  profile.node_ranks = header.node_ranks;
  profile.is_crowded = header.is_crowded != 0;
  ReadAppendix(appendix_, &profile);
  if (header.profile_bytes != 0) {
    const uint64_t base = header.profile_offset;
    profile.totals = ReadAt<shm::ProfileTotals>(bytes_, base);
    profile.totals.waited_ns = std::min(profile.totals.waited_ns, profile.totals.ferry_ns);
    profile.last_ns = profile.totals.last_ns;
    profile.sizes = ReadAt<shm::ProfileSizes>(bytes_, base + offsetof(ProfileLayout, sizes));
    ReadCalls(bytes_, base, job_size, &profile);
    ReadArrivals(bytes_, base, &profile);
    ReadFiles(bytes_, base, &profile);
    ReadPeers(bytes_, base, header.peer_count, &profile);
  }
  return profile;
}

}  // namespace ferry::tools
