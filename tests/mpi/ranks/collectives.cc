// Every collective, in its three forms, is compared with values computed the simple way. Run by
// ferryrun on any number of ranks; each prints that all were right.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/mpi/ranks/on_queue.h"

namespace {

int rank = 0;
int size = 1;
MPI_Comm comm = MPI_COMM_WORLD;
const char* form = "";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "rank %d of %d, %s: %s\n", rank, size, form, what.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void Check(bool holds, const std::string& what) {
  if (!holds) {
    Fail(what);
  }
}

// The three forms of a call, which differ in the request.
struct Forms {
  std::function<int()> blocking;
  std::function<int(MPI_Request*)> nonblocking;
  std::function<int(MPI_Request*)> init;
};

void Launch(const std::function<void()>& kernel) {
  Check(ferry_stream_launch(
            on_queue_stream,
            [](void* argument) { (*static_cast<const std::function<void()>*>(argument))(); },
            const_cast<std::function<void()>*>(&kernel)) == FERRY_SUCCESS,
        "a kernel was refused");
}

// The same by a queue: round by round, and several rounds at once. Kernels of the stream set the
// buffers and check them, with another kernel between start and wait.
void RunOnQueue(MPI_Request* request, const std::function<void()>& prepare,
                const std::function<void()>& check) {
  form = "enqueued";
  Check(MPIX_Match(request) == MPI_SUCCESS, "was not matched");
  prepare();
  run_on_queue(request);
  check();
  form = "matched";
  prepare();
  MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  check();
  form = "enqueued round after round";
  int between = 0;
  const std::function<void()> count = [&] { ++between; };
  constexpr int kRounds = 3;
  for (int i = 0; i < kRounds; ++i) {
    Launch(prepare);
    Check(MPIX_Enqueue_start(on_queue_queue, request) == MPI_SUCCESS, "no start");
    Launch(count);
    Check(MPIX_Enqueue_wait(on_queue_queue, request) == MPI_SUCCESS, "no wait");
    Launch(check);
  }
  Check(MPIX_Queue_wait(on_queue_queue) == MPI_SUCCESS, "failed");
  Check(between == kRounds, "kernels were left out");
}

// In each form: lets `prepare` set the buffers, runs the call, and lets `check` check them.
void Run(const Forms& forms, const std::function<void()>& prepare,
         const std::function<void()>& check) {
  form = "blocking";
  prepare();
  Check(forms.blocking() == MPI_SUCCESS, "failed");
  check();
  form = "nonblocking";
  prepare();
  MPI_Request request = MPI_REQUEST_NULL;
  Check(forms.nonblocking(&request) == MPI_SUCCESS, "failed");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check();
  form = "persistent";
  Check(forms.init(&request) == MPI_SUCCESS, "failed");
  for (int i = 0; i < 2; ++i) {
    prepare();
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check();
  }
  if (is_on_queue() != 0) {
    RunOnQueue(&request, prepare, check);
  }
  MPI_Request_free(&request);
}

#define FORMS(Name, Iname, ...)                                                          \
  Forms {                                                                                \
    [&] { return MPI_##Name(__VA_ARGS__); },                                             \
        [&](MPI_Request* r) { return MPI_##Iname(__VA_ARGS__, r); },                     \
        [&](MPI_Request* r) { return MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, r); } \
  }

// The value of rank `r` at place `i`.
int64_t Value(int r, int64_t i) { return 1000003 * (r + 1) + i; }
constexpr int64_t kNone = -1;

using Words = std::vector<int64_t>;

Words Own(int64_t count) {
  Words words(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    words[static_cast<size_t>(i)] = Value(rank, i);
  }
  return words;
}

std::string Describe(const char* what, int64_t count) {
  return std::string(what) + " of " + std::to_string(count);
}

// ---- Moving -------------------------------------------------------------------------------------

void TestBcast(int count) {
  for (int root = 0; root<size; root += size> 2 ? size - 1 : 1) {
    Words data;
    const auto n = static_cast<size_t>(count);
    data.reserve(n + 1);
    data.resize(n);
    Run(
        FORMS(Bcast, Ibcast, data.data(), count, MPI_INT64_T, root, comm),
        [&] {
          for (size_t i = 0; i < n; ++i) {
            data[i] = rank == root ? Value(root, static_cast<int64_t>(i)) : kNone;
          }
        },
        [&] {
          for (size_t i = 0; i < n; ++i) {
            Check(data[i] == Value(root, static_cast<int64_t>(i)), Describe("bcast", count));
          }
        });
  }
}

void TestGatherAndScatter(int count, bool in_place) {
  const int root = size - 1;
  const auto n = static_cast<size_t>(count);
  Words own = Own(count);
  Words all(n * static_cast<size_t>(size) + 1);
  const bool here = in_place && rank == root;
  Run(
      FORMS(Gather, Igather, here ? MPI_IN_PLACE : own.data(), count, MPI_INT64_T, all.data(),
            count, MPI_INT64_T, root, comm),
      [&] {
        all.assign(all.size(), kNone);
        if (here) {
          std::copy(own.begin(), own.end(), all.begin() + static_cast<ptrdiff_t>(n) * root);
        }
      },
      [&] {
        for (size_t i = 0; rank == root && i < n * static_cast<size_t>(size); ++i) {
          Check(all[i] == Value(static_cast<int>(i / n), static_cast<int64_t>(i % n)),
                Describe("gather", count));
        }
      });
  Words part(n + 1);
  Run(
      FORMS(Scatter, Iscatter, all.data(), count, MPI_INT64_T, here ? MPI_IN_PLACE : part.data(),
            count, MPI_INT64_T, root, comm),
      [&] {
        part.assign(part.size(), kNone);
        for (size_t i = 0; i < n * static_cast<size_t>(size); ++i) {
          all[i] = Value(static_cast<int>(i / n), static_cast<int64_t>(i % n));
        }
      },
      [&] {
        for (size_t i = 0; !here && i < n; ++i) {
          Check(part[i] == Value(rank, static_cast<int64_t>(i)), Describe("scatter", count));
        }
      });
}

// Rank r has r % 3 * count elements; they lie one behind the other with gaps of one, last rank
// first.
void TestBlocks(int count) {
  std::vector<int> counts(static_cast<size_t>(size));
  std::vector<int> displs(static_cast<size_t>(size));
  int end = 0;
  for (int r = size - 1; r >= 0; --r) {
    counts[static_cast<size_t>(r)] = r % 3 * count;
    displs[static_cast<size_t>(r)] = end;
    end += counts[static_cast<size_t>(r)] + 1;
  }
  const int mine = counts[static_cast<size_t>(rank)];
  Words own = Own(mine);
  own.resize(static_cast<size_t>(mine) + 1);
  Words all(static_cast<size_t>(end) + 1);
  const auto clear = [&] { all.assign(all.size(), kNone); };
  const auto check = [&](const char* what) {
    for (int r = 0; r < size; ++r) {
      const auto at = static_cast<size_t>(displs[static_cast<size_t>(r)]);
      const int n = counts[static_cast<size_t>(r)];
      for (int i = 0; i < n; ++i) {
        Check(all[at + static_cast<size_t>(i)] == Value(r, i), Describe(what, count));
      }
      Check(all[at + static_cast<size_t>(n)] == kNone, Describe("gap", count));
    }
  };
  Run(FORMS(Gatherv, Igatherv, own.data(), mine, MPI_INT64_T, all.data(), counts.data(),
            displs.data(), MPI_INT64_T, 0, comm),
      clear, [&] {
        if (rank == 0) {
          check("gatherv");
        }
      });
  Run(FORMS(Allgatherv, Iallgatherv, own.data(), mine, MPI_INT64_T, all.data(), counts.data(),
            displs.data(), MPI_INT64_T, comm),
      clear, [&] { check("allgatherv"); });
  Words part(static_cast<size_t>(mine) + 1);
  Run(
      FORMS(Scatterv, Iscatterv, all.data(), counts.data(), displs.data(), MPI_INT64_T, part.data(),
            mine, MPI_INT64_T, 0, comm),
      [&] { part.assign(part.size(), kNone); },
      [&] {
        for (int i = 0; i < mine; ++i) {
          Check(part[static_cast<size_t>(i)] == Value(rank, i), Describe("scatterv", count));
        }
        Check(part.back() == kNone, "scatterv wrote too much");
      });
}

void TestAllgather(int count, bool in_place) {
  const auto n = static_cast<size_t>(count);
  Words own = Own(count);
  Words all(n * static_cast<size_t>(size) + 1);
  Run(
      FORMS(Allgather, Iallgather, in_place ? MPI_IN_PLACE : own.data(), count, MPI_INT64_T,
            all.data(), count, MPI_INT64_T, comm),
      [&] {
        all.assign(all.size(), kNone);
        if (in_place) {
          std::copy(own.begin(), own.end(), all.begin() + static_cast<ptrdiff_t>(n) * rank);
        }
      },
      [&] {
        for (size_t i = 0; i < n * static_cast<size_t>(size); ++i) {
          Check(all[i] == Value(static_cast<int>(i / n), static_cast<int64_t>(i % n)),
                Describe("allgather", count));
        }
      });
}

// The value that `from` sends to `to` at place i.
int64_t Between(int from, int to, int64_t i) { return Value(from * size + to, i); }

void TestAlltoall(int count, bool in_place) {
  const auto n = static_cast<size_t>(count);
  const size_t total = n * static_cast<size_t>(size);
  Words out(total + 1);
  Words in(total + 1);
  std::vector<int> counts(static_cast<size_t>(size), count);
  std::vector<int> displs(static_cast<size_t>(size));
  std::vector<int> bytes(static_cast<size_t>(size));
  const std::vector<MPI_Datatype> types(static_cast<size_t>(size), MPI_INT64_T);
  for (int r = 0; r < size; ++r) {
    displs[static_cast<size_t>(r)] = r * count;
    bytes[static_cast<size_t>(r)] = r * count * 8;
  }
  const auto prepare = [&] {
    in.assign(in.size(), kNone);
    for (size_t i = 0; i < total; ++i) {
      (in_place ? in : out)[i] =
          Between(rank, static_cast<int>(i / n), static_cast<int64_t>(i % n));
    }
  };
  const auto check = [&] {
    for (size_t i = 0; i < total; ++i) {
      Check(in[i] == Between(static_cast<int>(i / n), rank, static_cast<int64_t>(i % n)),
            Describe("alltoall", count));
    }
  };
  const void* send = in_place ? MPI_IN_PLACE : out.data();
  Run(FORMS(Alltoall, Ialltoall, send, count, MPI_INT64_T, in.data(), count, MPI_INT64_T, comm),
      prepare, check);
  Run(FORMS(Alltoallv, Ialltoallv, send, counts.data(), displs.data(), MPI_INT64_T, in.data(),
            counts.data(), displs.data(), MPI_INT64_T, comm),
      prepare, check);
  Run(FORMS(Alltoallw, Ialltoallw, send, counts.data(), bytes.data(), types.data(), in.data(),
            counts.data(), bytes.data(), types.data(), comm),
      prepare, check);
}

// Every second word is sent: into rows on one side, columns on the other.
void TestLayouts(int count) {
  MPI_Datatype every_second;
  MPI_Type_vector(count, 1, 2, MPI_INT64_T, &every_second);
  MPI_Type_commit(&every_second);
  const auto n = static_cast<size_t>(count);
  Words sparse(2 * n + 1);
  Run(
      FORMS(Bcast, Ibcast, sparse.data(), 1, every_second, 0, comm),
      [&] {
        for (size_t i = 0; i < sparse.size(); ++i) {
          sparse[i] = rank == 0 ? Value(0, static_cast<int64_t>(i)) : kNone;
        }
      },
      [&] {
        for (size_t i = 0; i < 2 * n; ++i) {
          const bool is_sent = rank == 0 || i % 2 == 0;
          Check(sparse[i] == (is_sent ? Value(0, static_cast<int64_t>(i)) : kNone),
                Describe("bcast of a vector", count));
        }
      });
  Words all(n * static_cast<size_t>(size));
  for (size_t i = 0; i < n; ++i) {
    sparse[2 * i] = Value(rank, static_cast<int64_t>(i));
  }
  Run(
      FORMS(Allgather, Iallgather, sparse.data(), 1, every_second, all.data(), count, MPI_INT64_T,
            comm),
      [&] { all.assign(all.size(), kNone); },
      [&] {
        for (size_t i = 0; i < all.size(); ++i) {
          Check(all[i] == Value(static_cast<int>(i / n), static_cast<int64_t>(i % n)),
                Describe("allgather of a vector", count));
        }
      });
  MPI_Type_free(&every_second);
}

// ---- Reducing -----------------------------------------------------------------------------------

int64_t Sum(int first, int last, int64_t i) {
  int64_t sum = 0;
  for (int r = first; r <= last; ++r) {
    sum += Value(r, i);
  }
  return sum;
}

void TestReductions(int count, bool in_place) {
  const auto n = static_cast<size_t>(count);
  const Words own = Own(count);
  Words result(n + 1);
  const int root = size / 2;
  const auto prepare = [&] {
    result.assign(result.size(), kNone);
    if (in_place) {
      std::copy(own.begin(), own.end(), result.begin());
    }
  };
  const auto check = [&](const char* what, int first, int last) {
    for (size_t i = 0; i < n; ++i) {
      Check(result[i] == Sum(first, last, static_cast<int64_t>(i)), Describe(what, count));
    }
  };
  const void* send = in_place ? MPI_IN_PLACE : own.data();
  const bool here = in_place && rank == root;
  Run(FORMS(Reduce, Ireduce, here ? MPI_IN_PLACE : own.data(), result.data(), count, MPI_INT64_T,
            MPI_SUM, root, comm),
      prepare, [&] {
        if (rank == root) {
          check("reduce", 0, size - 1);
        }
      });
  Run(FORMS(Allreduce, Iallreduce, send, result.data(), count, MPI_INT64_T, MPI_SUM, comm), prepare,
      [&] { check("allreduce", 0, size - 1); });
  Run(FORMS(Scan, Iscan, send, result.data(), count, MPI_INT64_T, MPI_SUM, comm), prepare,
      [&] { check("scan", 0, rank); });
  Run(FORMS(Exscan, Iexscan, send, result.data(), count, MPI_INT64_T, MPI_SUM, comm), prepare, [&] {
    if (rank > 0) {
      check("exscan", 0, rank - 1);
    }
  });
}

void TestReduceScatter(int count, bool in_place) {
  std::vector<int> counts(static_cast<size_t>(size), count);
  const Words own = Own(static_cast<int64_t>(count) * size);
  Words result(own.size() + 1);
  const auto prepare = [&] {
    result.assign(result.size(), kNone);
    if (in_place) {
      std::copy(own.begin(), own.end(), result.begin());
    }
  };
  const auto check = [&](int64_t first) {
    for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i) {
      Check(result[static_cast<size_t>(i)] == Sum(0, size - 1, first + i),
            Describe("reduce_scatter", count));
    }
  };
  const void* send = in_place ? MPI_IN_PLACE : own.data();
  Run(FORMS(Reduce_scatter_block, Ireduce_scatter_block, send, result.data(), count, MPI_INT64_T,
            MPI_SUM, comm),
      prepare, [&] { check(static_cast<int64_t>(rank) * count); });
  int64_t first = 0;
  for (int r = 0; r < size; ++r) {
    counts[static_cast<size_t>(r)] = r % 2 * count;
    first += r < rank ? r % 2 * count : 0;
  }
  Run(FORMS(Reduce_scatter, Ireduce_scatter, send, result.data(), counts.data(), MPI_INT64_T,
            MPI_SUM, comm),
      prepare, [&] { check(first); });
}

void TestMaxloc() {
  struct Pair {
    double value;
    int index;
  };
  Pair own[3] = {{1.0, rank}, {static_cast<double>(rank), rank}, {-rank * 0.5, rank}};
  Pair result[3] = {};
  Run(
      FORMS(Allreduce, Iallreduce, own, result, 3, MPI_DOUBLE_INT, MPI_MAXLOC, comm), [] {},
      [&] {
        Check(result[0].index == 0 && result[1].index == size - 1 && result[2].index == 0,
              "maxloc");
      });
}

void TestBarriers() {
  Run(
      {[] { return MPI_Barrier(comm); }, [](MPI_Request* r) { return MPI_Ibarrier(comm, r); },
       [](MPI_Request* r) { return MPI_Barrier_init(comm, MPI_INFO_NULL, r); }},
      [] {}, [] {});
}

// Many collectives at once, completed in another order.
void TestOverlap() {
  constexpr int kMany = 20;
  std::vector<Words> in(kMany);
  std::vector<Words> out(kMany);
  std::vector<MPI_Request> requests(kMany);
  for (int i = 0; i < kMany; ++i) {
    const auto n = static_cast<size_t>(i * i * 10 + 1);
    in[static_cast<size_t>(i)].assign(n, rank + i);
    out[static_cast<size_t>(i)].assign(n, kNone);
    MPI_Iallreduce(in[static_cast<size_t>(i)].data(), out[static_cast<size_t>(i)].data(),
                   static_cast<int>(n), MPI_INT64_T, MPI_SUM, comm,
                   &requests[static_cast<size_t>(i)]);
  }
  int64_t total = 0;
  const int64_t one = 1;
  MPI_Allreduce(&one, &total, 1, MPI_INT64_T, MPI_SUM, comm);
  Check(total == size, "allreduce beside others");
  MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany; ++i) {
    for (const int64_t word : out[static_cast<size_t>(i)]) {
      Check(word == int64_t{size} * (size - 1) / 2 + int64_t{size} * i, "overlapping allreduces");
    }
  }
}

