#include "tools/ferryctl/why_view.h"

#include <algorithm>
#include <vector>

#include "tools/display/table.h"

namespace ferry::tools {
namespace {

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
  for (const control::WaitReason& reason : rank.reasons()) {
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
  for (const control::UnexpectedMessages& group : rank.unexpected()) {
    table.AddRow({std::to_string(group.source()), std::to_string(group.tag()),
                  std::to_string(group.context()), std::to_string(group.count()),
                  BytesText(group.size_bytes()), group.announced() ? "with the sender" : "here"});
  }
  return table.empty() ? "" : "\nmessages that no receive has wanted yet:\n" + table.Text(terminal);
}

std::string OneRank(const std::string& job_id, const control::RankWait& rank,
                    const Terminal& terminal) {
  std::string text = Coloured(rank.verdict(), terminal) + "\n\nrank " +
                     std::to_string(rank.rank()) + " of job " + job_id + " " + rank.detail() + "\n";
  if (const std::string quiet = Quiet(rank); !quiet.empty()) {
    text += "no message of it has moved for " + quiet + " at least\n";
  }
  for (const std::string& trouble : rank.troubles()) {
    text += Coloured("trouble: " + trouble, terminal) + "\n";
  }
  const auto shown = static_cast<uint32_t>(rank.reasons_size());
  text += Reasons(rank, terminal);
  if (rank.unfinished() > shown) {
    text += "and " + std::to_string(rank.unfinished() - shown) + " more\n";
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

}  // namespace

View WhyView(const std::string& job_id, bool all, const control::WhyReply& reply,
             const Terminal& terminal) {
  View view = {{{"job_id", job_id}, {"ranks", ordered_json::array()}}, ""};
  for (const control::RankWait& rank : reply.ranks()) {
    view.json["ranks"].push_back(RankJson(rank));
  }
  view.text = all || reply.ranks_size() != 1 ? AllRanks(reply, terminal)
                                             : OneRank(job_id, reply.ranks(0), terminal);
  return view;
}

View WaitingView(const control::WhyReply& reply, const Terminal& terminal) {
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
    const bool joins = rank->state() == "joins";  // nobody knows since when
    table.AddRow({rank->job_id() + "." + std::to_string(rank->rank()),
                  rank->pid() == 0 ? "" : std::to_string(rank->pid()),
                  joins ? "" : DurationText(rank->waits_ms()), std::to_string(rank->unfinished()),
                  rank->verdict()});
    AddTroubles(" of job " + rank->job_id(), *rank, &troubles);
  }
  view.text = table.empty() ? "no rank waits\n" : table.Text(terminal) + troubles;
  return view;
}

}  // namespace ferry::tools
