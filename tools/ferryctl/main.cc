// ferryctl: asks a ferryd how it is, or to stop. One call per command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/version.h"
#include "config/environment.h"
#include "tools/display/table.h"
#include "tools/display/view.h"
#include "tools/doctor/probe.h"
#include "tools/ferryctl/arguments.h"
#include "tools/ferryctl/certs.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/commands.h"
#include "tools/ferryctl/option_report.h"
#include "tools/ferryctl/views.h"
#include "tools/flags/app.h"
#include "tools/flags/option_flags.h"
#include "tools/tune/collective_tune.h"
#include "tools/tune/kernel_tune.h"
#include "tools/tune/pair_trial.h"
#include "tools/tune/tune.h"
#include "transports/loader/loader.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kFailure = 1;
constexpr int kUsageError = 2;

// Runs a job of two ranks for a moment.
Finding ExamineJob(const std::vector<std::string>& options) {
  const std::optional<StatusOr<PairTimes>> times = TryPair(options);
  if (!times) {
    return CheckJob(std::nullopt);
  }
  JobFacts facts{.ran = times->status(), .few_bytes = kPairFewBytes, .many_bytes = kPairManyBytes};
  if (times->ok()) {
    facts.few_us = (*times)->few_us;
    facts.many_us = (*times)->many_us;
  }
  return CheckJob(facts);
}

// Needs no daemon. Problems make it fail.
Status Doctor(const CtlArguments& arguments) {
  std::vector<Finding> findings = Examine(arguments.options);
  if (!arguments.no_job && IsHealthy(findings)) {  // else it would fail for what is known
    findings.push_back(ExamineJob(arguments.options));
  }
  const View view = DoctorView(findings, StandardOutput());
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return IsHealthy(findings) ? Status()
                             : Status(ErrorCode::kSystem, "doctor found problems: see above");
}

// Serves memory to the other node's measurement, until it is interrupted. Asks no daemon.
Status ServeTune(const config::Options& options, const CtlArguments& arguments) {
  const StatusOr<std::unique_ptr<MemoryServer>> server = Serve(options, arguments.tune);
  FERRY_RETURN_IF_ERROR(server.status());
  const std::string word = WordFor((*server)->memory());
  arguments.json
      ? PrintJson({{"peer", word}})
      : Print("until it is interrupted; on the other node:\n  ferryctl tune --peer " + word + "\n");
  while (true) {
    pause();
  }
}

// Results without a file go to standard output, in the form of the file, with advice on how to get
// a file.
void SayHowToKeep(const char* what) {
  std::fprintf(stderr, "ferryctl: no file was written; --output FILE writes %s\n", what);
}

// The results of tuning by jobs, as JSON, as the contents of a file, and in words.
struct Found {
  ordered_json json;
  std::string file;
  std::string text;
};

// Measures by jobs, which use any daemon that there is. `what`: the purpose of the file; `advice`:
// the text about the file, up to its name.
template <typename Plan, typename Measure>
Status TuneByJobs(const CtlArguments& arguments, Plan plan, const char* what, const char* advice,
                  Measure&& measure) {
  plan.job = arguments.tune_job;
  plan.sizes = arguments.tune.sizes;
  plan.force = arguments.tune.force;
  plan.output = arguments.tune.output;
  plan.rounds = arguments.repetitions.value_or(plan.rounds);
  plan.options = arguments.options;
  StatusOr<Found> found = measure(plan);
  FERRY_RETURN_IF_ERROR(found.status());
  if (arguments.json) {
    if (!plan.output.empty()) {
      found->json["file"] = plan.output;
    }
    PrintJson(found->json);
  } else if (plan.output.empty()) {
    Print(found->file);
    SayHowToKeep(what);
  } else {
    Print(found->text + "\n" + plan.output + advice + plan.output + "\n");
  }
  return {};
}

