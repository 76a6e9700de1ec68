// Vectors are added by a kernel whose work-groups send their sums: the smallest program with
// partitions that a kernel readies.
//
//   ferryrun -n 2 partitioned_vector_add [PARTITIONS ELEMENTS]
//
// The ranks stand in a ring. In each step a rank's kernel adds two vectors of PARTITIONS x ELEMENTS
// numbers, and their sum goes to the next rank. With partitions, each work-group readies those that
// it has added, and the host does nothing between the launch and the wait. In the plain way the
// host waits for the kernel, then calls MPI_Sendrecv. The received sums are compared with a
// formula.
#include <mpi.h>
#include <mpix.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "examples/common/two_ways.h"
#include "examples/partitioned_vector_add/kernel.h"
#include "ferry/device/emulated.h"
#include "ferry/stream.hpp"

namespace {

// Groups of one thread: emulated threads that meet cost more than their additions.
constexpr ferry::device::Shape kLaunch = {4, 1};
constexpr int kSteps = 20;
constexpr int kTag = 0;
constexpr int kDevice = 0;

struct Shape {
  int partitions = 8;
  int elements = 4096;  // of a partition
  int total() const { return partitions * elements; }
};

double XOf(int rank, int i) { return rank + i % 101; }
double YOf(int rank, int i) { return 2.0 * rank + i % 7; }

// The argument of the function that a stream runs as a kernel.
struct Work {
  const Shape* shape;
  const double* x;
  const double* y;
  double* sum;
  MPIX_Prequest send;
  std::atomic<int> status = MPIX_DEVICE_SUCCESS;
};

void Kernel(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  ferry::device::Launch(kLaunch, [&] {
    const int status =
        vector_add(work.x, work.y, work.sum, static_cast<ferry_device_u64>(work.shape->elements),
                   work.shape->partitions, work.send);
    if (status != MPIX_DEVICE_SUCCESS) {
      work.status = status;
    }
  });
}

// One rank's vectors, in device memory, and its place in the ring.
class Ring {
 public:
  explicit Ring(const Shape& shape)
      : shape_(shape), x_(Numbers()), y_(Numbers()), sum_(Numbers()), in_(Numbers()) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next_ = (rank + 1) % ranks;
    previous_ = (rank + ranks - 1) % ranks;
    for (int i = 0; i < shape.total(); ++i) {
      x_.data()[i] = XOf(rank, i);
      y_.data()[i] = YOf(rank, i);
    }
    MakeRequests();
  }
  ~Ring() {
    stream_.Synchronize();
    MPIX_Prequest_free(&with_.send);
    MPI_Request_free(&requests_[0]);
    MPI_Request_free(&requests_[1]);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void Forget() {
    stream_.Synchronize();
    for (int i = 0; i < shape_.total(); ++i) {
      sum_.data()[i] = in_.data()[i] = 0;
    }
  }

  void StepsWithPartitions(int steps) {
    for (int step = 0; step < steps; ++step) {
      MPI_Startall(2, requests_);
      MPIX_Pbuf_prepare(requests_[0]);  // so that the kernel itself can move ready partitions
      stream_.Launch(Kernel, &with_);
      MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
    }
  }

  void StepsAfterSynchronising(int steps) {
    for (int step = 0; step < steps; ++step) {
      stream_.Launch(Kernel, &without_);
      stream_.Synchronize();
      MPI_Sendrecv(sum_.data(), shape_.total(), MPI_DOUBLE, next_, kTag, in_.data(), shape_.total(),
                   MPI_DOUBLE, previous_, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }

  bool IsRight() const {
    for (int i = 0; i < shape_.total(); ++i) {
      if (in_.data()[i] != XOf(previous_, i) + YOf(previous_, i)) {
        return false;
      }
    }
    return with_.status == MPIX_DEVICE_SUCCESS && without_.status == MPIX_DEVICE_SUCCESS;
  }

 private:
  ferry::Buffer<double> Numbers() const {
    return ferry::Buffer<double>(static_cast<size_t>(shape_.total()), FERRY_MEMORY_DEVICE, kDevice);
  }

  void MakeRequests() {
    MPI_Psend_init(sum_.data(), shape_.partitions, shape_.elements, MPI_DOUBLE, next_, kTag,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests_[0]);
    MPI_Precv_init(in_.data(), shape_.partitions, shape_.elements, MPI_DOUBLE, previous_, kTag,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests_[1]);
    MPIX_Prequest_create(requests_[0], kDevice, MPI_INFO_NULL, &with_.send);
  }

  const Shape& shape_;
  int next_ = 0;
  int previous_ = 0;
  ferry::Buffer<double> x_;
  ferry::Buffer<double> y_;
  ferry::Buffer<double> sum_;
  ferry::Buffer<double> in_;
  ferry::Stream stream_{kDevice};
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // send, receive
  Work with_ = {&shape_, x_.data(), y_.data(), sum_.data(), MPIX_PREQUEST_NULL};
  Work without_ = {&shape_, x_.data(), y_.data(), sum_.data(), MPIX_PREQUEST_NULL};
};

bool Run(const Shape& shape) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Ring ring(shape);
  examples::Ways ways;
  ways.begin = [&] { ring.Forget(); };
  ways.partitioned = [&](int steps) { ring.StepsWithPartitions(steps); };
  ways.plain = [&](int steps) { ring.StepsAfterSynchronising(steps); };
  ways.is_right = [&] { return ring.IsRight(); };
  bool is_right = false;
  const examples::TwoWays times = examples::MeasureInTurns(ways, kSteps, &is_right);
  examples::ReportTwoWays(std::to_string(shape.partitions) + " partitions of " +
                              std::to_string(shape.elements) + " elements",
                          times, std::to_string(ranks) + " ranks, sums as they have to be",
                          is_right);
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernels are functions of this program.
  setenv("FERRY_GPU_BACKEND", "host", 1);
  constexpr int kMost = 1 << 16;
  Shape shape;
  if (argc == 3) {
    shape = {examples::NumberIn(argv[1], 1, kMost), examples::NumberIn(argv[2], 1, kMost)};
  }
  if ((argc != 1 && argc != 3) || shape.partitions == 0 || shape.elements == 0 ||
      shape.partitions > (1 << 24) / shape.elements) {
    std::fprintf(stderr,
                 "usage: partitioned_vector_add [PARTITIONS ELEMENTS], each a number from 1 to %d, "
                 "their product at most %d\n",
                 kMost, 1 << 24);
    return 2;
  }
  MPI_Init(&argc, &argv);
  bool is_right = false;
  try {
    is_right = Run(shape);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "partitioned_vector_add: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
