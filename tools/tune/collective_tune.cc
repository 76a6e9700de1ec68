#include "tools/tune/collective_tune.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "common/own_program.h"
#include "tools/display/new_file.h"
#include "tools/tune/measuring_job.h"
#include "tools/tune/meter_text.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kMostBytes = 64ULL << 20;
constexpr unsigned kMostRanks = 16;  // by default
constexpr char kBudgetUs[] = "3000";

struct Programs {
  std::string ferryrun;
  std::string meter;
  std::string library;
};

StatusOr<Programs> FindPrograms() {
  Programs found{.ferryrun = FindBeside({"ferryrun", "../ferryrun/ferryrun"}),
                 .meter = FindBeside({"ferry-meter", "../libexec/ferry/ferry-meter",
                                      "../lib/ferry/ferry-meter", "../tune/ferry-meter"}),
                 .library = FindBeside({"../lib/libmpi_abi.so.1", "../../mpi/libmpi_abi.so.1"})};
  if (found.ferryrun.empty() || found.meter.empty()) {
    return Status(ErrorCode::kNotFound, std::string("no ") +
                                            (found.meter.empty() ? "ferry-meter" : "ferryrun") +
                                            " beside " + OwnProgram() + ": build or install it");
  }
  if (found.library.empty()) {
    found.library = "libmpi_abi.so.1";  // where the loader looks
  }
  return found;
}

template <typename Items, typename Text>
std::string Joined(const Items& items, Text text) {
  std::string joined;
  for (const auto& item : items) {
    joined += (joined.empty() ? "" : ",") + text(item);
  }
  return joined;
}

struct Meters {
  std::vector<std::string> command;  // ferryrun and its flags
  std::vector<std::string> program;  // ferry-meter and its first arguments
};

StatusOr<MeterResult> Try(const Meters& meters, const Trial& trial) {
  std::vector<std::string> arguments = meters.command;
  arguments.push_back("--collective_algorithms=" + trial.Names());
  arguments.insert(arguments.end(), meters.program.begin(), meters.program.end());
  arguments.push_back(Joined(
      trial.candidates, [](const auto& one) -> std::string { return CollectiveName(one.first); }));
  const StatusOr<std::string> text = RunMeasuringJob(arguments);
  FERRY_RETURN_IF_ERROR(text.status());
  return ReadMeter(*text);
}

StatusOr<std::vector<collective::Collective>> CollectivesOf(const CollectivePlan& plan) {
  if (plan.collectives.empty()) {
    return MeasuredCollectives();
  }
  std::vector<collective::Collective> collectives;
  for (const std::string& name : plan.collectives) {
    const StatusOr<collective::Collective> collective = MeasuredCollective(name);
    FERRY_RETURN_IF_ERROR(collective.status());
    if (std::find(collectives.begin(), collectives.end(), *collective) == collectives.end()) {
      collectives.push_back(*collective);
    }
  }
  return collectives;
}

// In whole elements of what is measured.
StatusOr<std::vector<uint64_t>> SizesOf(const CollectivePlan& plan) {
  std::vector<uint64_t> sizes = plan.sizes;
  if (sizes.empty()) {
    sizes = {8, 64, 512, 4096, 16384, 65536, 262144, 1048576};
  }
  for (uint64_t& size : sizes) {
    if (size == 0 || size > kMostBytes) {
      return Status(ErrorCode::kInvalidArgument,
                    "--sizes takes sizes of 1 byte to 64 MiB, not " + std::to_string(size));
    }
    size = (size + sizeof(double) - 1) / sizeof(double) * sizeof(double);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string JobOf(const CollectivePlan& plan) {
  const unsigned cpus = std::thread::hardware_concurrency();
  return plan.job.empty() ? "-n " + std::to_string(std::clamp(cpus, 2U, kMostRanks)) : plan.job;
}

}  // namespace

StatusOr<CollectiveResult> TuneCollectives(const CollectivePlan& plan) {
  const StatusOr<std::vector<collective::Collective>> collectives = CollectivesOf(plan);
  FERRY_RETURN_IF_ERROR(collectives.status());
  const StatusOr<std::vector<uint64_t>> sizes = SizesOf(plan);
  FERRY_RETURN_IF_ERROR(sizes.status());
  const StatusOr<Programs> programs = FindPrograms();
  FERRY_RETURN_IF_ERROR(programs.status());
  StatusOr<std::optional<NewFile>> file = FileIfNamed(plan.output, plan.force);
  FERRY_RETURN_IF_ERROR(file.status());

  Meters meters{.command = {programs->ferryrun, "--no-label"},
                .program = {programs->meter, programs->library, kBudgetUs,
                            Joined(*sizes, [](uint64_t size) { return std::to_string(size); })}};
  CollectiveResult result;
  for (const std::string& word : WordsOf(JobOf(plan))) {
    meters.command.push_back(word);
    result.job += (result.job.empty() ? "" : " ") + word;
  }
  meters.command.insert(meters.command.end(), plan.options.begin(), plan.options.end());
  meters.command.emplace_back("--collective_table=");  // the built-in rules, where names do not fit
  const std::vector<Trial> trials = TrialsOf(*collectives);
  std::vector<TrialResult> times;
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    for (const Trial& trial : trials) {
      StatusOr<MeterResult> measured = Try(meters, trial);
      FERRY_RETURN_IF_ERROR(measured.status());
      times.push_back({trial, std::move(*measured)});
    }
  }
  result.comparisons = Compare(times);
  if (result.comparisons.empty()) {
    return Status(ErrorCode::kInvalidArgument,
                  "a job of one rank has no collectives to measure: --job \"-n 4\", for example");
  }
  result.rules = RulesFrom(result.comparisons);
  if (file->has_value()) {
    FERRY_RETURN_IF_ERROR((*file)->Commit(CollectiveFile(result)));
  }
  return result;
}

}  // namespace ferry::tools
