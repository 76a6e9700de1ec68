#include "tools/ferryrun/rankfile.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "common/counted.h"
#include "common/number_text.h"
#include "tools/ferryrun/node_list.h"

namespace ferry::tools {
namespace {

using topology::CpuSet;
using topology::Machine;

constexpr uint32_t kMostRanks = 1'048'576;  // of any job
constexpr std::string_view kSlot = "slot=";
constexpr std::string_view kHostNumber = "+n";

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// "3", "3-5", or "*", for all.
struct Numbers {
  uint64_t first = 0;
  uint64_t last = 0;
  bool all = false;
};

// CPUs of some sockets, or of the node.
struct SlotGroup {
  std::optional<Numbers> sockets;
  std::vector<Numbers> cpus;
};

// `letter`: may stand before the numbers, as Open MPI has it.
StatusOr<Numbers> ReadNumbers(std::string_view text, char letter) {
  if (!text.empty() && (text[0] | 0x20) == letter) {
    text.remove_prefix(1);
  }
  if (text == "*") {
    return Numbers{.all = true};
  }
  const size_t dash = std::min(text.find('-'), text.size());
  const auto first = NumberIn<uint64_t>(text.substr(0, dash));
  const auto last = dash == text.size() ? first : NumberIn<uint64_t>(text.substr(dash + 1));
  if (!first || !last || *last < *first || *last >= topology::kMaxCpus) {
    return Refuse(Quote(text) + " is no number, no range of numbers, and not *");
  }
  return Numbers{.first = *first, .last = *last};
}

// Adds the numbers of "0,1", or "0:0,1": of a new group then.
Status AddNumbers(std::string_view word, bool is_first, std::vector<SlotGroup>* groups) {
  const size_t colon = word.find(':');
  if (is_first || colon != word.npos) {
    groups->emplace_back();
  }
  if (colon != word.npos) {
    const StatusOr<Numbers> sockets = ReadNumbers(word.substr(0, colon), 's');
    FERRY_RETURN_IF_ERROR(sockets.status());
    groups->back().sockets = *sockets;
    word.remove_prefix(colon + 1);
  }
  const StatusOr<Numbers> cpus = ReadNumbers(word, 'c');
  FERRY_RETURN_IF_ERROR(cpus.status());
  groups->back().cpus.push_back(*cpus);
  return {};
}

StatusOr<std::vector<SlotGroup>> ReadSlot(std::string_view slot) {
  std::vector<SlotGroup> groups;
  for (size_t begin = 0; begin <= slot.size();) {
    const size_t end = std::min(slot.find_first_of(",;", begin), slot.size());
    const bool is_first = begin == 0 || slot[begin - 1] == ';';
    if (const Status added = AddNumbers(slot.substr(begin, end - begin), is_first, &groups);
        !added.ok()) {
      return Status(added.code(), std::string(kSlot) + std::string(slot) + ": " + added.message());
    }
    begin = end + 1;
  }
  return groups;
}

// "rank 3=beta slot=0:1", without its comment.
StatusOr<std::pair<uint32_t, RankfileLine>> ReadLine(std::string_view line) {
  const Status refused =
      Refuse("'" + std::string(line) + "' is no line such as 'rank 0=host slot=0:0-2'");
  const size_t equals = line.find('=');
  const std::vector<std::string_view> left = WordsOf(line.substr(0, std::min(equals, line.size())));
  if (equals == line.npos || left.size() != 2 || left[0] != "rank") {
    return refused;
  }
  const auto rank = NumberIn<uint32_t>(left[1]);
  if (!rank || *rank >= kMostRanks) {
    return Refuse(Quote(left[1]) + " is no rank");
  }
  const std::vector<std::string_view> right = WordsOf(line.substr(equals + 1));
  const bool has_slot = right.size() == 2 && right[1].starts_with(kSlot);
  if (right.empty() || right.size() > 2 || (right.size() == 2 && !has_slot)) {
    return refused;
  }
  if (!right[0].starts_with(kHostNumber) && !IsHostName(right[0])) {
    return Refuse(Quote(right[0]) + " names no host");
  }
  RankfileLine place{.host = std::string(right[0]),
                     .slot = has_slot ? std::string(right[1].substr(kSlot.size())) : ""};
  if (has_slot) {
    FERRY_RETURN_IF_ERROR(ReadSlot(place.slot).status());
  }
  return std::pair(*rank, std::move(place));
}

// The units with these numbers.
StatusOr<CpuSet> UnitsWith(const Numbers& numbers, const std::vector<CpuSet>& units,
                           const char* noun) {
  CpuSet cpus;
  const uint64_t last = numbers.all ? units.size() - 1 : numbers.last;
  if (units.empty() || last >= units.size()) {
    return Refuse("there are " + Counted(static_cast<int64_t>(units.size()), noun) +
                  " there, from 0 on");
  }
  for (uint64_t number = numbers.all ? 0 : numbers.first; number <= last; ++number) {
    cpus.Add(units[number]);
  }
  return cpus;
}

// The cores among these CPUs, or their hardware threads, in order.
std::vector<CpuSet> CellsOf(const Machine& machine, const CpuSet& cpus, bool threads) {
  std::vector<CpuSet> cells;
  for (const CpuSet& core : machine.cores) {
    const CpuSet own = core.Intersection(cpus);
    if (threads) {
      for (const uint32_t cpu : own.Cpus()) {
        cells.push_back({cpu});
      }
    } else if (!own.empty()) {
      cells.push_back(own);
    }
  }
  return cells;
}

StatusOr<CpuSet> CpusOfGroup(const Machine& machine, const SlotGroup& group, bool threads) {
  CpuSet among;
  if (group.sockets) {
    StatusOr<CpuSet> sockets = UnitsWith(*group.sockets, machine.sockets, "socket");
    FERRY_RETURN_IF_ERROR(sockets.status());
    among = std::move(*sockets);
  } else {
    for (const CpuSet& core : machine.cores) {
      among.Add(core);
    }
  }
  const std::vector<CpuSet> cells = CellsOf(machine, among, threads);
  CpuSet cpus;
  for (const Numbers& numbers : group.cpus) {
    const StatusOr<CpuSet> some = UnitsWith(numbers, cells, threads ? "hardware thread" : "core");
    FERRY_RETURN_IF_ERROR(some.status());
    cpus.Add(*some);
  }
  return cpus;
}

}  // namespace

StatusOr<std::vector<RankfileLine>> ParseRankFile(std::string_view text, const std::string& where) {
  std::map<uint32_t, RankfileLine> lines;
  for (size_t number = 1, begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    line = line.substr(0, line.find('#'));
    begin = end + 1;
    if (WordsOf(line).empty()) {
      continue;
    }
    const std::string place = where + ":" + std::to_string(number) + ": ";
    StatusOr<std::pair<uint32_t, RankfileLine>> read = ReadLine(line);
    if (!read.ok()) {
      return Refuse(place + read.status().message());
    }
    if (!lines.emplace(read->first, std::move(read->second)).second) {
      return Refuse(place + "rank " + std::to_string(read->first) + " has two lines");
    }
  }
  std::vector<RankfileLine> by_rank;
  for (auto& [rank, line] : lines) {
    if (rank != by_rank.size()) {
      return Refuse(where + ": rank " + std::to_string(by_rank.size()) + " has no line");
    }
    by_rank.push_back(std::move(line));
  }
  return by_rank.empty() ? StatusOr<std::vector<RankfileLine>>(Refuse(where + " names no rank"))
                         : std::move(by_rank);
}

StatusOr<std::vector<RankfileLine>> ReadRankFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return StatusFromErrno(errno != 0 ? errno : EIO, "cannot read the rankfile " + path);
  }
  return ParseRankFile(text, path);
}

