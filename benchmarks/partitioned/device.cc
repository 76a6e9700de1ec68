// Kernels of an emulated device that ready partitions as they go, beside kernels whose end the host
// waits for before it sends; and the cost of the calls that prepare this.
//
//   device goodput synchronised|COPY BATCH_MICROSECONDS BYTES...              on two ranks
//   device granularity synchronised|thread|warp|block BATCH_MICROSECONDS BYTES...   on two ranks
//   device synchronise - BATCH_MICROSECONDS BYTES...                          on any number
//   device allreduce synchronised|partitioned BATCH_MICROSECONDS BYTES...     on any number
//   device calls                                                              on two ranks
//
// The kernel adds two vectors. goodput: rank 0's kernel makes the data that rank 1 gets.
// synchronised: launch, wait for the stream, MPI_Send. COPY (auto, kernel, host, daemon:
// ferry_partitioned_copy): one launch, whose work-groups ready a partition each
// (MPIX_Pready_work_group), and MPI_Wait. granularity: the same by auto, with a partition for each
// thread, warp or block of a launch in blocks of 1024 threads, of which each makes a double, and
// MPIX_Pready_thread, _warp or _block. synchronise: what the host spends on a kernel alone.
// allreduce: the sums of all ranks are added up; partitioned: the host readies each part as soon as
// the kernel has made it. Rank 0 prints "BYTES MICROSECONDS", from the launch to the end of
// communication at the other ranks; calls prints "CALL MICROSECONDS"; synchronise "BYTES/WHAT
// MICROSECONDS" of the launch, of the wait for the stream after it, and of the kernel by itself.
//
// The device has one compute unit: the thread of the stream runs a launch's work-groups one after
// another, as if each were one thread that makes all of the group's, and starts no threads for
// them. So a call of a warp or a block has no barriers to wait at.
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
#include "benchmarks/partitioned/vectors.h"