Status TuneMpi(const CtlArguments& arguments) {
  return TuneByJobs(
      arguments, arguments.collectives, "these rules",
      " has the rules. For jobs: ferryrun --collective_table=",
      [](const CollectivePlan& plan) -> StatusOr<Found> {
        const StatusOr<CollectiveResult> result = TuneCollectives(plan);
        FERRY_RETURN_IF_ERROR(result.status());
        return Found{CollectiveJson(*result), CollectiveFile(*result), CollectiveText(*result)};
      });
}

Status TuneShmem(const CtlArguments& arguments) {
  return TuneByJobs(arguments, arguments.kernels, "this option",
                    " has the option. For jobs: ferryrun --config_file=",
                    [](const KernelPlan& plan) -> StatusOr<Found> {
                      const StatusOr<KernelResult> result = TuneKernels(plan);
                      FERRY_RETURN_IF_ERROR(result.status());
                      return Found{KernelJson(*result), KernelFile(*result), KernelText(*result)};
                    });
}

// Says which of the requested files holds what.
std::string TunedFilesText(const TunePlan& plan) {
  std::string text;
  if (!plan.plot.empty()) {
    text += plan.plot + " has the curves.\n";
  }
  if (!plan.output.empty()) {
    text += plan.output + " has these options. For ferryd: --config_file=" + plan.output +
            ", or put them into its ferryd.toml.\n";
  }
  return text;
}

// Asks no daemon, except for collectives and kernels.
Status Tune(const CtlArguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  if (arguments.tune_collectives) {
    return TuneMpi(arguments);
  }
  if (arguments.tune_kernels) {
    return TuneShmem(arguments);
  }
  if (!arguments.tune_job.empty()) {
    return {ErrorCode::kInvalidArgument, "--job belongs to --collectives and to --kernels"};
  }
  if (arguments.serve) {
    return ServeTune(*options, arguments);
  }
  TunePlan plan = arguments.tune;
  plan.repetitions = arguments.repetitions.value_or(plan.repetitions);
  const StatusOr<TuneResult> result = MeasureAndWrite(*options, plan);
  FERRY_RETURN_IF_ERROR(result.status());
  if (arguments.json) {
    ordered_json json = TuneJson(*result);
    json["files"] = ordered_json::object();
    for (const auto& [name, file] :
         {std::pair("options", plan.output), std::pair("plot", plan.plot)}) {
      if (!file.empty()) {
        json["files"][name] = file;
      }
    }
    PrintJson(json);
  } else if (plan.output.empty()) {
    Print(TuneFragment(*result));
    plan.plot.empty() ? SayHowToKeep("these options, --plot FILE a picture of the curves")
                      : static_cast<void>(std::fputs(TunedFilesText(plan).c_str(), stderr));
  } else {
    Print(TuneText(*result) + "\n" + TunedFilesText(plan));
  }
  return {};
}

Status ShowOptions(const CtlArguments& arguments) {
  WarnOfUnknownVariables();
  const StatusOr<std::vector<OptionOrigin>> report =
      ReportOptions(arguments.options, config::ProcessEnvironment());
  FERRY_RETURN_IF_ERROR(report.status());
  Table table({{"OPTION"}, {"VALUE"}, {"UNIT"}, {"FROM"}});
  ordered_json json = ordered_json::object();
  for (const OptionOrigin& row : *report) {
    table.AddRow({row.option->name, row.value, row.option->unit, row.origin});
    json[row.option->name] = {{"value", row.value}, {"origin", row.origin}};
  }
  arguments.json ? PrintJson(json) : Print(table.Text(StandardOutput()));
  return {};
}

// Asks no daemon.
Status Certs(const CtlArguments& arguments) {
  const StatusOr<CertsResult> result = MakeCerts(arguments.certs);
  FERRY_RETURN_IF_ERROR(result.status());
  ordered_json nodes = ordered_json::array();
  for (const NodeFiles& node : result->nodes) {
    nodes.push_back({{"name", node.name},
                     {"valid_for", node.valid_for},
                     {"tls_cert_file", node.certificate},
                     {"tls_key_file", node.key}});
  }
  arguments.json ? PrintJson({{"tls_ca_file", result->authority}, {"nodes", nodes}})
                 : Print(CertsText(*result));
  return {};
}

