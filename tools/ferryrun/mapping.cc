#include "tools/ferryrun/mapping.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "common/number_text.h"
#include "common/topology/cpu_set.h"

namespace ferry::tools {
namespace {

struct UnitWord {
  std::string_view word;
  Unit unit;
};
constexpr UnitWord kUnits[] = {
    {"hwthread", Unit::kThread}, {"thread", Unit::kThread}, {"core", Unit::kCore},
    {"l3cache", Unit::kCache},   {"numa", Unit::kNuma},     {"socket", Unit::kSocket},
    {"package", Unit::kSocket},  {"node", Unit::kNode},     {"machine", Unit::kNode},
};

// Words of other launchers, and what says the same here, or nearly so.
struct OtherWord {
  std::string_view word;
  std::string_view instead;
};
constexpr OtherWord kOtherWords[] = {
    {"l1cache", "every core has its own: core"},
    {"l2cache", "most cores have their own: core"},
    {"board", "socket or none"},
    {"rr", "hwthread"},
    {"user",
     "a program for each list of CPUs, as in ferryrun --bind-to none -n 1 taskset -c 0 ./program : "
     "-n 1 taskset -c 4 ./program"},
    {"cpu-list", "taskset -c LIST ferryrun ... keeps ranks to the CPUs of a list"},
    {"pe-list", "taskset -c LIST ferryrun ... keeps ranks to the CPUs of a list"},
    {"seq", "slot with -host a,b,a, which names hosts in the order of their turns"},
    {"sequential", "slot with -host a,b,a, which names hosts in the order of their turns"},
    {"dist", "slot, with which ranks are put near their GPUs"},
    {"distance", "slot, with which ranks are put near their GPUs"},
    {"rankfile", "slot, and -rankfile FILE"},
};

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// The words between the separators; at least one, which may be empty.
std::vector<std::string_view> SplitAt(std::string_view separators, std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t end = text.find_first_of(separators);
    words.push_back(text.substr(0, end));
    if (end == text.npos) {
      return words;
    }
    text.remove_prefix(end + 1);
  }
}

std::optional<Unit> FindUnit(std::string_view word) {
  const auto* const found =
      std::find_if(std::begin(kUnits), std::end(kUnits),
                   [word](const UnitWord& known) { return known.word == word; });
  return found == std::end(kUnits) ? std::nullopt : std::optional(found->unit);
}

// Refuses a word, with what to say instead if other launchers know it, else with those there are.
Status UnknownWord(const std::string& flag_and_value, std::string_view word,
                   const std::string& known) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const OtherWord& other : kOtherWords) {
    if (other.word == name) {
      return Refuse(flag_and_value + ": ferryrun has no " + std::string(name) + "; say " +
                    std::string(other.instead));
    }
  }
  return Refuse(flag_and_value + ": it knows " + known);
}

// How many CPUs or units a rank may be given; 0: it is no such number.
uint64_t WidthIn(std::string_view text) {
  const uint64_t width = NumberIn<uint64_t>(text).value_or(0);
  return width <= topology::kMaxCpus ? width : 0;
}

// Reads a word that follows a rule behind a colon.
Status ReadModifier(std::string_view word, const std::string& rule, Mapping* mapping) {
  if (word.starts_with("pe=")) {
    mapping->width = WidthIn(word.substr(3));
    return mapping->width > 0 ? Status()
                              : Refuse(rule + ": '" + std::string(word.substr(3)) +
                                       "' is no number of cores for each rank");
  }
  if (word == "oversubscribe" || word == "nooversubscribe") {
    mapping->oversubscribes = word == "oversubscribe";
    return {};
  }
  if (word == "hwtcpus" || word == "corecpus") {
    mapping->threads_are_cpus = word == "hwtcpus";
    return {};
  }
  // Programs that are spawned, and words that only name what is so in any case.
  if (word == "inherit" || word == "noinherit" || word == "ordered") {
    return {};
  }
  if (word == "span") {
    return Refuse(rule +
                  ": SPAN deals ranks out over all nodes at once; --map-by node takes nodes in "
                  "turn, and --map-by ppr:N:numa puts N on each NUMA node");
  }
  if (word == "nolocal") {
    return Refuse(rule + ": -hosts names the hosts to run on, without this one");
  }
  if (NumberIn<uint64_t>(word)) {
    return Refuse(rule + ": " + std::string(word) +
                  " cores for each rank are --map-by slot:PE=" + std::string(word));
  }
  return Refuse(rule + ": '" + std::string(word) +
                "' is none of PE=N, OVERSUBSCRIBE, NOOVERSUBSCRIBE, HWTCPUS, CORECPUS");
}

