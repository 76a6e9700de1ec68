// Kernels that ready the partitions of collectives and wait for their results, on any number of
// ranks: partitioned_collective_kernels auto MEMORY. With "die" the last rank dies in a round.
#include <ferry/stream.h>
#include <unistd.h>

#include "tests/mpi/ranks/partitioned_kernels.h"

namespace {

using ferry::device::Launch;

enum class Kind { kBcast, kReduce, kAllreduce, kAllgather, kAllgatherv };
constexpr Kind kKinds[] = {Kind::kBcast, Kind::kReduce, Kind::kAllreduce, Kind::kAllgather,
                           Kind::kAllgatherv};

// A collective of unsigned numbers with its Prequest. The root is the last rank.
class Whole {
 public:
  struct Shape {
    int partitions = 8;
    int count = 25;              // of a partition
    const char* min_bytes = "";  // of a unit; empty: the default
  };

  // `has_prequest`: one that is made now; else the request's own, which a round gets.
  Whole(Kind kind, const Shape& shape, bool has_prequest = true)
      : kind_(kind), shape_(shape), in_(Bytes()), out_(Bytes() * static_cast<size_t>(size)) {
    MPI_Info info = MPI_INFO_NULL;
    if (*shape.min_bytes != 0) {
      info = info_with("ferry_partitioned_min_bytes", shape.min_bytes);
    }
    OK(Init(info));
    if (info != MPI_INFO_NULL) {
      OK(MPI_Info_free(&info));
    }
    if (has_prequest) {
      OK(MPIX_Prequest_create(request_, 0, MPI_INFO_NULL, &prequest_));
    }
    has_prequest_ = has_prequest;
  }
  ~Whole() {
    if (has_prequest_ && prequest_ != MPIX_PREQUEST_NULL) {
      OK(MPIX_Prequest_free(&prequest_));
    }
    if (request_ != MPI_REQUEST_NULL) {
      OK(MPI_Request_free(&request_));
    }
  }
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;

  MPI_Request& request() { return request_; }
  MPIX_Prequest& prequest() { return prequest_; }
  int partitions() const { return shape_.partitions; }
  bool is_root() const { return rank == size - 1; }
  bool readies() const { return kind_ != Kind::kBcast || is_root(); }
  bool arrives() const {
    return kind_ == Kind::kBcast ? !is_root() : kind_ != Kind::kReduce || is_root();
  }
  void Start() { OK(MPI_Start(&request_)); }
  void Wait() { OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); }

  // The calling thread's part of a partition of what this rank contributes.
  void Fill(int partition, int round, const ferry_device_crew& crew) const {
    auto* const to = Words(kind_ == Kind::kBcast ? out_ : in_);
    for (unsigned i = crew.thread; i < static_cast<unsigned>(shape_.count); i += crew.count) {
      const unsigned place = Place(partition) + i;
      to[place] = Value(rank, round, place);
    }
  }
  bool IsRight(int partition, int round) const {
    for (unsigned i = 0; i < static_cast<unsigned>(shape_.count); ++i) {
      if (!IsRightAt(Place(partition) + i, round)) {
        return false;
      }
    }
    return true;
  }

 private:
  int Init(MPI_Info info) {
    const int root = size - 1;
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int n = shape_.count;
    switch (kind_) {
      case Kind::kBcast:
        return MPIX_Pbcast_init(out_.at(0), shape_.partitions, n, MPI_UNSIGNED, root, comm, info,
                                &request_);
      case Kind::kReduce:
        return MPIX_Preduce_init(in_.at(0), out_.at(0), shape_.partitions, n, MPI_UNSIGNED, MPI_SUM,
                                 root, comm, info, &request_);
      case Kind::kAllreduce:
        return MPIX_Pallreduce_init(in_.at(0), out_.at(0), shape_.partitions, n, MPI_UNSIGNED,
                                    MPI_SUM, comm, info, &request_);
      case Kind::kAllgather:
        return MPIX_Pallgather_init(in_.at(0), out_.at(0), shape_.partitions, n, MPI_UNSIGNED, comm,
                                    info, &request_);
      default: {
        const std::vector<MPI_Count> counts(static_cast<size_t>(size), n);
        std::vector<MPI_Aint> places;
        for (MPI_Aint i = 0; i < size; ++i) {
          places.push_back(i * All());
        }
        return MPIX_Pallgatherv_init(in_.at(0), shape_.partitions, n, MPI_UNSIGNED, out_.at(0),
                                     counts.data(), places.data(), MPI_UNSIGNED, comm, info,
                                     &request_);
      }
    }
  }
  unsigned All() const { return static_cast<unsigned>(shape_.partitions * shape_.count); }
  size_t Bytes() const { return All() * sizeof(unsigned); }
  unsigned Place(int partition) const { return static_cast<unsigned>(partition * shape_.count); }
  static unsigned* Words(const Buffer& buffer) { return reinterpret_cast<unsigned*>(buffer.at(0)); }
  static unsigned Value(int of, int round, unsigned place) {
    return static_cast<unsigned>(1 + of * 7919 + round * 104729) + place * 3;
  }
  bool IsRightAt(unsigned place, int round) const {
    const unsigned* const out = Words(out_);
    unsigned sum = 0;
    bool are_gathered = true;
    for (int of = 0; of < size; ++of) {
      sum += Value(of, round, place);
      are_gathered = are_gathered &&
                     ((kind_ != Kind::kAllgather && kind_ != Kind::kAllgatherv) ||
                      out[static_cast<unsigned>(of) * All() + place] == Value(of, round, place));
    }
    switch (kind_) {
      case Kind::kBcast:
        return out[place] == Value(size - 1, round, place);
      case Kind::kAllgather:
      case Kind::kAllgatherv:
        return are_gathered;
      default:
        return out[place] == sum;
    }
  }

