// ferryctl: asks a ferryd how it is, or to stop. One call per command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/version.h"
#include "config/environment.h"
#include "tools/admin/admin_client.h"
#include "tools/admin/launcher_client.h"
#include "tools/doctor/probe.h"
#include "tools/ferryctl/certs.h"
#include "tools/ferryctl/doctor_view.h"
#include "tools/ferryctl/option_report.h"
#include "tools/ferryctl/rank_name.h"
#include "tools/ferryctl/table.h"
#include "tools/ferryctl/trace_file.h"
#include "tools/ferryctl/view.h"
#include "tools/ferryctl/why_view.h"
#include "tools/flags/app.h"
#include "tools/flags/option_flags.h"
#include "tools/top/rates.h"
#include "tools/top/screen.h"
#include "tools/tune/collective_tune.h"
#include "tools/tune/tune.h"
#include "tools/tune/tune_report.h"
#include "transports/loader/loader.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;
using Stub = AdminClient::Stub;

constexpr int kFailure = 1;
constexpr int kUsageError = 2;
constexpr uint64_t kTimeoutMs = 3000;
constexpr char kClearScreen[] = "\033[H\033[2J";

struct Arguments {
  bool json = false;
  bool now = false;
  bool release = false;
  uint32_t interval_ms = 1000;
  uint32_t pictures = 0;  // 0: without end
  std::string rank;
  std::string action;  // of `trace`
  std::string output;  // empty: standard output
  CertsPlan certs;
  TunePlan tune;
  bool serve = false;
  bool tune_collectives = false;
  CollectivePlan collectives;
  std::optional<std::string> tune_output;
  std::optional<uint32_t> repetitions;
  std::vector<std::string> options;
};

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintJson(const ordered_json& value, int indent = 2) {
  // Names may hold any bytes; what is no UTF-8 is replaced.
  Print(value.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

StatusOr<AdminClient> Connect(const Arguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  StatusOr<AdminClient> client = AdminClient::Connect(options->run_directory, kTimeoutMs);
  if (client.status().code() == ErrorCode::kPermissionDenied) {
    return Status(ErrorCode::kPermissionDenied,
                  client.status().message() + "; `ferryctl status` shows what is your own");
  }
  return client;
}

// The whole status for administrators; for others, what is their own.
StatusOr<control::StatusReply> FetchStatus(const Arguments& arguments) {
  const StatusOr<AdminClient> client = Connect(arguments);
  if (client.ok()) {
    return client->daemon();
  }
  if (client.status().code() != ErrorCode::kPermissionDenied) {
    return client.status();
  }
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  const StatusOr<LauncherClient> user = LauncherClient::Connect(options->run_directory, kTimeoutMs);
  FERRY_RETURN_IF_ERROR(user.status());
  return user->daemon();
}

Status ShowStatus(const Arguments& arguments) {
  const StatusOr<control::StatusReply> reply = FetchStatus(arguments);
  FERRY_RETURN_IF_ERROR(reply.status());
  const View view = MakeView(*reply);
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return {};
}

// One question whose answer is shown.
template <typename Request, typename Reply>
Status Ask(const Arguments& arguments,
           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
           const Request& request = {}) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  Reply reply;
  FERRY_RETURN_IF_ERROR(client->Call(method, request, &reply));
  const View view = MakeView(reply);
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return {};
}

// One order, confirmed with a sentence.
template <typename Request, typename Reply>
Status Order(const Arguments& arguments,
             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const Request& request, const char* done) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  Reply reply;
  FERRY_RETURN_IF_ERROR(client->Call(method, request, &reply));
  const uint32_t pid = client->daemon().pid();
  arguments.json ? PrintJson({{"pid", pid}})
                 : Print("ferryd (pid " + std::to_string(pid) + ") " + done + "\n");
  return {};
}

Status TakeSample(const AdminClient& client, TopSample* sample) {
  control::CountersRequest all;
  all.set_rank(-1);
  sample->time_ns = MonotonicNs();
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Status, control::StatusRequest(), &sample->status));
  FERRY_RETURN_IF_ERROR(
      client.Call(&Stub::Sessions, control::SessionsRequest(), &sample->sessions));
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Counters, all, &sample->counters));
  return client.Call(&Stub::Nics, control::NicsRequest(), &sample->nics);
}