// "ppr:N:UNIT", as words.
Status ReadPerUnit(const std::vector<std::string_view>& words, const std::string& rule,
                   Mapping* mapping) {
  const std::string_view number = words.size() > 1 ? words[1] : "";
  mapping->count = NumberIn<uint64_t>(number).value_or(0);
  if (mapping->count == 0 || mapping->count > UINT32_MAX) {
    return Refuse(rule + ": '" + std::string(number) + "' is no number of ranks per node or unit");
  }
  const std::optional<Unit> unit = words.size() > 2 ? FindUnit(words[2]) : std::nullopt;
  if (!unit) {
    return UnknownWord(
        rule, words.size() > 2 ? words[2] : "",
        "ranks per node, socket, numa, l3cache, core and hwthread, as in ppr:2:socket");
  }
  mapping->by = Mapping::By::kCount;
  mapping->wraps = false;
  if (*unit != Unit::kNode) {
    mapping->unit = unit;
    mapping->per_unit = mapping->count;
  }
  return {};
}

}  // namespace

std::string_view NameOf(Unit unit) {
  return std::find_if(std::begin(kUnits), std::end(kUnits),
                      [unit](const UnitWord& known) { return known.unit == unit; })
      ->word;
}

std::string_view NounOf(Unit unit) {
  return unit == Unit::kThread  ? "hardware thread"
         : unit == Unit::kNuma  ? "NUMA node"
         : unit == Unit::kCache ? "L3 cache"
                                : NameOf(unit);
}

Binding ParseBinding(std::string_view name) {
  return name == "none"       ? Binding::kNone
         : name == "hwthread" ? Binding::kThread
         : name == "core"     ? Binding::kCore
         : name == "l3cache"  ? Binding::kCache
         : name == "numa"     ? Binding::kNuma
         : name == "socket"   ? Binding::kSocket
                              : Binding::kAuto;
}

StatusOr<Mapping> ParseMapping(std::string_view text) {
  const std::string lower = Lower(text);
  const std::string rule = "--map-by " + std::string(text);
  const std::vector<std::string_view> words = SplitAt(":,", lower);
  Mapping mapping;
  size_t modifiers = 1;
  if (words[0] == "ppr") {
    modifiers = 3;
    FERRY_RETURN_IF_ERROR(ReadPerUnit(words, rule, &mapping));
  } else if (const std::optional<Unit> unit = FindUnit(words[0])) {
    if (*unit == Unit::kNode) {
      mapping.by = Mapping::By::kNode;
    } else {
      mapping.unit = unit;
    }
  } else if (words[0] != "slot" && !(words[0].empty() && words.size() > 1)) {
    return UnknownWord(rule, words[0],
                       "slot, node, socket, numa, l3cache, core, hwthread and ppr:N:UNIT, each "
                       "with :PE=N for N cores a rank");
  }
  for (size_t i = modifiers; i < words.size(); ++i) {
    FERRY_RETURN_IF_ERROR(ReadModifier(words[i], rule, &mapping));
  }
  return mapping;
}

Status ParseOrder(std::string_view text, Mapping* mapping) {
  const std::string lower = Lower(text);
  const std::string rule = "--rank-by " + std::string(text);
  if (lower == "slot" || lower == "fill") {
    mapping->order = lower == "slot" ? Mapping::Order::kSlot : Mapping::Order::kFill;
    return {};
  }
  if (lower == "span") {
    return Refuse(rule + ": say the unit to take in turn, as in --rank-by numa or --rank-by node");
  }
  const std::optional<Unit> unit = FindUnit(lower);
  if (!unit) {
    return UnknownWord(rule, lower, "slot, node, fill, socket, numa, l3cache, core and hwthread");
  }
  mapping->order = Mapping::Order::kUnit;
  mapping->order_unit = *unit;
  return {};
}

StatusOr<BindTo> ParseBindTo(std::string_view text) {
  const std::string lower = Lower(text);
  const std::string rule = "--bind-to " + std::string(text);
  const std::vector<std::string_view> words = SplitAt(":", lower);
  const std::optional<Unit> unit = FindUnit(words[0]);
  BindTo bind_to;
  if (words[0] == "auto" || words[0] == "none" || unit == Unit::kNode) {
    bind_to.name = words[0] == "auto" ? "auto" : "none";
  } else if (unit) {
    bind_to.name = NameOf(*unit);
  } else {
    return UnknownWord(rule, words[0], "auto, none, core, socket, numa, l3cache and hwthread");
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "if-supported" || words[i] == "ordered") {
      continue;
    }
    if (words[i] == "overload-allowed") {
      return Refuse(rule +
                    ": ranks that share cores are bound to something larger, as with "
                    "--bind-to numa, or to none");
    }
    bind_to.width = WidthIn(words[i]);
    if (bind_to.width == 0 || bind_to.name == "auto" || bind_to.name == "none") {
      return Refuse(rule + ": '" + std::string(words[i]) +
                    "' is no number of cores, or of what else a rank is bound to");
    }
  }
  return bind_to;
}

}  // namespace ferry::tools
