#include "daemon/records/ended_job.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "common/counted.h"
#include "shm/call_record.h"

namespace ferry::daemon {
namespace {

using nlohmann::ordered_json;
using shm::Path;
using shm::Statistic;

constexpr size_t kMostPeers = 16;
constexpr size_t kMostReasonBytes = 512;
constexpr size_t kMostNodeBytes = 32;  // in a file's name
constexpr size_t kMostCalls = 8;       // whose waits are told
constexpr size_t kMostExits = 16;      // different ones
constexpr uint64_t kSecondNs = 1'000'000'000;

constexpr std::pair<Path, const char*> kPaths[] = {
    {Path::kInline, "inline"},        {Path::kCell, "cell"},     {Path::kHeapCopy, "heap_copy"},
    {Path::kProcessVm, "process_vm"}, {Path::kBounce, "bounce"}, {Path::kRdma, "rdma"},
    {Path::kStaged, "staged"},        {Path::kPacket, "packet"},
};

std::string TimeText(uint64_t since_1970_ns, const char* format, const char* end) {
  const auto seconds = static_cast<time_t>(since_1970_ns / kSecondNs);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t size = strftime(text, sizeof(text), format, &parts);
  snprintf(text + size, sizeof(text) - size, ".%06u%s",
           static_cast<unsigned>(since_1970_ns % kSecondNs / 1000), end);
  return text;
}

double SecondsOf(const EndedJob& job) {
  return static_cast<double>(job.ended_ns - std::min(job.began_ns, job.ended_ns)) / 1e9;
}

// As a file may be called, whatever a user has called his job.
std::string AsFileName(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '#' ||
        (c == '.' && !name.empty())) {
      name += c;
    } else {
      char code[4];
      snprintf(code, sizeof(code), "%%%02x", static_cast<unsigned char>(c));
      name += code;
    }
  }
  return name;
}

ordered_json PathsOf(const shm::Tally& tally) {
  ordered_json paths = ordered_json::object();
  for (const auto& [path, name] : kPaths) {
    const uint64_t messages = tally.Read(shm::Statistics::MessagesOf(path));
    const uint64_t bytes = tally.Read(shm::Statistics::BytesOf(path));
    if (messages != 0 || bytes != 0) {
      paths[name] = {{"messages", messages}, {"bytes", bytes}};
    }
  }
  return paths;
}

ordered_json TrafficOf(const NodeTraffic& traffic) {
  return {{"messages_sent", traffic.messages_sent},
          {"messages_received", traffic.messages_received},
          {"bytes_sent", traffic.bytes_sent},
          {"bytes_received", traffic.bytes_received}};
}

uint64_t BytesOf(const EndedJob::Peer& peer) {
  return peer.traffic.bytes_sent + peer.traffic.bytes_received;
}

// Adds the nodes with most traffic one by one, and the sum of all others.
void AddPeers(const JobRecord& job, const std::vector<NodeTraffic>& traffic, EndedJob* ended) {
  std::vector<EndedJob::Peer>& peers = ended->peers;
  for (size_t node = 0; node < job.nodes.size(); ++node) {
    if (node != job.spec.node) {
      peers.push_back(
          {job.nodes[node].address, node < traffic.size() ? traffic[node] : NodeTraffic()});
    }
  }
  std::stable_sort(peers.begin(), peers.end(), [](const auto& one, const auto& other) {
    return BytesOf(one) > BytesOf(other);
  });
  for (; peers.size() > kMostPeers; peers.pop_back()) {
    const NodeTraffic& last = peers.back().traffic;
    NodeTraffic& sum = ended->further_traffic;
    sum.messages_sent += last.messages_sent;
    sum.messages_received += last.messages_received;
    sum.bytes_sent += last.bytes_sent;
    sum.bytes_received += last.bytes_received;
    ++ended->further_peers;
  }
}

// Threads of a rank that wait at the same time each count, so that waits may be longer than all.
double WaitSeconds(const EndedJob& job) {
  return std::min(static_cast<double>(job.histograms.WaitedNs()) / 1e9, job.rank_seconds);
}