namespace {

constexpr uint64_t kPartitionBytes = 8192;  // what a work-group of 1024 threads makes
constexpr uint64_t kWarpBytes = 256;
constexpr uint64_t kThreadBytes = 8;
constexpr int kMostPartitions = 64;
constexpr uint64_t kPartBytes = 65536;  // of the allreduce
constexpr int kMostParts = 8;
constexpr int kTimes = 31;
constexpr int kLaterRounds = 8;

// MPI's calls end the job when they fail (MPI_ERRORS_ARE_FATAL), and say why.

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

// A group of threads that readies a partition, and the bytes that it makes.
struct Granularity {
  const char* name;
  uint64_t bytes;
  uint64_t most_partitions;
  int (*ready)(int partition, MPIX_Prequest request);
};
constexpr Granularity kGroups = {"", kPartitionBytes, kMostPartitions, MPIX_Pready_work_group};
constexpr Granularity kGranularities[] = {
    {"thread", kThreadBytes, UINT64_MAX, MPIX_Pready_thread},
    {"warp", kWarpBytes, UINT64_MAX, MPIX_Pready_warp},
    {"block", kPartitionBytes, UINT64_MAX, MPIX_Pready_block},
};

void MeasureGoodput(const char* way, const Granularity& granularity, int rank, double batch_s,
                    const std::vector<uint64_t>& sizes) {
  const Device device(rank, *std::max_element(sizes.begin(), sizes.end()));
  for (const uint64_t bytes : sizes) {
    Transfer transfer;
    transfer.device = &device;
    transfer.rank = rank;
    transfer.is_partitioned = std::strcmp(way, "synchronised") != 0;
    transfer.partitions = static_cast<int>(
        std::clamp<uint64_t>(bytes / granularity.bytes, 1, granularity.most_partitions));
    transfer.count = bytes / sizeof(double) / static_cast<uint64_t>(transfer.partitions);
    const uint64_t total = transfer.count * static_cast<uint64_t>(transfer.partitions);
    MakeTransfer(way, &transfer);
    transfer.kernel = device.KernelFor(transfer.count, transfer.partitions, transfer.prequest);
    transfer.kernel.ready = granularity.ready;
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

bool MeasureGranularity(const std::string& name, int rank, double batch_s,
                        const std::vector<uint64_t>& sizes) {
  if (name == "synchronised") {
    MeasureGoodput(name.c_str(), kGroups, rank, batch_s, sizes);
    return true;
  }
  for (const Granularity& granularity : kGranularities) {
    if (granularity.name == name) {
      MeasureGoodput("auto", granularity, rank, batch_s, sizes);
      return true;
    }
  }
  return false;
}

// ---- A kernel that the host waits for ----------------------------------------------------------

enum Step { kLaunch, kSynchronise, kKernel, kSteps };
constexpr const char* kStepNames[kSteps] = {"launch", "synchronise", "kernel"};

struct HostTime {
  const Device* device = nullptr;
  Kernel kernel;
  double seconds[kSteps] = {};  // of the rounds so far
  int rounds = 0;
};

double RepeatKernel(void* context, int rounds) {
  auto* const time = static_cast<HostTime*>(context);
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    const double begin = Now();
    time->device->Launch(&time->kernel);
    const double launched = Now();
    time->device->Synchronize();
    const double synchronised = Now();
    RunGroups(&time->kernel);
    time->seconds[kLaunch] += launched - begin;
    time->seconds[kSynchronise] += synchronised - launched;
    time->seconds[kKernel] += Now() - synchronised;
  }
  time->rounds += rounds;
  return Now() - start;
}

void MeasureSynchronise(int rank, double batch_s, const std::vector<uint64_t>& sizes) {
  const Device device(rank, *std::max_element(sizes.begin(), sizes.end()));
  for (const uint64_t bytes : sizes) {
    constexpr int kTurns = 7;
    const auto partitions = std::clamp<uint64_t>(bytes / kPartitionBytes, 1, kMostPartitions);
    std::vector<double> found[kSteps];
    for (int turn = 0; turn < kTurns; ++turn) {
      HostTime time;
      time.device = &device;
      time.kernel = device.KernelFor(bytes / sizeof(double) / partitions,
                                     static_cast<int>(partitions), MPIX_PREQUEST_NULL);
      for (double spent_s = 0; spent_s < batch_s;) {
        spent_s += RepeatKernel(&time, 1);
      }
      for (int step = 0; step < kSteps; ++step) {
        found[step].push_back(time.seconds[step] / time.rounds);
      }
    }
    for (int step = 0; rank == 0 && step < kSteps; ++step) {
      std::printf("%llu/%s %.5f\n", static_cast<unsigned long long>(bytes), kStepNames[step],
                  Median(found[step].data(), found[step].size()) * 1e6);
    }
    std::fflush(stdout);
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

// ---- The cost of the calls ---------------------------------------------------------------------

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
      "       device granularity synchronised|thread|warp|block BATCH_US BYTES..., on two ranks\n"
      "       device synchronise - BATCH_US BYTES...\n"
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
  const bool is_alone = mode == "synchronise";
  const bool has_sizes =
      (is_goodput || is_allreduce || is_alone || mode == "granularity") && !sizes.empty();
  if ((!has_sizes && mode != "calls") || (!is_allreduce && !is_alone && ranks != 2)) {
    return Usage();
  }
  const double batch_s = has_sizes ? std::strtod(argv[3], nullptr) * 1e-6 : 0;
  if (is_goodput) {
    MeasureGoodput(way.c_str(), kGroups, rank, batch_s, sizes);
  } else if (is_allreduce) {
    MeasureAllreduce(way.c_str(), rank, ranks, batch_s, sizes);
  } else if (is_alone) {
    MeasureSynchronise(rank, batch_s, sizes);
  } else if (mode == "calls") {
    MeasureCalls(rank);
  } else if (!MeasureGranularity(way, rank, batch_s, sizes)) {
    return Usage();
  }
  Barrier();
  Finish();
  return 0;
}
