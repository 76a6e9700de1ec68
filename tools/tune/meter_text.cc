#include "tools/tune/meter_text.h"

#include <cstdio>
#include <sstream>

namespace ferry::tools {
namespace {

Status Wrong(const std::string& line) {
  return {ErrorCode::kCorrupt, "ferry-meter said \"" + line + "\", which means nothing"};
}

// "0,0,1".
bool ReadNodes(const std::string& text, std::vector<int>* nodes) {
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    int node = 0;
    char rest = 0;
    if (std::sscanf(word.c_str(), "%d%c", &node, &rest) != 1 || node < 0) {
      return false;
    }
    nodes->push_back(node);
  }
  return !nodes->empty();
}

}  // namespace

std::string CommunicatorLine(uint32_t communicator, const std::vector<int>& node_of_rank) {
  std::string line = "communicator " + std::to_string(communicator) + " ";
  for (size_t i = 0; i < node_of_rank.size(); ++i) {
    line += (i == 0 ? "" : ",") + std::to_string(node_of_rank[i]);
  }
  return line + "\n";
}

std::string TimeLine(const MeterKey& key, double microseconds) {
  char number[32];
  std::snprintf(number, sizeof(number), "%.3f", microseconds);
  return "time " + std::to_string(key.communicator) + " " + CollectiveName(key.collective) + " " +
         std::to_string(key.size_bytes) + " " + number + "\n";
}

std::string PairLine(const PairTimes& times) {
  char line[80];
  std::snprintf(line, sizeof(line), "pair %.3f %.3f\n", times.few_us, times.many_us);
  return line;
}

StatusOr<PairTimes> ReadPair(const std::string& text) {
  PairTimes times;
  char rest = 0;
  if (std::sscanf(text.c_str(), "pair %lf %lf%c", &times.few_us, &times.many_us, &rest) != 3 ||
      rest != '\n' || !(times.few_us > 0) || !(times.many_us > 0)) {
    return Wrong(text);
  }
  return times;
}

StatusOr<MeterResult> ReadMeter(std::string_view text) {
  MeterResult result;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    MeterKey key;
    double microseconds = 0;
    words >> kind >> key.communicator >> name;
    if (!words) {
      return Wrong(line);
    }
    if (kind == "communicator") {
      if (key.communicator != result.node_of_rank.size() ||
          !ReadNodes(name, &result.node_of_rank.emplace_back())) {
        return Wrong(line);
      }
      continue;
    }
    words >> key.size_bytes >> microseconds;
    const StatusOr<collective::Collective> collective = MeasuredCollective(name);
    if (!words || kind != "time" || !collective.ok() ||
        key.communicator >= result.node_of_rank.size()) {
      return Wrong(line);
    }
    key.collective = *collective;
    result.microseconds[key] = microseconds;
  }
  return result;
}

std::vector<collective::Collective> MeasuredCollectives() {
  using enum collective::Collective;
  return {kBarrier, kBcast,     kGather,        kScatter, kAllgather, kAlltoall,
          kReduce,  kAllreduce, kReduceScatter, kScan,    kExscan};
}

StatusOr<collective::Collective> MeasuredCollective(std::string_view name) {
  std::string names;
  for (const collective::Collective collective : MeasuredCollectives()) {
    if (name == CollectiveName(collective)) {
      return collective;
    }
    names += (names.empty() ? "" : ", ") + std::string(CollectiveName(collective));
  }
  return Status(ErrorCode::kInvalidArgument, "\"" + std::string(name) +
                                                 "\" is no collective that can be measured; "
                                                 "these are: " +
                                                 names);
}

}  // namespace ferry::tools