std::string PercentText(double share) {
  char text[32];
  snprintf(text, sizeof(text), "%.0f %%", 100 * share);
  return text;
}

// The functions whose waits took longest.
ordered_json WaitsOf(const shm::Histograms& histograms) {
  std::vector<std::pair<shm::CallName, const shm::WaitHistogram*>> sorted;
  for (const auto& [name, waits] : histograms.waits) {
    sorted.emplace_back(name, &waits);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& one, const auto& other) {
    return one.second->waited_ns > other.second->waited_ns;
  });
  sorted.resize(std::min(sorted.size(), kMostCalls));
  ordered_json list = ordered_json::array();
  for (const auto& [name, waits] : sorted) {
    list.push_back({{"call", name == shm::CallName::kNone ? "other" : shm::CallText(name)},
                    {"waits", waits->Count()},
                    {"seconds", static_cast<double>(waits->waited_ns) / 1e9}});
  }
  return list;
}

// How many ranks have ended with which code: those with most ranks, and the others together.
ordered_json ExitsOf(const EndedJob& job) {
  std::vector<std::pair<std::string, uint64_t>> kinds;
  const RankExits exits = job.exits.value_or(RankExits());
  for (const auto& [code, ranks] : exits.codes) {
    kinds.emplace_back(std::to_string(code), ranks);
  }
  for (const auto& [signal, ranks] : exits.signals) {
    kinds.emplace_back("signal " + std::to_string(signal), ranks);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& one, const auto& other) { return one.second > other.second; });
  kinds.resize(std::min(kinds.size(), kMostExits));
  ordered_json told = ordered_json::object();
  uint64_t others = exits.Ranks();
  for (const auto& [kind, ranks] : kinds) {
    told[kind] = ranks;
    others -= ranks;
  }
  if (others != 0) {
    told["other"] = others;
  }
  if (exits.Ranks() < job.local_ranks) {
    told["unknown"] = job.local_ranks - exits.Ranks();
  }
  return told;
}

}  // namespace

EndedJob Account(const JobRecord& job, const Surroundings& around) {
  EndedJob ended;
  ended.id = job.spec.id;
  ended.node = around.node;
  ended.uid = job.spec.owner;
  ended.name = job.spec.name;
  ended.program = job.spec.program;
  ended.slurm_id = job.spec.slurm_id;
  ended.ranks = job.size();
  ended.nodes = static_cast<uint32_t>(job.nodes.size());
  ended.local_ranks = job.LocalSize();
  ended.attached_ranks = job.history.attached;
  ended.died_ranks = job.history.died;
  ended.began_ns = job.history.began_ns;
  ended.ended_ns = around.now_ns;
  ended.daemon_cpu_us =
      around.daemon_cpu_us - std::min(around.daemon_cpu_us, job.history.daemon_cpu_us);
  ended.exit_code = job.history.exit_code;
  NoteExits(job.history.exits, &ended);
  ended.rank_seconds = static_cast<double>(job.history.rank_time.At(around.monotonic_ns)) / 1e9;
  ended.histograms = job.history.histograms;
  ended.tally = job.ended;
  if (job.aborted) {
    ended.outcome = "aborted";
    ended.reason = job.failure.message();
  } else if (!job.history.first_death.ok()) {
    ended.outcome = "failed";
    ended.reason = job.history.first_death.message();
  } else if (job.history.attached == 0) {
    ended.outcome = "unused";
    ended.reason = job.failure.message();
  } else if (!job.failure.ok()) {
    ended.outcome = "failed";
    ended.reason = job.failure.message();
  } else {
    ended.outcome = "completed";
  }
  ended.reason.resize(std::min(ended.reason.size(), kMostReasonBytes));
  AddPeers(job, around.traffic, &ended);
  return ended;
}

void NoteExits(const std::optional<RankExits>& exits, EndedJob* job) {
  if (exits.has_value() && exits->Ranks() <= job->local_ranks) {
    job->exits = exits;
    job->exit_code = job->exit_code.has_value() ? job->exit_code : exits->job;
  }
}

