#include "tools/display/top.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/counted.h"
#include "tools/display/rank_groups.h"
#include "tools/display/table.h"

namespace ferry::tools {
namespace {

constexpr std::string_view kPathPrefix = "path_";
constexpr std::string_view kMessagesSuffix = "_messages";
constexpr std::string_view kBytesSuffix = "_bytes";

class Clock {
 public:
  explicit Clock(double seconds) : seconds_(seconds) {}
  double Rate(uint64_t before, uint64_t after) const {
    const uint64_t from = after < before ? 0 : before;  // it began anew
    return seconds_ > 0 ? static_cast<double>(after - from) / seconds_ : 0;
  }

 private:
  const double seconds_;
};

std::string NameOf(const control::SessionStatus& session) {
  return session.job_id() + "." + std::to_string(session.rank());
}

// Counters by scope and name.
using CounterMap = std::map<std::pair<std::string, std::string>, uint64_t>;

CounterMap ByName(const control::CountersReply& reply) {
  CounterMap map;
  for (const control::CounterValue& counter : reply.counters()) {
    map[{counter.scope(), counter.name()}] = counter.value();
  }
  return map;
}

uint64_t Find(const CounterMap& map, const std::string& scope, const std::string& name) {
  const auto found = map.find({scope, name});
  return found == map.end() ? 0 : found->second;
}

void AddSessions(const TopSample& before, const TopSample& after, const Clock& clock,
                 TopRates* rates) {
  std::map<std::string, const control::SessionStatus*> old;
  for (const control::SessionStatus& session : before.sessions.sessions()) {
    // A session of the same name but another process is another rank.
    old[NameOf(session) + "/" + std::to_string(session.pid())] = &session;
  }
  const CounterMap old_counters = ByName(before.counters);
  const CounterMap counters = ByName(after.counters);
  static const control::SessionStatus kNone;
  for (const control::SessionStatus& now : after.sessions.sessions()) {
    const auto found = old.find(NameOf(now) + "/" + std::to_string(now.pid()));
    const control::SessionStatus& then = found == old.end() ? kNone : *found->second;
    const std::string scope = "job " + now.job_id() + " rank " + std::to_string(now.rank());
    const auto counted = [&](const char* name) {
      return clock.Rate(Find(old_counters, scope, name), Find(counters, scope, name));
    };
    SessionRates& session = rates->sessions.emplace_back();
    session.name = NameOf(now);
    session.state = now.state();
    session.sent_messages = clock.Rate(then.messages_sent(), now.messages_sent());
    session.sent_bytes = clock.Rate(then.bytes_sent(), now.bytes_sent());
    session.received_messages = clock.Rate(then.messages_received(), now.messages_received());
    session.received_bytes = clock.Rate(then.bytes_received(), now.bytes_received());
    session.errors = counted("errors");
    session.queued_sends = counted("sends_queued");
    session.queued = now.queued();
    session.credits_out = now.credits_out();
    session.unexpected = now.unexpected();
    session.unfinished = now.requests();
    session.poison = now.poison();
    session.calls = now.calls();
  }
}

void AddPaths(const TopSample& before, const TopSample& after, const Clock& clock,
              TopRates* rates) {
  const CounterMap old = ByName(before.counters);
  std::map<std::string, PathRates> paths;
  for (const control::CounterValue& counter : after.counters.counters()) {
    const std::string_view name = counter.name();
    const bool messages = name.ends_with(kMessagesSuffix);
    if (!name.starts_with(kPathPrefix) || (!messages && !name.ends_with(kBytesSuffix)) ||
        counter.value() == 0) {
      continue;
    }
    const size_t suffix = (messages ? kMessagesSuffix : kBytesSuffix).size();
    const std::string path(
        name.substr(kPathPrefix.size(), name.size() - kPathPrefix.size() - suffix));
    const double rate = clock.Rate(Find(old, counter.scope(), counter.name()), counter.value());
    PathRates& entry = paths[path];
    entry.path = path;
    (messages ? entry.messages : entry.bytes) += rate;
  }
  for (auto& [name, entry] : paths) {
    rates->paths.push_back(std::move(entry));
  }
}

void AddNics(const TopSample& before, const TopSample& after, const Clock& clock, TopRates* rates) {
  static const control::NicStatus kNone;
  for (int i = 0; i < after.nics.nics_size(); ++i) {
    const control::NicStatus& now = after.nics.nics(i);
    const control::NicStatus& then = i < before.nics.nics_size() ? before.nics.nics(i) : kNone;
    rates->nic_sent_messages += clock.Rate(then.messages_sent(), now.messages_sent());
    rates->nic_sent_bytes += clock.Rate(then.bytes_sent(), now.bytes_sent());
    rates->nic_received_messages += clock.Rate(then.messages_received(), now.messages_received());
    rates->nic_received_bytes += clock.Rate(then.bytes_received(), now.bytes_received());
    rates->nic_errors += clock.Rate(then.errors(), now.errors());
    rates->nic_outstanding += now.outstanding();
    rates->staging_blocks += now.staging_blocks();
    rates->staging_busy += now.staging_busy();
    rates->staging_waits += now.staging_waits();
  }
}

using nlohmann::ordered_json;

// "0", "3.2", "850", "12.5 k", "3.1 M".
std::string CountText(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const bool whole = value >= 99.95 || value == std::floor(value);
  std::snprintf(text, sizeof(text), whole ? "%.0f%s" : "%.1f%s", value, kUnits[unit]);
  return text;
}

std::string BytesRate(double value) { return BytesText(static_cast<uint64_t>(value)); }

// A column of the ranks' table.
struct RankColumn {
  Column column;
  std::string (*text)(const SessionRates&);
  bool (*is_shown)(const SessionRates&) = nullptr;  // of any rank; null: always
};

const RankColumn kRankColumns[] = {
    {{"RANK"}, [](const SessionRates& s) { return s.name; }},
    {{"STATE", Align::kLeft, true},
     [](const SessionRates& s) { return s.poison.empty() ? s.state : s.poison; }},
    {{"SENT/s", Align::kRight}, [](const SessionRates& s) { return CountText(s.sent_messages); }},
    {{"OUT/s", Align::kRight}, [](const SessionRates& s) { return BytesRate(s.sent_bytes); }},
    {{"RECEIVED/s", Align::kRight},
     [](const SessionRates& s) { return CountText(s.received_messages); }},
    {{"IN/s", Align::kRight}, [](const SessionRates& s) { return BytesRate(s.received_bytes); }},
    {{"OPEN", Align::kRight}, [](const SessionRates& s) { return std::to_string(s.unfinished); }},
    {{"QUEUED", Align::kRight},
     [](const SessionRates& s) { return std::to_string(s.queued); },
     [](const SessionRates& s) { return s.queued != 0; }},
    {{"CREDITS OUT", Align::kRight},
     [](const SessionRates& s) { return std::to_string(s.credits_out); },
     [](const SessionRates& s) { return s.credits_out != 0; }},
    {{"UNEXPECTED", Align::kRight},
     [](const SessionRates& s) { return std::to_string(s.unexpected); },
     [](const SessionRates& s) { return s.unexpected != 0; }},
    {{"ERRORS/s", Align::kRight},
     [](const SessionRates& s) { return CountText(s.errors); },
     [](const SessionRates& s) { return s.errors != 0; }},
    {{"WAITS IN"},
     [](const SessionRates& s) { return CallsText(s.calls); },
     [](const SessionRates& s) { return !s.calls.empty(); }},
};

constexpr size_t kMostBusy = 24;  // so many of many ranks have a line

// "1024 ranks: 1024 joined; out 3.2 MiB/s, in 3.1 MiB/s; 1023 wait in MPI_Recv".
std::string SumText(const std::vector<SessionRates>& sessions) {
  std::map<std::string, int64_t> states;
  std::map<std::string, int64_t> calls;
  double out = 0;
  double in = 0;
  for (const SessionRates& session : sessions) {
    ++states[session.poison.empty() ? session.state : session.poison];
    out += session.sent_bytes;
    in += session.received_bytes;
    if (!session.calls.empty()) {
      ++calls[session.calls[0].name()];
    }
  }
  std::string text = Counted(static_cast<int64_t>(sessions.size()), "rank");
  const char* before = ": ";
  for (const auto& [state, count] : states) {
    text += before + std::to_string(count) + " " + state;
    before = ", ";
  }
  text += "; out " + BytesRate(out) + "/s, in " + BytesRate(in) + "/s";
  before = "; ";
  for (const auto& [call, count] : calls) {
    text += before + Counted(count, "waits in ", "wait in ") + call;
    before = ", ";
  }
  return text + "\n";
}

// Orders the sessions: those with errors come first, then those that move most.
std::vector<const SessionRates*> ByImportance(const std::vector<SessionRates>& sessions) {
  std::vector<const SessionRates*> order;
  for (const SessionRates& session : sessions) {
    order.push_back(&session);
  }
  const auto weight = [](const SessionRates* session) {
    return std::make_tuple(session->errors + (session->poison.empty() ? 0 : 1),
                           session->sent_bytes + session->received_bytes,
                           session->sent_messages + session->received_messages);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return weight(a) > weight(b); });
  return order;
}

std::string Sessions(const TopRates& rates, bool all, const Terminal& terminal) {
  std::vector<const RankColumn*> shown;
  std::vector<Column> columns;
  for (const RankColumn& column : kRankColumns) {
    if (column.is_shown == nullptr ||
        std::any_of(rates.sessions.begin(), rates.sessions.end(), column.is_shown)) {
      shown.push_back(&column);
      columns.push_back(column.column);
    }
  }
  Table table(std::move(columns));
  const auto add = [&](const SessionRates& session) {
    std::vector<std::string> cells;
    for (const RankColumn* column : shown) {
      cells.push_back(column->text(session));
    }
    table.AddRow(std::move(cells));
  };
  if (all || rates.sessions.size() <= kMostRanksListed) {
    std::for_each(rates.sessions.begin(), rates.sessions.end(), add);
    return table.empty() ? "no rank is attached\n" : table.FittedText(terminal);
  }
  std::vector<const SessionRates*> busiest = ByImportance(rates.sessions);
  busiest.resize(kMostBusy);
  for (const SessionRates* const session : busiest) {
    add(*session);
  }
  return SumText(rates.sessions) + "the busiest:\n" + table.FittedText(terminal) + "and " +
         std::to_string(rates.sessions.size() - kMostBusy) + " more " + kHowToListAll;
}

std::string Paths(const TopRates& rates, const Terminal& terminal) {
  Table table({{"PATH"}, {"MESSAGES/s", Align::kRight}, {"BYTES/s", Align::kRight}});
  for (const PathRates& path : rates.paths) {
    table.AddRow({path.path, CountText(path.messages), BytesRate(path.bytes)});
  }
  return table.empty() ? "" : "\n" + table.Text(terminal);
}

std::string Daemon(const control::StatusReply& status, const TopRates& rates,
                   const Terminal& terminal) {
  char cpu[32];
  std::snprintf(cpu, sizeof(cpu), "%.1f %%", 100 * rates.cpu_share);
  return "node " + status.node().name() + ": " + Coloured(status.state(), terminal) + ", up " +
         DurationText(status.uptime_ms()) + "\nferryd uses " + cpu + " of a core and " +
         BytesText(status.resident_bytes()) + "\nnetwork: out " +
         CountText(rates.nic_sent_messages) + "/s, " + BytesRate(rates.nic_sent_bytes) + "/s; in " +
         CountText(rates.nic_received_messages) + "/s, " + BytesRate(rates.nic_received_bytes) +
         "/s\n         " + std::to_string(rates.nic_outstanding) + " outstanding, " +
         CountText(rates.nic_errors) + " errors/s\nstaging: " + std::to_string(rates.staging_busy) +
         " of " + std::to_string(rates.staging_blocks) + " blocks busy, " +
         std::to_string(rates.staging_waits) + " transfers wait\n\n";
}

ordered_json Json(const control::StatusReply& status, const TopRates& rates) {
  ordered_json json = {{"node", status.node().name()},
                       {"seconds", rates.seconds},
                       {"cpu_share", rates.cpu_share},
                       {"resident_bytes", status.resident_bytes()}};
  json["nic"] = {{"sent_messages_per_second", rates.nic_sent_messages},
                 {"sent_bytes_per_second", rates.nic_sent_bytes},
                 {"received_messages_per_second", rates.nic_received_messages},
                 {"received_bytes_per_second", rates.nic_received_bytes},
                 {"errors_per_second", rates.nic_errors},
                 {"outstanding", rates.nic_outstanding}};
  json["staging"] = {{"blocks", rates.staging_blocks},
                     {"busy", rates.staging_busy},
                     {"waits", rates.staging_waits}};
  json["sessions"] = ordered_json::array();
  for (const SessionRates& session : rates.sessions) {
    json["sessions"].push_back({{"name", session.name},
                                {"state", session.state},
                                {"sent_messages_per_second", session.sent_messages},
                                {"sent_bytes_per_second", session.sent_bytes},
                                {"received_messages_per_second", session.received_messages},
                                {"received_bytes_per_second", session.received_bytes},
                                {"errors_per_second", session.errors},
                                {"queued_sends_per_second", session.queued_sends},
                                {"unfinished", session.unfinished},
                                {"queued", session.queued},
                                {"credits_out", session.credits_out},
                                {"unexpected", session.unexpected},
                                {"poison", session.poison},
                                {"calls", CallsJson(session.calls)}});
  }
  json["paths"] = ordered_json::array();
  for (const PathRates& path : rates.paths) {
    json["paths"].push_back({{"path", path.path},
                             {"messages_per_second", path.messages},
                             {"bytes_per_second", path.bytes}});
  }
  return json;
}

}  // namespace

TopRates RatesBetween(const TopSample& before, const TopSample& after) {
  TopRates rates;
  if (after.time_ns > before.time_ns) {
    rates.seconds = static_cast<double>(after.time_ns - before.time_ns) / 1e9;
  }
  const Clock clock(rates.seconds);
  rates.cpu_share = clock.Rate(before.status.cpu_time_us(), after.status.cpu_time_us()) / 1e6;
  AddSessions(before, after, clock, &rates);
  AddPaths(before, after, clock, &rates);
  AddNics(before, after, clock, &rates);
  return rates;
}

View TopView(const control::StatusReply& status, const TopRates& rates, bool all,
             const Terminal& terminal) {
  return {Json(status, rates), Daemon(status, rates, terminal) + Sessions(rates, all, terminal) +
                                   Paths(rates, terminal)};
}

}  // namespace ferry::tools
