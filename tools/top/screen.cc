#include "tools/top/screen.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "tools/ferryctl/table.h"

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

std::string Sessions(const TopRates& rates) {
  Table table({{"RANK"},
               {"STATE"},
               {"SENT/s", Align::kRight},
               {"BYTES/s", Align::kRight},
               {"RECEIVED/s", Align::kRight},
               {"BYTES/s", Align::kRight},
               {"UNFINISHED", Align::kRight},
               {"QUEUED", Align::kRight},
               {"CREDITS OUT", Align::kRight},
               {"UNEXPECTED", Align::kRight},
               {"ERRORS/s", Align::kRight}});
  for (const SessionRates& session : rates.sessions) {
    table.AddRow({session.name, session.poison.empty() ? session.state : session.poison,
                  CountText(session.sent_messages), BytesRate(session.sent_bytes),
                  CountText(session.received_messages), BytesRate(session.received_bytes),
                  std::to_string(session.unfinished), std::to_string(session.queued),
                  std::to_string(session.credits_out), std::to_string(session.unexpected),
                  CountText(session.errors)});
  }
  return table.empty() ? "no rank is attached\n" : table.Text();
}

std::string Paths(const TopRates& rates) {
  Table table({{"PATH"}, {"MESSAGES/s", Align::kRight}, {"BYTES/s", Align::kRight}});
  for (const PathRates& path : rates.paths) {
    table.AddRow({path.path, CountText(path.messages), BytesRate(path.bytes)});
  }
  return table.empty() ? "" : "\n" + table.Text();
}

std::string Daemon(const control::StatusReply& status, const TopRates& rates) {
  char cpu[32];
  std::snprintf(cpu, sizeof(cpu), "%.1f %%", 100 * rates.cpu_share);
  return "node " + status.node().name() + ": " + status.state() + ", up " +
         DurationText(status.uptime_ms()) + "; ferryd uses " + cpu + " of a core and " +
         BytesText(status.resident_bytes()) + "\nnetwork: out " +
         CountText(rates.nic_sent_messages) + "/s, " + BytesRate(rates.nic_sent_bytes) + "/s; in " +
         CountText(rates.nic_received_messages) + "/s, " + BytesRate(rates.nic_received_bytes) +
         "/s; " + std::to_string(rates.nic_outstanding) + " outstanding, " +
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

View TopView(const control::StatusReply& status, const TopRates& rates) {
  return {Json(status, rates), Daemon(status, rates) + Sessions(rates) + Paths(rates)};
}

}  // namespace ferry::tools
