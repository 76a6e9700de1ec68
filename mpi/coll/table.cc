#include "mpi/coll/table.h"

#include <mpi.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <utility>

#include "coll/algorithms/selection_file.h"
#include "mpi/base/connection.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/context_ids.h"
#include "mpi/comm/line_to_members.h"
#include "mpi/comm/rank_set.h"

namespace ferry::mpi {
namespace {

using collective::SelectionRule;
using collective::SelectionTable;

constexpr char kNamesVariable[] = "FERRY_COLLECTIVE_ALGORITHMS";

// Rank 0 sends this to the others before the text.
struct Announcement {
  uint64_t text_bytes = 0;
  uint64_t is_error = 0;  // the text is a sentence, not rules
  uint64_t compares_calls = 0;
  uint64_t chains_in_nics = 0;
};

SelectionTable& Table() {
  static SelectionTable& table = *new SelectionTable();
  return table;
}

// Allreduces of so many bytes go by all ranks' vectors rather than by sums on the way, for which
// chains would stop.
constexpr uint64_t kMostGatheredBytes = 64;

SelectionTable& TableOfQueues() {
  static SelectionTable& table = *new SelectionTable();
  return table;
}

bool compares_calls = false;
bool chains_in_nics = false;

StatusOr<std::string> ReadText(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) {
    text << file.rdbuf();
  }
  if (!file.is_open() || file.bad()) {
    return StatusFromErrno(errno, "option collective_table: cannot read " + path);
  }
  return text.str();
}

}  // namespace

StatusOr<std::vector<SelectionRule>> RulesOf(const config::Options& options) {
  StatusOr<std::vector<SelectionRule>> rules =
      collective::ParseAlgorithmNames(options.collective_algorithms, kNamesVariable);
  FERRY_RETURN_IF_ERROR(rules.status());
  if (options.collective_table.empty()) {
    return rules;
  }
  const StatusOr<std::string> text = ReadText(options.collective_table);
  FERRY_RETURN_IF_ERROR(text.status());
  StatusOr<std::vector<SelectionRule>> more =
      collective::ParseSelectionRules(*text, options.collective_table);
  FERRY_RETURN_IF_ERROR(more.status());
  rules->insert(rules->end(), more->begin(), more->end());
  return rules;
}

const SelectionTable& CollectiveTable() { return Table(); }

const SelectionTable& QueueTable() { return ChainsInNics() ? TableOfQueues() : Table(); }

bool ComparesCalls() { return compares_calls; }
bool ChainsInNics() { return chains_in_nics; }

Failure AgreeOnCollectiveTable() {
  const auto size = static_cast<int>(front_end->size());
  const auto rank = static_cast<int>(front_end->rank());
  std::string text;
  Announcement announcement;
  if (rank == 0) {
    const StatusOr<std::vector<SelectionRule>> rules = RulesOf(front_end->options());
    text = rules.ok() ? FormatSelectionRules(*rules) : rules.status().message();
    announcement = {.text_bytes = text.size(),
                    .is_error = rules.ok() ? 0U : 1U,
                    .compares_calls = front_end->options().mpi_check,
                    .chains_in_nics = front_end->nic_defers() ? 1U : 0U};
  }
  LineToMembers line(ContextOf(kWorldNumber, Traffic::kAgreement), RankSet::Strided(0, 1, size));
  const Team team{.line = &line, .rank = rank, .size = size};
  Failure failure = Broadcast(team, &announcement, sizeof(announcement));
  if (failure.ok() && announcement.text_bytes != 0) {
    text.resize(announcement.text_bytes);
    failure = Broadcast(team, text.data(), text.size());
  }
  compares_calls = announcement.compares_calls != 0;
  chains_in_nics = announcement.chains_in_nics != 0;
  if (!failure.ok() || announcement.is_error != 0) {
    return failure.ok() ? Failure{MPI_ERR_OTHER, std::move(text)} : failure;
  }
  StatusOr<std::vector<SelectionRule>> rules =
      collective::ParseSelectionRules(text, "rules of rank 0");
  if (!rules.ok()) {
    return {MPI_ERR_OTHER, rules.status().message() + ": are all ranks of one release of Ferry?"};
  }
  if (chains_in_nics) {
    std::vector<SelectionRule> of_queues = *rules;
    of_queues.push_back({.collective = collective::Collective::kAllreduce,
                         .max_bytes = kMostGatheredBytes,
                         .algorithm = "gathered"});
    TableOfQueues() = SelectionTable(std::move(of_queues));
  }
  if (!rules->empty()) {
    Table() = SelectionTable(std::move(*rules));
  }
  return {};
}

}  // namespace ferry::mpi
