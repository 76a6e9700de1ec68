#include "daemon/jobs/job_profiles.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/clock.h"
#include "common/job_name.h"
#include "daemon/jobs/job_history.h"
#include "shm/atomic.h"
#include "shm/daemon_trace.h"
#include "shm/segment.h"

namespace ferry::daemon {
namespace {

using shm::ProfileAppendix;
using shm::ProfileHeader;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// Of one launch: those of further programs are not even noted.
constexpr uint64_t kMostRanks = 1 << 16;
constexpr uint64_t kPartOfFiles = 8;

uint64_t MostFiles() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur / kPartOfFiles;
}

Status Check(int fd, uint64_t size_bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return {ErrorCode::kCorrupt,
            "attach socket: a rank's profile is no memfd that is sealed against shrinking and "
            "growing"};
  }
  if (fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) != size_bytes) {
    return {ErrorCode::kCorrupt, "attach socket: a rank's profile has " +
                                     std::to_string(info.st_size) + " bytes, not " +
                                     std::to_string(size_bytes)};
  }
  return {};
}

std::shared_ptr<const ProfileAppendix> ReadSession(const Session& session) {
  auto copy = std::make_shared<ProfileAppendix>();
  const shm::SessionLayout& layout = *session.layout();
  for (uint32_t i = 0; i < shm::kCounterWords; ++i) {
    copy->counters[i] = shm::LoadRelaxed(layout.counters[i]);
  }
  for (uint32_t i = 0; i < shm::kMostCallNames; ++i) {
    const shm::CallTotals& totals = layout.calls.totals[i];
    copy->totals[i] = {shm::LoadRelaxed(totals.calls), shm::LoadRelaxed(totals.bytes),
                       shm::LoadRelaxed(totals.waits), shm::LoadRelaxed(totals.waited_ns)};
  }
  return copy;
}

// Reads [begin, end) of the memfd.
class Reader {
 public:
  Reader(int fd, size_t piece_bytes, const TakePiece& take)
      : fd_(fd), buffer_(piece_bytes, '\0'), take_(take) {}

  // Returns false once there is nothing more to do, because of status(), or `take` has said so.
  bool Read(uint64_t begin, uint64_t end) {
    while (begin < end) {
      const off_t data = lseek(fd_, static_cast<off_t>(begin), SEEK_DATA);
      if (data < 0 && errno == ENXIO) {
        return true;  // nothing but holes
      }
      const off_t hole = data < 0 ? -1 : lseek(fd_, data, SEEK_HOLE);
      if (hole < 0) {
        return Fail();
      }
      begin = static_cast<uint64_t>(data);
      const uint64_t stop = std::min(end, static_cast<uint64_t>(hole));
      while (begin < stop) {
        const ssize_t size = pread(fd_, buffer_.data(), std::min(buffer_.size(), stop - begin),
                                   static_cast<off_t>(begin));
        if (size <= 0) {
          return Fail();
        }
        if (!take_(begin, std::string_view(buffer_.data(), static_cast<size_t>(size)))) {
          return false;
        }
        begin += static_cast<uint64_t>(size);
      }
    }
    return true;
  }
  const Status& status() const { return status_; }

 private:
  bool Fail() {
    status_ = StatusFromErrno(errno, "reading a rank's profile");
    return false;
  }

  const int fd_;
  std::string buffer_;
  const TakePiece& take_;
  Status status_;
};

// The header as the rank has written it; zeros if it is none.
ProfileHeader HeaderOf(const RankProfile& profile) {
  ProfileHeader header{};
  const bool is_whole =
      pread(profile.fd->get(), &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header));
  return is_whole && header.magic == shm::kProfileMagic ? header : ProfileHeader{};
}

struct DaemonRing {
  UniqueFd fd;
  shm::Mapping memory;
};

StatusOr<DaemonRing> MakeRing(uint64_t bytes) {
  StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-daemon-trace", bytes);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> memory = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(memory.status());
  return DaemonRing{std::move(*fd), std::move(*memory)};
}