// Says what this program is even when there is no daemon.
Status ShowVersion(const CtlArguments& arguments) {
  const StatusOr<std::vector<Observer>> daemons = ChooseDaemons(arguments);
  const std::string daemon =
      daemons.ok() ? "the same versions, pid " + std::to_string(daemons->front().daemon().pid())
                   : daemons.status().message();
  arguments.json ? PrintJson({{"version", kFerryVersion},
                              {"layout_version", kLayoutVersion},
                              {"protocol_version", kProtocolVersion},
                              {"daemon", daemon}})
                 : Print(std::string("ferryctl ") + kFerryVersion + " (layout " +
                         std::to_string(kLayoutVersion) + ", protocol " +
                         std::to_string(kProtocolVersion) + ")\ndaemon: " + daemon + "\n");
  return {};
}

struct Command {
  const char* name;
  const char* help;
  Status (*run)(const CtlArguments&);
  const char* rank = nullptr;  // the names that its argument may have; null: it takes none
};

constexpr Command kCommands[] = {
    {"status", "The daemon, its jobs and the daemons it knows", ShowStatus},
    {"sessions", "The ranks that are attached", Sessions},
    {"counters", "What has been counted, or of one rank", Counters,
     "JOB.RANK, or RANK of your only job"},
    {"links", "Direct links between ranks of different nodes, and why others have none", Links,
     "with --take-back: a job, or a rank of it"},
    {"nics", "The network interfaces in use", Nics},
    {"gpus", "The devices", Gpus},
    {"why", "What a rank waits for, and why; or each rank of a job; or whoever waits", Why,
     "JOB.RANK; or RANK of your only job; or JOB: each of its ranks here. JOB is an id, the\n"
     "name that ferryrun --name gave it, or its program's name"},
    {"queues", "What a rank sends and receives, and messages without a receive, by communicator",
     ShowQueues, "JOB.RANK, or RANK of your only job"},
    {"top", "Rates of ranks, paths and network, again and again", Top},
    {"web", "Serves a page that shows jobs, waits, paths and devices, for a browser", Web},
    {"trace", "A job's timeline so far, or what the daemon does, for ui.perfetto.dev", Trace},
    {"faults", "The faults that the daemon was told to have, for tests", Faults},
    {"doctor", "What on this machine keeps Ferry from working, or working well", Doctor},
    {"drain", "Take no new jobs; wait until the running ones have ended", Drain},
    {"undrain", "Take new jobs again", Undrain},
    {"shutdown", "Take no new jobs, and stop once the running ones have ended", Shutdown},
    {"watch", "The status, again after every change", Watch},
    {"tune", "Measures, and chooses options of the pipeline or of kernels, or algorithms", Tune},
    {"certs", "Makes certificates to try TLS between daemons", Certs},
    {"config", "The effective options and where each comes from", ShowOptions},
    {"version", "Versions of this program and of the daemon", ShowVersion},
};

void AddCertsArguments(CLI::App* subcommand, CertsPlan* plan) {
  subcommand->add_option("DIRECTORY", plan->directory, "where to; made if it is not there")
      ->required();
  subcommand
      ->add_option("--node", plan->nodes,
                   "NAME[,ADDRESS...]: a node and the host names and IP addresses by which\n"
                   "jobs may name it; again for each node (this host, over loopback)")
      ->allow_extra_args(false);
  subcommand->add_option("--days", plan->days, "for how long its certificate is valid (365)")
      ->check(CLI::Range(1, 3650));
}

