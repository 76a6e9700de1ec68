#include "tools/ferrysim/paper.h"

#include <fstream>

#include "common/counted.h"
#include "tools/ferrysim/allreduce.h"
#include "tools/ferrysim/paper_results.h"

namespace ferry::sim {
namespace {

constexpr uint32_t kPaperRanks = 8192;
constexpr uint32_t kBeyondFirst = 8;
constexpr uint32_t kAllreduceFirst = 32;  // four nodes
constexpr uint32_t kBeyondFactor = 4;     // from point to point
constexpr uint32_t kEntriesRanks = 64;
// So many that the last ones, with no starts behind them, do not matter.
constexpr uint32_t kEntriesIterations = 40;
constexpr uint32_t kAllreduceRanks = 1024;
// Schedules are made by going through all ranks, for each rank.
constexpr uint32_t kMostAllreduce = 8192;

class Paper {
 public:
  Paper(const PaperPlan& plan, const Progress& progress) : plan_(plan), progress_(progress) {}

  // Writes what is known after each part: the last takes longest.
  Status Run() {
    for (const auto part :
         {&Paper::AddProblems, &Paper::AddTopologies, &Paper::AddEntries,
          &Paper::AddAllreduceByRanks, &Paper::AddAllreduceByBytes, &Paper::AddBeyond}) {
      FERRY_RETURN_IF_ERROR((this->*part)());
      FERRY_RETURN_IF_ERROR(Write());
    }
    return {};
  }

 private:
  HaloPlan Base(uint64_t cells, double ps_per_cell) const {
    HaloPlan base;
    base.machine = plan_.machine;
    base.cells = cells;
    base.ps_per_cell = ps_per_cell;
    base.warm_up = plan_.warm_up;
    base.iterations = plan_.iterations;
    base.seed = plan_.seed;
    return base;
  }

  Status Write() const {
    const std::pair<const char*, std::string> files[] = {
        {"strong_scaling.svg", ScalingPlot(runs_)}, {"edge_length.svg", EdgePlot(runs_)},
        {"entries.svg", EntriesPlot(runs_)},        {"allreduce.svg", AllreducePlot(runs_)},
        {"beyond.svg", BeyondPlot(runs_)},          {"results.md", PaperTables(runs_)}};
    for (const auto& [name, text] : files) {
      const std::string path = plan_.directory + "/" + name;
      std::ofstream file(path, std::ios::trunc);
      file << text;
      file.close();
      if (!file) {
        return {ErrorCode::kSystem, "cannot write " + path};
      }
    }
    return {};
  }

  Status AddProblems() {
    for (const PublishedProblem& problem : PublishedProblems()) {
      FERRY_RETURN_IF_ERROR(AddProblem(problem));
    }
    return {};
  }

  Status AddProblem(const PublishedProblem& published) {
    PaperRuns::Problem problem{.published = published, .curves = {}, .early_cpu = {}};
    ScalingPlan scaling{.base = Base(published.cells, 0),
                        .most_ranks = std::min(kPaperRanks, plan_.most_ranks)};
    const StatusOr<double> ps_per_cell = FitCells(scaling.base, published.one_rank_us);
    FERRY_RETURN_IF_ERROR(ps_per_cell.status());
    scaling.base.ps_per_cell = problem.ps_per_cell = *ps_per_cell;
    for (const SendKind kind :
         {SendKind::kReady, SendKind::kRegular, SendKind::kBounce, SendKind::kCpu}) {
      FERRY_RETURN_IF_ERROR(AddCurve(scaling, kind, &problem.curves[kind]));
    }
    scaling.base.machine.eager_bytes /= 2;
    FERRY_RETURN_IF_ERROR(AddCurve(scaling, SendKind::kCpu, &problem.early_cpu));
    runs_.problems.push_back(std::move(problem));
    return {};
  }

  Status AddCurve(const ScalingPlan& plan, SendKind kind, Curve* curve) const {
    StatusOr<Curve> points = RunScaling(plan, kind, progress_);
    FERRY_RETURN_IF_ERROR(points.status());
    *curve = std::move(*points);
    return {};
  }

  Status AddBeyond() {
    const PaperRuns::Problem& problem = runs_.problems.back();
    ScalingPlan scaling{.base = Base(problem.published.cells, problem.ps_per_cell),
                        .first_ranks = kBeyondFirst,
                        .factor = kBeyondFactor,
                        .most_ranks = plan_.most_ranks,
                        .most_nodes = UINT32_MAX,
                        .ranks_per_node = {8}};
    // Few, since every iteration takes the same time from the first on, and simulating them takes
    // long.
    scaling.base.starts_ahead = scaling.base.warm_up = scaling.base.iterations = 2;
    for (const SendKind kind : {SendKind::kReady, SendKind::kRegular, SendKind::kCpu}) {
      FERRY_RETURN_IF_ERROR(AddCurve(scaling, kind, &runs_.beyond[kind]));
    }
    return {};
  }

