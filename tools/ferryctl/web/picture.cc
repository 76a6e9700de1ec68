#include "tools/ferryctl/web/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/display/wait_causes.h"

namespace ferry::tools {
namespace {

using nlohmann::json;

constexpr int kMostOfChain = 16;
constexpr uint64_t kSteadyMs = 700;  // how far a time may seem to move without having moved
// Counters that the page needs are noted for as long as a full node's ranks need to have their
// turns.
constexpr uint64_t kForgetAfter = 64;

// How the bytes of a rank travelled, by the words of docs/architecture.md.
struct PathKind {
  const char* counter;
  const char* path;
};
constexpr PathKind kPaths[] = {
    {"path_inline_bytes", "lane"},          {"path_cell_bytes", "lane"},
    {"path_heap_copy_bytes", "one copy"},   {"path_process_vm_bytes", "one copy"},
    {"path_bounce_bytes", "daemon"},        {"path_rdma_bytes", "daemon"},
    {"path_staged_bytes", "daemon"},        {"path_packet_bytes", "daemon"},
    {"link_bytes_received", "direct link"},
};

std::string RankKey(const std::string& job, uint32_t rank) {
  return job + "." + std::to_string(rank);
}

json Use(uint64_t used, uint64_t limit) { return json::array({used, limit}); }

json UserJson(const control::UserStatus& user) {
  return {{"ranks", Use(user.sessions(), user.sessions_limit())},
          {"jobs", Use(user.jobs(), user.jobs_limit())},
          {"regions", Use(user.regions(), user.regions_limit())},
          {"pinned", Use(user.pinned_bytes(), user.pinned_bytes_limit())},
          {"requests", Use(user.requests_room(), user.requests_limit())},
          {"links", Use(user.links(), user.links_limit())},
          {"nodes", Use(user.nodes(), user.nodes_limit())}};
}

json GpuJson(const control::GpuStatus& gpu) {
  return {{"backend", gpu.backend()},    {"device", gpu.device()},
          {"name", gpu.name()},          {"pci", gpu.pci()},
          {"numa", gpu.numa_node()},     {"total", gpu.total_bytes()},
          {"free", gpu.free_bytes()},    {"nic", gpu.nic()},
          {"to_nic", gpu.to_nic()},      {"kernels", gpu.kernels()},
          {"words", gpu.stream_words()}, {"note", gpu.note()}};
}

// The job's entry, which the daemons of several of its nodes fill together.
json& JobOf(const std::string& id, json* jobs) {
  json& job = (*jobs)[id];
  if (job.is_null()) {
    job = {{"size", 0},
           {"joined", 0},
           {"ranks", json::object()},
           {"pairs", json::object()},
           {"rates", json::object()},
           {"flows", json::object()},
           {"causes", json::object()}};
  }
  return job;
}

// A sentence names each rank of a chain, and there is one for each of these ranks: of a long one
// its beginning and its end are told.
std::string Shortened(const std::string& sentence) {
  constexpr size_t kEach = 240;
  return sentence.size() <= 2 * kEach + 8
             ? sentence
             : sentence.substr(0, kEach) + " ... " + sentence.substr(sentence.size() - kEach);
}

// The node that a rank is on, as one of the daemons has said; nothing: none has.
const json* NodeOf(const json& job, uint32_t rank) {
  const auto found = job["ranks"].find(std::to_string(rank));
  return found == job["ranks"].end() || !found->contains("node") ? nullptr : &(*found)["node"];
}

void AddFlow(const std::string& from, uint64_t to, double rate, json* job) {
  if (rate <= 0) {
    return;
  }
  json& flow = (*job)["flows"][from + ">" + std::to_string(to)];
  flow = (flow.is_number() ? flow.get<double>() : 0) + rate;
}

// Keeps the pairs that move most, then those that have a link.
void KeepMostPairs(json* job) {
  json& pairs = (*job)["pairs"];
  if (pairs.size() <= kMostPairs) {
    return;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [key, pair] : pairs.items()) {
    const double linked = pair["state"] == "up" ? 0.5 : 0;
    order.emplace_back(pair.value("rate", 0.0) + linked, key);
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  for (size_t i = kMostPairs; i < order.size(); ++i) {
    pairs.erase(order[i].second);
  }
  (*job)["pairs_left_out"] = order.size() - kMostPairs;
}

bool IsRough(const json& job) {
  return std::max(job["size"].get<size_t>(), job["ranks"].size()) > kMostTold;
}

// Leaves of each rank of a large job what a small box can show, so that few of them change from
// look to look. The rest is told of the rank that is clicked, and of the job.
void Roughen(json* job) {
  constexpr size_t kNext = 2;  // a rank, and the one that it waits for
  (*job)["rough"] = true;
  (*job)["pairs"] = json::object();
  for (auto& [number, rank] : (*job)["ranks"].items()) {
    for (const char* name : {"out", "in", "messages", "sent", "received", "link_out"}) {
      if (const auto value = rank.find(name); value != rank.end()) {
        *value = Rounded(value->get<double>(), 1);
      }
    }
    rank.erase("why");
    if (const auto chain = rank.find("chain"); chain != rank.end() && chain->size() > kNext) {
      chain->erase(chain->begin() + kNext, chain->end());
    }
  }
}

void DrawCauses(const std::vector<const control::RankWait*>& waits, json* job) {
  const std::vector<WaitCause> causes = CausesOf(waits);
  json& ranks = (*job)["ranks"];
  for (size_t i = 0; i < causes.size(); ++i) {
    const WaitCause& cause = causes[i];
    for (const uint32_t rank : cause.waiting) {
      ranks[std::to_string(rank)]["cause"] = cause.rank;
    }
    if (i < kMostCauses) {
      const json& nearest = ranks[std::to_string(cause.nearest->rank())];
      (*job)["causes"][std::to_string(cause.rank)] = {{"why", nearest["why"]},
                                                      {"since", nearest["since"]},
                                                      {"waits", cause.waiting.size()},
                                                      {"deadlock", cause.is_deadlock}};
    }
  }
}

}  // namespace

double Rounded(double value, int digits) {
  if (!(value > 0)) {
    return 0;
  }
  const double unit = std::pow(10.0, std::floor(std::log10(value)) + 1 - digits);
  return unit >= 1 ? std::round(std::round(value / unit) * unit) : std::round(value / unit) * unit;
}

double Picture::Rate(const std::string& name, uint64_t count) {
  const auto [found, is_new] = marks_.try_emplace(name, Mark{count, now_ns_, 0, serial_});
  Mark& mark = found->second;
  mark.serial = serial_;
  if (is_new || now_ns_ <= mark.time_ns) {
    return is_new ? 0 : mark.rate;
  }
  const uint64_t from = count < mark.count ? 0 : mark.count;
  mark.rate = static_cast<double>(count - from) * 1e9 / static_cast<double>(now_ns_ - mark.time_ns);
  mark.count = count;
  mark.time_ns = now_ns_;
  return mark.rate;
}

uint64_t Picture::SteadyTime(const std::string& name, uint64_t unix_ms) {
  const auto [found, is_new] = times_.try_emplace(name, unix_ms, serial_);
  auto& [time, serial] = found->second;
  serial = serial_;
  const uint64_t apart = time > unix_ms ? time - unix_ms : unix_ms - time;
  if (apart > kSteadyMs) {
    time = unix_ms;
  }
  return time;
}

void Picture::Forget() {
  std::erase_if(marks_,
                [&](const auto& mark) { return mark.second.serial + kForgetAfter < serial_; });
  std::erase_if(times_, [&](const auto& time) { return time.second.second < serial_; });
}

void Picture::DrawDaemon(const DaemonLook& daemon, json* state) {
  const control::StatusReply& status = daemon.status;
  const std::string& at = daemon.run_directory;
  json drawn = {{"node", status.node().name()},  {"kind", daemon.kind},
                {"pid", status.pid()},           {"state", status.state()},
                {"sessions", status.sessions()}, {"trouble", daemon.trouble},
                {"peers", json::object()},       {"users", json::object()},
                {"nics", json::object()},        {"gpus", json::object()}};
  if (status.pid() != 0) {
    drawn["since"] =
        SteadyTime("up " + at, unix_ms_ - std::min(unix_ms_, uint64_t{status.uptime_ms()}));
    drawn["cpu"] = Rounded(Rate("cpu " + at, status.cpu_time_us()) / 1e6);
    drawn["memory"] = Rounded(static_cast<double>(status.resident_bytes()));
  }
  for (const control::PeerStatus& peer : status.peers()) {
    drawn["peers"][peer.control_address()] = {
        {"name", peer.name()}, {"state", peer.state()}, {"trouble", peer.trouble()}};
  }
  for (const control::UserStatus& user : status.users()) {
    drawn["users"][std::to_string(user.uid())] = UserJson(user);
  }
  for (int i = 0; i < daemon.nics.nics_size(); ++i) {
    const control::NicStatus& nic = daemon.nics.nics(i);
    const std::string name = "nic " + std::to_string(i) + " " + at;
    drawn["nics"][std::to_string(i)] = {{"provider", nic.provider()},
                                        {"domain", nic.domain()},
                                        {"address", nic.address()},
                                        {"pci", nic.pci()},
                                        {"numa", nic.numa_node()},
                                        {"out", Rounded(Rate(name + " out", nic.bytes_sent()))},
                                        {"in", Rounded(Rate(name + " in", nic.bytes_received()))},
                                        {"errors", nic.errors()},
                                        {"outstanding", nic.outstanding()},
                                        {"staging", Use(nic.staging_busy(), nic.staging_blocks())},
                                        {"waiting", nic.staging_waits()},
                                        {"device_memory", nic.device_memory()}};
  }
  for (int i = 0; i < daemon.gpus.gpus_size(); ++i) {
    drawn["gpus"][std::to_string(i)] = GpuJson(daemon.gpus.gpus(i));
  }
  (*state)["daemons"][at] = std::move(drawn);
}

void Picture::DrawJobs(const DaemonLook& daemon, json* jobs) {
  for (const control::JobStatus& status : daemon.status.jobs()) {
    json& job = JobOf(status.job_id(), jobs);
    job["uid"] = status.uid();
    job["name"] = status.name();
    job["program"] = status.program();
    job["slurm"] = status.slurm_id();
    job["size"] = status.size();
    job["state"] = status.state();
    job["joined"] = std::max(job["joined"].get<uint32_t>(), uint32_t{status.joined()});
  }
  for (const control::SessionStatus& session : daemon.sessions.sessions()) {
    const std::string key = RankKey(session.job_id(), session.rank());
    const std::string name = key + "/" + std::to_string(session.pid());
    json& job = JobOf(session.job_id(), jobs);
    job["ranks"][std::to_string(session.rank())] = {
        {"at", daemon.run_directory},
        {"pid", session.pid()},
        {"state", session.state()},
        {"out", Rounded(Rate("out " + name, session.bytes_sent()))},
        {"in", Rounded(Rate("in " + name, session.bytes_received()))},
        {"messages", Rounded(Rate("messages " + name, session.messages_sent()))},
        {"sent", Rounded(static_cast<double>(session.bytes_sent()))},
        {"received", Rounded(static_cast<double>(session.bytes_received()))},
        {"open", session.requests()},
        {"queued", session.queued()},
        {"unexpected", session.unexpected()},
        {"poison", session.poison()},
        {"cpus", session.cpus()},
        {"nic", session.nic()}};
  }
}

void Picture::DrawWaits(const DaemonLook& daemon, json* jobs, LongWaits* waits) {
  for (const control::RankWait& wait : daemon.why.ranks()) {
    json& job = JobOf(wait.job_id(), jobs);
    json& rank = job["ranks"][std::to_string(wait.rank())];
    rank["at"] = daemon.run_directory;
    rank["node"] = wait.node();
    rank["state"] = wait.state();
    const bool is_waiting = wait.state() == "waits";
    if (wait.pid() != 0) {
      rank["pid"] = wait.pid();
    }
    if (!is_waiting && wait.state() != "computes") {
      rank["does"] = wait.detail();
    }
    const std::string key = RankKey(wait.job_id(), wait.rank());
    if ((is_waiting && wait.waits_ms() >= kNotableWaitMs) || wait.deadlock()) {
      rank["why"] = Shortened(wait.verdict());
      rank["since"] =
          SteadyTime("wait " + key, unix_ms_ - std::min(unix_ms_, uint64_t{wait.waits_ms()}));
      const int shown = std::min(wait.chain_size(), kMostOfChain);
      rank["chain"] = std::vector<uint32_t>(wait.chain().begin(), wait.chain().begin() + shown);
      rank["deadlock"] = wait.deadlock();
      (*waits)[wait.job_id()].push_back(&wait);
      if (wait.calls_size() != 0) {
        rank["call"] = wait.calls(0).name();
      }
    }
    // A sentence that all ranks of a job have is told once, of the job.
    for (const std::string& trouble : wait.troubles()) {
      json& troubles = job["troubles"];
      if (troubles.size() < 8 &&
          std::find(troubles.begin(), troubles.end(), trouble) == troubles.end()) {
        troubles.push_back(trouble);
      }
    }
  }
}

void Picture::DrawLinks(const DaemonLook& daemon, json* jobs) {
  // By rank: where its direct links that are up lead. Their bytes are counted by rank only.
  std::map<std::string, std::vector<uint32_t>> linked;
  for (const control::LinkStatus& link : daemon.links.links()) {
    json& job = JobOf(link.job_id(), jobs);
    const std::string key = RankKey(link.job_id(), link.rank());
    const std::string pair = std::to_string(link.rank()) + ">" + std::to_string(link.peer());
    const double rate = Rate("pair " + link.job_id() + " " + pair, link.daemon_bytes());
    if (link.state() == "up") {
      linked[key].push_back(link.node());
    }
    job["pairs"][pair] = {{"node", link.node()},
                          {"state", link.state()},
                          {"out", link.out()},
                          {"rate", Rounded(rate)},
                          {"bytes", Rounded(static_cast<double>(link.daemon_bytes()))},
                          {"why", link.why()}};
    if (const json* node = NodeOf(job, link.rank())) {
      AddFlow(node->dump(), link.node(), rate, &job);
    }
  }
  for (const control::LinkTotals& totals : daemon.links.totals()) {
    json& job = JobOf(totals.job_id(), jobs);
    const std::string key = RankKey(totals.job_id(), totals.rank());
    const double rate = Rate("links " + key, totals.bytes_sent());
    json& rank = job["ranks"][std::to_string(totals.rank())];
    rank["at"] = daemon.run_directory;
    rank["links"] = totals.links();
    rank["link_out"] = Rounded(rate);
    const json* node = NodeOf(job, totals.rank());
    const std::vector<uint32_t>& peers = linked[key];
    for (const uint32_t peer : peers) {
      if (node != nullptr) {
        AddFlow(node->dump(), peer, rate / static_cast<double>(peers.size()), &job);
      }
    }
  }
}

void Picture::DrawRates(const DaemonLook& daemon, json* jobs) const {
  for (const control::SessionStatus& session : daemon.sessions.sessions()) {
    json& job = JobOf(session.job_id(), jobs);
    const json* const node = NodeOf(job, session.rank());
    const auto mark = marks_.find("out " + RankKey(session.job_id(), session.rank()) + "/" +
                                  std::to_string(session.pid()));
    if (mark != marks_.end()) {
      json& rate = job["rates"][node == nullptr ? daemon.run_directory : node->dump()];
      rate = (rate.is_number() ? rate.get<double>() : 0) + mark->second.rate;
    }
  }
}

void Picture::DrawPaths(const DaemonLook& daemon, json* paths) {
  std::map<std::string, std::pair<double, double>> sums;  // rate, total
  const auto add = [&](const std::string& path, double rate, double total) {
    sums[path].first += rate;
    sums[path].second += total;
  };
  const std::string prefix = "counter " + daemon.run_directory + " ";
  for (const control::CounterValue& counter : daemon.counters.counters()) {
    for (const PathKind& kind : kPaths) {
      if (counter.name() == kind.counter) {
        Rate(prefix + counter.scope() + " " + counter.name(), counter.value());
      }
    }
  }
  // Ranks whose turn it was not count with what they had at theirs.
  for (const control::SessionStatus& session : daemon.sessions.sessions()) {
    const std::string scope =
        "job " + session.job_id() + " rank " + std::to_string(session.rank()) + " ";
    for (const PathKind& kind : kPaths) {
      if (const auto mark = marks_.find(prefix + scope + kind.counter); mark != marks_.end()) {
        add(kind.path, mark->second.rate, static_cast<double>(mark->second.count));
      }
    }
  }
  // Messages by direct links are counted among those between nodes.
  if (const auto link = sums.find("direct link"); link != sums.end()) {
    auto& [rate, total] = sums["daemon"];
    rate = std::max(0.0, rate - link->second.first);
    total = std::max(0.0, total - link->second.second);
  }
  for (const auto& [path, sum] : sums) {
    json& drawn = (*paths)[path];
    const bool is_new = drawn.is_null();
    drawn = {{"rate", (is_new ? 0 : drawn["rate"].get<double>()) + sum.first},
             {"total", (is_new ? 0 : drawn["total"].get<double>()) + sum.second}};
  }
}

json Picture::Draw(const Look& look) {
  ++serial_;
  unix_ms_ = look.unix_ms;
  now_ns_ = look.monotonic_ns;
  json state = {{"uid", look.uid},           {"trouble", look.trouble}, {"names", json::object()},
                {"daemons", json::object()}, {"paths", json::object()}, {"jobs", json::object()}};
  for (const auto& [uid, name] : look.user_names) {
    state["names"][std::to_string(uid)] = name;
  }
  json& jobs = state["jobs"];
  LongWaits waits;
  for (const DaemonLook& daemon : look.daemons) {
    DrawDaemon(daemon, &state);
    DrawJobs(daemon, &jobs);
    DrawWaits(daemon, &jobs, &waits);
    DrawPaths(daemon, &state["paths"]);
  }
  for (const DaemonLook& daemon : look.daemons) {
    DrawLinks(daemon, &jobs);  // once it is known where ranks are
    DrawRates(daemon, &jobs);
  }
  for (auto& [id, job] : jobs.items()) {
    const auto label = look.labels.find(id);
    job["label"] = label == look.labels.end() ? id : label->second;
    KeepMostPairs(&job);
    DrawCauses(waits[id], &job);
    for (const char* sums : {"flows", "rates"}) {
      for (auto& [node, rate] : job[sums].items()) {
        rate = Rounded(rate.get<double>());
      }
    }
    if (IsRough(job)) {
      Roughen(&job);
    }
  }
  for (auto& [path, sum] : state["paths"].items()) {
    sum = {{"rate", Rounded(sum["rate"])}, {"total", Rounded(sum["total"])}};
  }
  Forget();
  return state;
}

}  // namespace ferry::tools
