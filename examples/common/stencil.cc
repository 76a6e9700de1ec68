#include "examples/common/stencil.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

#include "examples/common/traffic.h"
#include "ferry/ferry.hpp"

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGatherTag = 200;
constexpr int kTurns = 5;
constexpr double kQuickCheckPoints = 1e9;  // computed in about a second

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// One way to exchange faces, and the time that it took so far.
class Way {
 public:
  Way(const ferry::Session& session, const Problem& problem, bool naive)
      : session_(session),
        part_(problem.MakePart(session.rank())),
        exchange_(naive ? NumbersOf(*part_) : 0),
        traffic_(static_cast<size_t>(ferry_counter_count())) {
    // Lanes and links are made when they are first used. The halos get the same values again later.
    exchange_.Start(part_->PackFaces());
    exchange_.Finish();
    warm_up_bytes_ = exchange_.staged_bytes();
  }

  const Part& part() const { return *part_; }
  double seconds() const { return seconds_; }

  // Collective.
  void Iterate(int iterations) {
    const std::vector<uint64_t> before = ReadCounters();
    ferry::Check(ferry_barrier());
    const auto start = Clock::now();
    for (int i = 0; i < iterations; ++i) {
      exchange_.Start(part_->PackFaces());
      part_->ComputeInside();
      exchange_.Finish();
      part_->ComputeRest();
    }
    ferry::Check(ferry_barrier());
    seconds_ += Seconds(Clock::now() - start);
    const std::vector<uint64_t> added = TrafficSince(session_, before);
    std::transform(added.begin(), added.end(), traffic_.begin(), traffic_.begin(), std::plus<>());
  }

  // Collective; rank 0 speaks.
  void Report(const char* name, int iterations) const {
    const uint64_t staged_bytes = SumOfRanks(session_, exchange_.staged_bytes() - warm_up_bytes_);
    if (session_.rank() != 0) {
      return;
    }
    std::printf("%s: %.3f s, %.1f us per iteration\n%s", name, seconds_,
                seconds_ * 1e6 / std::max(iterations, 1), TrafficText(traffic_).c_str());
    if (staged_bytes > 0) {
      std::printf("  copied by hand, through host memory: %llu bytes\n",
                  static_cast<unsigned long long>(staged_bytes));
    }
  }

 private:
  static size_t NumbersOf(Part& part) {
    size_t numbers = 0;
    for (const Face& face : part.PackFaces()) {
      numbers += face.count;
    }
    return numbers;
  }

  const ferry::Session& session_;
  const std::unique_ptr<Part> part_;
  Exchange exchange_;
  std::vector<uint64_t> traffic_;  // of all ranks; on rank 0
  uint64_t warm_up_bytes_ = 0;
  double seconds_ = 0;
};

// Collective. Returns an empty text on rank 0 if every rank's points are those of `serial` to the
// last bit, else one that names the difference.
std::string Difference(const ferry::Session& session, const Problem& problem, const Part& part,
                       const std::vector<double>& serial) {
  const std::vector<double> mine = part.Values();
  ferry::Request send =
      ferry::Request::Send(mine.data(), mine.size() * sizeof(double), 0, kGatherTag);
  std::string difference;
  for (int rank = 0; session.rank() == 0 && rank < session.size(); ++rank) {
    const std::vector<double> wanted = problem.ValuesOf(serial, rank);
    std::vector<double> values(wanted.size());
    ferry::Request::Receive(values.data(), values.size() * sizeof(double), rank, kGatherTag).Wait();
    size_t wrong = 0;
    double largest = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      wrong += std::bit_cast<uint64_t>(values[i]) != std::bit_cast<uint64_t>(wanted[i]) ? 1 : 0;
      largest = std::max(largest, std::abs(values[i] - wanted[i]));
    }
    if (wrong > 0 && difference.empty()) {
      difference = "rank " + std::to_string(rank) + " differs from the serial solve at " +
                   std::to_string(wrong) + " of " + std::to_string(values.size()) +
                   " points, by up to " + std::to_string(largest);
    }
  }
  send.Wait();
  return difference;
}

// Collective. Runs each way; where there are two they take turns, so that a disturbance of the
// machine hits both alike. False if a result is wrong, which rank 0 has then said.
bool Solve(const ferry::Session& session, const StencilProgram& program,
           const StencilArguments& arguments, const Problem& problem,
           const std::vector<double>* serial) {
  constexpr const char* kNames[] = {"straight", "staged by hand"};
  std::vector<std::pair<const char*, std::unique_ptr<Way>>> ways;
  for (const bool naive : {false, true}) {
    if (arguments.mode != (naive ? Mode::kDirect : Mode::kNaive)) {
      ways.emplace_back(kNames[naive ? 1 : 0], std::make_unique<Way>(session, problem, naive));
    }
  }
  const int turns = ways.size() > 1 ? kTurns : 1;
  for (int turn = 0; turn < turns; ++turn) {
    const int first = arguments.iterations / turns * turn;
    const int last = turn + 1 < turns ? first + arguments.iterations / turns : arguments.iterations;
    for (const auto& [name, way] : ways) {
      way->Iterate(last - first);
    }
  }
  for (const auto& [name, way] : ways) {
    way->Report(name, arguments.iterations);
    const std::string difference =
        serial == nullptr ? "" : Difference(session, problem, way->part(), *serial);
    if (!difference.empty()) {
      std::printf("%s: FAIL: %s: %s\n", program.name, name, difference.c_str());
      return false;
    }
  }
  if (session.rank() == 0 && ways.size() > 1) {
    std::printf("staged by hand / straight: %.2f\n",
                ways[1].second->seconds() / ways[0].second->seconds());
  }
  return true;
}

int Run(const ferry::Session& session, const StencilProgram& program,
        const StencilArguments& arguments, const Problem& problem) {
  const bool check = arguments.check.value_or(problem.PointsPerIteration() * arguments.iterations <=
                                              kQuickCheckPoints);
  const bool speak = session.rank() == 0;
  std::vector<double> serial;
  const auto start = Clock::now();
  if (speak && check) {
    serial = problem.SolveSerially(arguments.iterations);
  }
  const double serial_seconds = Seconds(Clock::now() - start);
  if (speak) {
    std::printf("%s: %s, %d iterations, on %s, %s memory\n", program.name,
                problem.Describe().c_str(), arguments.iterations, NodesText(session).c_str(),
                std::string(NameOf(arguments.memory)).c_str());
  }
  if (!Solve(session, program, arguments, problem, check ? &serial : nullptr)) {
    return 1;
  }
  if (speak && check) {
    std::printf("serial solve: %.3f s; every point equal to the last bit\n%s: PASS\n",
                serial_seconds, program.name);
  } else if (speak) {
    std::printf("%s: DONE, not compared with a serial solve (--check does)\n", program.name);
  }
  return 0;
}

}  // namespace

int StencilMain(int argc, char** argv, const StencilProgram& program, const MakeProblem& make) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a printed line is not lost, whatever happens next
  try {
    const ferry::Session session;
    StencilArguments arguments;
    int exit_code = 0;
    if (!ParseArguments(argc, argv, program, session.rank() == 0, &arguments, &exit_code)) {
      return exit_code;
    }
    std::string mistake;
    const std::unique_ptr<Problem> problem = make(arguments, session.size(), &mistake);
    if (problem == nullptr) {
      if (session.rank() == 0) {
        std::fprintf(stderr, "%s: %s\n", program.name, mistake.c_str());
      }
      return 2;
    }
    return Run(session, program, arguments, *problem);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.name, error.what());
    return 1;
  }
}

}  // namespace examples
