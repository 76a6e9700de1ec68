#include <array>
#include <cstdio>
#include <string>

#include "coll/algorithms/selection_file.h"
#include "common/version.h"
#include "config/environment.h"
#include "tools/display/table.h"
#include "tools/tune/collective_tune.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

std::string Microseconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value < 100 ? "%.1f" : "%.0f", value);
  return text.data();
}

std::string NameOf(const Candidate& candidate) {
  return candidate.algorithm +
         (candidate.segment_bytes == 0 ? "" : ":" + std::to_string(candidate.segment_bytes));
}

}  // namespace

std::string CollectiveFile(const CollectiveResult& result) {
  return "# Algorithms of MPI's collectives, measured on " + config::HostName() +
         " by\n#   ferryctl tune --collectives --job \"" + result.job + "\"\n# of Ferry " +
         kFerryVersion +
         ". For jobs: option collective_table. Where no rule matches, the built-in ones "
         "count.\n\n" +
         FormatSelectionRules(result.rules);
}

std::string CollectiveText(const CollectiveResult& result) {
  Table table({{"COLLECTIVE"},
               {"NODES"},
               {"RANKS", Align::kRight},
               {"SIZE", Align::kRight},
               {"BEST"},
               {"us", Align::kRight},
               {"WITHOUT A TABLE"},
               {"us", Align::kRight}});
  for (const Comparison& one : result.comparisons) {
    const bool is_same = one.best == one.built_in;
    table.AddRow({CollectiveName(one.collective), NodeLayoutName(one.layout),
                  std::to_string(one.ranks), BytesText(one.size_bytes), NameOf(one.best),
                  Microseconds(one.best_us), is_same ? "the same" : NameOf(one.built_in),
                  is_same || one.built_in_us == 0 ? "" : Microseconds(one.built_in_us)});
  }
  return table.Text();
}

ordered_json CollectiveJson(const CollectiveResult& result) {
  ordered_json cases = ordered_json::array();
  for (const Comparison& one : result.comparisons) {
    cases.push_back({{"collective", CollectiveName(one.collective)},
                     {"nodes", NodeLayoutName(one.layout)},
                     {"ranks", one.ranks},
                     {"size_bytes", one.size_bytes},
                     {"algorithm", one.best.algorithm},
                     {"segment_bytes", one.best.segment_bytes},
                     {"us", one.best_us},
                     {"built_in_algorithm", one.built_in.algorithm},
                     {"built_in_segment_bytes", one.built_in.segment_bytes},
                     {"built_in_us", one.built_in_us}});
  }
  return {{"job", result.job}, {"cases", cases}, {"rules", result.rules.size()}};
}

}  // namespace ferry::tools
