#include "tools/ferryctl/views.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "config/environment.h"
#include "tools/display/rank_groups.h"
#include "tools/display/wait_causes.h"
#include "tools/ferryctl/job_names.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kJobsShown = 3;
constexpr int kMostListed = 32;  // of a rank's operations, or messages
constexpr char kMoreInQueues[] = " more (`ferryctl queues --all` lists them)\n";

std::string JobsText(const control::StatusReply& daemon) {
  const JobList jobs(daemon.jobs().begin(), daemon.jobs().end());
  std::string text;
  for (int i = 0; i < std::min(daemon.jobs_size(), kJobsShown); ++i) {
    text += (i == 0 ? "" : " ") + LabelOf(jobs, jobs[static_cast<size_t>(i)].job_id());
  }
  const int more = daemon.jobs_size() - kJobsShown;
  return more > 0 ? text + " and " + std::to_string(more) + " more" : text;
}

ordered_json Json(const MetDaemon& met) {
  ordered_json json = {{"run_directory", met.place.run_directory},
                       {"kind", DaemonKindText(met.place.kind)}};
  if (!met.observer.ok()) {
    json["trouble"] = met.observer.status().message();
    return json;
  }
  const control::StatusReply& daemon = met.observer->daemon();
  json["pid"] = daemon.pid();
  json["node"] = daemon.node().name();
  json["state"] = daemon.state();
  json["uptime_ms"] = daemon.uptime_ms();
  json["sessions"] = daemon.sessions();
  json["jobs"] = ordered_json::array();
  for (const control::JobStatus& job : daemon.jobs()) {
    json["jobs"].push_back(job.job_id());
  }
  return json;
}

using nlohmann::ordered_json;

std::string OrAny(int32_t number) { return number < 0 ? "any" : std::to_string(number); }

ordered_json ReasonJson(const control::WaitReason& reason) {
  return {{"operation", reason.operation()},
          {"peer", reason.peer()},
          {"peer_state", reason.peer_state()},
          {"tag", reason.tag()},
          {"context", reason.context()},
          {"size_bytes", reason.size_bytes()},
          {"done_bytes", reason.done_bytes()},
          {"age_ms", reason.age_ms()},
          {"step", reason.step()}};
}

ordered_json UnexpectedJson(const control::UnexpectedMessages& group) {
  return {{"source", group.source()},       {"tag", group.tag()},
          {"context", group.context()},     {"size_bytes", group.size_bytes()},
          {"announced", group.announced()}, {"count", group.count()}};
}

ordered_json RankJson(const control::RankWait& rank) {
  ordered_json json = {{"job_id", rank.job_id()},
                       {"rank", rank.rank()},
                       {"node", rank.node()},
                       {"pid", rank.pid()},
                       {"state", rank.state()},
                       {"detail", rank.detail()},
                       {"quiet_ms", rank.quiet_ms()},
                       {"waits_ms", rank.waits_ms()},
                       {"unfinished", rank.unfinished()},
                       {"verdict", rank.verdict()},
                       {"deadlock", rank.deadlock()}};
  json["chain"] = std::vector<uint32_t>(rank.chain().begin(), rank.chain().end());
  json["calls"] = ordered_json::array();
  for (const control::RankCall& call : rank.calls()) {
    json["calls"].push_back(
        {{"name", call.name()}, {"phrase", call.phrase()}, {"for_ms", call.for_ms()}});
    if (call.meets()) {
      json["calls"].back()["context"] = call.group();
      json["calls"].back()["number"] = call.number();
    }
  }
  json["troubles"] = std::vector<std::string>(rank.troubles().begin(), rank.troubles().end());
  json["reasons"] = ordered_json::array();
  for (const control::WaitReason& reason : rank.reasons()) {
    json["reasons"].push_back(ReasonJson(reason));
  }
  json["unexpected"] = ordered_json::array();
  for (const control::UnexpectedMessages& group : rank.unexpected()) {
    json["unexpected"].push_back(UnexpectedJson(group));
  }
  return json;
}

std::string Quiet(const control::RankWait& rank) {
  return rank.quiet_ms() < 1000 ? "" : DurationText(rank.quiet_ms());
}

