// Kernels of an emulated device that ready partitions as they go, beside kernels whose end the host
// waits for before it sends; and what the calls cost that prepare this.
//
//   device goodput synchronised|COPY BATCH_MICROSECONDS BYTES...              on two ranks
//   device allreduce synchronised|partitioned BATCH_MICROSECONDS BYTES...     on any number
//   device calls                                                              on two ranks
//
// The kernel adds two vectors. goodput: rank 0's kernel makes what rank 1 gets. synchronised:
// launch, wait for the stream, MPI_Send. COPY (auto, kernel, host, daemon: ferry_partitioned_copy):
// one launch, whose work-groups ready a partition each (MPIX_Pready_work_group), and MPI_Wait.
// allreduce: the sums of all ranks are added up; partitioned: the host readies each part as soon as
// the kernel has made it. Rank 0 prints "BYTES MICROSECONDS", from the launch to the end of
// communication at the other ranks; calls prints "CALL MICROSECONDS".
//
// The device has one compute unit: the thread of the stream runs a launch's work-groups one after
// another, and starts no threads for them.
#include <mpi.h>
#include <mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// C headers, which count on sched_setaffinity and the like.
#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"
#include "ferry/device/partitioned.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"

namespace {

constexpr uint64_t kPartitionBytes = 8192;  // what a work-group of 1024 threads makes
constexpr int kMostPartitions = 64;
constexpr uint64_t kPartBytes = 65536;  // of the allreduce
constexpr int kMostParts = 8;
constexpr int kTimes = 31;
constexpr int kLaterRounds = 8;

#define FERRY_CHECK(call)                                                  \
  do {                                                                     \
    if ((call) != FERRY_SUCCESS) {                                         \
      std::fprintf(stderr, "device: %s: %s\n", #call, ferry_last_error()); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

// MPI's calls end the job when they fail (MPI_ERRORS_ARE_FATAL), and say why.

double* DeviceVector(uint64_t bytes) {
  void* memory = nullptr;
  FERRY_CHECK(ferry_alloc(bytes, FERRY_MEMORY_DEVICE, 0, &memory));
  return static_cast<double*>(memory);
}

// ---- The kernel --------------------------------------------------------------------------------

struct Kernel {
  const double* a = nullptr;
  const double* b = nullptr;
  double* sum = nullptr;
  uint64_t count = 0;  // of each partition
  int partitions = 0;
  MPIX_Prequest request = MPIX_PREQUEST_NULL;
  // A word of each partition, into which its group stores `round` when it is done; or null.
  ferry_device_u64* done = nullptr;
  uint64_t round = 0;
};

// A work-group's share: one partition.
void AddAndReady(const Kernel& kernel) {
  const int partition = static_cast<int>(ferry_device_group());
  const uint64_t begin = static_cast<uint64_t>(partition) * kernel.count;
  for (uint64_t i = begin; i < begin + kernel.count; ++i) {
    kernel.sum[i] = kernel.a[i] + kernel.b[i];
  }
  if (kernel.request != MPIX_PREQUEST_NULL) {
    (void)MPIX_Pready_work_group(partition, kernel.request);  // MPI_Wait says what is wrong
  }
  if (kernel.done != nullptr) {
    ferry_device_store_release(kernel.done + partition, kernel.round);
  }
}

// On the stream's thread.
void RunGroups(void* argument) {
  const Kernel& kernel = *static_cast<const Kernel*>(argument);
  const auto groups = static_cast<ferry_device_u32>(kernel.partitions);
  for (ferry_device_u32 group = 0; group < groups; ++group) {
    ferry_device_host_thread = {group, groups};
    AddAndReady(kernel);
  }
  ferry_device_host_thread = {0, 1};
}

double AddendOf(int rank, uint64_t i) { return static_cast<double>((rank + 1) * (i % 7 + 1)); }

// The vectors of one rank, and a stream.
class Device {
 public:
  Device(int rank, uint64_t most_bytes)
      : rank_(rank),
        a_(DeviceVector(most_bytes)),
        b_(DeviceVector(most_bytes)),
        sum_(DeviceVector(most_bytes)),
        in_(DeviceVector(most_bytes)) {
    for (uint64_t i = 0; i < most_bytes / sizeof(double); ++i) {
      a_[i] = AddendOf(rank, i);
      b_[i] = 1;
    }
    FERRY_CHECK(ferry_stream_create(0, &stream_));
  }
  ~Device() {
    (void)ferry_stream_destroy(&stream_);
    for (double* const vector : {a_, b_, sum_, in_}) {
      (void)ferry_free(vector);
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  double* sum() const { return sum_; }
  double* in() const { return in_; }

  // Each partition by a work-group. It must last as long as the launch.
  Kernel KernelFor(uint64_t count, int partitions, MPIX_Prequest request) const {
    Kernel kernel;
    kernel.a = a_;
    kernel.b = b_;
    kernel.sum = sum_;
    kernel.count = count;
    kernel.partitions = partitions;
    kernel.request = request;
    return kernel;
  }
  void Launch(Kernel* kernel) const {
    FERRY_CHECK(ferry_stream_launch(stream_, RunGroups, kernel));
  }
  void Synchronize() const { FERRY_CHECK(ferry_stream_synchronize(stream_)); }

  void Forget(uint64_t count) const {
    std::fill_n(sum_, count, 0.0);
    std::fill_n(in_, count, 0.0);
  }
  // Whether `in` is what ranks [first, last] have computed, added up.
  void Compare(uint64_t count, int first, int last) const {
    for (uint64_t i = 0; i < count; ++i) {
      double wanted = 0;
      for (int rank = first; rank <= last; ++rank) {
        wanted += AddendOf(rank, i) + 1;
      }
      if (in_[i] != wanted) {
        std::fprintf(stderr, "device: rank %d, %llu doubles: wrong sum at %llu\n", rank_,
                     static_cast<unsigned long long>(count), static_cast<unsigned long long>(i));
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
  }

 private:
  int rank_;
  double* a_;
  double* b_;
  double* sum_;
  double* in_;
  ferry_stream stream_ = nullptr;
};

// ---- Goodput: a kernel and a send --------------------------------------------------------------

struct Transfer {
  const Device* device = nullptr;
  int rank = 0;
  bool is_partitioned = false;
  int partitions = 0;
  uint64_t count = 0;  // doubles of a partition
  MPI_Request request = MPI_REQUEST_NULL;
  MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
  Kernel kernel;

  int total() const { return static_cast<int>(count) * partitions; }
};

void MakeTransfer(const char* way, Transfer* transfer) {
  const auto count = static_cast<MPI_Count>(transfer->count);
  if (!transfer->is_partitioned) {
    if (transfer->rank == 1) {
      MPI_Recv_init(transfer->device->in(), transfer->total(), MPI_DOUBLE, 0, kTag, MPI_COMM_WORLD,
                    &transfer->request);
    }
    return;
  }
  if (transfer->rank == 1) {
    MPI_Precv_init(transfer->device->in(), transfer->partitions, count, MPI_DOUBLE, 0, kTag,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &transfer->request);
    return;
  }
  MPI_Psend_init(transfer->device->sum(), transfer->partitions, count, MPI_DOUBLE, 1, kTag,
                 MPI_COMM_WORLD, MPI_INFO_NULL, &transfer->request);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "ferry_partitioned_copy", way);
  MPIX_Prequest_create(transfer->request, 0, info, &transfer->prequest);
  MPI_Info_free(&info);
}

void FreeTransfer(Transfer* transfer) {
  transfer->device->Synchronize();  // a kernel may return after its last partition has left
  if (transfer->prequest != MPIX_PREQUEST_NULL) {
    MPIX_Prequest_free(&transfer->prequest);
  }
  if (transfer->request != MPI_REQUEST_NULL) {
    MPI_Request_free(&transfer->request);
  }
}

void SendFromKernel(Transfer* transfer) {
  if (transfer->is_partitioned) {
    MPI_Start(&transfer->request);
    MPIX_Pbuf_prepare(transfer->request);
    transfer->device->Launch(&transfer->kernel);
    MPI_Wait(&transfer->request, MPI_STATUS_IGNORE);
    return;
  }
  transfer->device->Launch(&transfer->kernel);
  transfer->device->Synchronize();
  MPI_Send(transfer->device->sum(), transfer->total(), MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD);
}

// The receive is always started before rank 0 can send; rank 0 waits until rank 1 has the data.
double RepeatTransfer(void* context, int rounds) {
  auto* const transfer = static_cast<Transfer*>(context);
  if (transfer->rank == 1) {
    MPI_Start(&transfer->request);
  }
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (transfer->rank == 0) {
      SendFromKernel(transfer);
      Receive(nullptr, 0, 1);
    } else {
      MPI_Wait(&transfer->request, MPI_STATUS_IGNORE);
      if (i + 1 < rounds) {
        MPI_Start(&transfer->request);
      }
      Send(nullptr, 0, 0);
    }
  }
  return Now() - start;
}

void MeasureGoodput(const char* way, int rank, double batch_s, const std::vector<uint64_t>& sizes) {
  const Device device(rank, *std::max_element(sizes.begin(), sizes.end()));
  for (const uint64_t bytes : sizes) {
    Transfer transfer;
    transfer.device = &device;
    transfer.rank = rank;
    transfer.is_partitioned = std::strcmp(way, "synchronised") != 0;
    transfer.partitions = static_cast<int>(
        std::clamp<uint64_t>(bytes / kPartitionBytes, 1, uint64_t{kMostPartitions}));
    transfer.count = bytes / sizeof(double) / static_cast<uint64_t>(transfer.partitions);
    const uint64_t total = transfer.count * static_cast<uint64_t>(transfer.partitions);
    MakeTransfer(way, &transfer);
    transfer.kernel = device.KernelFor(transfer.count, transfer.partitions, transfer.prequest);
    device.Forget(total);
    (void)RepeatTransfer(&transfer, 1);
    const double seconds = MeasureTogether(RepeatTransfer, &transfer, batch_s, rank, 2);
    if (rank == 1) {
      device.Compare(total, 0, 0);
    } else {
      std::printf("%llu %.5f\n", static_cast<unsigned long long>(bytes), seconds * 1e6);
      std::fflush(stdout);
    }
    FreeTransfer(&transfer);
    Barrier();
  }
}

// ---- A kernel and an allreduce -----------------------------------------------------------------

struct Reduction {
  const Device* device = nullptr;
  bool is_partitioned = false;
  int parts = 0;
  uint64_t count = 0;  // doubles of a part
  MPI_Request request = MPI_REQUEST_NULL;
  Kernel kernel;
  ferry_device_u64 done[kMostParts] = {};
};

// The sum of a part is on its way while the kernel makes the next one. The host readies it: a
// kernel cannot ready parts of a collective.
void ReduceParts(Reduction* reduction) {
  MPI_Start(&reduction->request);
  reduction->kernel.round++;
  reduction->device->Launch(&reduction->kernel);
  for (int part = 0; part < reduction->parts; ++part) {
    while (ferry_device_load_acquire(&reduction->done[part]) != reduction->kernel.round) {
      sched_yield();
    }
    MPI_Pready(part, reduction->request);
  }
  MPI_Wait(&reduction->request, MPI_STATUS_IGNORE);
}

double RepeatReduction(void* context, int rounds) {
  auto* const reduction = static_cast<Reduction*>(context);
  const Device& device = *reduction->device;
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (reduction->is_partitioned) {
      ReduceParts(reduction);
    } else {
      device.Launch(&reduction->kernel);
      device.Synchronize();
      MPI_Allreduce(device.sum(), device.in(),
                    static_cast<int>(reduction->count) * reduction->parts, MPI_DOUBLE, MPI_SUM,
                    MPI_COMM_WORLD);
    }
  }
  return Now() - start;
}

void MakeReduction(uint64_t bytes, Reduction* reduction) {
  reduction->parts =
      static_cast<int>(std::clamp<uint64_t>(bytes / kPartBytes, 1, uint64_t{kMostParts}));
  reduction->count = bytes / sizeof(double) / static_cast<uint64_t>(reduction->parts);
  reduction->kernel =
      reduction->device->KernelFor(reduction->count, reduction->parts, MPIX_PREQUEST_NULL);
  if (reduction->is_partitioned) {
    reduction->kernel.done = reduction->done;
    MPIX_Pallreduce_init(reduction->device->sum(), reduction->device->in(), reduction->parts,
                         static_cast<MPI_Count>(reduction->count), MPI_DOUBLE, MPI_SUM,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &reduction->request);
  }
}

void MeasureAllreduce(const char* way, int rank, int ranks, double batch_s,
                      const std::vector<uint64_t>& sizes) {
  const Device device(rank, *std::max_element(sizes.begin(), sizes.end()));
  for (const uint64_t bytes : sizes) {
    Reduction reduction;
    reduction.device = &device;
    reduction.is_partitioned = std::strcmp(way, "partitioned") == 0;
    MakeReduction(bytes, &reduction);
    const uint64_t total = reduction.count * static_cast<uint64_t>(reduction.parts);
    device.Forget(total);
    (void)RepeatReduction(&reduction, 1);
    device.Compare(total, 0, ranks - 1);
    const double seconds = MeasureTogether(RepeatReduction, &reduction, batch_s, rank, ranks);
    device.Compare(total, 0, ranks - 1);
    if (rank == 0) {
      std::printf("%llu %.5f\n", static_cast<unsigned long long>(bytes), seconds * 1e6);
      std::fflush(stdout);
    }
    if (reduction.is_partitioned) {
      device.Synchronize();  // the kernel may return after its last part was readied
      MPI_Request_free(&reduction.request);
    }
  }
}

// ---- What the calls cost -----------------------------------------------------------------------

void PrintMedian(const char* call, std::vector<double>* seconds) {
  std::printf("%s %.5f\n", call, Median(seconds->data(), seconds->size()) * 1e6);
  std::fflush(stdout);
}

// A pair of requests from its init to its end. Rank 0 adds what its calls took.
struct CallTimes {
  std::vector<double> first_prepare;  // ends the setup
  std::vector<double> later_prepare;  // the receiver has started already
  std::vector<double> create;
  std::vector<double> reduce_init;
};

void TimePrepare(int rank, bool is_first, MPI_Request* request, std::vector<double>* times) {
  if (rank == 1) {
    MPI_Start(request);
  }
  if (!is_first) {
    Barrier();
  }
  if (rank == 0) {
    MPI_Start(request);
    const double start = Now();
    MPIX_Pbuf_prepare(*request);
    times->push_back(Now() - start);
    MPI_Pready_range(0, kMostPartitions - 1, *request);
  }
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

void TimePair(const Device& device, int rank, CallTimes* times) {
  constexpr auto kCount = static_cast<MPI_Count>(kPartitionBytes / sizeof(double));
  MPI_Request request = MPI_REQUEST_NULL;
  Barrier();
  if (rank == 0) {
    MPI_Psend_init(device.sum(), kMostPartitions, kCount, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(device.in(), kMostPartitions, kCount, MPI_DOUBLE, 0, kTag, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
  }
  TimePrepare(rank, true, &request, &times->first_prepare);
  for (int i = 0; i < kLaterRounds; ++i) {
    TimePrepare(rank, false, &request, &times->later_prepare);
  }
  if (rank == 0) {
    MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
    const double start = Now();
    MPIX_Prequest_create(request, 0, MPI_INFO_NULL, &prequest);
    times->create.push_back(Now() - start);
    MPIX_Prequest_free(&prequest);
  }
  MPI_Request_free(&request);
}

void MeasureCalls(int rank) {
  const Device device(rank, kPartitionBytes * kMostPartitions);
  CallTimes times;
  for (int i = 0; i < kTimes; ++i) {
    TimePair(device, rank, &times);
    MPI_Request request = MPI_REQUEST_NULL;
    Barrier();
    const double start = Now();
    MPIX_Pallreduce_init(device.sum(), device.in(), kMostParts,
                         static_cast<MPI_Count>(kPartitionBytes / sizeof(double)), MPI_DOUBLE,
                         MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    times.reduce_init.push_back(Now() - start);
    MPI_Request_free(&request);
  }
  if (rank == 0) {
    PrintMedian("prequest_create", &times.create);
    PrintMedian("pbuf_prepare_first", &times.first_prepare);
    PrintMedian("pbuf_prepare_later", &times.later_prepare);
    PrintMedian("pallreduce_init", &times.reduce_init);
  }
  Barrier();
}

int Usage() {
  std::fprintf(
      stderr,
      "usage: device goodput synchronised|auto|kernel|host|daemon BATCH_US BYTES..., on two "
      "ranks\n"
      "       device allreduce synchronised|partitioned BATCH_US BYTES...\n"
      "       device calls, on two ranks\n"
      "sizes are whole kibibytes, up to 64 MiB\n");
  return 2;
}

// Empty if one of them is no size.
std::vector<uint64_t> ReadSizes(int count, char** texts) {
  std::vector<uint64_t> sizes;
  for (int i = 0; i < count; ++i) {
    sizes.push_back(std::strtoull(texts[i], nullptr, 10));
    if (sizes.back() == 0 || sizes.back() % 1024 != 0 || sizes.back() > uint64_t{64} << 20) {
      return {};
    }
  }
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  Start(&rank, &ranks);
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string way = argc > 2 ? argv[2] : "";
  const bool is_goodput =
      mode == "goodput" && (way == "synchronised" || way == "auto" || way == "kernel" ||
                            way == "host" || way == "daemon");
  const bool is_allreduce = mode == "allreduce" && (way == "synchronised" || way == "partitioned");
  const std::vector<uint64_t> sizes = ReadSizes(std::max(argc - 4, 0), argv + std::min(argc, 4));
  const bool has_sizes = (is_goodput || is_allreduce) && !sizes.empty();
  if ((!has_sizes && mode != "calls") || (!is_allreduce && ranks != 2)) {
    return Usage();
  }
  if (has_sizes) {
    const double batch_s = std::strtod(argv[3], nullptr) * 1e-6;
    if (is_goodput) {
      MeasureGoodput(way.c_str(), rank, batch_s, sizes);
    } else {
      MeasureAllreduce(way.c_str(), rank, ranks, batch_s, sizes);
    }
  } else {
    MeasureCalls(rank);
  }
  Barrier();
  Finish();
  return 0;
}
