#include "tools/profile/report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "shm/call_record.h"

namespace ferry::tools {
namespace {

using shm::CallName;

constexpr size_t kMostPeerLines = 200;
constexpr size_t kMostLatePairs = 200;
constexpr size_t kMostTrafficRanks = 512;

std::string GroupWords(const RankProfile& rank, uint32_t group) {
  const auto name = rank.groups.find(group);
  if (name != rank.groups.end() && !name->second.empty()) {
    return name->second;
  }
  return (group >> 31 != 0 ? "team " : "communicator ") + std::to_string(group & 0x7fff'ffffU);
}

std::string GroupWords(const RankProfile& rank, const CallSum& call) {
  return call.has_group ? GroupWords(rank, call.group) : "";
}

void AddCalls(const JobProfile& job, Report* report) {
  std::map<std::tuple<CallName, CallName, std::string>, CallLine> lines;
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    std::map<CallLine*, std::pair<uint64_t, uint64_t>> own;  // time and bytes of this rank
    for (const CallSum& call : job.ranks[rank].calls) {
      const std::string group = GroupWords(job.ranks[rank], call);
      CallLine& line = lines[{call.name, call.inner, group}];
      line.name = call.name;
      line.inner = call.inner;
      line.group = group;
      line.count += call.count;
      line.bytes += call.bytes;
      line.time_ns += call.time_ns;
      line.waited_ns += call.waited_ns;
      if (call.longest_ns > line.longest_ns) {
        line.longest_ns = call.longest_ns;
        line.longest_rank = rank;
      }
      own[&line].first += call.time_ns;
      own[&line].second += call.bytes;
      if (call.peer >= 0 && call.name != CallName::kNone) {
        report->peers.push_back({call.name, rank, call.peer, call.count, call.bytes, call.time_ns,
                                 call.waited_ns, call.longest_ns});
      }
    }
    for (const auto& [line, sums] : own) {
      ++line->ranks;
      if (sums.first >= line->most_ns) {
        line->most_ns = sums.first;
        line->most_rank = rank;
      }
      if (sums.second >= line->most_bytes) {
        line->most_bytes = sums.second;
        line->most_bytes_rank = rank;
      }
    }
  }
  for (auto& [key, line] : lines) {
    report->calls.push_back(std::move(line));
  }
  std::stable_sort(report->calls.begin(), report->calls.end(),
                   [](const auto& one, const auto& two) { return one.time_ns > two.time_ns; });
  std::stable_sort(report->peers.begin(), report->peers.end(),
                   [](const auto& one, const auto& two) { return one.time_ns > two.time_ns; });
  report->peers.resize(std::min(report->peers.size(), kMostPeerLines));
}

// One collective of several ranks: the calls of one communicator that have the same number.
struct Meeting {
  CallName name = CallName::kNone;
  uint32_t ranks = 0;
  uint64_t last_ns = 0;
  uint32_t last_rank = 0;
  uint64_t sum_ns = 0;  // of the arrivals, less `first_ns` of each
  uint64_t first_ns = UINT64_MAX;
  uint64_t bytes = 0;
  uint64_t most_bytes = 0;
  uint32_t most_bytes_rank = 0;
};

void AddMeetings(const JobProfile& job, Report* report) {
  std::map<std::pair<uint32_t, uint64_t>, Meeting> meetings;  // by communicator and number
  std::map<std::pair<uint32_t, uint64_t>, std::vector<uint64_t>> arrivals;
  std::map<uint32_t, std::string> names;
  uint64_t stride = 1;
  for (const RankProfile& rank : job.ranks) {
    stride = std::max(stride, rank.totals.arrival_stride);
  }
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    const NodeClock clock = job.ranks[rank].node < job.nodes.size()
                                ? job.nodes[job.ranks[rank].node].clock
                                : NodeClock();
    for (const Arrival& arrival : job.ranks[rank].arrivals) {
      if (arrival.number % stride != 0) {
        continue;
      }
      const std::pair key(arrival.group, arrival.number);
      Meeting& meeting = meetings[key];
      const auto when = static_cast<uint64_t>(clock.ToLauncher(arrival.enter_ns));
      meeting.name = arrival.name;
      ++meeting.ranks;
      arrivals[key].push_back(when);
      if (when >= meeting.last_ns) {
        meeting.last_ns = when;
        meeting.last_rank = rank;
      }
      meeting.bytes += arrival.bytes;
      if (arrival.bytes >= meeting.most_bytes) {
        meeting.most_bytes = arrival.bytes;
        meeting.most_bytes_rank = rank;
      }
      names.try_emplace(arrival.group, GroupWords(job.ranks[rank], arrival.group));
    }
  }
  struct Sums {
    MeetingLine line;
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> last;  // by rank: times, and what was lost
    std::map<uint32_t, uint64_t> bytes;
  };
  std::map<std::pair<uint32_t, CallName>, Sums> sums;
  for (const auto& [key, meeting] : meetings) {
    if (meeting.ranks < 2) {
      continue;
    }
    uint64_t lost = 0;
    for (const uint64_t when : arrivals[key]) {
      lost += meeting.last_ns - when;
    }
    Sums& sum = sums[{key.first, meeting.name}];
    MeetingLine& line = sum.line;
    line.name = meeting.name;
    line.group = names[key.first];
    line.compared += stride;
    line.lost_ns += lost * stride;
    line.bytes += meeting.bytes * stride;
    line.ranks = std::max(line.ranks, meeting.ranks);
    auto& [times, lost_by] = sum.last[meeting.last_rank];
    times += stride;
    lost_by += lost * stride;
    if (meeting.most_bytes > line.most_bytes) {
      line.most_bytes = meeting.most_bytes;
      line.most_bytes_rank = meeting.most_bytes_rank;
    }
  }
  for (auto& [key, sum] : sums) {
    for (const auto& [rank, last] : sum.last) {
      if (last.second > sum.line.last_lost_ns || sum.line.last_times == 0) {
        sum.line.last_rank = rank;
        sum.line.last_times = last.first;
        sum.line.last_lost_ns = last.second;
      }
    }
    report->meetings.push_back(std::move(sum.line));
  }
  std::stable_sort(report->meetings.begin(), report->meetings.end(),
                   [](const auto& one, const auto& two) { return one.lost_ns > two.lost_ns; });
}

void AddMessages(const JobProfile& job, Report* report) {
  const size_t size = job.ranks.size();
  if (size <= kMostTrafficRanks) {
    report->traffic.assign(size, std::vector<uint64_t>(size, 0));
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    for (const PeerSum& peer : job.ranks[rank].peers) {
      const shm::ProfilePeer& sums = peer.sums;
      if (!report->traffic.empty() && peer.peer < size) {
        report->traffic[rank][peer.peer] += sums.sent_bytes;
      }
      if (sums.late_sends != 0) {
        report->late.push_back({rank, peer.peer, true, sums.late_sends, sums.late_send_ns});
      }
      if (sums.late_receives != 0) {
        report->late.push_back({rank, peer.peer, false, sums.late_receives, sums.late_receive_ns});
      }
    }
    for (size_t i = 0; i < shm::kProfilePowers; ++i) {
      report->sent_sizes[i] += job.ranks[rank].sizes.sent[i];
    }
  }
  std::stable_sort(report->late.begin(), report->late.end(),
                   [](const auto& one, const auto& two) { return one.waited_ns > two.waited_ns; });
  report->late.resize(std::min(report->late.size(), kMostLatePairs));
}

void AddPaths(const JobProfile& job, Report* report) {
  using shm::Path;
  using shm::Statistic;
  constexpr std::pair<Path, const char*> kPaths[] = {
      {Path::kInline, "inline"},        {Path::kCell, "cell"},     {Path::kHeapCopy, "heap_copy"},
      {Path::kProcessVm, "process_vm"}, {Path::kBounce, "bounce"}, {Path::kRdma, "rdma"},
      {Path::kStaged, "staged"},        {Path::kPacket, "packet"}};
  const auto add = [&](const char* name, Statistic messages, Statistic bytes) {
    PathLine line{.path = name};
    for (const RankProfile& rank : job.ranks) {
      line.messages += rank.Counter(messages);
      line.bytes += rank.Counter(bytes);
    }
    if (line.messages != 0) {
      report->paths.push_back(std::move(line));
    }
  };
  for (const auto& [path, name] : kPaths) {
    add(name, shm::Statistics::MessagesOf(path), shm::Statistics::BytesOf(path));
  }
  add("direct_link", Statistic::kLinkMessagesSent, Statistic::kLinkBytesSent);
  add("one_sided", Statistic::kOneSidedOperations, Statistic::kOneSidedBytes);
}

void AddFiles(const JobProfile& job, Report* report) {
  std::map<std::string, FileLine> lines;
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    report->unlisted_file_calls += job.ranks[rank].totals.unlisted_file_calls;
    for (const FileSum& file : job.ranks[rank].files) {
      FileLine& line = lines[file.name];
      line.name = file.name;
      line.opens += file.sums.opens;
      line.reads += file.sums.reads;
      line.read_bytes += file.sums.read_bytes;
      line.writes += file.sums.writes;
      line.written_bytes += file.sums.written_bytes;
      line.calls += file.sums.calls;
      line.time_ns += file.sums.time_ns;
      line.waited_ns += file.sums.waited_ns;
      ++line.ranks;
      if (file.sums.longest_ns > line.longest_ns) {
        line.longest_ns = file.sums.longest_ns;
        line.longest_rank = rank;
      }
    }
  }
  for (auto& [name, line] : lines) {
    report->files.push_back(std::move(line));
  }
  std::stable_sort(report->files.begin(), report->files.end(),
                   [](const auto& one, const auto& two) { return one.time_ns > two.time_ns; });
}

