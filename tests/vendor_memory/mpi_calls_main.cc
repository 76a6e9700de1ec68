// mpi_calls_VENDOR OPERATION: while rank 0 is in a collective of device memory, each call of the
// driver's fails in turn, from the first look at new memory on. On each rank the collective brings
// the right data, or an error that names the driver's, or the rank that could not go through with
// it; the next one succeeds, and nothing is left behind. Two ranks; without a stand-in nothing
// fails.
#include <algorithm>
#include <cstdint>

#include "tests/vendor_memory/each_call.h"
#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

constexpr int kCalls = 50;  // more than any collective of two ranks makes

using Values = std::vector<int64_t>;

// Returns what rank `of` gives for rank `to`, where that counts.
Values Part(int of, size_t count, unsigned seed, int to = 0) {
  Values part(count);
  for (size_t i = 0; i < count; ++i) {
    part[i] = (int64_t{seed} * 100 + of * 10 + to) * 10'000 + static_cast<int64_t>(i);
  }
  return part;
}

Values PartsOfAll(size_t count, unsigned seed, bool for_this_rank) {
  Values all;
  for (int of = 0; of < size; ++of) {
    const Values part = Part(of, count, seed, for_this_rank ? rank : 0);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Values Sum(size_t count, unsigned seed) {
  Values sum(count);
  for (int of = 0; of < size; ++of) {
    const Values part = Part(of, count, seed);
    std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

struct Operands {
  void* out;
  void* in;
  int n;
};

int Bcast(int root, const Operands& on, MPI_Request* request) {
  void* const data = rank == root ? on.out : on.in;
  return request == nullptr ? MPI_Bcast(data, on.n, MPI_INT64_T, root, MPI_COMM_WORLD)
                            : MPI_Ibcast(data, on.n, MPI_INT64_T, root, MPI_COMM_WORLD, request);
}
int Reduce(int root, const Operands& on, MPI_Request* request) {
  return request == nullptr
             ? MPI_Reduce(on.out, on.in, on.n, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD)
             : MPI_Ireduce(on.out, on.in, on.n, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD,
                           request);
}
int Allreduce(const Operands& on, MPI_Request* request) {
  return request == nullptr
             ? MPI_Allreduce(on.out, on.in, on.n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD)
             : MPI_Iallreduce(on.out, on.in, on.n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
}
int Allgather(const Operands& on, MPI_Request* request) {
  return request == nullptr
             ? MPI_Allgather(on.out, on.n, MPI_INT64_T, on.in, on.n, MPI_INT64_T, MPI_COMM_WORLD)
             : MPI_Iallgather(on.out, on.n, MPI_INT64_T, on.in, on.n, MPI_INT64_T, MPI_COMM_WORLD,
                              request);
}
int Alltoall(const Operands& on, MPI_Request* request) {
  return request == nullptr
             ? MPI_Alltoall(on.out, on.n, MPI_INT64_T, on.in, on.n, MPI_INT64_T, MPI_COMM_WORLD)
             : MPI_Ialltoall(on.out, on.n, MPI_INT64_T, on.in, on.n, MPI_INT64_T, MPI_COMM_WORLD,
                             request);
}

struct Operation {
  const char* name;
  int (*run)(const Operands& on, MPI_Request* request);  // null: it blocks
  Values (*result)(size_t count, unsigned seed);         // empty where this rank gets none
  // On one node: the others copy from the root.
  bool may_pass = false;
};
// To and from rank 0, on which the driver fails.
constexpr Operation kOperations[] = {
    {"bcast_from", [](const Operands& on, MPI_Request* request) { return Bcast(0, on, request); },
     [](size_t count, unsigned seed) { return rank == 0 ? Values() : Part(0, count, seed); },
     /*may_pass=*/true},
    {"bcast_to", [](const Operands& on, MPI_Request* request) { return Bcast(1, on, request); },
     [](size_t count, unsigned seed) { return rank == 1 ? Values() : Part(1, count, seed); }},
    {"reduce_from", [](const Operands& on, MPI_Request* request) { return Reduce(1, on, request); },
     [](size_t count, unsigned seed) { return rank == 1 ? Sum(count, seed) : Values(); }},
    {"reduce_to", [](const Operands& on, MPI_Request* request) { return Reduce(0, on, request); },
     [](size_t count, unsigned seed) { return rank == 0 ? Sum(count, seed) : Values(); }},
    {"allreduce", Allreduce, Sum},
    {"allgather", Allgather,
     [](size_t count, unsigned seed) { return PartsOfAll(count, seed, false); }},
    {"alltoall", Alltoall,
     [](size_t count, unsigned seed) { return PartsOfAll(count, seed, true); }},
};

// Returns true if it succeeded, or its words name the error or the rank where that happened.
bool Succeeds(int code) {
  if (code == MPI_SUCCESS) {
    return true;
  }
  ++failed;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  VENDOR_OK(MPI_Error_string(code, text, &length));
  if (rank == 0 ? !NamesTheFault(text) : std::strstr(text, "rank 0") == nullptr) {
    Fail(__FILE__, __LINE__, text);
  }
  return false;
}

bool Runs(const Operation& operation, const Operands& on, bool blocks) {
  if (blocks) {
    return Succeeds(operation.run(on, nullptr));
  }
  MPI_Request request = MPI_REQUEST_NULL;
  return Succeeds(operation.run(on, &request)) && Succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void RunRound(const Operation& operation, const Round& round) {
  const size_t count = round.bytes / sizeof(int64_t);
  const auto ranks = static_cast<size_t>(size);
  const Kind& kind = *FindKind("device");
  Buffer out(kind, ranks * count * sizeof(int64_t));
  Buffer in(kind, ranks * count * sizeof(int64_t));
  Values given;
  for (int to = 0; to < size; ++to) {
    const Values part = Part(rank, count, round.seed, to);
    given.insert(given.end(), part.begin(), part.end());
  }
  out.Write(given);
  const Values wanted = operation.result(count, round.seed);
  const Operands on{out.data(), in.data(), static_cast<int>(count)};
  const bool blocks = round.seed % 2 == 0;
  bool succeeds = false;
  {
    const Failing failing(round.faults, rank == 0);
    succeeds = Runs(operation, on, blocks);
  }
  VENDOR_CHECK(!succeeds || in.Read<int64_t>(wanted.size()) == wanted);
  in.Clear();
  VENDOR_CHECK(Runs(operation, on, blocks));
  VENDOR_CHECK(in.Read<int64_t>(wanted.size()) == wanted);
  VENDOR_CHECK(out.Read<int64_t>(given.size()) == given);
}

int Run(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [&](const Operation& each) { return each.name == name; });
  if (found == std::end(kOperations)) {
    return 2;
  }
  VENDOR_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FailEachCallOfTheDriver({found->name, [&](const Round& round) { RunRound(*found, round); },
                           [] { VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD)); }, kCalls, found->may_pass},
                          rank == 0);
  if (rank == 0) {
    std::printf("%d calls failed; %s memory was right\n", failed, VendorName());
  }
  return 0;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  if (argc != 2) {
    return 2;
  }
  Begin();
  VENDOR_OK(MPI_Init(&argc, &argv));
  VENDOR_OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  VENDOR_OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int status = Run(argv[1]);
  return MPI_Finalize() == MPI_SUCCESS ? status : 1;
}