  Status AddTopologies() {
    const PaperRuns::Problem& problem = runs_.problems.front();
    for (const TopologyKind kind : {TopologyKind::kDragonfly, TopologyKind::kFatTree}) {
      ScalingPlan scaling{.base = Base(problem.published.cells, problem.ps_per_cell),
                          .most_ranks = std::min(kPaperRanks, plan_.most_ranks),
                          .most_nodes = UINT32_MAX,
                          .ranks_per_node = {8}};
      scaling.base.machine.topology.kind = kind;
      Curve curve;
      FERRY_RETURN_IF_ERROR(AddCurve(scaling, SendKind::kReady, &curve));
      Series series{.name = TopologyName(kind), .samples = {}};
      for (const ScalingPoint& point : curve) {
        series.samples.push_back(
            {.x = static_cast<double>(point.ranks), .time_us = point.iteration_us});
      }
      runs_.topologies.push_back(series);
    }
    return {};
  }

  Status AddEntries() {
    const PaperRuns::Problem& problem = runs_.problems.front();
    for (const SendKind kind : {SendKind::kRegular, SendKind::kReady}) {
      Series series{.name = SendKindName(kind), .samples = {}};
      for (uint32_t entries = 1; entries <= 512; entries *= 2) {
        HaloPlan halo = Base(problem.published.cells, problem.ps_per_cell);
        halo.send = kind;
        halo.ranks = kEntriesRanks;
        halo.machine.entries = entries;
        halo.iterations = kEntriesIterations;
        const StatusOr<HaloResult> result = RunHalo(halo);
        FERRY_RETURN_IF_ERROR(result.status());
        const auto& begun = result->counts.begun;
        const auto in_nic = static_cast<double>(begun[size_t(Placement::kNic)]);
        const auto in_daemon = static_cast<double>(begun[size_t(Placement::kDaemon)]);
        series.samples.push_back({.x = static_cast<double>(entries),
                                  .time_us = result->iteration_us,
                                  .software_percent = 100 * in_daemon / (in_nic + in_daemon)});
      }
      runs_.entries.push_back(series);
    }
    return {};
  }

  Status AddAllreduce(const AllreducePlan& plan, double x, Series* series) const {
    progress_("allreduce, " + series->name + ", " + Counted(plan.ranks, "rank") + ", " +
              Counted(static_cast<int64_t>(plan.bytes), "byte"));
    const StatusOr<AllreduceResult> result = RunAllreduce(plan);
    FERRY_RETURN_IF_ERROR(result.status());
    series->samples.push_back({.x = x, .time_us = result->iteration_us});
    return {};
  }

  Status AddAllreduceByRanks() {
    const struct {
      const char* name;
      const char* algorithm;
      bool on_nic;
    } kinds[] = {{"doubling, CPUs", "recursive_doubling", false},
                 {"doubling, NICs", "recursive_doubling", true},
                 {"by node, CPUs", "hierarchical", false},
                 {"by node, NICs", "hierarchical", true}};
    for (const auto& kind : kinds) {
      Series series{.name = kind.name, .samples = {}};
      for (uint32_t ranks = kAllreduceFirst; ranks <= std::min(kMostAllreduce, plan_.most_ranks);
           ranks *= kBeyondFactor) {
        const AllreducePlan plan{.machine = plan_.machine,
                                 .ranks = ranks,
                                 .algorithm = kind.algorithm,
                                 .on_nic = kind.on_nic,
                                 .iterations = 2};
        FERRY_RETURN_IF_ERROR(AddAllreduce(plan, ranks, &series));
      }
      runs_.allreduce_ranks.push_back(series);
    }
    return {};
  }

  Status AddAllreduceByBytes() {
    for (const bool on_nic : {false, true}) {
      Series series{.name = on_nic ? "Ferry's choice, NICs" : "Ferry's choice, CPUs",
                    .samples = {}};
      for (uint64_t bytes = 8; bytes <= 1 << 20; bytes *= 4) {
        const AllreducePlan plan{.machine = plan_.machine,
                                 .ranks = std::min(kAllreduceRanks, plan_.most_ranks),
                                 .bytes = bytes,
                                 .algorithm = "",
                                 .on_nic = on_nic};
        FERRY_RETURN_IF_ERROR(AddAllreduce(plan, static_cast<double>(bytes), &series));
      }
      runs_.allreduce_bytes.push_back(series);
    }
    return {};
  }

  const PaperPlan plan_;
  const Progress& progress_;
  PaperRuns runs_;
};

}  // namespace

Status MakePaper(const PaperPlan& plan, const Progress& progress) {
  if (plan.most_ranks < kEntriesRanks) {
    return {ErrorCode::kInvalidArgument, "at most " + Counted(plan.most_ranks, "rank") +
                                             ": the plots begin with " +
                                             std::to_string(kEntriesRanks)};
  }
  return Paper(plan, progress).Run();
}

}  // namespace ferry::sim
