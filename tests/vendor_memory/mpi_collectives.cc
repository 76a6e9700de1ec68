// Collectives, with separate buffers and in place, with equal and with different counts.
#include <cstdint>
#include <functional>
#include <numeric>

#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

using Values = std::vector<int64_t>;

// The value of rank `of` at its element i.
int64_t Value(int of, size_t i) {
  return static_cast<int64_t>(of) * 100'000 + static_cast<int64_t>(i) * 3 + 1;
}

Values Part(int of, size_t count, size_t first = 0) {
  Values part(count);
  for (size_t i = 0; i < count; ++i) {
    part[i] = Value(of, first + i);
  }
  return part;
}

// The parts of all ranks one behind the other.
Values AllParts(size_t count, size_t first = 0) {
  Values all;
  for (int of = 0; of < size; ++of) {
    const Values part = Part(of, count, first);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// The sum over the ranks 0 to `last`.
Values Sum(int last, size_t count, size_t first = 0) {
  Values sum(count);
  for (int of = 0; of <= last; ++of) {
    for (size_t i = 0; i < count; ++i) {
      sum[i] += Value(of, first + i);
    }
  }
  return sum;
}

class Collectives {
 public:
  Collectives(const Kind& kind, size_t count)
      : count_(count),
        ranks_(static_cast<size_t>(size)),
        n_(static_cast<int>(count)),
        own_(kind, count * 8),
        all_(kind, count * 8 * ranks_),
        other_(kind, count * 8 * ranks_) {}

  void Run() {
    const std::string outer = step;
    const auto run = [&](const char* name, void (Collectives::*check)()) {
      RunOne(outer, name, check);
    };
    run("bcast", &Collectives::Bcast);
    run("gather", &Collectives::Gather);
    run("scatter", &Collectives::Scatter);
    run("allgather", &Collectives::Allgather);
    run("alltoall", &Collectives::Alltoall);
    run("reduce", &Collectives::Reduce);
    run("allreduce", &Collectives::Allreduce);
    run("reduce_scatter", &Collectives::ReduceScatter);
    run("scan", &Collectives::Scan);
    run("gatherv", &Collectives::Gatherv);
    run("allgatherv", &Collectives::Allgatherv);
    run("alltoallv", &Collectives::Alltoallv);
    run("alltoallw", &Collectives::Alltoallw);
    run("types", &Collectives::Types);
    run("reduce_local", &Collectives::ReduceLocal);
    step = outer;
  }

  void RunReductions() {
    const std::string outer = step;
    RunOne(outer, "allreduce", &Collectives::Allreduce);
    RunOne(outer, "reduce", &Collectives::Reduce);
    step = outer;
  }

 private:
  void RunOne(const std::string& outer, const char* name, void (Collectives::*check)()) {
    step = outer + ", " + name + " of " + std::to_string(count_);
    own_.Write(Part(rank, count_));
    all_.Clear();
    other_.Clear();
    (this->*check)();
    own_.CheckMargins();
    all_.CheckMargins();
    other_.CheckMargins();
  }

  void Expect(const Buffer& buffer, const Values& values, size_t first = 0) {
    VENDOR_CHECK(buffer.Read<int64_t>(values.size(), first) == values);
  }

  void Bcast() {
    for (int root = 0; root < size; ++root) {
      own_.Write(Part(rank, count_, 7));
      VENDOR_OK(MPI_Bcast(own_.data(), n_, MPI_INT64_T, root, MPI_COMM_WORLD));
      Expect(own_, Part(root, count_, 7));
    }
  }

  void Gather() {
    VENDOR_OK(
        MPI_Gather(own_.data(), n_, MPI_INT64_T, all_.data(), n_, MPI_INT64_T, 0, MPI_COMM_WORLD));
    if (rank == 0) {
      Expect(all_, AllParts(count_));
    }
    const int root = size - 1;
    all_.Write(Part(rank, count_, 5), static_cast<size_t>(rank) * count_);
    const void* const from = rank == root ? MPI_IN_PLACE : all_.as<int64_t>() + rank * n_;
    VENDOR_OK(
        MPI_Gather(from, n_, MPI_INT64_T, all_.data(), n_, MPI_INT64_T, root, MPI_COMM_WORLD));
    if (rank == root) {
      Expect(all_, AllParts(count_, 5));
    }
  }

  void Scatter() {
    if (rank == 0) {
      all_.Write(AllParts(count_, 9));
    }
    VENDOR_OK(
        MPI_Scatter(all_.data(), n_, MPI_INT64_T, own_.data(), n_, MPI_INT64_T, 0, MPI_COMM_WORLD));
    Expect(own_, Part(rank, count_, 9));
    void* const to = rank == 0 ? MPI_IN_PLACE : own_.data();
    own_.Clear();
    VENDOR_OK(MPI_Scatter(all_.data(), n_, MPI_INT64_T, to, n_, MPI_INT64_T, 0, MPI_COMM_WORLD));
    if (rank != 0) {
      Expect(own_, Part(rank, count_, 9));
    }
  }

  void Allgather() {
    VENDOR_OK(
        MPI_Allgather(own_.data(), n_, MPI_INT64_T, all_.data(), n_, MPI_INT64_T, MPI_COMM_WORLD));
    Expect(all_, AllParts(count_));
    all_.Clear();
    all_.Write(Part(rank, count_, 2), static_cast<size_t>(rank) * count_);
    VENDOR_OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_.data(), n_, MPI_INT64_T,
                            MPI_COMM_WORLD));
    Expect(all_, AllParts(count_, 2));
  }

  void Alltoall() {
    // Element i of what rank r sends to s is Value(r, s * 1000 + i).
    Values out;
    Values in;
    for (int of = 0; of < size; ++of) {
      const Values to = Part(rank, count_, static_cast<size_t>(of) * 1000);
      const Values from = Part(of, count_, static_cast<size_t>(rank) * 1000);
      out.insert(out.end(), to.begin(), to.end());
      in.insert(in.end(), from.begin(), from.end());
    }
    other_.Write(out);
    VENDOR_OK(
        MPI_Alltoall(other_.data(), n_, MPI_INT64_T, all_.data(), n_, MPI_INT64_T, MPI_COMM_WORLD));
    Expect(all_, in);
    VENDOR_OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other_.data(), n_, MPI_INT64_T,
                           MPI_COMM_WORLD));
    Expect(other_, in);
  }

  void Reduce() {
    VENDOR_OK(MPI_Reduce(own_.data(), all_.data(), n_, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD));
    if (rank == 0) {
      Expect(all_, Sum(size - 1, count_));
    }
    const bool is_root = rank == size - 1;
    VENDOR_OK(MPI_Reduce(is_root ? MPI_IN_PLACE : own_.data(), own_.data(), n_, MPI_INT64_T,
                         MPI_SUM, size - 1, MPI_COMM_WORLD));
    Expect(own_, is_root ? Sum(size - 1, count_) : Part(rank, count_));
  }

  void Allreduce() {
    VENDOR_OK(MPI_Allreduce(own_.data(), all_.data(), n_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    Expect(all_, Sum(size - 1, count_));
    VENDOR_OK(MPI_Allreduce(MPI_IN_PLACE, own_.data(), n_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    Expect(own_, Sum(size - 1, count_));
    // A type that devices have no kernel for here, and an operation of the program's own.
    Buffer& floats = other_;
    floats.Write(std::vector<float>(count_, static_cast<float>(rank + 1)));
    VENDOR_OK(MPI_Allreduce(MPI_IN_PLACE, floats.data(), n_, MPI_FLOAT, MPI_PROD, MPI_COMM_WORLD));
    float product = 1;
    for (int of = 0; of < size; ++of) {
      product *= static_cast<float>(of + 1);
    }
    VENDOR_CHECK(floats.Read<float>(count_) == std::vector<float>(count_, product));
  }

  void ReduceScatter() {
    other_.Write(Part(rank, count_ * ranks_));
    VENDOR_OK(MPI_Reduce_scatter_block(other_.data(), own_.data(), n_, MPI_INT64_T, MPI_SUM,
                                       MPI_COMM_WORLD));
    Expect(own_, Sum(size - 1, count_, static_cast<size_t>(rank) * count_));
    own_.Clear();
    std::vector<int> counts(ranks_, n_);
    VENDOR_OK(MPI_Reduce_scatter(other_.data(), own_.data(), counts.data(), MPI_INT64_T, MPI_SUM,
                                 MPI_COMM_WORLD));
    Expect(own_, Sum(size - 1, count_, static_cast<size_t>(rank) * count_));
    VENDOR_OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, other_.data(), n_, MPI_INT64_T, MPI_SUM,
                                       MPI_COMM_WORLD));
    Expect(other_, Sum(size - 1, count_, static_cast<size_t>(rank) * count_));
  }

  void Scan() {
    VENDOR_OK(MPI_Scan(own_.data(), all_.data(), n_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    Expect(all_, Sum(rank, count_));
    VENDOR_OK(MPI_Exscan(own_.data(), all_.data(), n_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (rank > 0) {
      Expect(all_, Sum(rank - 1, count_));
    }
    VENDOR_OK(MPI_Scan(MPI_IN_PLACE, own_.data(), n_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    Expect(own_, Sum(rank, count_));
  }

  // Rank r has count - r elements, which lie in the place of a whole part.
  std::vector<int> Counts() const {
    std::vector<int> counts(ranks_);
    for (int of = 0; of < size; ++of) {
      counts[static_cast<size_t>(of)] = n_ - of;
    }
    return counts;
  }
  std::vector<int> Places(int scale = 1) const {
    std::vector<int> places(ranks_);
    for (int of = 0; of < size; ++of) {
      places[static_cast<size_t>(of)] = of * n_ * scale;
    }
    return places;
  }

  void Gatherv() {
    const std::vector<int> counts = Counts();
    const std::vector<int> places = Places();
    VENDOR_OK(MPI_Gatherv(own_.data(), n_ - rank, MPI_INT64_T, all_.data(), counts.data(),
                          places.data(), MPI_INT64_T, 0, MPI_COMM_WORLD));
    for (int of = 0; rank == 0 && of < size; ++of) {
      Expect(all_, Part(of, count_ - static_cast<size_t>(of)), static_cast<size_t>(of) * count_);
    }
    own_.Clear();
    VENDOR_OK(MPI_Scatterv(all_.data(), counts.data(), places.data(), MPI_INT64_T, own_.data(),
                           n_ - rank, MPI_INT64_T, 0, MPI_COMM_WORLD));
    Expect(own_, Part(rank, count_ - static_cast<size_t>(rank)));
  }

  void Allgatherv() {
    const std::vector<int> counts = Counts();
    const std::vector<int> places = Places();
    VENDOR_OK(MPI_Allgatherv(own_.data(), n_ - rank, MPI_INT64_T, all_.data(), counts.data(),
                             places.data(), MPI_INT64_T, MPI_COMM_WORLD));
    for (int of = 0; of < size; ++of) {
      Expect(all_, Part(of, count_ - static_cast<size_t>(of)), static_cast<size_t>(of) * count_);
    }
  }

  void Alltoallv() {
    const std::vector<int> places = Places();
    const std::vector<int> out_counts = Counts();  // to rank s: count - s
    const std::vector<int> in_counts(ranks_, n_ - rank);
    for (int of = 0; of < size; ++of) {
      other_.Write(Part(rank, count_, static_cast<size_t>(of)), static_cast<size_t>(of) * count_);
    }
    VENDOR_OK(MPI_Alltoallv(other_.data(), out_counts.data(), places.data(), MPI_INT64_T,
                            all_.data(), in_counts.data(), places.data(), MPI_INT64_T,
                            MPI_COMM_WORLD));
    for (int of = 0; of < size; ++of) {
      Expect(all_, Part(of, count_ - static_cast<size_t>(rank), static_cast<size_t>(rank)),
             static_cast<size_t>(of) * count_);
    }
  }

  void Alltoallw() {
    const std::vector<int> places = Places(8);
    const std::vector<int> counts(ranks_, n_);
    const std::vector<MPI_Datatype> types(ranks_, MPI_INT64_T);
    for (int of = 0; of < size; ++of) {
      other_.Write(Part(rank, count_, static_cast<size_t>(of)), static_cast<size_t>(of) * count_);
    }
    VENDOR_OK(MPI_Alltoallw(other_.data(), counts.data(), places.data(), types.data(), all_.data(),
                            counts.data(), places.data(), types.data(), MPI_COMM_WORLD));
    for (int of = 0; of < size; ++of) {
      Expect(all_, Part(of, count_, static_cast<size_t>(rank)), static_cast<size_t>(of) * count_);
    }
  }

  // Every other element.
  void Types() {
    if (count_ % 2 != 0) {
      return;
    }
    MPI_Datatype vector = MPI_DATATYPE_NULL;
    VENDOR_OK(MPI_Type_vector(n_ / 2, 1, 2, MPI_INT64_T, &vector));
    VENDOR_OK(MPI_Type_commit(&vector));
    VENDOR_OK(
        MPI_Allgather(own_.data(), 1, vector, all_.data(), n_ / 2, MPI_INT64_T, MPI_COMM_WORLD));
    Values expected;
    for (int of = 0; of < size; ++of) {
      for (size_t i = 0; i < count_; i += 2) {
        expected.push_back(Value(of, i));
      }
    }
    Expect(all_, expected);
    VENDOR_OK(MPI_Bcast(own_.data(), 1, vector, 0, MPI_COMM_WORLD));
    expected = Part(rank, count_);
    for (size_t i = 0; i < count_; i += 2) {
      expected[i] = Value(0, i);
    }
    Expect(own_, expected);
    VENDOR_OK(MPI_Type_free(&vector));
  }

  void ReduceLocal() {
    all_.Write(Part(3, count_));
    VENDOR_OK(MPI_Reduce_local(own_.data(), all_.data(), n_, MPI_INT64_T, MPI_SUM));
    Values expected(count_);
    for (size_t i = 0; i < count_; ++i) {
      expected[i] = Value(rank, i) + Value(3, i);
    }
    Expect(all_, expected);
  }

  const size_t count_;
  const size_t ranks_;
  const int n_;
  Buffer own_;
  Buffer all_;
  Buffer other_;
};

}  // namespace

void RunCollectives(const Kind& kind) {
  for (const size_t count : {size_t{8}, size_t{1000}, size_t{9000}}) {
    Collectives(kind, count).Run();
  }
}

// Behind two calls, so that the ranks of a node have met on their board.
void RunReductions(const Kind& kind) {
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
  for (const size_t count : {size_t{1}, size_t{8}, size_t{1000}, size_t{2000}}) {
    Collectives(kind, count).RunReductions();
  }
}

void RunNonblockingCollectives(const Kind& kind) {
  for (const size_t count : {size_t{16}, size_t{12'000}}) {
    const int n = static_cast<int>(count);
    Buffer own(kind, count * 8);
    Buffer sum(kind, count * 8);
    Buffer all(kind, count * 8 * static_cast<size_t>(size));
    own.Write(Part(rank, count));
    MPI_Request requests[3];
    VENDOR_OK(MPI_Iallreduce(own.data(), sum.data(), n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                             &requests[0]));
    VENDOR_OK(MPI_Iallgather(own.data(), n, MPI_INT64_T, all.data(), n, MPI_INT64_T, MPI_COMM_WORLD,
                             &requests[1]));
    VENDOR_OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]));
    VENDOR_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    VENDOR_CHECK(sum.Read<int64_t>(count) == Sum(size - 1, count));
    VENDOR_CHECK(all.Read<int64_t>(count * static_cast<size_t>(size)) == AllParts(count));

    MPI_Request persistent = MPI_REQUEST_NULL;
    VENDOR_OK(MPI_Allreduce_init(MPI_IN_PLACE, own.data(), n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &persistent));
    for (size_t round = 0; round < 3; ++round) {
      own.Write(Part(rank, count, round));
      VENDOR_OK(MPI_Start(&persistent));
      VENDOR_OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
      VENDOR_CHECK(own.Read<int64_t>(count) == Sum(size - 1, count, round));
    }
    VENDOR_OK(MPI_Request_free(&persistent));
  }
}

}  // namespace ferry::vendor_memory