std::string Reasons(const control::RankWait& rank, const Terminal& terminal) {
  Table table({{"OPERATION"},
               {"PEER", Align::kRight},
               {"PEER IS", Align::kLeft, true},
               {"TAG", Align::kRight},
               {"SIZE", Align::kRight},
               {"FOR", Align::kRight},
               {"STEP"}});
  for (int i = 0; i < std::min(rank.reasons_size(), kMostListed); ++i) {
    const control::WaitReason& reason = rank.reasons(i);
    const bool barrier = reason.operation() == "barrier";
    table.AddRow({reason.operation(), OrAny(reason.peer()), reason.peer_state(),
                  barrier ? "" : OrAny(reason.tag()), barrier ? "" : BytesText(reason.size_bytes()),
                  DurationText(reason.age_ms()), reason.step()});
  }
  return table.empty() ? "" : "\n" + table.Text(terminal);
}

std::string Unexpected(const control::RankWait& rank, const Terminal& terminal) {
  Table table({{"FROM", Align::kRight},
               {"TAG", Align::kRight},
               {"CONTEXT", Align::kRight},
               {"COUNT", Align::kRight},
               {"SIZE", Align::kRight},
               {"DATA"}});
  const int listed = std::min(rank.unexpected_size(), kMostListed);
  for (int i = 0; i < listed; ++i) {
    const control::UnexpectedMessages& group = rank.unexpected(i);
    table.AddRow({std::to_string(group.source()), std::to_string(group.tag()),
                  std::to_string(group.context()), std::to_string(group.count()),
                  BytesText(group.size_bytes()), group.announced() ? "with the sender" : "here"});
  }
  if (table.empty()) {
    return "";
  }
  const int more = rank.unexpected_size() - listed;
  return "\nmessages that no receive has wanted yet:\n" + table.Text(terminal) +
         (more == 0 ? "" : "and " + std::to_string(more) + kMoreInQueues);
}

std::string OneRank(const std::string& label, const control::RankWait& rank,
                    const Terminal& terminal) {
  std::string text = Coloured(rank.verdict(), terminal) + "\n\nrank " +
                     std::to_string(rank.rank()) + " of job " + label + " " + rank.detail() + "\n";
  if (const std::string quiet = Quiet(rank); !quiet.empty()) {
    text += "no message of it has moved for " + quiet + " at least\n";
  }
  for (const std::string& trouble : rank.troubles()) {
    text += Coloured("trouble: " + trouble, terminal) + "\n";
  }
  const auto shown = static_cast<uint32_t>(std::min(rank.reasons_size(), kMostListed));
  text += Reasons(rank, terminal);
  if (rank.unfinished() > shown) {
    text += "and " + std::to_string(rank.unfinished() - shown) + kMoreInQueues;
  }
  return text + Unexpected(rank, terminal);
}

// Each only once.
void AddTroubles(const std::string& job, const control::RankWait& rank, std::string* troubles) {
  for (const std::string& trouble : rank.troubles()) {
    const std::string line = "trouble" + job + ": " + trouble + "\n";
    *troubles += troubles->find(line) == std::string::npos ? line : "";
  }
}

std::string AllRanks(const control::WhyReply& reply, const Terminal& terminal) {
  Table table({{"RANK", Align::kRight},
               {"PID", Align::kRight},
               {"STATE", Align::kLeft, true},
               {"REQUESTS", Align::kRight},
               {"QUIET FOR", Align::kRight},
               {"WHY", Align::kLeft, true}});
  std::string troubles;
  for (const control::RankWait& rank : reply.ranks()) {
    table.AddRow({std::to_string(rank.rank()), rank.pid() == 0 ? "" : std::to_string(rank.pid()),
                  rank.state(), std::to_string(rank.unfinished()), Quiet(rank), rank.verdict()});
    AddTroubles("", rank, &troubles);
  }
  return table.empty() ? "no rank of the job lives on this node\n"
                       : table.Text(terminal) + troubles;
}

bool AreGrouped(Ranks ranks, const control::WhyReply& reply) {
  return ranks == Ranks::kMany && static_cast<size_t>(reply.ranks_size()) > kMostRanksListed;
}

std::string Groups(const control::WhyReply& reply, const Terminal& terminal) {
  std::string troubles;
  for (const control::RankWait& rank : reply.ranks()) {
    AddTroubles(" of job " + rank.job_id(), rank, &troubles);
  }
  return WaitGroups(reply, terminal) + troubles;
}

const char* VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "";
}

}  // namespace