std::string Sentence(const EndedJob& job) {
  char seconds[32];
  snprintf(seconds, sizeof(seconds), "%.1f", SecondsOf(job));
  std::string text = "job " + job.id + ": " + job.outcome + " after " + seconds + " s; " +
                     std::to_string(job.attached_ranks) + " of " + Counted(job.ranks, "rank") +
                     " here, ";
  if (job.rank_seconds > 0) {
    text += "waited for " + PercentText(WaitSeconds(job) / job.rank_seconds) + " of their time, ";
  }
  text += "sent " + Counted(job.tally.Read(Statistic::kMessagesSent), "message") + ", " +
          Counted(job.tally.Read(Statistic::kBytesSent), "byte");
  if (job.exit_code.has_value()) {
    text += "; exit code " + std::to_string(*job.exit_code);
  }
  if (!job.reason.empty()) {
    text += ": " + job.reason;
  }
  return text;
}

std::string RecordMembers(const EndedJob& job, const std::string& user) {
  ordered_json record = {{"job", job.id}, {"uid", job.uid}};
  const std::pair<const char*, std::string> names[] = {
      {"user", user}, {"name", job.name}, {"program", job.program}, {"slurm_job", job.slurm_id}};
  for (const auto& [field, text] : names) {
    if (!text.empty()) {
      record[field] = text;
    }
  }
  record["node"] = job.node;
  record["nodes"] = job.nodes;
  record["ranks"] = job.ranks;
  record["local_ranks"] = job.local_ranks;
  record["attached_ranks"] = job.attached_ranks;
  record["died_ranks"] = job.died_ranks;
  record["start"] = TimeText(job.began_ns, "%Y-%m-%dT%H:%M:%S", "Z");
  record["end"] = TimeText(job.ended_ns, "%Y-%m-%dT%H:%M:%S", "Z");
  record["seconds"] = SecondsOf(job);
  record["outcome"] = job.outcome;
  if (!job.reason.empty()) {
    record["reason"] = job.reason;
  }
  if (job.exit_code.has_value()) {
    record["exit_code"] = *job.exit_code;
  }
  record["exit_codes"] = ExitsOf(job);
  record["rank_seconds"] = job.rank_seconds;
  record["wait_seconds"] = WaitSeconds(job);
  if (job.rank_seconds > 0) {
    record["wait_share"] = WaitSeconds(job) / job.rank_seconds;
  }
  if (!job.histograms.waits.empty()) {
    record["waits"] = WaitsOf(job.histograms);
  }
  const auto count = [&](const char* name, Statistic id) { record[name] = job.tally.Read(id); };
  count("messages_sent", Statistic::kMessagesSent);
  count("messages_received", Statistic::kMessagesReceived);
  count("bytes_sent", Statistic::kBytesSent);
  count("bytes_received", Statistic::kBytesReceived);
  count("link_bytes_sent", Statistic::kLinkBytesSent);
  count("one_sided_bytes", Statistic::kOneSidedBytes);
  count("request_errors", Statistic::kErrors);
  record["paths"] = PathsOf(job.tally);
  for (const EndedJob::Peer& peer : job.peers) {
    ordered_json entry = {{"address", peer.address}};
    entry.update(TrafficOf(peer.traffic));
    record["peer_nodes"].push_back(std::move(entry));
  }
  if (job.further_peers != 0) {
    record["further_peer_nodes"] = {{"nodes", job.further_peers}};
    record["further_peer_nodes"].update(TrafficOf(job.further_traffic));
  }
  record["daemon_cpu_seconds"] = static_cast<double>(job.daemon_cpu_us) / 1e6;
  // Names and reasons come from users: what is no UTF-8 is replaced.
  const std::string text = record.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::string RecordFileName(const EndedJob& job) {
  const std::string node = AsFileName(job.node).substr(0, kMostNodeBytes);
  return TimeText(job.ended_ns, "%Y%m%dT%H%M%S", "Z") + "-" + AsFileName(job.id) + "-" + node +
         ".json";
}

}  // namespace ferry::daemon
