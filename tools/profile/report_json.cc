// The report for programs: see report.h.
#include <nlohmann/json.hpp>
#include <string>

#include "shm/call_record.h"
#include "tools/profile/report.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

ordered_json CallNameOf(shm::CallName name) {
  return name == shm::CallName::kNone ? ordered_json() : ordered_json(shm::CallText(name));
}

ordered_json RankOf(const RankLine& line, const RankProfile& profile) {
  ordered_json rank = {{"rank", line.rank}, {"measured", line.is_measured}};
  if (!line.note.empty()) {
    rank["note"] = line.note;
  }
  if (!line.is_measured) {
    return rank;
  }
  rank["node"] = profile.node;
  rank["ended_well"] = profile.end_ns != 0;
  rank["seconds"] = Seconds(line.life_ns);
  rank["ferry_seconds"] = Seconds(line.ferry_ns);
  rank["waited_seconds"] = Seconds(line.waited_ns);
  rank["polls"] = profile.totals.polls;
  rank["polled_seconds"] = Seconds(line.polled_ns);
  rank["calls"] = profile.totals.calls;
  rank["messages_sent"] = line.messages;
  rank["bytes_sent"] = line.sent_bytes;
  rank["cpus"] = profile.cpus;
  rank["migrations"] = profile.totals.migrations;
  return rank;
}

ordered_json CallOf(const CallLine& line) {
  ordered_json call = {{"call", CallNameOf(line.name)}};
  if (line.inner != shm::CallName::kNone) {
    call["of"] = CallNameOf(line.inner);
  }
  if (!line.group.empty()) {
    call["communicator"] = line.group;
  }
  call["count"] = line.count;
  call["bytes"] = line.bytes;
  call["seconds"] = Seconds(line.time_ns);
  call["waited_seconds"] = Seconds(line.waited_ns);
  call["longest_seconds"] = Seconds(line.longest_ns);
  call["longest_rank"] = line.longest_rank;
  call["ranks"] = line.ranks;
  return call;
}

ordered_json SizesOf(const Report& report) {
  ordered_json sizes = ordered_json::array();
  for (size_t power = 0; power < report.sent_sizes.size(); ++power) {
    if (report.sent_sizes[power] != 0) {
      sizes.push_back({{"at_least", power == 0 ? 0 : uint64_t{1} << (power - 1)},
                       {"messages", report.sent_sizes[power]}});
    }
  }
  return sizes;
}

ordered_json TrafficOf(const Report& report) {
  ordered_json traffic = ordered_json::array();
  for (size_t from = 0; from < report.traffic.size(); ++from) {
    for (size_t to = 0; to < report.traffic.size(); ++to) {
      if (report.traffic[from][to] != 0) {
        traffic.push_back({{"from", from}, {"to", to}, {"bytes", report.traffic[from][to]}});
      }
    }
  }
  return traffic;
}

ordered_json NodesOf(const JobProfile& job) {
  ordered_json nodes = ordered_json::array();
  for (const NodeFacts& node : job.nodes) {
    ordered_json entry = {{"name", node.name}, {"ferryd_cpu_seconds", Seconds(node.cpu_ns)}};
    if (!node.trouble.empty()) {
      entry["trouble"] = node.trouble;
    }
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

template <typename Line, typename Make>
ordered_json ListOf(const std::vector<Line>& lines, Make&& make) {
  ordered_json list = ordered_json::array();
  for (const Line& line : lines) {
    list.push_back(make(line));
  }
  return list;
}

}  // namespace

std::string ReportJson(const JobProfile& job, const Report& report) {
  ordered_json root = {{"job", job.id}};
  if (!job.name.empty()) {
    root["name"] = job.name;
  }
  root["program"] = job.program;
  root["seconds"] = Seconds(job.wall_ns);
  root["exit_code"] = job.exit_code;
  root["measured_ranks"] = report.measured;
  root["rank_seconds"] = Seconds(report.life_ns);
  root["ferry_seconds"] = Seconds(report.ferry_ns);
  root["waited_seconds"] = Seconds(report.waited_ns);
  root["nodes"] = NodesOf(job);
  root["advice"] = ListOf(report.advice, [](const Advice& advice) {
    return ordered_json{{"cause", advice.cause},
                        {"sentence", advice.sentence},
                        {"remedy", advice.remedy},
                        {"lost_seconds", Seconds(advice.lost_ns)}};
  });
  root["ranks"] = ordered_json::array();
  for (size_t rank = 0; rank < report.ranks.size(); ++rank) {
    root["ranks"].push_back(RankOf(report.ranks[rank], job.ranks[rank]));
  }
  root["calls"] = ListOf(report.calls, CallOf);
  root["peers"] = ListOf(report.peers, [](const PeerLine& line) {
    return ordered_json{{"call", CallNameOf(line.name)},
                        {"rank", line.rank},
                        {"peer", line.peer},
                        {"count", line.count},
                        {"bytes", line.bytes},
                        {"seconds", Seconds(line.time_ns)},
                        {"waited_seconds", Seconds(line.waited_ns)},
                        {"longest_seconds", Seconds(line.longest_ns)}};
  });
  root["collectives"] = ListOf(report.meetings, [](const MeetingLine& line) {
    return ordered_json{{"call", CallNameOf(line.name)},
                        {"communicator", line.group},
                        {"compared", line.compared},
                        {"lost_seconds", Seconds(line.lost_ns)},
                        {"last_rank", line.last_rank},
                        {"last_times", line.last_times},
                        {"last_lost_seconds", Seconds(line.last_lost_ns)}};
  });
  root["late"] = ListOf(report.late, [](const LatePair& pair) {
    return ordered_json{{"waiter", pair.waiter},
                        {"late", pair.late},
                        {"late_one", pair.is_sender ? "sends" : "receives"},
                        {"waits", pair.waits},
                        {"waited_seconds", Seconds(pair.waited_ns)}};
  });
  root["sent_sizes"] = SizesOf(report);
  root["traffic"] = TrafficOf(report);
  root["paths"] = ListOf(report.paths, [](const PathLine& line) {
    return ordered_json{{"path", line.path}, {"messages", line.messages}, {"bytes", line.bytes}};
  });
  root["files"] = ListOf(report.files, [](const FileLine& line) {
    return ordered_json{{"name", line.name},
                        {"opens", line.opens},
                        {"reads", line.reads},
                        {"bytes_read", line.read_bytes},
                        {"writes", line.writes},
                        {"bytes_written", line.written_bytes},
                        {"calls", line.calls},
                        {"seconds", Seconds(line.time_ns)},
                        {"waited_seconds", Seconds(line.waited_ns)},
                        {"longest_seconds", Seconds(line.longest_ns)},
                        {"longest_rank", line.longest_rank},
                        {"ranks", line.ranks}};
  });
  root["unlisted_file_calls"] = report.unlisted_file_calls;
  // Names come from programs: what is no UTF-8 is replaced.
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ferry::tools