// Where the events begin, as the rank says; the end if that cannot be.
uint64_t TraceOffset(const RankProfile& profile) {
  const ProfileHeader header = HeaderOf(profile);
  const bool is_possible =
      header.trace_offset >= sizeof(header) && header.trace_offset <= profile.bytes;
  return is_possible ? header.trace_offset : profile.bytes;
}

}  // namespace

JobProfiles::JobProfiles(uint64_t most_bytes, DataPlane* data_plane)
    : most_bytes_(most_bytes), data_plane_(data_plane), most_files_(MostFiles()) {}

// Empty: there is room for so much more of that launch.
std::string JobProfiles::WhyRefused(const Launch& launch, uint64_t size_bytes) const {
  if (size_bytes > most_bytes_ || launch.bytes > most_bytes_ - size_bytes) {
    return "the measured ranks of the job on this node would leave more than " +
           std::to_string(most_bytes_) + " bytes (option profile_bytes)";
  }
  return files_ < most_files_ ? "" : "ferryd keeps as many files of measured ranks as it may";
}

Status JobProfiles::Keep(const std::shared_ptr<const Session>& session, UniqueFd fd,
                         uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(Check(fd.get(), size_bytes));
  const JobName name = ReadJobName(session->job_id);
  Launch& launch = launches_[name.launch];
  const std::string refusal = WhyRefused(launch, size_bytes);
  if (launch.ranks == kMostRanks) {
    return {ErrorCode::kLimitExceeded, "too many programs of the job have left profiles"};
  }
  Job& job = launch.programs[name.program];
  if (job.ranks.empty()) {
    job.uid = session->uid;
    job.cpu_us = CpuTimeUs();
  }
  const auto [place, is_new] = job.ranks.try_emplace(session->rank);
  if (!is_new) {
    return {ErrorCode::kAlreadyExists, "the rank has left a profile before"};
  }
  ++launch.ranks;
  place->second = std::make_shared<RankProfile>();
  RankProfile& made = *place->second;
  made.rank = session->rank;
  made.session = session;
  made.refusal = refusal;
  if (!refusal.empty()) {
    return {ErrorCode::kLimitExceeded, refusal};
  }
  launch.bytes += size_bytes;
  ++launch.files;
  ++files_;
  made.fd = std::make_shared<const UniqueFd>(std::move(fd));
  made.bytes = size_bytes;
  if (data_plane_ != nullptr && job.daemon == nullptr) {
    TraceDaemon(made, session->job_id, &launch, &job);
  }
  return {};
}

// Empty: there is room for so much more of that user.
std::string JobProfiles::WhyDaemonRefused(uid_t uid, uint64_t size_bytes) const {
  uint64_t of_user = 0;
  uint64_t of_all = 0;
  for (const auto& [id, launch] : launches_) {
    for (const auto& [program, job] : launch.programs) {
      const uint64_t bytes = job.daemon == nullptr ? 0 : job.daemon->bytes;
      of_all += bytes;
      of_user += job.uid == uid ? bytes : 0;
    }
  }
  constexpr uint64_t kMostOfAll = 4 * kMostDaemonTraceBytesOfUser;
  if (of_user + size_bytes > kMostDaemonTraceBytesOfUser || of_all + size_bytes > kMostOfAll) {
    return "ferryd keeps events for as many jobs as it may, of " +
           std::string(of_all + size_bytes > kMostOfAll ? "all users" : "this user") +
           ": it gives them up as jobs end, and keeps fewer of each with a smaller trace_bytes";
  }
  return files_ < most_files_ ? "" : "ferryd keeps as many files of measured ranks as it may";
}