void TestNeighbours() {
  int dims[1] = {size};
  int periods[1] = {1};
  MPI_Comm ring;
  MPI_Cart_create(comm, 1, dims, periods, 0, &ring);
  int64_t out[2] = {Value(rank, 0), Value(rank, 1)};
  int64_t in[2] = {};
  const int before = (rank - 1 + size) % size;
  const int behind = (rank + 1) % size;
  Run(
      FORMS(Neighbor_alltoall, Ineighbor_alltoall, out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, ring),
      [&] { in[0] = in[1] = kNone; },
      [&] { Check(in[0] == Value(before, 1) && in[1] == Value(behind, 0), "neighbor_alltoall"); });
  Run(
      FORMS(Neighbor_allgather, Ineighbor_allgather, out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, ring),
      [&] { in[0] = in[1] = kNone; },
      [&] { Check(in[0] == Value(before, 0) && in[1] == Value(behind, 0), "neighbor_allgather"); });
  MPI_Comm_free(&ring);
}

// Waits for a file, without a call of MPI.
void AwaitFile(const std::string& path) {
  const double end = MPI_Wtime() + 60;
  while (access(path.c_str(), F_OK) != 0) {
    Check(MPI_Wtime() < end, "nobody has made " + path);
  }
}

void MakeFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  Check(file != nullptr && std::fclose(file) == 0, "cannot make " + path);
}