void AddTuneArguments(CLI::App* subcommand, CtlArguments* arguments) {
  TunePlan* plan = &arguments->tune;
  subcommand->add_option("--output", plan->output,
                         "file for the result (without: the standard output)");
  CLI::Option* plot =
      subcommand->add_option("--plot", plan->plot, "file for a picture, SVG (without: none)");
  subcommand->add_flag("--force", plan->force, "replace files that are there");
  CLI::Option* device =
      subcommand->add_option("--device", plan->device, "which device of the GPU backend (0)");
  subcommand
      ->add_option("--sizes", plan->sizes,
                   "what to measure (16,4K,8K,...,4M; of collectives 8,64,512,4K,16K,...,1M;\n"
                   "of kernels 64,512,4K,16K,...,1M)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(CLI::AsSizeValue(false));
  subcommand
      ->add_option("--repetitions", arguments->repetitions,
                   "of each size (15, medians count; of collectives and kernels 3, the shortest\n"
                   "times do)")
      ->check(CLI::Range(1U, 10'000U));
  CLI::Option* peer = subcommand->add_option(
      "--peer", plan->peer, "read from another node: the word that --serve prints there");
  CLI::Option* serve =
      subcommand->add_flag("--serve", arguments->serve, "only let another node read from here")
          ->excludes(peer);
  CLI::Option* collectives =
      subcommand
          ->add_flag("--collectives", arguments->tune_collectives,
                     "instead: algorithms of MPI's collectives, measured by jobs")
          ->excludes(peer)
          ->excludes(serve)
          ->excludes(plot)
          ->excludes(device);
  CLI::Option* kernels =
      subcommand
          ->add_flag("--kernels", arguments->tune_kernels,
                     "instead: from which sizes on kernels of OpenSHMEM ask ferryd, by jobs")
          ->excludes(peer)
          ->excludes(serve)
          ->excludes(plot)
          ->excludes(device)
          ->excludes(collectives);
  subcommand
      ->add_option("--threads", arguments->kernels.threads,
                   "of these: threads of a work-group to measure (1,16,128)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(kernels);
  subcommand->add_option("--job", arguments->tune_job,
                         "of collectives and kernels: ferryrun's flags for the jobs (\"-n CPUS\",\n"
                         "of kernels \"-n 2\")");
  subcommand
      ->add_option("--collective", arguments->collectives.collectives,
                   "of collectives: only some, such as bcast,allreduce (all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(collectives);
}

// Fills in `arguments` and returns the command chosen.
const Command* Parse(CLI::App* app, int argc, const char* const* argv, CtlArguments* arguments) {
  app->require_subcommand(0, 1);
  app->fallthrough();
  app->add_flag("--json", arguments->json, "print JSON");
  app->add_option("-j", arguments->job, "the daemons with this job, and of it only");
  AddOptionFlags(app, &arguments->options);
  app->footer(
      "Without a command: the daemons that serve you, the private ones of your jobs too.\n"
      "--run_directory=DIRECTORY chooses one; without, and without -j, it is the one that a\n"
      "ferryrun here would use, or else your private ones. The other options of ferryd may be\n"
      "given as flags too; they matter to `config` and `tune`.");
  const Command* chosen = nullptr;
  for (const Command& command : kCommands) {
    CLI::App* subcommand = app->add_subcommand(command.name, command.help);
    subcommand->fallthrough();  // --json and the options may follow the command
    subcommand->callback([&chosen, &command] { chosen = &command; });
    if (command.rank != nullptr) {
      subcommand->add_option("JOB.RANK", arguments->rank, command.rank);
    }
    if (command.run == Counters) {
      subcommand->add_flag(
          "--all", arguments->all,
          "counters that are 0, too, and those of each rank, where there are many");
    }
    if (command.run == Sessions || command.run == Links || command.run == Why ||
        command.run == Top || command.run == ShowQueues) {
      subcommand->add_flag("--all", arguments->all,
                           "a line for each, where there are many; without, for groups, or for\n"
                           "those that matter most");
    }
    if (command.run == Top) {
      subcommand
          ->add_option("--interval-ms", arguments->interval_ms,
                       "milliseconds between pictures (1000)")
          ->check(CLI::Range(1U, 3'600'000U));
      subcommand->add_option("-n", arguments->pictures, "end after so many pictures");
      subcommand->add_flag_callback(
          "--once", [arguments] { arguments->pictures = 1; }, "one picture");
    }
    if (command.run == Web) {
      subcommand->add_option("--port", arguments->port,
                             "of 127.0.0.1, where the page is (any that is free)");
      subcommand->add_flag("--open", arguments->open, "open it in this desktop's browser, too");
      subcommand->add_option(
          "--address-file", arguments->address_file,
          "for services: write the address to this file, which only you can read,\n"
          "and wait for a daemon where there is none");
    }
    if (command.run == Watch) {
      subcommand->add_option("--interval-ms", arguments->interval_ms,
                             "also after so many milliseconds (1000)");
    }
    if (command.run == Trace) {
      subcommand
          ->add_option("JOB", arguments->action,
                       "a job that `ferryrun --trace` has started; or start, to have the daemon\n"
                       "record what it does itself, or stop, to end that and get it")
          ->required();
      subcommand->add_option("--output", arguments->output, "the file (standard output)");
      subcommand->add_option("--last", arguments->last,
                             "of a job: only the last of its time, as 10s or 500ms");
    }
    if (command.run == Tune) {
      AddTuneArguments(subcommand, arguments);
    }
    if (command.run == Certs) {
      AddCertsArguments(subcommand, &arguments->certs);
    }
    if (command.run == Links) {
      CLI::Option* take_back = subcommand->add_flag(
          "--take-back", arguments->take_back,
          "of this job or rank: messages go by the daemons until it ends (for administrators)");
      subcommand
          ->add_flag("--for-now", arguments->for_now, "of these: the ranks may ask for links again")
          ->needs(take_back);
      subcommand->add_option("--peer", arguments->peer, "of these: only the link to that rank")
          ->needs(take_back);
    }
    if (command.run == Faults) {
      subcommand->add_flag("--release", arguments->release, "let go on what stands still");
    }
    if (command.run == Doctor) {
      subcommand->add_flag("--no-job", arguments->no_job, "do not run a job of two ranks to see");
    }
    if (command.run == Drain) {
      subcommand->add_flag("--no-wait", arguments->no_wait, "do not wait for the running jobs");
    }
    if (command.run == Shutdown) {
      CLI::Option* now =
          subcommand->add_flag("--now", arguments->now, "do not wait for the running jobs");
      subcommand
          ->add_option("--after", arguments->after_s,
                       "wait for them for so many seconds at most (as long as they take)")
          ->check(CLI::Range(0U, 31'536'000U))
          ->excludes(now);
    }
  }
  AddInformation(app, std::string("ferryctl ") + kFerryVersion);
  app->parse(argc, argv);
  return chosen;
}

int Run(int argc, char** argv) {
  CLI::App app("Looks at a ferryd, and stops it.", "ferryctl");
  CtlArguments arguments;
  const Command* command = nullptr;
  try {
    command = Parse(&app, argc, argv, &arguments);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& mistake) {
    const std::string unknown = ExplainUnknown(app);
    const std::string what = unknown.empty() ? mistake.what() : unknown;
    std::fprintf(stderr, "ferryctl: %s (ferryctl --help lists the commands)\n", what.c_str());
    return kUsageError;
  }
  if (command == nullptr) {
    static constexpr Command kList = {"", "", ListDaemons};
    static constexpr Command kOfJob = {"", "", ShowStatus};
    command = arguments.job.empty() ? &kList : &kOfJob;
  }
  Status status = transport::EnsureEnvironment();  // for tune and doctor, which open its library
  if (status.ok()) {
    status = command->run(arguments);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "ferryctl: %s\n", status.message().c_str());
    const bool mistake =
        status.code() == ErrorCode::kConfiguration || status.code() == ErrorCode::kInvalidArgument;
    return mistake ? kUsageError : kFailure;
  }
  return 0;
}

}  // namespace
}  // namespace ferry::tools

int main(int argc, char** argv) {
  try {
    return ferry::tools::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ferryctl: %s\n", error.what());
    return ferry::tools::kFailure;
  }
}