  const Kind kind_;
  const Shape shape_;
  const Buffer in_;
  const Buffer out_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPIX_Prequest prequest_ = MPIX_PREQUEST_NULL;
  bool has_prequest_ = true;
};

// Groups ready their partitions, and wait in the same kernel for what comes of them. The hosts do
// nothing until their kernels are over.
void KernelsReadyAndAwait(Kind kind, const Whole::Shape& shape, int rounds,
                          bool has_prequest = true) {
  Whole whole(kind, shape, has_prequest);
  for (int round = 1; round <= rounds; ++round) {
    whole.Start();
    if (round == 2) {
      OK(MPIX_Pbuf_prepare(whole.request()));
    }
    if (!has_prequest) {
      OK(MPIX_Prequest_create(whole.prequest(), whole.request()));
    }
    Launch({2, 3}, [&] {
      // Each rank has an order of its own.
      for (int i = static_cast<int>(ferry_device_group()); i < shape.partitions; i += 2) {
        const int partition = (i + rank * 3) % shape.partitions;
        if (whole.readies()) {
          whole.Fill(partition, round, Together());
          KERNEL_CHECK(MPIX_Pready_block(partition, whole.prequest()) == MPIX_DEVICE_SUCCESS);
        }
      }
      for (int i = 0; whole.arrives() && i < shape.partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait_block(whole.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(whole.IsRight(i, round));
      }
    });
    if (whole.arrives()) {
      int has_arrived = 0;
      OK(MPI_Parrived(whole.request(), shape.partitions - 1, &has_arrived));
      CHECK(has_arrived == 1);
    }
    whole.Wait();
  }
}

// A kernel uses the result of one partition before it readies the next.
void OnePartitionAtATime() {
  const Whole::Shape shape{.partitions = 6, .count = 9, .min_bytes = "1"};
  Whole whole(Kind::kAllreduce, shape);
  for (int round = 1; round <= 3; ++round) {
    whole.Start();
    Launch({1, 1}, [&] {
      for (int i = 0; i < shape.partitions; ++i) {
        int flag = -1;
        KERNEL_CHECK(MPIX_Parrived(whole.prequest(), i, &flag) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(flag == 0);
        whole.Fill(i, round, Alone());
        KERNEL_CHECK(MPIX_Pready(i, whole.prequest()) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(MPIX_Pawait(whole.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(whole.IsRight(i, round));
      }
    });
    whole.Wait();
  }
}

// The host waits, or asks, while kernels ready; it makes whole rounds, units, or parts of units
// ready itself.
void HostsReadyToo(const char* min_bytes) {
  const Whole::Shape shape{.partitions = 8, .count = 50, .min_bytes = min_bytes};
  Whole whole(Kind::kAllreduce, shape);
  for (int round = 1; round <= 8; ++round) {
    const auto is_hosts = [&](int partition) {
      return round % 4 == 1   ? partition % 2 == 0
             : round % 4 == 2 ? true
             : round % 4 == 3 ? false
                              : partition < 3;
    };
    whole.Start();
    for (int i = 0; i < shape.partitions; ++i) {
      if (is_hosts(i)) {
        whole.Fill(i, round, Alone());
        OK(MPI_Pready(i, whole.request()));
      }
    }
    Launch({2, 1}, [&] {
      for (auto i = static_cast<int>(ferry_device_group()); i < shape.partitions; i += 2) {
        if (!is_hosts(i)) {
          whole.Fill(i, round, Alone());
          KERNEL_CHECK(MPIX_Pready(i, whole.prequest()) == MPIX_DEVICE_SUCCESS);
        }
      }
      for (int i = 0; round > 4 && i < shape.partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait(whole.prequest(), i) == MPIX_DEVICE_SUCCESS);
      }
    });
    whole.Wait();
    if (memory_kind != "device") {
      for (int i = 0; i < shape.partitions; ++i) {
        CHECK(whole.IsRight(i, round));
      }
    }
  }
}

// A loop of starts, kernels and waits that lies in a stream, and no host in it.
struct Step {
  Whole* whole;
  int round;
};

void RunStep(void* argument) {
  const Step& its = *static_cast<Step*>(argument);
  for (int i = 0; i < its.whole->partitions(); ++i) {
    its.whole->Fill(i, its.round, Alone());
    KERNEL_CHECK(MPIX_Pready(i, its.whole->prequest()) == MPIX_DEVICE_SUCCESS);
  }
  for (int i = 0; i < its.whole->partitions(); ++i) {
    KERNEL_CHECK(MPIX_Pawait(its.whole->prequest(), i) == MPIX_DEVICE_SUCCESS);
    KERNEL_CHECK(its.whole->IsRight(i, its.round));
  }
}

void LoopInAStream() {
  step = "a loop in a stream";
  constexpr int kRounds = 5;
  Whole whole(Kind::kAllreduce, {.partitions = 4, .count = 60});
  ferry_stream stream = nullptr;
  MPIX_Queue queue = MPIX_QUEUE_NULL;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  OK(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream));
  std::vector<Step> steps;
  for (int round = 1; round <= kRounds; ++round) {
    steps.push_back({&whole, round});
  }
  for (Step& each : steps) {
    OK(MPIX_Enqueue_start(queue, &whole.request()));
    OK(MPIX_Enqueue_pbuf_prepare(queue, &whole.request()));
    CHECK(ferry_stream_launch(stream, RunStep, &each) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_wait(queue, &whole.request()));
  }
  OK(MPIX_Queue_wait(queue));
  OK(MPIX_Queue_free(&queue));
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
}

// A collective whose Prequest was freed goes on without; one that was freed leaves its Prequest.
void FreedApart() {
  step = "freed apart";
  const Whole::Shape shape{.partitions = 4, .count = 3};
  Whole whole(Kind::kAllreduce, shape);
  MPIX_Prequest& prequest = whole.prequest();
  MPIX_Prequest again = MPIX_PREQUEST_NULL;
  OK(MPIX_Prequest_create(whole.request(), 0, MPI_INFO_NULL, &again));
  CHECK(again == prequest);
  OK(MPIX_Prequest_free(&again));
  OK(MPIX_Prequest_free(&prequest));
  for (int round = 1; round <= 2; ++round) {
    whole.Start();
    for (int i = 0; i < shape.partitions; ++i) {
      whole.Fill(i, round, Alone());
    }
    OK(MPI_Pready_range(0, shape.partitions - 1, whole.request()));
    whole.Wait();
  }
  OK(MPIX_Prequest_create(whole.request(), 1, MPI_INFO_NULL, &prequest));
  whole.Start();
  expect_error(MPIX_Prequest_create(whole.request(), 1, MPI_INFO_NULL, &again), MPI_ERR_REQUEST,
               "active");
  again = prequest;
  expect_error(MPIX_Prequest_free(&again), MPI_ERR_REQUEST, "active");
  for (int i = 0; i < shape.partitions; ++i) {
    whole.Fill(i, 3, Alone());
    CHECK(MPIX_Pready(i, prequest) == MPIX_DEVICE_SUCCESS);
  }
  for (int i = 0; i < shape.partitions; ++i) {
    CHECK(MPIX_Pawait(prequest, i) == MPIX_DEVICE_SUCCESS);
    CHECK(whole.IsRight(i, 3));
  }
  whole.Wait();
  OK(MPI_Request_free(&whole.request()));
}

void Mistakes() {
  step = "mistakes";
  const Whole::Shape shape{.partitions = 4, .count = 3, .min_bytes = "1"};
  Whole sum(Kind::kAllreduce, shape);
  MPIX_Prequest other = MPIX_PREQUEST_NULL;
  OK(MPIX_Prequest_free(&sum.prequest()));
  for (const char* const way : {"kernel", "daemon"}) {
    MPI_Info info = info_with("ferry_partitioned_copy", way);
    expect_error(MPIX_Prequest_create(sum.request(), 0, info, &other),
                 MPI_ERR_UNSUPPORTED_OPERATION, "hosts move");
    OK(MPI_Info_free(&info));
  }
  OK(MPIX_Prequest_create(sum.request(), 0, MPI_INFO_NULL, &sum.prequest()));
  CHECK(MPIX_Pready(1, sum.prequest()) == MPIX_DEVICE_ERR_REQUEST);
  expect_error(MPI_Start(&sum.request()), MPI_ERR_REQUEST, "before the collective was started");
  sum.Start();
  for (int i = 0; i < 4; ++i) {
    sum.Fill(i, 1, Alone());
    CHECK(MPIX_Pready(i, sum.prequest()) == MPIX_DEVICE_SUCCESS);
  }
  CHECK(MPIX_Pready(4, sum.prequest()) == MPIX_DEVICE_ERR_ARGUMENT);
  expect_error(MPI_Wait(&sum.request(), MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
               "a kernel has readied partition 4 of a collective of 4");
  int flag = 0;
  CHECK(MPIX_Parrived(sum.prequest(), 4, &flag) == MPIX_DEVICE_ERR_ARGUMENT);
  sum.Wait();
  for (int i = 0; i < 4; ++i) {
    CHECK(sum.IsRight(i, 1));
  }
  // Ranks that contribute nothing, or get nothing.
  Whole bcast(Kind::kBcast, shape);
  Whole reduce(Kind::kReduce, shape);
  for (Whole* const whole : {&bcast, &reduce}) {
    whole->Start();
    if (!whole->readies()) {
      CHECK(MPIX_Pready(0, whole->prequest()) == MPIX_DEVICE_ERR_REQUEST);
    }
    if (!whole->arrives()) {
      CHECK(MPIX_Pawait(whole->prequest(), 0) == MPIX_DEVICE_ERR_REQUEST);
    }
    for (int i = 0; whole->readies() && i < 4; ++i) {
      whole->Fill(i, 1, Alone());
      CHECK(MPIX_Pready(i, whole->prequest()) == MPIX_DEVICE_SUCCESS);
    }
    whole->Wait();
  }
}

// Kernels that wait for what a rank that has died was to give are told.
[[noreturn]] void ADeath() {
  step = "a death";
  Whole sum(Kind::kAllreduce, {.partitions = 4, .count = 30, .min_bytes = "1"});
  sum.Start();
  CHECK(MPIX_Pready(0, sum.prequest()) == MPIX_DEVICE_SUCCESS);
  if (rank == size - 1) {
    // The others ready partition 1 once they have partition 0.
    CHECK(MPIX_Pready(1, sum.prequest()) == MPIX_DEVICE_SUCCESS);
    CHECK(MPIX_Pawait(sum.prequest(), 1) == MPIX_DEVICE_SUCCESS);
    _Exit(0);
  }
  CHECK(MPIX_Pawait(sum.prequest(), 0) == MPIX_DEVICE_SUCCESS);
  CHECK(MPIX_Pready_range(1, 3, sum.prequest()) == MPIX_DEVICE_SUCCESS);
  Launch({2, 2}, [&] {
    KERNEL_CHECK(MPIX_Pawait_block(sum.prequest(), 3) == MPIX_DEVICE_ERR_PEER_DIED);
    KERNEL_CHECK(MPIX_Pawait_block(sum.prequest(), 0) == MPIX_DEVICE_SUCCESS);
  });
  CHECK(MPI_Wait(&sum.request(), MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED);
  puts("the wait has ended");
  fflush(stdout);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  memory_kind = argc > 2 ? argv[2] : "host";
  begin(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "die") == 0) {
    ADeath();
  }
  for (const Kind kind : kKinds) {
    step = "small units";
    KernelsReadyAndAwait(kind, {.partitions = 8, .count = 25, .min_bytes = "1"}, 10);
    step = "units of several partitions";
    KernelsReadyAndAwait(kind, {.partitions = 70, .count = 5}, 10);
    step = "large units";
    KernelsReadyAndAwait(kind, {.partitions = 4, .count = 25000}, 4);
    step = "a Prequest in mid-round";
    KernelsReadyAndAwait(kind, {.partitions = 8, .count = 25}, 3, false);
  }
  step = "one partition at a time";
  OnePartitionAtATime();
  step = "hosts ready whole units";
  HostsReadyToo("1");
  step = "hosts ready parts of units";
  HostsReadyToo("100000");
  LoopInAStream();
  FreedApart();
  Mistakes();
  return end_well("all kernels were right");
}