StatusOr<std::string> HostOfLine(const RankfileLine& line, const std::vector<Host>& hosts) {
  if (line.host.starts_with(kHostNumber)) {
    const auto number = NumberIn<uint64_t>(std::string_view(line.host).substr(kHostNumber.size()));
    if (!number || *number >= hosts.size()) {
      return Refuse("the rankfile names host " + line.host + ", and the job has " +
                    Counted(static_cast<int64_t>(hosts.size()), "host") + ", from +n0 on");
    }
    return hosts[*number].name;
  }
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&line](const Host& host) {
    return AreSameHost(host.name, line.host);
  });
  if (found == hosts.end() && !hosts.empty()) {
    return Refuse("the rankfile names host " + line.host + ", which is none of the job's " +
                  Counted(static_cast<int64_t>(hosts.size()), "host"));
  }
  return hosts.empty() ? line.host : found->name;
}

StatusOr<CpuSet> CpusOfSlot(const Machine& machine, const CpuSet& allowed, std::string_view slot,
                            bool counts_threads) {
  const auto about = [slot](const std::string& message) {
    return Refuse("the rankfile's " + std::string(kSlot) + std::string(slot) + ": " + message);
  };
  const StatusOr<std::vector<SlotGroup>> groups = ReadSlot(slot);
  FERRY_RETURN_IF_ERROR(groups.status());
  CpuSet cpus;
  for (const SlotGroup& group : *groups) {
    const StatusOr<CpuSet> some = CpusOfGroup(machine, group, counts_threads);
    if (!some.ok()) {
      return about(some.status().message());
    }
    cpus.Add(*some);
  }
  CpuSet usable = cpus.Intersection(allowed);
  return usable.empty() ? StatusOr<CpuSet>(about("CPUs " + cpus.Text() +
                                                 " are none of those on which ferryrun may run, " +
                                                 allowed.Text()))
                        : std::move(usable);
}

}  // namespace ferry::tools