View ListView(const std::vector<MetDaemon>& daemons, const Terminal& terminal) {
  View view = {{{"daemons", ordered_json::array()}}, ""};
  Table table({{"RUN DIRECTORY"},
               {"KIND"},
               {"PID", Align::kRight},
               {"STATE", Align::kLeft, true},
               {"UP", Align::kRight},
               {"RANKS", Align::kRight},
               {"JOBS"}});
  std::string troubles;
  for (const MetDaemon& met : daemons) {
    view.json["daemons"].push_back(Json(met));
    if (!met.observer.ok()) {
      troubles += Coloured("trouble: " + met.observer.status().message(), terminal) + "\n";
      continue;
    }
    const control::StatusReply& daemon = met.observer->daemon();
    table.AddRow({met.place.run_directory, DaemonKindText(met.place.kind),
                  std::to_string(daemon.pid()), daemon.state(), DurationText(daemon.uptime_ms()),
                  std::to_string(daemon.sessions()), JobsText(daemon)});
  }
  view.text = table.empty() ? "" : table.Text(terminal);
  view.text += troubles;
  if (daemons.empty()) {
    view.text = "no ferryd serves you here; ferryrun starts a private one for its job then\n";
  }
  return view;
}

View WhyView(const std::string& job_id, const std::string& label, Ranks ranks,
             const control::WhyReply& reply, const Terminal& terminal) {
  View view = {{{"job_id", job_id}, {"ranks", ordered_json::array()}}, ""};
  for (const control::RankWait& rank : reply.ranks()) {
    view.json["ranks"].push_back(RankJson(rank));
  }
  if (ranks == Ranks::kOne && reply.ranks_size() == 1) {
    view.text = OneRank(label, reply.ranks(0), terminal);
  } else if (AreGrouped(ranks, reply)) {
    control::WhyReply labelled = reply;
    for (control::RankWait& rank : *labelled.mutable_ranks()) {
      rank.set_job_id(label);
    }
    view.text = Groups(labelled, terminal);
  } else {
    view.text = AllRanks(reply, terminal);
  }
  return view;
}

View WaitingView(const control::WhyReply& reply, Ranks ranks_shown, const Terminal& terminal) {
  std::vector<const control::RankWait*> ranks;
  for (const control::RankWait& rank : reply.ranks()) {
    ranks.push_back(&rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto* a, const auto* b) { return a->waits_ms() > b->waits_ms(); });
  View view = {{{"ranks", ordered_json::array()}}, ""};
  Table table({{"RANK"},
               {"PID", Align::kRight},
               {"FOR", Align::kRight},
               {"REQUESTS", Align::kRight},
               {"WHY", Align::kLeft, true}});
  std::string troubles;
  for (const control::RankWait* rank : ranks) {
    view.json["ranks"].push_back(RankJson(*rank));
    const bool joins = rank->state() == "joins";  // the time of its start is unknown
    table.AddRow({rank->job_id() + "." + std::to_string(rank->rank()),
                  rank->pid() == 0 ? "" : std::to_string(rank->pid()),
                  joins ? "" : DurationText(rank->waits_ms()), std::to_string(rank->unfinished()),
                  rank->verdict()});
    AddTroubles(" of job " + rank->job_id(), *rank, &troubles);
  }
  view.text = table.empty()                    ? "no rank waits\n"
              : AreGrouped(ranks_shown, reply) ? Groups(reply, terminal)
                                               : table.Text(terminal) + troubles;
  return view;
}

View DoctorView(const std::vector<Finding>& findings, const Terminal& terminal) {
  constexpr size_t kVerdictWidth = 9;
  View view = {{{"findings", nlohmann::ordered_json::array()}}, ""};
  for (const Finding& finding : findings) {
    const std::string verdict = VerdictText(finding.verdict);
    view.json["findings"].push_back({{"name", finding.name},
                                     {"verdict", verdict},
                                     {"found", finding.found},
                                     {"mend", finding.mend}});
    view.text += Coloured(verdict, terminal) + std::string(kVerdictWidth - verdict.size(), ' ') +
                 finding.name + ": " + finding.found + "\n";
    if (!finding.mend.empty()) {
      view.text += std::string(kVerdictWidth, ' ') + "-> " + finding.mend + "\n";
    }
  }
  return view;
}

using nlohmann::ordered_json;

Terminal StandardOutput() { return TerminalOf(STDOUT_FILENO, config::ProcessEnvironment()); }

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintJson(const ordered_json& value, int indent) {
  Print(value.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace ferry::tools
