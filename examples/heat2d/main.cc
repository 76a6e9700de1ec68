// heat2d: a heat problem whose rows travel between ranks, nodes and device memories through Ferry.
//
// Rank 0 reads an image; the ranks hold slabs of its rows in device memory and exchange halo rows
// in each iteration; rank 0 collects the result and compares it with a serial solve.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include "examples/common/traffic.h"
#include "examples/heat2d/arguments.h"
#include "examples/heat2d/domain.h"
#include "examples/heat2d/image.h"
#include "examples/heat2d/solver.h"
#include "ferry/ferry.hpp"

namespace heat2d {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSumTolerance = 1e-12;  // relative: the ranks add up in another order
constexpr int kSizeTag = 101;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

int Fail(const std::string& reason) {
  std::printf("demo: FAIL: %s\n", reason.c_str());
  return 1;
}

// Reads the image on rank 0 and tells the others its size. False everywhere if there is no image
// that gives every rank a row; rank 0 has then said why.
bool ShareImage(const ferry::Session& session, const std::string& path, Image* image) {
  int size[2] = {0, 0};
  if (session.rank() == 0) {
    std::string error;
    if (LoadImage(path, image, &error)) {
      if (image->width >= 3 && image->height - 2 >= session.size()) {
        size[0] = image->width;
        size[1] = image->height;
      } else {
        error = path + ": " + std::to_string(image->width) + " x " + std::to_string(image->height) +
                " is too small: " + std::to_string(session.size()) + " ranks need at least 3 x " +
                std::to_string(session.size() + 2) + " (an interior row each)";
      }
    }
    if (!error.empty()) {
      Fail(error);
    }
    for (int rank = 1; rank < session.size(); ++rank) {
      ferry::Request::Send(size, sizeof(size), rank, kSizeTag).Wait();
    }
  } else {
    ferry::Request::Receive(size, sizeof(size), 0, kSizeTag).Wait();
    image->width = size[0];
    image->height = size[1];
  }
  return size[0] > 0;
}

// Compares with a serial solve. Both do the same arithmetic on each point in the same order, so
// every point must be equal to the last bit; only the ranks' sums are added up in another order.
int CheckResult(const Image& initial, const Image& result, double interior_sum, int iterations) {
  const auto start = Clock::now();
  const Image serial = SolveSerially(initial, iterations);
  const double seconds = Seconds(Clock::now() - start);
  double largest = 0;
  double serial_sum = 0;
  for (int row = 0; row < serial.height; ++row) {
    for (int column = 0; column < serial.width; ++column) {
      const size_t i = static_cast<size_t>(row) * static_cast<size_t>(serial.width) +
                       static_cast<size_t>(column);
      largest = std::max(largest, std::abs(serial.values[i] - result.values[i]));
      serial_sum += row == 0 || row == serial.height - 1 ? 0 : serial.values[i];
    }
  }
  const double sum_error =
      std::abs(interior_sum - serial_sum) / std::max(1.0, std::abs(serial_sum));
  std::printf("serial solve: %.3f s; largest difference %g (must be 0), sum %.9g differs by %.1e\n",
              seconds, largest, serial_sum, sum_error);
  if (largest != 0) {
    return Fail("the result differs from the serial solve by " + std::to_string(largest));
  }
  if (!(sum_error <= kSumTolerance)) {
    return Fail("the sum differs from the serial solve's");
  }
  return 0;
}

int Run(const ferry::Session& session, const Arguments& arguments) {
  Image initial;
  if (!ShareImage(session, arguments.image, &initial)) {
    return session.rank() == 0 ? 1 : 0;  // the one that said why has failed
  }
  Domain domain(session, initial);
  const std::vector<uint64_t> before = examples::ReadCounters();
  ferry::Check(ferry_barrier());
  const auto start = Clock::now();
  for (int i = 0; i < arguments.iterations; ++i) {
    domain.Step();
  }
  ferry::Check(ferry_barrier());
  const double seconds = Seconds(Clock::now() - start);
  const std::vector<uint64_t> traffic = examples::TrafficSince(session, before);
  const double sum = domain.Sum();
  Image result = initial;
  domain.Gather(&result);
  if (session.rank() != 0) {
    return 0;
  }

  std::printf("heat2d: %d x %d points, %d iterations, %d ranks on %s\n", initial.width,
              initial.height, arguments.iterations, session.size(),
              examples::NodesText(session).c_str());
  std::printf("time: %.3f s, %.1f us per iteration\n%s", seconds,
              seconds * 1e6 / std::max(arguments.iterations, 1),
              examples::TrafficText(traffic).c_str());
  if (arguments.check && CheckResult(initial, result, sum, arguments.iterations) != 0) {
    return 1;
  }
  std::string error;
  if (!SaveHeatMap(arguments.output, result, &error)) {
    return Fail(error);
  }
  std::printf("picture: %s\ndemo: PASS\n", arguments.output.c_str());
  return 0;
}

}  // namespace
}  // namespace heat2d

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a printed line is not lost, whatever happens next
  try {
    const ferry::Session session;
    heat2d::Arguments arguments;
    int exit_code = 0;
    if (heat2d::ParseArguments(argc, argv, session.rank() == 0, &arguments, &exit_code)) {
      exit_code = heat2d::Run(session, arguments);
    }
    return exit_code;
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "heat2d: %s\n", error.what());
    return 1;
  }
}
