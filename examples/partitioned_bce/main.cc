// The loss of a network that is trained by all ranks: binary cross-entropy by a kernel, then the
// sum over the ranks by a partitioned allreduce.
//
//   ferryrun -n 4 partitioned_bce [OUTPUTS BATCH]
//
// Each rank has BATCH samples of a network with OUTPUTS outputs. The kernel computes the loss of
// each output, part after part, and readies each. So the sum of one part is on its way while the
// kernel makes the next, and the host waits for the sums alone. In the plain way the host waits for
// the kernel, then calls MPI_Allreduce. Both are compared with what one rank computes alone.
#include <mpi.h>
#include <mpix.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "examples/common/two_ways.h"
#include "examples/partitioned_bce/kernel.h"
#include "ferry/device/emulated.h"
#include "ferry/stream.hpp"

namespace {

constexpr ferry::device::Shape kLaunch = {2, 1};
constexpr int kParts = 8;
constexpr int kSteps = 20;
constexpr int kDevice = 0;

double PredictedBy(int rank, uint64_t at) {
  return static_cast<double>(1 + (static_cast<uint64_t>(rank) * 31 + at * 13) % 97) / 99;
}
double WantedBy(int rank, uint64_t at) {
  return static_cast<double>((static_cast<uint64_t>(rank) + at / 3) % 2);
}

// One rank's samples and losses, in device memory.
class Loss {
 public:
  Loss(const bce_shape& shape, int rank)
      : shape_(shape),
        predicted_(Outputs() * shape.batch, FERRY_MEMORY_DEVICE, kDevice),
        wanted_(Outputs() * shape.batch, FERRY_MEMORY_DEVICE, kDevice),
        losses_(Outputs(), FERRY_MEMORY_DEVICE, kDevice),
        sums_(Outputs(), FERRY_MEMORY_DEVICE, kDevice) {
    for (uint64_t i = 0; i < Outputs() * shape.batch; ++i) {
      predicted_.data()[i] = PredictedBy(rank, i);
      wanted_.data()[i] = WantedBy(rank, i);
    }
    MPIX_Pallreduce_init(losses_.data(), sums_.data(), kParts,
                         static_cast<MPI_Count>(shape.outputs), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &request_);
    MPIX_Prequest_create(request_, kDevice, MPI_INFO_NULL, &with_.allreduce);
  }
  ~Loss() {
    stream_.Synchronize();
    MPIX_Prequest_free(&with_.allreduce);
    MPI_Request_free(&request_);
  }
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  void Begin() { total_ = 0; }

  void StepsWithPartitions(int steps) {
    for (int step = 0; step < steps; ++step) {
      MPI_Start(&request_);
      stream_.Launch(Kernel, &with_);
      MPI_Wait(&request_, MPI_STATUS_IGNORE);  // NOLINT: MPI_Start has started it
      AddUp();
    }
  }

  void StepsAfterSynchronising(int steps) {
    for (int step = 0; step < steps; ++step) {
      stream_.Launch(Kernel, &without_);
      stream_.Synchronize();
      MPI_Allreduce(losses_.data(), sums_.data(), static_cast<int>(Outputs()), MPI_DOUBLE, MPI_SUM,
                    MPI_COMM_WORLD);
      AddUp();
    }
  }

  // The sum over all outputs and samples of all ranks.
  double total() const { return total_; }
  bool has_failed() const { return status_ != MPIX_DEVICE_SUCCESS; }
  uint64_t Outputs() const { return shape_.outputs * kParts; }

 private:
  // The argument of the function that a stream runs as a kernel.
  struct Work {
    Loss* loss;
    MPIX_Prequest allreduce;
  };
  static void Kernel(void* argument) {
    const Work& work = *static_cast<Work*>(argument);
    Loss& loss = *work.loss;
    ferry::device::Launch(kLaunch, [&] {
      const int status = bce_losses(loss.shape_, loss.predicted_.data(), loss.wanted_.data(),
                                    loss.losses_.data(), work.allreduce);
      if (status != MPIX_DEVICE_SUCCESS) {
        loss.status_ = status;
      }
    });
  }
  void AddUp() {
    total_ = 0;
    for (uint64_t i = 0; i < Outputs(); ++i) {
      total_ += sums_.data()[i];
    }
  }

  bce_shape shape_;
  ferry::Buffer<double> predicted_;
  ferry::Buffer<double> wanted_;
  ferry::Buffer<double> losses_;
  ferry::Buffer<double> sums_;
  double total_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  Work with_ = {this, MPIX_PREQUEST_NULL};
  Work without_ = {this, MPIX_PREQUEST_NULL};
  std::atomic<int> status_ = MPIX_DEVICE_SUCCESS;
  ferry::Stream stream_{kDevice};
};

// The total as one rank computes it alone, in another order.
double TotalOf(const bce_shape& shape, int ranks) {
  double total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (uint64_t i = 0; i < shape.outputs * kParts * shape.batch; ++i) {
      const double p = PredictedBy(rank, i);
      total -= WantedBy(rank, i) == 1 ? std::log(p) : std::log(1 - p);
    }
  }
  return total;
}

bool Run(int outputs, int batch) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bce_shape shape = {static_cast<ferry_device_u64>(outputs / kParts), kParts,
                           static_cast<ferry_device_u64>(batch)};
  Loss loss(shape, rank);
  const double wanted = TotalOf(shape, ranks);
  examples::Ways ways;
  ways.begin = [&] { loss.Begin(); };
  ways.partitioned = [&](int steps) { loss.StepsWithPartitions(steps); };
  ways.plain = [&](int steps) { loss.StepsAfterSynchronising(steps); };
  ways.is_right = [&] {
    return !loss.has_failed() && std::abs(loss.total() - wanted) <= 1e-10 * wanted;
  };
  bool is_right = false;
  const examples::TwoWays times = examples::MeasureInTurns(ways, kSteps, &is_right);
  char words[120];
  std::snprintf(words, sizeof(words), "%d ranks with %d samples, mean loss %.6f as of one rank",
                ranks, batch, loss.total() / outputs / batch / ranks);
  examples::ReportTwoWays(std::to_string(outputs) + " outputs", times, words, is_right);
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernels are functions of this program.
  setenv("FERRY_GPU_BACKEND", "host", 1);
  constexpr int kMostOutputs = 1 << 20;
  constexpr int kMostSamples = 64;
  int outputs = 32768;
  int batch = 4;
  if (argc == 3) {
    outputs = examples::NumberIn(argv[1], kParts, kMostOutputs);
    batch = examples::NumberIn(argv[2], 1, kMostSamples);
  }
  if ((argc != 1 && argc != 3) || outputs == 0 || outputs % kParts != 0 || batch == 0) {
    std::fprintf(stderr,
                 "usage: partitioned_bce [OUTPUTS BATCH]: a multiple of %d up to %d, and 1 to %d "
                 "samples\n",
                 kParts, kMostOutputs, kMostSamples);
    return 2;
  }
  MPI_Init(&argc, &argv);
  bool is_right = false;
  try {
    is_right = Run(outputs, batch);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "partitioned_bce: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