Status Counters(const Arguments& arguments) {
  control::CountersRequest request;
  request.set_rank(-1);
  if (!arguments.rank.empty()) {
    const StatusOr<RankName> name = ParseRankName(arguments.rank);
    FERRY_RETURN_IF_ERROR(name.status());
    request.set_job_id(name->job_id);
    request.set_rank(static_cast<int32_t>(name->rank));
  }
  return Ask(arguments, &Stub::Counters, request);
}

// JOB.RANK, or JOB for all its ranks here. A job's name may look like a rank's.
Status Why(const Arguments& arguments) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  const auto& jobs = client->daemon().jobs();
  const bool is_job = std::any_of(jobs.begin(), jobs.end(), [&](const control::JobStatus& job) {
    return job.job_id() == arguments.rank;
  });
  control::WhyRequest request;
  if (is_job) {
    request.set_job_id(arguments.rank);
    request.set_all_ranks(true);
  } else {
    const StatusOr<RankName> name = ParseRankName(arguments.rank);
    FERRY_RETURN_IF_ERROR(name.status());
    request.set_job_id(name->job_id);
    request.set_rank(name->rank);
  }
  control::WhyReply reply;
  FERRY_RETURN_IF_ERROR(client->Call(&Stub::Why, request, &reply));
  const View view = WhyView(request.job_id(), is_job, reply);
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return {};
}

Status Watch(const Arguments& arguments) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::WatchRequest request;
  request.set_interval_ms(arguments.interval_ms);
  grpc::ClientContext context;
  const auto stream = client->stub().Watch(&context, request);
  control::StatusReply reply;
  while (stream->Read(&reply)) {
    const View view = MakeView(reply);
    arguments.json ? PrintJson(view.json, -1) : Print(view.text + "\n");
  }
  return client->FromGrpc(stream->Finish());
}

// The daemon sends, this program writes: under the caller's rights.
Status Trace(const Arguments& arguments) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  if (arguments.action == "start") {
    control::StartTraceReply reply;
    FERRY_RETURN_IF_ERROR(client->Call(&Stub::StartTrace, control::StartTraceRequest(), &reply));
    arguments.json ? PrintJson({{"done", true}})
                   : Print("ferryd " + client->daemon().node().name() +
                           " records; `ferryctl trace stop --output FILE` ends it\n");
    return {};
  }
  const StatusOr<TraceCounts> counts = FetchTrace(*client, arguments.output);
  FERRY_RETURN_IF_ERROR(counts.status());
  if (arguments.output.empty()) {
    return {};
  }
  arguments.json ? PrintJson({{"file", arguments.output},
                              {"records", counts->records},
                              {"dropped_records", counts->dropped}})
                 : Print(TraceText(arguments.output, *counts));
  return {};
}

// Rates between a look and the next, until the count is reached or somebody ends it.
Status Top(const Arguments& arguments) {
  const StatusOr<AdminClient> client = Connect(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  const bool redraw = isatty(STDOUT_FILENO) == 1 && !arguments.json && arguments.pictures != 1;
  TopSample before;
  FERRY_RETURN_IF_ERROR(TakeSample(*client, &before));
  for (uint32_t n = 0; arguments.pictures == 0 || n < arguments.pictures; ++n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(arguments.interval_ms));
    TopSample after;
    FERRY_RETURN_IF_ERROR(TakeSample(*client, &after));
    const View view = TopView(after.status, RatesBetween(before, after));
    if (arguments.json) {
      PrintJson(view.json, -1);
    } else {
      Print((redraw ? kClearScreen : n > 0 ? "\n" : "") + view.text);
    }
    before = std::move(after);
  }
  return {};
}

