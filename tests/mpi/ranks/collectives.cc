// Every collective, in its three forms, is compared with values computed the simple way. Run by
// ferryrun on any number of ranks; each prints that all were right.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/mpi/ranks/on_queue.h"

namespace {

// `rank` and `size` are those in this communicator.
MPI_Comm comm = MPI_COMM_WORLD;
const char* form = "";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "rank %d of %d, %s: %s\n", rank, size, form, what.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

[[noreturn]] void FailOf(const char* what, int count) {
  char text[64];
  std::snprintf(text, sizeof(text), "%s of %d", what, count);
  Fail(text);
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

// Runs the request on a queue: round by round, and several rounds at once. Kernels of the stream
// set the buffers and check them, with another kernel between start and wait.
void RunOnQueue(MPI_Request* request, const std::function<void()>& prepare,
                const std::function<void()>& check) {
  form = "enqueued";
  Check(MPIX_Match(request) == MPI_SUCCESS, "was not matched");
  prepare();
  run_on_queue(request);
  check();
  form = "matched";
  prepare();
  OK(MPI_Start(request));
  OK(MPI_Wait(request, MPI_STATUS_IGNORE));
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
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  check();
  form = "persistent";
  Check(forms.init(&request) == MPI_SUCCESS, "failed");
  for (int i = 0; i < 2; ++i) {
    prepare();
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check();
  }
  if (is_on_queue() != 0) {
    RunOnQueue(&request, prepare, check);
  }
  OK(MPI_Request_free(&request));
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

// Sets `blocks` blocks of `count` words each.
template <typename Wanted>
void Set(Words* words, int blocks, int count, Wanted wanted) {
  for (int r = 0, at = 0; r < blocks; ++r) {
    for (int i = 0; i < count; ++i) {
      (*words)[at++] = wanted(r, i);
    }
  }
}

// Expects `blocks` blocks of `count` words each of the collective `what`. The words are many, so
// that nothing is written down unless one is wrong.
template <typename Wanted>
void Expect(const Words& words, int blocks, int count, const char* what, Wanted wanted) {
  for (int r = 0, at = 0; r < blocks; ++r) {
    for (int i = 0; i < count; ++i, ++at) {
      if (words[at] != wanted(r, i)) {
        FailOf(what, count);
      }
    }
  }
}

void Clear(Words* words) { words->assign(words->size(), kNone); }

Words Own(int count) {
  Words words(count);
  Set(&words, 1, count, [](int, int i) { return Value(rank, i); });
  return words;
}

// ---- Moving -------------------------------------------------------------------------------------

void TestBcast(int count) {
  for (int root = 0; root<size; root += size> 2 ? size - 1 : 1) {
    Words data;
    data.reserve(count + 1);
    data.resize(count);
    const auto wanted = [root](int, int i) { return Value(root, i); };
    Run(
        FORMS(Bcast, Ibcast, data.data(), count, MPI_INT64_T, root, comm),
        [&] {
          Clear(&data);
          if (rank == root) {
            Set(&data, 1, count, wanted);
          }
        },
        [&] { Expect(data, 1, count, "bcast", wanted); });
  }
}

void TestGatherAndScatter(int count, bool in_place) {
  const int root = size - 1;
  Words own = Own(count);
  Words all(count * size + 1);
  const bool here = in_place && rank == root;
  Run(
      FORMS(Gather, Igather, here ? MPI_IN_PLACE : own.data(), count, MPI_INT64_T, all.data(),
            count, MPI_INT64_T, root, comm),
      [&] {
        Clear(&all);
        if (here) {
          std::copy(own.begin(), own.end(), all.begin() + count * root);
        }
      },
      [&] { Expect(all, rank == root ? size : 0, count, "gather", Value); });
  Words part(count + 1);
  Run(
      FORMS(Scatter, Iscatter, all.data(), count, MPI_INT64_T, here ? MPI_IN_PLACE : part.data(),
            count, MPI_INT64_T, root, comm),
      [&] {
        Clear(&part);
        Set(&all, size, count, Value);
      },
      [&] {
        Expect(part, here ? 0 : 1, count, "scatter", [](int, int i) { return Value(rank, i); });
      });
}

// Rank r has r % 3 * count elements; they lie one behind the other with gaps of one, last rank
// first.
void TestBlocks(int count) {
  std::vector<int> counts(size);
  std::vector<int> displs(size);
  int end = 0;
  for (int r = size - 1; r >= 0; --r) {
    counts[r] = r % 3 * count;
    displs[r] = end;
    end += counts[r] + 1;
  }
  const int mine = counts[rank];
  Words own = Own(mine);
  own.resize(mine + 1);
  Words all(end + 1);
  const auto clear = [&] { Clear(&all); };
  const auto check = [&](const char* what) {
    for (int r = 0; r < size; ++r) {
      for (int i = 0; i < counts[r]; ++i) {
        if (all[displs[r] + i] != Value(r, i)) {
          FailOf(what, count);
        }
      }
      Check(all[displs[r] + counts[r]] == kNone, "wrote into a gap");
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
  Words part(mine + 1);
  Run(
      FORMS(Scatterv, Iscatterv, all.data(), counts.data(), displs.data(), MPI_INT64_T, part.data(),
            mine, MPI_INT64_T, 0, comm),
      [&] { Clear(&part); },
      [&] {
        Expect(part, 1, mine, "scatterv", [](int, int i) { return Value(rank, i); });
        Check(part.back() == kNone, "scatterv wrote too much");
      });
}

void TestAllgather(int count, bool in_place) {
  Words own = Own(count);
  Words all(count * size + 1);
  Run(
      FORMS(Allgather, Iallgather, in_place ? MPI_IN_PLACE : own.data(), count, MPI_INT64_T,
            all.data(), count, MPI_INT64_T, comm),
      [&] {
        Clear(&all);
        if (in_place) {
          std::copy(own.begin(), own.end(), all.begin() + count * rank);
        }
      },
      [&] { Expect(all, size, count, "allgather", Value); });
}

// The value that `from` sends to `to` at place i.
int64_t Between(int from, int to, int i) { return Value(from * size + to, i); }

void TestAlltoall(int count, bool in_place) {
  Words out(count * size + 1);
  Words in(out.size());
  std::vector<int> counts(size, count);
  std::vector<int> displs(size);
  std::vector<int> bytes(size);
  const std::vector<MPI_Datatype> types(size, MPI_INT64_T);
  for (int r = 0; r < size; ++r) {
    displs[r] = r * count;
    bytes[r] = r * count * 8;
  }
  const auto prepare = [&] {
    Clear(&in);
    Set(in_place ? &in : &out, size, count, [](int to, int i) { return Between(rank, to, i); });
  };
  const auto check = [&] {
    Expect(in, size, count, "alltoall", [](int from, int i) { return Between(from, rank, i); });
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
  OK(MPI_Type_vector(count, 1, 2, MPI_INT64_T, &every_second));
  OK(MPI_Type_commit(&every_second));
  Words sparse(2 * count + 1);
  Run(
      FORMS(Bcast, Ibcast, sparse.data(), 1, every_second, 0, comm),
      [&] {
        Clear(&sparse);
        if (rank == 0) {
          Set(&sparse, 1, 2 * count + 1, Value);
        }
      },
      [&] {
        Expect(sparse, 1, 2 * count, "bcast of a vector",
               [](int, int i) { return rank == 0 || i % 2 == 0 ? Value(0, i) : kNone; });
      });
  Words all(count * size);
  for (int i = 0; i < count; ++i) {
    sparse[2 * i] = Value(rank, i);
  }
  Run(
      FORMS(Allgather, Iallgather, sparse.data(), 1, every_second, all.data(), count, MPI_INT64_T,
            comm),
      [&] { Clear(&all); }, [&] { Expect(all, size, count, "allgather of a vector", Value); });
  OK(MPI_Type_free(&every_second));
}

// ---- Reducing -----------------------------------------------------------------------------------

// The sum of the values of some ranks at place i.
int64_t Sum(int first, int last, int64_t i) {
  int64_t sum = 0;
  for (int r = first; r <= last; ++r) {
    sum += Value(r, i);
  }
  return sum;
}

// Clears the result, which is the input in place, too.
void PrepareReduction(const Words& own, bool in_place, Words* result) {
  Clear(result);
  if (in_place) {
    std::copy(own.begin(), own.end(), result->begin());
  }
}

void TestReductions(int count, bool in_place) {
  const Words own = Own(count);
  Words result(count + 1);
  const int root = size / 2;
  const auto prepare = [&] { PrepareReduction(own, in_place, &result); };
  const auto check = [&](const char* what, int first, int last) {
    Expect(result, 1, count, what, [=](int, int i) { return Sum(first, last, i); });
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
  std::vector<int> counts(size, count);
  const Words own = Own(count * size);
  Words result(own.size() + 1);
  const auto prepare = [&] { PrepareReduction(own, in_place, &result); };
  const auto check = [&](int first) {
    Expect(result, 1, counts[rank], "reduce_scatter",
           [=](int, int i) { return Sum(0, size - 1, first + i); });
  };
  const void* send = in_place ? MPI_IN_PLACE : own.data();
  Run(FORMS(Reduce_scatter_block, Ireduce_scatter_block, send, result.data(), count, MPI_INT64_T,
            MPI_SUM, comm),
      prepare, [&] { check(rank * count); });
  int first = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r % 2 * count;
    first += r < rank ? counts[r] : 0;
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
    const int n = i * i * 10 + 1;
    in[i].assign(n, rank + i);
    out[i].assign(n, kNone);
    OK(MPI_Iallreduce(in[i].data(), out[i].data(), n, MPI_INT64_T, MPI_SUM, comm, &requests[i]));
  }
  int64_t total = 0;
  const int64_t one = 1;
  OK(MPI_Allreduce(&one, &total, 1, MPI_INT64_T, MPI_SUM, comm));
  Check(total == size, "allreduce beside others");
  OK(MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < kMany; ++i) {
    const int64_t sum = int64_t{size} * (size - 1) / 2 + int64_t{size} * i;
    Check(out[i] == Words(out[i].size(), sum), "overlapping allreduces");
  }
}

void TestNeighbours() {
  int dims[1] = {size};
  int periods[1] = {1};
  MPI_Comm ring;
  OK(MPI_Cart_create(comm, 1, dims, periods, 0, &ring));
  int64_t out[2] = {Value(rank, 0), Value(rank, 1)};
  int64_t in[2] = {};
  const int left = (rank - 1 + size) % size;
  const int right = (rank + 1) % size;
  Run(
      FORMS(Neighbor_alltoall, Ineighbor_alltoall, out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, ring),
      [&] { in[0] = in[1] = kNone; },
      [&] { Check(in[0] == Value(left, 1) && in[1] == Value(right, 0), "neighbor_alltoall"); });
  Run(
      FORMS(Neighbor_allgather, Ineighbor_allgather, out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, ring),
      [&] { in[0] = in[1] = kNone; },
      [&] { Check(in[0] == Value(left, 0) && in[1] == Value(right, 0), "neighbor_allgather"); });
  OK(MPI_Comm_free(&ring));
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
  OK(MPI_Bcast(&parent, 1, MPI_INT, 0, comm));
  const std::string begun = "/tmp/ferry_begun_" + std::to_string(parent);
  const std::string done = "/tmp/ferry_done_" + std::to_string(parent);
  const int64_t one = 1;
  int64_t sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) {
    AwaitFile(begun);
  }
  OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, comm, &request));
  if (rank == 0) {
    MakeFile(begun);
    AwaitFile(done);
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  Check(sum == size, "the sum is wrong");
  if (rank == 2) {
    MakeFile(done);
  }
  OK(MPI_Barrier(comm));
  if (rank == 0) {
    unlink(begun.c_str());
    unlink(done.c_str());
  }
}

void TestAll() {
  rank = rank_in(comm);
  size = size_of(comm);
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
  begin(&argc, &argv);
  TestAll();
  TestProgress();
  // Some of the ranks, in reverse order.
  MPI_Comm part;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part));
  comm = part;
  TestAll();
  OK(MPI_Comm_free(&part));
  close_on_queue();
  return end_well("all collectives were right");
}
