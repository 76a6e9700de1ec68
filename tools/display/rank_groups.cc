#include "tools/display/rank_groups.h"

#include <algorithm>
#include <map>
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

using Key = std::pair<std::string, std::string>;  // job, and state or call

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

}  // namespace ferry::tools
