#include "tools/top/screen.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tools/display/table.h"

namespace ferry::tools {
namespace {

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
};

std::string Sessions(const TopRates& rates, const Terminal& terminal) {
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
  for (const SessionRates& session : rates.sessions) {
    std::vector<std::string> cells;
    for (const RankColumn* column : shown) {
      cells.push_back(column->text(session));
    }
    table.AddRow(std::move(cells));
  }
  return table.empty() ? "no rank is attached\n" : table.FittedText(terminal);
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
                                {"poison", session.poison}});
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

View TopView(const control::StatusReply& status, const TopRates& rates, const Terminal& terminal) {
  return {Json(status, rates),
          Daemon(status, rates, terminal) + Sessions(rates, terminal) + Paths(rates, terminal)};
}

}  // namespace ferry::tools
