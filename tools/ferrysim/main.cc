// ferrysim: Ferry's programs on machines that one does not have (docs/simulation.md).
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include "common/version.h"
#include "tools/ferrysim/allreduce.h"
#include "tools/ferrysim/halo.h"
#include "tools/ferrysim/paper.h"
#include "tools/flags/app.h"

namespace ferry::sim {
namespace {

constexpr int kFailure = 1;
constexpr int kUsageError = 2;

// Values in users' units, converted once the command line is read.
struct MachineArguments {
  std::string topology = "dragonfly";
  double latency_us = ToMicroseconds(Machine().nic.latency);
  double switch_us = ToMicroseconds(Machine().switch_latency);
  double overhead_us = ToMicroseconds(Machine().nic.overhead);
  double gap_ns = 5;
  double gbit_per_s = 200;
  double launch_us = ToMicroseconds(Machine().launch_cost);
  double synchronise_us = ToMicroseconds(Machine().synchronise_cost);
  Machine machine;

  Machine Converted() const {
    Machine converted = machine;
    converted.topology.kind =
        topology == "fat_tree" ? TopologyKind::kFatTree : TopologyKind::kDragonfly;
    converted.nic = {.latency = FromMicroseconds(latency_us),
                     .overhead = FromMicroseconds(overhead_us),
                     .gap = FromMicroseconds(gap_ns / 1000),
                     .gap_per_byte_ps = static_cast<uint64_t>(std::llround(8000 / gbit_per_s))};
    converted.switch_latency = FromMicroseconds(switch_us);
    converted.launch_cost = FromMicroseconds(launch_us);
    converted.synchronise_cost = FromMicroseconds(synchronise_us);
    return converted;
  }
};

struct Arguments {
  MachineArguments machine;
  HaloPlan halo;
  std::string send = "ready";
  AllreducePlan allreduce;
  std::string on = "ranks";
  PaperPlan paper;
};

SendKind SendOf(const std::string& name) {
  for (const SendKind kind : {SendKind::kRegular, SendKind::kReady, SendKind::kBounce}) {
    if (name == SendKindName(kind)) {
      return kind;
    }
  }
  return SendKind::kCpu;
}

void AddMachine(CLI::App* app, MachineArguments* arguments) {
  Machine* machine = &arguments->machine;
  const auto duration = CLI::Range(0.0, 1e6);
  app->add_option("--ranks-per-node", machine->ranks_per_node, "each with a GPU of its own (8)");
  app->add_option("--nics-per-node", machine->nics_per_node, "which its ranks share (4)");
  app->add_option("--entries", machine->entries, "deferred-work entries of a NIC (504)");
  app->add_option("--topology", arguments->topology, "dragonfly (the default) or fat_tree")
      ->check(CLI::IsMember({"dragonfly", "fat_tree"}));
  app->add_option("--nodes-per-switch", machine->topology.nodes_per_switch, "(4)");
  app->add_option("--switches-per-group", machine->topology.switches_per_group, "(32)");
  app->add_option("--links", machine->topology.links_between,
                  "from group to group, or from a leaf switch up (4)");
  app->add_option("--latency-us", arguments->latency_us, "of the wire and both NICs (0.7)")
      ->check(duration);
  app->add_option("--switch-us", arguments->switch_us, "of each switch (0.35)")->check(duration);
  app->add_option("--overhead-us", arguments->overhead_us, "of a CPU, for a message (0.3)")
      ->check(duration);
  app->add_option("--gap-ns", arguments->gap_ns, "between two messages of a NIC (5)")
      ->check(CLI::Range(0.001, 1e6));
  app->add_option("--gbit", arguments->gbit_per_s, "Gbit/s of a NIC and of a link (200)")
      ->check(CLI::Range(0.01, 8000.0));
  app->add_option("--launch-us", arguments->launch_us, "of a CPU, for a kernel (2.6)")
      ->check(duration);
  app->add_option("--synchronise-us", arguments->synchronise_us,
                  "of a CPU, once its stream is done (3.5)")
      ->check(duration);
  app->add_option("--eager", machine->eager_bytes, "a CPU sends shorter messages at once (8K)")
      ->transform(CLI::AsSizeValue(false));
}

void AddHalo(CLI::App* app, HaloPlan* plan, std::string* send) {
  app->add_option("--ranks", plan->ranks, "(8)");
  app->add_option("--send", *send, "regular, ready (the default), bounce or cpu")
      ->check(CLI::IsMember({"regular", "ready", "bounce", "cpu"}));
  app->add_option("--cells", plan->cells, "on a side of the whole grid (16384)");
  app->add_option("--ps-per-cell", plan->ps_per_cell, "to compute one (22.9)")
      ->check(CLI::Range(0.0, 1e9));
  app->add_option("--iterations", plan->iterations, "that are measured (20)");
  app->add_option("--warm-up", plan->warm_up, "iterations before those (6)");
  app->add_option("--ahead", plan->starts_ahead,
                  "iterations that a CPU may be ahead of its stream (4)");
  app->add_option("--jitter", plan->jitter_percent, "of kernels, in per cent (1)")
      ->check(CLI::Range(0.0, 1000.0));
  app->add_option("--seed", plan->seed, "(1)");
}

void AddAllreduce(CLI::App* app, AllreducePlan* plan, std::string* on) {
  app->add_option("--ranks", plan->ranks, "(8)");
  app->add_option("--bytes", plan->bytes, "of the vector (8)")->transform(CLI::AsSizeValue(false));
  app->add_option("--algorithm", plan->algorithm, "(what Ferry's MPI chooses)");
  app->add_option("--on", *on, "who sends: ranks (the default) or nics")
      ->check(CLI::IsMember({"ranks", "nics"}));
  app->add_option("--iterations", plan->iterations, "that are measured (3)");
}

void AddPaper(CLI::App* app, PaperPlan* plan) {
  app->add_option("--out", plan->directory, "where plots and tables go; made if it is not there")
      ->required();
  app->add_option("--most-ranks", plan->most_ranks,
                  "of the curves (32768; 131072 takes half an hour more)");
  app->add_option("--iterations", plan->iterations, "of each point that are measured (4)")
      ->check(CLI::Range(1U, 1000U));
  app->add_option("--seed", plan->seed, "(1)");
}

void Print(const WorldCounts& counts, uint64_t events) {
  const auto begun = [&](Placement placement) {
    return static_cast<unsigned long long>(counts.begun[static_cast<size_t>(placement)]);
  };
  std::printf(
      "operations: %llu by NICs, %llu by daemons (%llu found no entry), %llu by CPUs, "
      "%llu by streams\n",
      begun(Placement::kNic), begun(Placement::kDaemon),
      static_cast<unsigned long long>(counts.overflowed), begun(Placement::kRank),
      begun(Placement::kStream));
  std::printf("entries of a NIC in use: %u at most\n", counts.peak_entries);
  std::printf("programs: %llu starts, all ended; messages of the network: %llu; events: %llu\n",
              static_cast<unsigned long long>(counts.starts),
              static_cast<unsigned long long>(counts.messages),
              static_cast<unsigned long long>(events));
}

Status SimulateHalo(const Arguments& arguments) {
  HaloPlan plan = arguments.halo;
  plan.send = SendOf(arguments.send);
  plan.machine = arguments.machine.Converted();
  const StatusOr<HaloResult> result = RunHalo(plan);
  FERRY_RETURN_IF_ERROR(result.status());
  std::printf("halo: %u ranks, %s sends: %.2f us an iteration\n", plan.ranks,
              SendKindName(plan.send), result->iteration_us);
  Print(result->counts, result->events);
  return {};
}

Status SimulateAllreduce(const Arguments& arguments) {
  AllreducePlan plan = arguments.allreduce;
  plan.on_nic = arguments.on == "nics";
  plan.machine = arguments.machine.Converted();
  const StatusOr<AllreduceResult> result = RunAllreduce(plan);
  FERRY_RETURN_IF_ERROR(result.status());
  std::printf("allreduce: %u ranks, %llu bytes, %s: %.2f us\n", plan.ranks,
              static_cast<unsigned long long>(plan.bytes), result->algorithm.c_str(),
              result->iteration_us);
  Print(result->counts, result->events);
  return {};
}

Status SimulatePaper(const Arguments& arguments) {
  PaperPlan plan = arguments.paper;
  plan.machine = arguments.machine.Converted();
  std::error_code error;
  std::filesystem::create_directories(plan.directory, error);
  if (error) {
    return {ErrorCode::kSystem, "cannot make " + plan.directory + ": " + error.message()};
  }
  FERRY_RETURN_IF_ERROR(
      MakePaper(plan, [](const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); }));
  std::printf("plots and results.md are in %s\n", plan.directory.c_str());
  return {};
}

int Run(int argc, char** argv) {
  CLI::App app("Simulates Ferry's programs on a machine that one does not have.", "ferrysim");
  Arguments arguments;
  app.require_subcommand(1);
  CLI::App* halo = app.add_subcommand("halo", "A halo exchange: the Game of Life on GPUs");
  CLI::App* allreduce = app.add_subcommand("allreduce", "An allreduce by Ferry's schedules");
  CLI::App* paper = app.add_subcommand("paper", "All plots and tables of docs/simulation.md");
  AddHalo(halo, &arguments.halo, &arguments.send);
  AddAllreduce(allreduce, &arguments.allreduce, &arguments.on);
  AddPaper(paper, &arguments.paper);
  for (CLI::App* subcommand : {halo, allreduce, paper}) {
    AddMachine(subcommand, &arguments.machine);
  }
  tools::AddInformation(&app, std::string("ferrysim ") + kFerryVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& mistake) {
    const std::string unknown = tools::ExplainUnknown(app);
    std::fprintf(stderr, "ferrysim: %s (ferrysim --help lists the commands)\n",
                 unknown.empty() ? mistake.what() : unknown.c_str());
    return kUsageError;
  }
  const Status status = *halo        ? SimulateHalo(arguments)
                        : *allreduce ? SimulateAllreduce(arguments)
                                     : SimulatePaper(arguments);
  if (!status.ok()) {
    std::fprintf(stderr, "ferrysim: %s\n", status.message().c_str());
    return status.code() == ErrorCode::kInvalidArgument ? kUsageError : kFailure;
  }
  return 0;
}

}  // namespace
}  // namespace ferry::sim

int main(int argc, char** argv) {
  try {
    return ferry::sim::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ferrysim: %s\n", error.what());
    return ferry::sim::kFailure;
  }
}
