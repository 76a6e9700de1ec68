#include "tools/profile/trace_spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "config/environment.h"
#include "shm/layout/profile_layout.h"

namespace ferry::tools {
namespace {

constexpr uint32_t kTracePart = 2;  // JobProfileRequest.parts
constexpr uint32_t kDaemonPart = 4;
constexpr uint32_t kRankOfDaemon = UINT32_MAX;  // JobProfilePart.rank
// More than a ring of the most slots, with whatever stands before it. A daemon that is no ferryd
// may say anything.
constexpr uint64_t kMostSegmentBytes = uint64_t{1} << 33;
constexpr uint64_t kMostDaemonBytes = uint64_t{1} << 28;  // more than any keeps of itself

}  // namespace

// ---- Fetching -----------------------------------------------------------------------------------

StatusOr<TraceSpool> TraceSpool::Create(uint32_t job_size) {
  const std::string named(
      config::FindVariable(config::ProcessEnvironment(), "TMPDIR").value_or(""));
  const std::string directory = named.empty() ? "/tmp" : named;
  UniqueFd fd(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) {  // a file system without such files
    fd.Reset(memfd_create("ferry-trace", MFD_CLOEXEC));
  }
  if (!fd.valid()) {
    return StatusFromErrno(errno, "making a temporary file for the trace");
  }
  return TraceSpool(std::move(fd), job_size);
}

// Pages that a rank has not touched do not come, and stay holes.
Status TraceSpool::Keep(const Rank& rank, uint64_t offset, const std::string& piece) {
  if (offset > rank.bytes || piece.size() > rank.bytes - offset) {
    return {};
  }
  for (uint64_t done = 0; done < piece.size();) {
    const ssize_t count = pwrite(fd_.get(), piece.data() + done, piece.size() - done,
                                 static_cast<off_t>(rank.at + offset + done));
    if (count < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "writing the temporary file of the trace");
    }
    done += count < 0 ? 0 : static_cast<uint64_t>(count);
  }
  return {};
}

Status TraceSpool::Fetch(const AskProfile& ask, const std::string& job_id, uint32_t node) {
  control::JobProfileRequest request;
  request.set_job_id(job_id);
  request.set_parts(kTracePart | kDaemonPart);
  Status kept;
  bool is_first = true;
  std::optional<Rank> rank;
  const auto end_rank = [&] {
    if (rank.has_value() && rank->bytes != 0) {
      (rank->rank == kRankOfDaemon ? daemons_ : ranks_).push_back(*rank);
      end_ += rank->bytes;
    }
    rank.reset();
  };
  const Status asked = ask(request, [&](const control::JobProfilePart& part) {
    if (std::exchange(is_first, false)) {
      return true;  // about the daemon
    }
    if (!rank.has_value() || rank->rank != part.rank()) {
      end_rank();
      const bool is_daemon = part.rank() == kRankOfDaemon;
      const bool is_sane =
          (is_daemon || part.rank() < job_size_) &&
          part.segment_bytes() <= (is_daemon ? kMostDaemonBytes : kMostSegmentBytes);
      rank = Rank{.rank = part.rank(),
                  .node = node,
                  .bytes = is_sane ? part.segment_bytes() : 0,
                  .at = end_,
                  .has_ended = part.ended()};
      std::vector<std::string>& reasons = is_daemon ? daemon_refusals_ : refusals_;
      if (const std::string& why = part.refusal();
          !why.empty() && std::find(reasons.begin(), reasons.end(), why) == reasons.end()) {
        reasons.push_back(why);
      }
    }
    rank->seen_ns = std::max<uint64_t>(part.clock_ns(), rank->seen_ns);
    kept = Keep(*rank, part.offset(), part.data());
    return kept.ok();
  });
  end_rank();
  return kept.ok() ? asked : kept;
}

// ---- Reading ------------------------------------------------------------------------------------

// Pages behind the file's end were never touched: zeros.
bool TraceSpool::ReadAt(uint64_t at, void* bytes, uint64_t size_bytes) const {
  auto* const to = static_cast<std::byte*>(bytes);
  uint64_t done = 0;
  while (done < size_bytes) {
    const ssize_t count =
        pread(fd_.get(), to + done, size_bytes - done, static_cast<off_t>(at + done));
    if (count < 0 && errno != EINTR) {
      return false;
    }
    if (count == 0) {
      std::fill(to + done, to + size_bytes, std::byte{});
      return true;
    }
    done += count < 0 ? 0 : static_cast<uint64_t>(count);
  }
  return true;
}

bool TraceSpool::Load(uint32_t i, TimelineRank* rank) const {
  const Rank& kept = ranks_[i];
  shm::ProfileHeader header;
  if (kept.bytes < sizeof(header) || !ReadAt(kept.at, &header, sizeof(header)) ||
      header.magic != shm::kProfileMagic || header.version != shm::kProfileVersion ||
      header.trace_offset > kept.bytes || header.trace_bytes > kept.bytes - header.trace_offset ||
      header.rank != kept.rank) {
    return false;
  }
  std::vector<std::byte> ring(header.trace_bytes);
  if (!ReadAt(kept.at + header.trace_offset, ring.data(), ring.size())) {
    return false;
  }
  std::optional<shm::TraceEvents> read =
      shm::ReadTraceRing(ring, {.job_size = job_size_,
                                .earliest_ns = std::min(header.begin_ns, kept.seen_ns),
                                .latest_ns = kept.seen_ns});
  if (!read.has_value()) {
    return false;
  }
  rank->rank = kept.rank;
  rank->node = kept.node;
  rank->seen_ns = kept.seen_ns;
  rank->is_running = !kept.has_ended;
  rank->has_died = kept.has_ended && header.end_ns == 0;
  rank->trace = std::move(*read);
  return true;
}

bool TraceSpool::LoadDaemon(uint32_t i, TimelineDaemon* daemon) const {
  const Rank& kept = daemons_[i];
  std::vector<std::byte> ring(kept.bytes);
  if (!ReadAt(kept.at, ring.data(), ring.size())) {
    return false;
  }
  std::optional<shm::DaemonTraceEvents> read =
      shm::ReadDaemonTrace(ring, {.job_size = job_size_, .latest_ns = kept.seen_ns});
  if (!read.has_value()) {
    return false;
  }
  daemon->node = kept.node;
  daemon->seen_ns = kept.seen_ns;
  daemon->trace = std::move(*read);
  return true;
}

}  // namespace ferry::tools
