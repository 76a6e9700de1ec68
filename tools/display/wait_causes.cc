#include "tools/display/wait_causes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "common/counted.h"
#include "tools/display/rank_groups.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostCausesTold = 8;  // of a job

// Where the waits of a rank lead to, as one daemon has told it.
struct Way {
  const control::RankWait* wait = nullptr;
  uint32_t end = 0;
  uint32_t steps = 0;
};
using Ways = std::map<uint32_t, Way>;  // by rank

Way WayOf(const control::RankWait& wait) {
  const auto& chain = wait.chain();
  Way way{&wait, wait.rank(), 0};
  if (chain.empty()) {
    return way;
  }
  way.end = chain[chain.size() - 1];
  way.steps = static_cast<uint32_t>(chain.size() - 1);
  if (wait.deadlock()) {  // it ends where the circle closes
    way.end = *std::min_element(std::find(chain.begin(), chain.end(), way.end), chain.end());
    way.steps = way.end == wait.rank() ? 0 : way.steps;
  }
  return way;
}

struct Root {
  uint32_t rank = 0;
  uint32_t steps = 0;
};

// A circle that no daemon is certain of ends at its smallest rank, too.
Root RootOf(const Ways& ways, uint32_t rank) {
  Root root{rank, 0};
  std::vector<uint32_t> path;
  for (auto at = ways.find(rank); at != ways.end(); at = ways.find(root.rank)) {
    const auto before = std::find(path.begin(), path.end(), at->first);
    if (before != path.end()) {
      root.rank = *std::min_element(before, path.end());
      break;
    }
    path.push_back(at->first);
    const Way& way = at->second;
    root = {way.end, root.steps + way.steps};
    if (way.wait->deadlock() || way.end == at->first) {
      break;
    }
  }
  return root;
}

// Waits that began about the same time have the same class: their order does not change from look
// to look.
int AgeClass(uint64_t age_ms) { return std::bit_width(age_ms / 1000); }

// ---- Text ----

std::string CauseText(const WaitCause& cause, const Terminal& terminal) {
  const auto count = static_cast<int64_t>(cause.waiting.size());
  const std::string which = " (" + RanksText(cause.waiting) + ")";
  const std::string text =
      cause.is_deadlock
          ? Counted(count, "rank is", "ranks are") + which + " in a circle or wait for it:\n"
          : Counted(count, "rank waits", "ranks wait") + which + " for rank " +
                std::to_string(cause.rank) + (count == 1 ? "" : ", directly or through others") +
                ":\n";
  return "\n" + text + "  " + Coloured(cause.nearest->verdict(), terminal) + ", for " +
         DurationText(cause.nearest->waits_ms()) + "\n";
}

std::string CausesText(const std::string& job, const std::vector<const control::RankWait*>& waits,
                       const Terminal& terminal) {
  std::string text;
  const std::vector<WaitCause> causes = CausesOf(waits);
  const size_t told = std::min(causes.size(), kMostCausesTold);
  for (size_t i = 0; i < told; ++i) {
    text += CauseText(causes[i], terminal);
  }
  std::vector<uint32_t> others;
  for (size_t i = told; i < causes.size(); ++i) {
    others.insert(others.end(), causes[i].waiting.begin(), causes[i].waiting.end());
  }
  if (!others.empty()) {
    text += "\nand " +
            Counted(static_cast<int64_t>(others.size()), "more rank waits", "more ranks wait") +
            " for others: " + RanksText(others) + "\n";
  }
  return text.empty() ? "" : "\njob " + job + ":" + text;
}

}  // namespace

std::vector<WaitCause> CausesOf(const std::vector<const control::RankWait*>& waits) {
  Ways ways;
  for (const control::RankWait* const wait : waits) {
    ways[wait->rank()] = WayOf(*wait);
  }
  std::map<uint32_t, WaitCause> causes;
  std::map<uint32_t, uint32_t> least;  // steps of the nearest
  for (const auto& [rank, way] : ways) {
    const Root root = RootOf(ways, rank);
    WaitCause& cause = causes[root.rank];
    if (cause.nearest == nullptr || root.steps < least[root.rank]) {
      least[root.rank] = root.steps;
      cause.nearest = way.wait;
      cause.is_deadlock = way.wait->deadlock();
    }
    cause.rank = root.rank;
    cause.waiting.push_back(rank);
    cause.longest_ms = std::max(cause.longest_ms, uint64_t{way.wait->waits_ms()});
  }
  std::vector<WaitCause> order;
  for (auto& [rank, cause] : causes) {
    order.push_back(std::move(cause));
  }
  std::stable_sort(order.begin(), order.end(), [](const WaitCause& a, const WaitCause& b) {
    return std::make_tuple(a.is_deadlock, a.waiting.size(), AgeClass(a.longest_ms)) >
           std::make_tuple(b.is_deadlock, b.waiting.size(), AgeClass(b.longest_ms));
  });
  return order;
}

std::string WaitGroups(const control::WhyReply& reply, const Terminal& terminal) {
  struct Group {
    std::vector<uint32_t> ranks;
    uint64_t longest_ms = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;  // by job and state
  std::map<std::string, std::vector<const control::RankWait*>> waits;
  for (const control::RankWait& rank : reply.ranks()) {
    Group& group = groups[{rank.job_id(), rank.state()}];
    group.ranks.push_back(rank.rank());
    if (rank.state() == "waits") {
      group.longest_ms = std::max(group.longest_ms, uint64_t{rank.waits_ms()});
      waits[rank.job_id()].push_back(&rank);
    }
  }
  Table table({{"JOB"},
               {"STATE", Align::kLeft, true},
               {"RANKS", Align::kRight},
               {"LONGEST", Align::kRight},
               {"WHICH"}});
  for (const auto& [key, group] : groups) {
    table.AddRow({key.first, key.second, std::to_string(group.ranks.size()),
                  key.second == "waits" ? DurationText(group.longest_ms) : "",
                  RanksText(group.ranks)});
  }
  std::string text = table.Text(terminal);
  for (const auto& [job, ranks] : waits) {
    text += CausesText(job, ranks, terminal);
  }
  return text + kHowToListAll;
}

}  // namespace ferry::tools
