#include "tools/display/rank_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace ferry::tools {
namespace {

struct Sums {
  std::vector<uint32_t> ranks;
  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_received = 0;
  uint64_t requests = 0;
  uint64_t unexpected = 0;
  uint64_t queued = 0;

  void Add(const control::SessionStatus& session) {
    ranks.push_back(session.rank());
    messages_sent += session.messages_sent();
    bytes_sent += session.bytes_sent();
    messages_received += session.messages_received();
    bytes_received += session.bytes_received();
    requests += session.requests();
    unexpected += session.unexpected();
    queued += session.queued();
  }
};

struct Callers {
  std::vector<uint32_t> ranks;
  uint64_t longest_ms = 0;
};

using Key = std::pair<std::string, std::string>;  // job, and state, call or counter

// ---- Counters -----------------------------------------------------------------------------------

struct CounterSums {
  uint64_t ranks = 0;  // that have counted something
  uint64_t sum = 0;
  uint64_t most = 0;
  std::optional<uint32_t> rank_of_most;
  std::string unit;
  std::string help;
  size_t order = 0;  // in which they came

  void Add(const control::CounterValue& counter, std::optional<uint32_t> rank) {
    ranks += counter.value() != 0 ? 1 : 0;
    sum += counter.value();
    if (counter.value() > most) {
      most = counter.value();
      rank_of_most = rank;
    }
  }
};

// ---- Links --------------------------------------------------------------------------------------

struct PairSums {
  std::vector<uint32_t> ranks;  // here
  uint64_t pairs = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

struct LinkSums {
  std::vector<uint32_t> ranks;
  uint64_t links = 0;
  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_received = 0;
  uint64_t errors = 0;

  void Add(const control::LinkTotals& totals) {
    ranks.push_back(totals.rank());
    links += totals.links();
    messages_sent += totals.messages_sent();
    bytes_sent += totals.bytes_sent();
    messages_received += totals.messages_received();
    bytes_received += totals.bytes_received();
    errors += totals.errors();
  }
};

std::string TotalsByJob(const control::LinksReply& reply, const Terminal& terminal) {
  std::map<std::string, LinkSums> jobs;
  for (const control::LinkTotals& totals : reply.totals()) {
    jobs[totals.job_id()].Add(totals);
  }
  Table table({{"JOB"},
               {"RANKS", Align::kRight},
               {"LINKS", Align::kRight},
               {"SENT", Align::kRight},
               {"OUT", Align::kRight},
               {"RECEIVED", Align::kRight},
               {"IN", Align::kRight},
               {"ERRORS", Align::kRight},
               {"WHICH"}});
  for (const auto& [job, sums] : jobs) {
    table.AddRow({job, std::to_string(sums.ranks.size()), std::to_string(sums.links),
                  std::to_string(sums.messages_sent), BytesText(sums.bytes_sent),
                  std::to_string(sums.messages_received), BytesText(sums.bytes_received),
                  std::to_string(sums.errors), RanksText(sums.ranks)});
  }
  return table.empty() ? "" : "\n" + table.FittedText(terminal);
}

}  // namespace

std::string RanksText(std::vector<uint32_t> ranks) {
  constexpr size_t kMostRanges = 8;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  size_t at = 0;
  for (size_t ranges = 0; at < ranks.size() && ranges < kMostRanges; ++ranges) {
    size_t end = at + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
      ++end;
    }
    text += (ranges == 0 ? "" : ", ") + std::to_string(ranks[at]);
    if (end - at > 1) {
      text += (end - at == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
    }
    at = end;
  }
  return at == ranks.size() ? text : text + " and " + std::to_string(ranks.size() - at) + " more";
}

std::string SessionGroups(const control::SessionsReply& reply, const Terminal& terminal) {
  std::map<Key, Sums> states;
  std::map<Key, Callers> calls;
  for (const control::SessionStatus& session : reply.sessions()) {
    states[{session.job_id(), session.state()}].Add(session);
    for (const control::RankCall& call : session.calls()) {
      Callers& callers = calls[{session.job_id(), call.name()}];
      callers.ranks.push_back(session.rank());
      callers.longest_ms = std::max(callers.longest_ms, uint64_t{call.for_ms()});
    }
  }
  Table by_state({{"JOB"},
                  {"STATE", Align::kLeft, true},
                  {"RANKS", Align::kRight},
                  {"SENT", Align::kRight},
                  {"OUT", Align::kRight},
                  {"RECEIVED", Align::kRight},
                  {"IN", Align::kRight},
                  {"REQUESTS", Align::kRight},
                  {"UNEXPECTED", Align::kRight},
                  {"QUEUED", Align::kRight},
                  {"WHICH"}});
  for (const auto& [key, sums] : states) {
    by_state.AddRow({key.first, key.second, std::to_string(sums.ranks.size()),
                     std::to_string(sums.messages_sent), BytesText(sums.bytes_sent),
                     std::to_string(sums.messages_received), BytesText(sums.bytes_received),
                     std::to_string(sums.requests), std::to_string(sums.unexpected),
                     std::to_string(sums.queued), RanksText(sums.ranks)});
  }
  Table by_call(
      {{"JOB"}, {"WAITS IN"}, {"RANKS", Align::kRight}, {"LONGEST", Align::kRight}, {"WHICH"}});
  for (const auto& [key, callers] : calls) {
    by_call.AddRow({key.first, key.second, std::to_string(callers.ranks.size()),
                    DurationText(callers.longest_ms), RanksText(callers.ranks)});
  }
  return by_state.FittedText(terminal, 3) + (by_call.empty() ? "" : "\n" + by_call.Text(terminal)) +
         kHowToListAll;
}

CounterScope ReadScope(const std::string& text) {
  constexpr std::string_view kBegin = "job ";
  constexpr std::string_view kRank = " rank ";
  const size_t at = text.rfind(kRank);
  if (!text.starts_with(kBegin) || at == std::string::npos || at < kBegin.size()) {
    return {text, {}};
  }
  uint32_t rank = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + at + kRank.size(), end, rank);
  return read.ec == std::errc() && read.ptr == end
             ? CounterScope{text.substr(kBegin.size(), at - kBegin.size()), rank}
             : CounterScope{text, {}};
}