// Rank 0 begins, and makes no further call before rank 2 is done. Rank 2 needs what rank 0 sends
// after it has heard from rank 1, which comes last.
void TestProgress() {
  form = "without the application";
  if (size < 4) {
    return;
  }
  int parent = static_cast<int>(getppid());
  MPI_Bcast(&parent, 1, MPI_INT, 0, comm);
  const std::string begun = "/tmp/ferry_begun_" + std::to_string(parent);
  const std::string done = "/tmp/ferry_done_" + std::to_string(parent);
  const int64_t one = 1;
  int64_t sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) {
    AwaitFile(begun);
  }
  MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, comm, &request);
  if (rank == 0) {
    MakeFile(begun);
    AwaitFile(done);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Check(sum == size, "the sum is wrong");
  if (rank == 2) {
    MakeFile(done);
  }
  MPI_Barrier(comm);
  if (rank == 0) {
    unlink(begun.c_str());
    unlink(done.c_str());
  }
}

void TestAll() {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  TestBarriers();
  for (const int count : {0, 1, 3, 700, 20011, 200003}) {
    TestBcast(count);
    for (const bool in_place : {false, true}) {
      TestReductions(count, in_place);
      if (count <= 20011) {
        TestGatherAndScatter(count, in_place);
        TestAllgather(count, in_place);
        TestAlltoall(count, in_place);
        TestReduceScatter(count, in_place);
      }
    }
    if (count <= 20011) {
      TestBlocks(count);
      TestLayouts(count);
    }
  }
  TestMaxloc();
  TestOverlap();
  TestNeighbours();
}

}  // namespace

int main(int argc, char** argv) {
  want_queues(argc, argv);
  MPI_Init(&argc, &argv);
  TestAll();
  TestProgress();
  // Some of the ranks, in reverse order.
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &part);
  comm = part;
  TestAll();
  MPI_Comm_free(&part);
  close_on_queue();
  MPI_Finalize();
  std::puts("all collectives were right");
  return 0;
}
