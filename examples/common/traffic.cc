#include "examples/common/traffic.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>

namespace examples {
namespace {

constexpr int kTrafficTag = 100;

struct PathTraffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

// Takes "path_NAME_messages" and "path_NAME_bytes" apart; `text` becomes NAME.
bool IsPathCounter(std::string_view* text, std::string_view unit) {
  constexpr std::string_view kPrefix = "path_";
  if (!text->starts_with(kPrefix) || !text->ends_with(unit)) {
    return false;
  }
  text->remove_prefix(kPrefix.size());
  text->remove_suffix(unit.size());
  return true;
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Collective: the sum of the ranks' vectors; known to rank 0.
std::vector<uint64_t> Sum(const ferry::Session& session, const std::vector<uint64_t>& mine) {
  const size_t size_bytes = mine.size() * sizeof(uint64_t);
  std::vector<uint64_t> sum(mine.size());
  ferry::Request send = ferry::Request::Send(mine.data(), size_bytes, 0, kTrafficTag);
  for (int rank = 0; session.rank() == 0 && rank < session.size(); ++rank) {
    std::vector<uint64_t> theirs(mine.size());
    ferry::Request::Receive(theirs.data(), size_bytes, rank, kTrafficTag).Wait();
    std::transform(sum.begin(), sum.end(), theirs.begin(), sum.begin(), std::plus<>());
  }
  send.Wait();
  return sum;
}

}  // namespace

std::vector<uint64_t> ReadCounters() {
  std::vector<uint64_t> counters(static_cast<size_t>(ferry_counter_count()));
  for (size_t i = 0; i < counters.size(); ++i) {
    counters[i] = ferry_counter_value(static_cast<int>(i));
  }
  return counters;
}

std::vector<uint64_t> TrafficSince(const ferry::Session& session,
                                   const std::vector<uint64_t>& before) {
  std::vector<uint64_t> mine = ReadCounters();
  for (size_t i = 0; i < mine.size(); ++i) {
    mine[i] -= before[i];
  }
  return Sum(session, mine);
}

uint64_t SumOfRanks(const ferry::Session& session, uint64_t value) {
  return Sum(session, {value}).front();
}

std::string NodesText(const ferry::Session& session) {
  const int nodes = ferry_node_of(session.size() - 1) + 1;
  return std::to_string(nodes) + (nodes == 1 ? " node" : " nodes");
}

std::string TrafficText(const std::vector<uint64_t>& traffic) {
  std::map<std::string, PathTraffic, std::less<>> paths;
  PathTraffic all;
  for (size_t i = 0; i < traffic.size(); ++i) {
    std::string_view name = ferry_counter_name(static_cast<int>(i));
    if (IsPathCounter(&name, "_messages")) {
      paths[std::string(name)].messages += traffic[i];
      all.messages += traffic[i];
    } else if (IsPathCounter(&name, "_bytes")) {
      paths[std::string(name)].bytes += traffic[i];
      all.bytes += traffic[i];
    }
  }
  char line[128];
  std::string text;
  const auto add = [&](const char* name, const PathTraffic& path) {
    std::snprintf(line, sizeof(line), "  %-12s %10llu %6.1f %% %14llu %6.1f %%\n", name,
                  static_cast<unsigned long long>(path.messages),
                  Percent(path.messages, all.messages), static_cast<unsigned long long>(path.bytes),
                  Percent(path.bytes, all.bytes));
    text += line;
  };
  std::snprintf(line, sizeof(line), "  %-12s %10s %8s %14s %8s\n", "path", "messages", "share",
                "bytes", "share");
  text += line;
  for (const auto& [name, path] : paths) {
    if (path.messages > 0) {
      add(name.c_str(), path);
    }
  }
  add("all", all);
  return text;
}

}  // namespace examples