// `first` is the first of its ranks: the daemon keeps as much as that does.
void JobProfiles::TraceDaemon(const RankProfile& first, const std::string& job_id, Launch* launch,
                              Job* job) {
  const uint64_t bytes = shm::DaemonTraceWriter::BytesWithin(
      std::min(HeaderOf(first).trace_bytes, kMostDaemonTraceBytes));
  if (bytes == 0) {
    return;
  }
  auto kept = std::make_shared<RankProfile>();
  kept->rank = kRankOfDaemon;
  kept->refusal = WhyDaemonRefused(job->uid, bytes);
  StatusOr<DaemonRing> ring =
      kept->refusal.empty()
          ? MakeRing(bytes)
          : StatusOr<DaemonRing>(Status(ErrorCode::kLimitExceeded, kept->refusal));
  if (ring.ok()) {
    kept->bytes = ring->memory.size_bytes();
    kept->fd = std::make_shared<const UniqueFd>(std::move(ring->fd));
    ++launch->files;
    ++files_;
    data_plane_->TraceJob(
        job_id, std::make_shared<shm::DaemonTraceWriter>(std::move(ring->memory), MonotonicNs()));
  } else {
    kept->refusal = ring.status().message();
  }
  job->daemon = std::move(kept);
}

void JobProfiles::NoteEnd(const Session& session) {
  const JobName name = ReadJobName(session.job_id);
  const auto launch = launches_.find(name.launch);
  if (launch == launches_.end() || !launch->second.programs.contains(name.program)) {
    return;
  }
  auto& ranks = launch->second.programs[name.program].ranks;
  if (const auto rank = ranks.find(session.rank); rank != ranks.end()) {
    // Readers on other threads may hold the one that is there.
    auto ended = std::make_shared<RankProfile>(*rank->second);
    ended->session.reset();
    ended->at_end = ReadSession(session);
    rank->second = std::move(ended);
  }
}

void JobProfiles::Drop(const std::string& launch) {
  if (const auto found = launches_.find(ReadJobName(launch).launch); found != launches_.end()) {
    files_ -= found->second.files;
    launches_.erase(found);
  }
}

const JobProfiles::Job* JobProfiles::FindProgram(const std::string& job_id) const {
  const JobName name = ReadJobName(job_id);
  const auto launch = launches_.find(name.launch);
  if (launch == launches_.end()) {
    return nullptr;
  }
  const auto job = launch->second.programs.find(name.program);
  return job == launch->second.programs.end() ? nullptr : &job->second;
}

JobProfiles::Found JobProfiles::Find(const std::string& job_id) const {
  Found found;
  if (const Job* const job = FindProgram(job_id); job != nullptr) {
    found.uid = job->uid;
    found.cpu_us = job->cpu_us;
    found.daemon = job->daemon;
    for (const auto& [rank, profile] : job->ranks) {
      found.ranks.push_back(profile);
    }
  }
  return found;
}

Status ReadProfile(const RankProfile& profile, uint32_t parts, size_t piece_bytes,
                   const TakePiece& take) {
  if (profile.fd == nullptr) {
    return {};
  }
  Reader reader(profile.fd->get(), piece_bytes, take);
  if (profile.rank == kRankOfDaemon) {
    (void)reader.Read(0, (parts & kDaemonPart) != 0 ? profile.bytes : 0);
    return reader.status();
  }
  const uint64_t trace = TraceOffset(profile);
  const bool has_profile = (parts & kProfilePart) != 0;
  bool goes_on = reader.Read(0, has_profile ? trace : sizeof(ProfileHeader));
  if (goes_on && (parts & kTracePart) != 0) {
    goes_on = reader.Read(trace, profile.bytes);
  }
  std::shared_ptr<const ProfileAppendix> appendix = profile.at_end;
  const std::shared_ptr<const Session> session = profile.session.lock();
  if (appendix == nullptr && session != nullptr && session->session_map.valid()) {
    appendix = ReadSession(*session);
  }
  if (goes_on && has_profile && appendix != nullptr) {
    (void)take(profile.bytes, std::string_view(reinterpret_cast<const char*>(appendix.get()),
                                               sizeof(ProfileAppendix)));
  }
  return reader.status();
}

}  // namespace ferry::daemon
