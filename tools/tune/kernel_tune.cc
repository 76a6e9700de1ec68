#include "tools/tune/kernel_tune.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "common/own_program.h"
#include "common/version.h"
#include "config/environment.h"
#include "tools/display/new_file.h"
#include "tools/display/table.h"
#include "tools/tune/measuring_job.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMostBytes = 64ULL << 20;
constexpr uint32_t kMostThreads = 1024;
constexpr char kBatchUs[] = "2000";
// The cutovers by which kernels move all bytes by stores, or none.
constexpr char kStores[] = "";
constexpr char kFerryd[] = "put=0,get=0";

template <typename Numbers>
std::string Joined(const Numbers& numbers) {
  std::string joined;
  for (const auto number : numbers) {
    joined += (joined.empty() ? "" : ",") + std::to_string(number);
  }
  return joined;
}

template <typename Number>
StatusOr<std::vector<Number>> Checked(std::vector<Number> numbers, std::vector<Number> usual,
                                      Number most, const char* what) {
  if (numbers.empty()) {
    return usual;
  }
  for (const Number number : numbers) {
    if (number == 0 || number > most) {
      return Status(ErrorCode::kInvalidArgument, std::string(what) + " takes numbers from 1 to " +
                                                     std::to_string(most) + ", not " +
                                                     std::to_string(number));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// ferryrun and its flags, and the meter with its arguments; the cutovers go between.
struct Command {
  std::vector<std::string> flags;
  std::vector<std::string> program;
};

StatusOr<Command> MakeCommand(const KernelPlan& plan) {
  const StatusOr<std::vector<uint64_t>> sizes = Checked<uint64_t>(
      plan.sizes, {64, 512, 4096, 16384, 65536, 262144, 1048576}, kMostBytes, "--sizes");
  FERRY_RETURN_IF_ERROR(sizes.status());
  const StatusOr<std::vector<uint32_t>> threads =
      Checked<uint32_t>(plan.threads, {1, 16, 128}, kMostThreads, "--threads");
  FERRY_RETURN_IF_ERROR(threads.status());
  const std::string ferryrun = FindBeside({"ferryrun", "../ferryrun/ferryrun"});
  const std::string meter =
      FindBeside({"ferry-kernel-meter", "../libexec/ferry/ferry-kernel-meter",
                  "../lib/ferry/ferry-kernel-meter", "../tune/ferry-kernel-meter"});
  if (ferryrun.empty() || meter.empty()) {
    return Status(ErrorCode::kNotFound, std::string("no ") +
                                            (meter.empty() ? "ferry-kernel-meter" : "ferryrun") +
                                            " beside " + OwnProgram() + ": build or install it");
  }
  std::string library =
      FindBeside({"../lib/libferry_shmem.so.0", "../../shmem/libferry_shmem.so.0"});
  if (library.empty()) {
    library = "libferry_shmem.so.0";  // where the loader looks
  }
  Command command{.flags = {ferryrun, "--no-label"},
                  .program = {meter, library, "moves", kBatchUs, Joined(*threads), Joined(*sizes)}};
  for (const std::string& word : WordsOf(plan.job.empty() ? "-n 2" : plan.job)) {
    command.flags.push_back(word);
  }
  command.flags.insert(command.flags.end(), plan.options.begin(), plan.options.end());
  command.flags.emplace_back("--gpu_backend=host");
  return command;
}

StatusOr<KernelTimes> Try(const Command& command, const std::string& cutovers) {
  std::vector<std::string> arguments = command.flags;
  arguments.push_back("--shmem_cutovers=" + cutovers);
  arguments.insert(arguments.end(), command.program.begin(), command.program.end());
  const StatusOr<std::string> text = RunMeasuringJob(arguments);
  FERRY_RETURN_IF_ERROR(text.status());
  return ReadKernelTimes(*text);
}

const char* NameOf(const KernelCase& which) {
  return which.operation == FERRY_SHMEM_PUT ? "put" : "get";
}

std::string Microseconds(double ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), ns < 1e5 ? "%.2f" : "%.0f", ns / 1e3);
  return text.data();
}

std::string OptionLine(const KernelResult& result) {
  return "shmem_cutovers = \"" + shmem::FormatCutovers(result.cutovers) + "\"\n";
}

}  // namespace

StatusOr<KernelResult> TuneKernels(const KernelPlan& plan) {
  const StatusOr<Command> command = MakeCommand(plan);
  FERRY_RETURN_IF_ERROR(command.status());
  StatusOr<std::optional<NewFile>> file = FileIfNamed(plan.output, plan.force);
  FERRY_RETURN_IF_ERROR(file.status());
  KernelTimes stores;
  KernelTimes ferryd;
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    for (const auto& [cutovers, times] :
         {std::pair(kStores, &stores), std::pair(kFerryd, &ferryd)}) {
      const StatusOr<KernelTimes> measured = Try(*command, cutovers);
      FERRY_RETURN_IF_ERROR(measured.status());
      KeepShorter(*measured, times);
    }
  }
  KernelResult result;
  result.comparisons = CompareKernels(stores, ferryd);
  result.cutovers = CutoversFrom(result.comparisons);
  if (file->has_value()) {
    FERRY_RETURN_IF_ERROR((*file)->Commit(KernelFile(result)));
  }
  return result;
}

std::string KernelFile(const KernelResult& result) {
  return "# Cutovers of kernels' puts and gets, measured on the emulated device of " +
         config::HostName() + " by\n#   ferryctl tune --kernels\n# of Ferry " + kFerryVersion +
         ". For jobs: ferryrun --config_file names this file.\n\n" + OptionLine(result);
}

std::string KernelText(const KernelResult& result) {
  Table table({{"OPERATION"},
               {"THREADS", Align::kRight},
               {"SIZE", Align::kRight},
               {"STORES us", Align::kRight},
               {"FERRYD us", Align::kRight}});
  for (const KernelComparison& one : result.comparisons) {
    table.AddRow({NameOf(one.which), std::to_string(one.which.threads),
                  BytesText(one.which.size_bytes), Microseconds(one.stores_ns),
                  Microseconds(one.ferryd_ns)});
  }
  return table.Text() + "\n" + OptionLine(result);
}

ordered_json KernelJson(const KernelResult& result) {
  ordered_json cases = ordered_json::array();
  for (const KernelComparison& one : result.comparisons) {
    cases.push_back({{"operation", NameOf(one.which)},
                     {"threads", one.which.threads},
                     {"size_bytes", one.which.size_bytes},
                     {"stores_us", one.stores_ns / 1e3},
                     {"ferryd_us", one.ferryd_ns / 1e3}});
  }
  return {{"cases", cases}, {"shmem_cutovers", shmem::FormatCutovers(result.cutovers)}};
}

}  // namespace ferry::tools