bool HasManyRanks(const control::CountersReply& reply) {
  std::set<std::string> scopes;
  for (const control::CounterValue& counter : reply.counters()) {
    scopes.insert(counter.scope());
  }
  return scopes.size() > kMostRanksListed;
}

std::string CounterGroups(const control::CountersReply& reply, const Terminal& terminal) {
  std::map<std::string, std::map<std::string, CounterSums>> jobs;
  std::map<std::string, size_t> orders;
  for (const control::CounterValue& counter : reply.counters()) {
    const CounterScope scope = ReadScope(counter.scope());
    CounterSums& sums = jobs[scope.job][counter.name()];
    sums.Add(counter, scope.rank);
    sums.unit = counter.unit();
    sums.help = counter.help();
    sums.order = orders.emplace(counter.name(), orders.size()).first->second;
  }
  Table table({{"JOB"},
               {"COUNTER"},
               {"RANKS", Align::kRight},
               {"SUM", Align::kRight},
               {"MOST", Align::kRight},
               {"OF RANK", Align::kRight},
               {"UNIT"},
               {"MEANING"}});
  for (const auto& [job, counters] : jobs) {
    std::vector<std::pair<size_t, std::string>> names;
    for (const auto& [name, sums] : counters) {
      names.emplace_back(sums.order, name);
    }
    std::sort(names.begin(), names.end());
    for (const auto& [order, name] : names) {
      const CounterSums& sums = counters.at(name);
      table.AddRow({job, name, std::to_string(sums.ranks), std::to_string(sums.sum),
                    std::to_string(sums.most),
                    sums.rank_of_most.has_value() ? std::to_string(*sums.rank_of_most) : "",
                    sums.unit, sums.help});
    }
  }
  return table.FittedText(terminal, 2) + kHowToListAll;
}

std::string LinkGroups(const control::LinksReply& reply, const Terminal& terminal) {
  using How = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<How, PairSums> groups;
  for (const control::LinkStatus& link : reply.links()) {
    PairSums& sums = groups[{link.job_id(), link.state(), link.out(), link.in(), link.why()}];
    sums.ranks.push_back(link.rank());
    ++sums.pairs;
    sums.messages += link.daemon_messages();
    sums.bytes += link.daemon_bytes();
  }
  Table table({{"JOB"},
               {"LINK", Align::kLeft, true},
               {"PAIRS", Align::kRight},
               {"OUT BY"},
               {"IN BY"},
               {"BY DAEMON", Align::kRight},
               {"SIZE", Align::kRight},
               {"RANKS HERE"},
               {"WHY NOT"}});
  for (const auto& [how, sums] : groups) {
    const auto& [job, state, out, in, why] = how;
    table.AddRow({job, state, std::to_string(sums.pairs), out, in, std::to_string(sums.messages),
                  BytesText(sums.bytes), RanksText(sums.ranks), why});
  }
  return table.FittedText(terminal, 3) + TotalsByJob(reply, terminal) +
         (reply.refusal().empty() ? "" : "\nno direct links: " + reply.refusal() + "\n") +
         kHowToListAll;
}

}  // namespace ferry::tools