// Needs no daemon. Problems make it fail.
Status Doctor(const Arguments& arguments) {
  const std::vector<Finding> findings = Examine(arguments.options);
  const View view = DoctorView(findings);
  arguments.json ? PrintJson(view.json) : Print(view.text);
  return IsHealthy(findings) ? Status()
                             : Status(ErrorCode::kSystem, "doctor found problems: see above");
}

// Asks no daemon. For as long as somebody may measure.
Status ServeTune(const config::Options& options, const Arguments& arguments) {
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

// By jobs, which ask what daemon there is.
Status TuneMpi(const Arguments& arguments) {
  CollectivePlan plan = arguments.collectives;
  plan.sizes = arguments.tune.sizes;
  plan.force = arguments.tune.force;
  plan.output = arguments.tune_output.value_or(plan.output);
  plan.rounds = arguments.repetitions.value_or(plan.rounds);
  plan.options = arguments.options;
  const StatusOr<CollectiveResult> result = TuneCollectives(plan);
  FERRY_RETURN_IF_ERROR(result.status());
  if (arguments.json) {
    ordered_json json = CollectiveJson(*result);
    json["file"] = plan.output;
    PrintJson(json);
  } else {
    Print(CollectiveText(*result) + "\n" + plan.output +
          " has the rules. For jobs: ferryrun --collective_table=" + plan.output + "\n");
  }
  return {};
}

// But for collectives, asks no daemon.
Status Tune(const Arguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  if (arguments.tune_collectives) {
    return TuneMpi(arguments);
  }
  if (arguments.serve) {
    return ServeTune(*options, arguments);
  }
  TunePlan plan = arguments.tune;
  plan.output = arguments.tune_output.value_or(plan.output);
  plan.repetitions = arguments.repetitions.value_or(plan.repetitions);
  const StatusOr<TuneResult> result = MeasureAndWrite(*options, plan);
  FERRY_RETURN_IF_ERROR(result.status());
  const std::string plot = PlotPath(plan);
  if (arguments.json) {
    ordered_json json = TuneJson(*result);
    json["files"] = {{"options", plan.output}, {"plot", plot}};
    PrintJson(json);
  } else {
    Print(TuneText(*result) + "\n" + plan.output + " has these options, " + plot +
          " the curves. For ferryd: --config_file=" + plan.output +
          ", or put the options into its ferryd.toml.\n");
  }
  return {};
}

Status ShowOptions(const Arguments& arguments) {
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
  arguments.json ? PrintJson(json) : Print(table.Text());
  return {};
}

// Asks no daemon.
Status Certs(const Arguments& arguments) {
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
Status ShowVersion(const Arguments& arguments) {
  const StatusOr<control::StatusReply> status = FetchStatus(arguments);
  const std::string daemon = status.ok() ? "the same versions, pid " + std::to_string(status->pid())
                                         : status.status().message();
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
  Status (*run)(const Arguments&);
  enum { kNoRank, kMayNameRank, kMustNameRank } rank = kNoRank;
};

constexpr Command kCommands[] = {
    {"status", "The daemon, its jobs and the daemons it knows", ShowStatus},
    {"sessions", "The ranks that are attached",
     [](const Arguments& a) { return Ask(a, &Stub::Sessions); }},
    {"counters", "All counters, or those of one rank", Counters, Command::kMayNameRank},
    {"nics", "The network interfaces in use",
     [](const Arguments& a) { return Ask(a, &Stub::Nics); }},
    {"gpus", "The devices", [](const Arguments& a) { return Ask(a, &Stub::Gpus); }},
    {"why", "What a rank waits for, and why; or each rank of a job", Why, Command::kMustNameRank},
    {"top", "Rates of ranks, paths and network, again and again", Top},
    {"trace", "Records what the daemon does, for ui.perfetto.dev", Trace},
    {"faults", "The faults that the daemon was told to have, for tests",
     [](const Arguments& a) {
       control::FaultsRequest request;
       request.set_release(a.release);
       return Ask(a, &Stub::Faults, request);
     }},
    {"doctor", "What on this machine keeps Ferry from working, or working well", Doctor},
    {"drain", "Take no new jobs; running ones go on",
     [](const Arguments& a) { return Order(a, &Stub::Drain, {}, "takes no new jobs"); }},
    {"shutdown", "Stop once the ranks have left",
     [](const Arguments& a) {
       control::ShutdownRequest request;
       request.set_now(a.now);
       return Order(a, &Stub::Shutdown, request,
                    a.now ? "stops now" : "stops once its ranks have left");
     }},
    {"watch", "The status, again after every change", Watch},
    {"tune", "Measures, and chooses options of the pipeline, or algorithms of collectives", Tune},
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

void AddTuneArguments(CLI::App* subcommand, Arguments* arguments) {
  TunePlan* plan = &arguments->tune;
  subcommand->add_option("--output", arguments->tune_output,
                         "file for the result (ferry-tune.toml, ferry-collectives.toml)");
  CLI::Option* plot = subcommand->add_option(
      "--plot", plan->plot, "file for the picture, SVG (as --output, but ending in .svg)");
  subcommand->add_flag("--force", plan->force, "replace files that are there");
  CLI::Option* device =
      subcommand->add_option("--device", plan->device, "which device of the GPU backend (0)");
  subcommand
      ->add_option("--sizes", plan->sizes,
                   "what to measure (16,4K,8K,...,4M; of collectives 8,64,512,4K,16K,...,1M)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(CLI::AsSizeValue(false));
  subcommand
      ->add_option("--repetitions", arguments->repetitions,
                   "of each size (15, medians count; of collectives 3, the shortest times do)")
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
  subcommand
      ->add_option("--job", arguments->collectives.job,
                   "of these: ferryrun's flags for the jobs (\"-n CPUS\")")
      ->needs(collectives);
  subcommand
      ->add_option("--collective", arguments->collectives.collectives,
                   "of these: only some, such as bcast,allreduce (all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(collectives);
}

// Fills in `arguments` and returns the command chosen.
const Command* Parse(CLI::App* app, int argc, const char* const* argv, Arguments* arguments) {
  app->require_subcommand(1);
  app->fallthrough();
  app->add_flag("--json", arguments->json, "print JSON");
  AddOptionFlags(app, &arguments->options);
  app->footer(
      "--run_directory=DIRECTORY chooses the daemon. The other options of ferryd may be given as\n"
      "flags too; they matter to `config` and `tune`.");
  const Command* chosen = nullptr;
  for (const Command& command : kCommands) {
    CLI::App* subcommand = app->add_subcommand(command.name, command.help);
    subcommand->fallthrough();  // --json and the options may follow the command
    subcommand->callback([&chosen, &command] { chosen = &command; });
    if (command.rank != Command::kNoRank) {
      const bool or_job = command.run == Why;
      subcommand
          ->add_option(
              "JOB.RANK", arguments->rank,
              or_job ? "a rank, as sessions lists it; or a job" : "a rank, as sessions lists it")
          ->required(command.rank == Command::kMustNameRank);
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
    if (command.run == Watch) {
      subcommand->add_option("--interval-ms", arguments->interval_ms,
                             "also after so many milliseconds (1000)");
    }
    if (command.run == Trace) {
      subcommand->add_option("ACTION", arguments->action, "start, or stop and get the trace")
          ->required()
          ->check(CLI::IsMember({"start", "stop"}));
      subcommand->add_option("--output", arguments->output,
                             "stop: the file for the trace (standard output)");
    }
    if (command.run == Tune) {
      AddTuneArguments(subcommand, arguments);
    }
    if (command.run == Certs) {
      AddCertsArguments(subcommand, &arguments->certs);
    }
    if (std::string_view(command.name) == "faults") {
      subcommand->add_flag("--release", arguments->release, "let go on what stands still");
    }
    if (std::string_view(command.name) == "shutdown") {
      subcommand->add_flag("--now", arguments->now, "do not wait for the ranks");
    }
  }
  AddInformation(app, std::string("ferryctl ") + kFerryVersion);
  app->parse(argc, argv);
  return chosen;
}

int Run(int argc, char** argv) {
  CLI::App app("Looks at a ferryd, and stops it.", "ferryctl");
  Arguments arguments;
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