RankLine LineOf(uint32_t rank, const RankProfile& profile) {
  RankLine line{.rank = rank, .is_measured = profile.is_measured, .note = profile.refusal};
  if (!profile.is_measured) {
    line.note = line.note.empty() ? "never called Ferry" : line.note;
    return line;
  }
  line.note = profile.end_ns != 0 ? "" : "did not end in good order";
  line.life_ns = profile.LifeNs();
  line.ferry_ns = profile.totals.ferry_ns;
  line.waited_ns = profile.totals.waited_ns;
  line.polled_ns = profile.totals.polled_ns;
  line.sent_bytes = profile.Counter(shm::Statistic::kBytesSent);
  line.messages = profile.Counter(shm::Statistic::kMessagesSent);
  return line;
}

}  // namespace

std::string CallWords(CallName name, CallName inner) {
  std::string text = name == CallName::kNone ? "other calls" : shm::CallText(name);
  if (inner != CallName::kNone) {
    text += std::string(" of ") + shm::CallText(inner);
  }
  return text;
}

std::string TimeWords(uint64_t ns) {
  const double value = static_cast<double>(ns);
  const auto [scale, unit] = ns >= 1'000'000'000 ? std::pair(1e9, "s")
                             : ns >= 1'000'000   ? std::pair(1e6, "ms")
                             : ns >= 1000        ? std::pair(1e3, "us")
                                                 : std::pair(1.0, "ns");
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g %s", value / scale, unit);
  if (value / scale >= 999.5) {
    std::snprintf(text, sizeof(text), "%.0f %s", value / scale, unit);
  }
  return text;
}

Report MakeReport(const JobProfile& job) {
  Report report;
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    report.ranks.push_back(LineOf(rank, job.ranks[rank]));
    const RankLine& line = report.ranks.back();
    report.measured += line.is_measured ? 1 : 0;
    report.life_ns += line.life_ns;
    report.ferry_ns += line.ferry_ns;
    report.waited_ns += line.waited_ns;
    report.polled_ns += line.polled_ns;
  }
  AddCalls(job, &report);
  AddMeetings(job, &report);
  AddMessages(job, &report);
  AddPaths(job, &report);
  AddFiles(job, &report);
  report.advice = Advise(job, report);
  return report;
}

}  // namespace ferry::tools
