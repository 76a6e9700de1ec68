// ferry-meter: a program of MPI that measures collectives, as the ranks of a job that `ferryctl
// tune --collectives` starts. Rank 0 writes the lines of meter_text.h.
//
//   ferry-meter LIBRARY MICROSECONDS SIZE,... COLLECTIVE,...
//   ferry-meter LIBRARY pair
//
// The second form is for `ferryctl doctor`: the first two ranks send each other messages, and rank
// 0 writes the line of PairLine.
//
// MICROSECONDS is what the calls of one size may take together, about. Every communicator is
// measured by its own ranks alone, while the others wait for the next one to be made.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/status.h"
#include "tools/tune/meter_text.h"

namespace ferry::tools {
namespace {

// The calls of an MPI library with the standard binary interface, opened by its path: so that a
// program that is installed apart from the library needs no search path for it.
struct MpiLibrary {
  // kNotFound: there is none; kUnsupported: it lacks a call. Stays open.
  static StatusOr<MpiLibrary> Open(const std::string& path);

  decltype(&MPI_Init) init = nullptr;
  decltype(&MPI_Finalize) finalize = nullptr;
  decltype(&MPI_Wtime) wtime = nullptr;
  decltype(&MPI_Comm_rank) comm_rank = nullptr;
  decltype(&MPI_Comm_size) comm_size = nullptr;
  decltype(&MPI_Comm_split) comm_split = nullptr;
  decltype(&MPI_Comm_split_type) comm_split_type = nullptr;
  decltype(&MPI_Comm_free) comm_free = nullptr;
  decltype(&MPI_Send) send = nullptr;
  decltype(&MPI_Recv) receive = nullptr;
  decltype(&MPI_Barrier) barrier = nullptr;
  decltype(&MPI_Bcast) bcast = nullptr;
  decltype(&MPI_Gather) gather = nullptr;
  decltype(&MPI_Scatter) scatter = nullptr;
  decltype(&MPI_Allgather) allgather = nullptr;
  decltype(&MPI_Alltoall) alltoall = nullptr;
  decltype(&MPI_Reduce) reduce = nullptr;
  decltype(&MPI_Allreduce) allreduce = nullptr;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block = nullptr;
  decltype(&MPI_Scan) scan = nullptr;
  decltype(&MPI_Exscan) exscan = nullptr;
};

StatusOr<MpiLibrary> MpiLibrary::Open(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(ErrorCode::kNotFound, std::string("cannot open the MPI library: ") + dlerror());
  }
  MpiLibrary calls;
  Status status;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr && status.ok()) {
      status = {ErrorCode::kUnsupported, path + " has no " + name};
    }
  };
  find("MPI_Init", &calls.init);
  find("MPI_Finalize", &calls.finalize);
  find("MPI_Wtime", &calls.wtime);
  find("MPI_Comm_rank", &calls.comm_rank);
  find("MPI_Comm_size", &calls.comm_size);
  find("MPI_Comm_split", &calls.comm_split);
  find("MPI_Comm_split_type", &calls.comm_split_type);
  find("MPI_Comm_free", &calls.comm_free);
  find("MPI_Send", &calls.send);
  find("MPI_Recv", &calls.receive);
  find("MPI_Barrier", &calls.barrier);
  find("MPI_Bcast", &calls.bcast);
  find("MPI_Gather", &calls.gather);
  find("MPI_Scatter", &calls.scatter);
  find("MPI_Allgather", &calls.allgather);
  find("MPI_Alltoall", &calls.alltoall);
  find("MPI_Reduce", &calls.reduce);
  find("MPI_Allreduce", &calls.allreduce);
  find("MPI_Reduce_scatter_block", &calls.reduce_scatter_block);
  find("MPI_Scan", &calls.scan);
  find("MPI_Exscan", &calls.exscan);
  FERRY_RETURN_IF_ERROR(status);
  return calls;
}

constexpr uint64_t kMostBytes = 256ULL << 20;  // that a rank's buffer may take
constexpr int kFewestCalls = 3;
constexpr int kMostCalls = 1000;

struct Request {
  double budget_us = 0;
  std::vector<uint64_t> sizes;
  std::vector<collective::Collective> collectives;
};

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    words.push_back(word);
  }
  return words;
}

// A communicator that this process is in.
class Meter {
 public:
  Meter(const MpiLibrary& mpi, MPI_Comm comm, uint32_t number)
      : mpi_(mpi), comm_(comm), number_(number) {
    mpi_.comm_rank(comm_, &rank_);
    mpi_.comm_size(comm_, &size_);
  }

  void Measure(const Request& request) {
    for (const collective::Collective collective : request.collectives) {
      const bool has_size = collective != collective::Collective::kBarrier;
      for (const uint64_t size : has_size ? request.sizes : std::vector<uint64_t>{0}) {
        if (size * static_cast<uint64_t>(size_) <= kMostBytes) {
          Measure(collective, size, request.budget_us);
        }
      }
    }
  }

 private:
  void Measure(collective::Collective collective, uint64_t size_bytes, double budget_us) {
    const size_t elements = size_bytes / sizeof(double) * static_cast<size_t>(size_);
    in_.assign(elements, 1);
    out_.assign(elements, 0);
    (void)Run(collective, size_bytes, size_);  // each root has been one
    const double guess_us = Run(collective, size_bytes, kFewestCalls);
    int calls = static_cast<int>(std::clamp(budget_us / std::max(guess_us, 0.1),
                                            static_cast<double>(kFewestCalls),
                                            static_cast<double>(kMostCalls)));
    mpi_.bcast(&calls, 1, MPI_INT, 0, comm_);  // as rank 0 thinks
    const double own_us = Run(collective, size_bytes, calls);
    double longest_us = 0;
    mpi_.reduce(&own_us, &longest_us, 1, MPI_DOUBLE, MPI_MAX, 0, comm_);
    if (rank_ == 0) {
      std::fputs(TimeLine({number_, collective, size_bytes}, longest_us).c_str(), stdout);
    }
  }

  // Microseconds of one of so many calls and the barrier behind it: so calls do not run into each
  // other, and what counts is the time until all ranks have ended one. Taken off, the barrier would
  // leave little but noise of short calls. Roots take turns.
  double Run(collective::Collective collective, uint64_t size_bytes, int calls) {
    const auto count = static_cast<int>(size_bytes / sizeof(double));
    mpi_.barrier(comm_);
    const double begin = mpi_.wtime();
    for (int call = 0; call < calls; ++call) {
      Call(collective, count, call % size_);
      if (collective != collective::Collective::kBarrier) {
        mpi_.barrier(comm_);
      }
    }
    return (mpi_.wtime() - begin) * 1e6 / calls;
  }

  void Call(collective::Collective collective, int count, int root) {
    double* const in = in_.data();
    double* const out = out_.data();
    switch (collective) {
      case collective::Collective::kBarrier:
        mpi_.barrier(comm_);
        return;
      case collective::Collective::kBcast:
        mpi_.bcast(out, count, MPI_DOUBLE, root, comm_);
        return;
      case collective::Collective::kGather:
        mpi_.gather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, root, comm_);
        return;
      case collective::Collective::kScatter:
        mpi_.scatter(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, root, comm_);
        return;
      case collective::Collective::kAllgather:
        mpi_.allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm_);
        return;
      case collective::Collective::kAlltoall:
        mpi_.alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm_);
        return;
      case collective::Collective::kReduce:
        mpi_.reduce(in, out, count, MPI_DOUBLE, MPI_SUM, root, comm_);
        return;
      case collective::Collective::kAllreduce:
        mpi_.allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm_);
        return;
      case collective::Collective::kReduceScatter:
        mpi_.reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, comm_);
        return;
      case collective::Collective::kScan:
        mpi_.scan(in, out, count, MPI_DOUBLE, MPI_SUM, comm_);
        return;
      case collective::Collective::kExscan:
        mpi_.exscan(in, out, count, MPI_DOUBLE, MPI_SUM, comm_);
        return;
      case collective::Collective::kNeighbourAllgather:
      case collective::Collective::kNeighbourAlltoall:
        return;  // not among those that are measured
    }
  }

  const MpiLibrary& mpi_;
  const MPI_Comm comm_;
  const uint32_t number_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<double> in_;
  std::vector<double> out_;
};

// 2, 4, 8, ... and all of them.
std::vector<size_t> CountsUpTo(size_t all) {
  std::vector<size_t> counts;
  for (size_t count = 2; count < all; count *= 2) {
    counts.push_back(count);
  }
  if (all >= 2) {
    counts.push_back(all);
  }
  return counts;
}

// The ranks of each communicator to measure: those of one node, one of each node, all.
std::vector<std::vector<int>> Groups(const std::vector<int>& node_of_rank) {
  std::vector<int> of_first_node;
  std::vector<int> first_of_node;
  for (size_t i = 0; i < node_of_rank.size(); ++i) {
    const auto rank = static_cast<int>(i);
    if (node_of_rank[i] == node_of_rank[0]) {
      of_first_node.push_back(rank);
    }
    if (std::find(node_of_rank.begin(), node_of_rank.begin() + rank, node_of_rank[i]) ==
        node_of_rank.begin() + rank) {
      first_of_node.push_back(rank);
    }
  }
  std::vector<std::vector<int>> groups;
  for (const std::vector<int>* ranks : {&of_first_node, &first_of_node}) {
    for (const size_t count : CountsUpTo(ranks->size())) {
      groups.emplace_back(ranks->begin(), ranks->begin() + static_cast<ptrdiff_t>(count));
    }
  }
  if (first_of_node.size() > 1 && first_of_node.size() < node_of_rank.size()) {
    std::vector<int>& all = groups.emplace_back();
    for (size_t i = 0; i < node_of_rank.size(); ++i) {
      all.push_back(static_cast<int>(i));
    }
  }
  return groups;
}

// A node is named by the first rank on it.
std::vector<int> NodesOfRanks(const MpiLibrary& mpi, int rank, int size) {
  MPI_Comm node = MPI_COMM_NULL;
  mpi.comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int name = rank;
  mpi.bcast(&name, 1, MPI_INT, 0, node);
  mpi.comm_free(&node);
  std::vector<int> nodes(static_cast<size_t>(size));
  mpi.allgather(&name, 1, MPI_INT, nodes.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return nodes;
}

void MeasureAll(const MpiLibrary& mpi, const Request& request) {
  int rank = 0;
  int size = 1;
  mpi.comm_rank(MPI_COMM_WORLD, &rank);
  mpi.comm_size(MPI_COMM_WORLD, &size);
  const std::vector<int> node_of_rank = NodesOfRanks(mpi, rank, size);
  uint32_t number = 0;
  for (const std::vector<int>& group : Groups(node_of_rank)) {
    const bool takes_part = std::find(group.begin(), group.end(), rank) != group.end();
    MPI_Comm comm = MPI_COMM_NULL;
    mpi.comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &comm);
    if (takes_part) {
      if (rank == 0) {  // of each group
        std::vector<int> nodes;
        for (const int member : group) {
          nodes.push_back(node_of_rank[static_cast<size_t>(member)]);
        }
        std::fputs(CommunicatorLine(number, nodes).c_str(), stdout);
      }
      Meter(mpi, comm, number).Measure(request);
      mpi.comm_free(&comm);
    }
    number++;
  }
}

// Microseconds of a message of that size, one way: half of the shortest of a few rounds there and
// back.
double MessageUs(const MpiLibrary& mpi, int rank, std::vector<char>* bytes, int messages) {
  constexpr int kRounds = 5;
  const auto size = static_cast<int>(bytes->size());
  const auto send = [&] { mpi.send(bytes->data(), size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD); };
  const auto receive = [&] {
    mpi.receive(bytes->data(), size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  double shortest_us = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = mpi.wtime();
    for (int message = 0; message < messages; ++message) {
      if (rank == 0) {
        send();
        receive();
      } else {
        receive();
        send();
      }
    }
    const double own_us = (mpi.wtime() - begin) * 1e6 / messages / 2;
    shortest_us = round == 0 ? own_us : std::min(shortest_us, own_us);
  }
  return shortest_us;
}

void MeasurePair(const MpiLibrary& mpi) {
  int rank = 0;
  mpi.comm_rank(MPI_COMM_WORLD, &rank);
  if (rank < 2) {
    std::vector<char> few(kPairFewBytes);
    std::vector<char> many(kPairManyBytes);
    const double few_us = MessageUs(mpi, rank, &few, 200);
    const double many_us = MessageUs(mpi, rank, &many, 5);
    if (rank == 0) {
      std::fputs(PairLine({.few_us = few_us, .many_us = many_us}).c_str(), stdout);
    }
  }
}

int RunPair(int argc, char** argv) {
  const StatusOr<MpiLibrary> mpi = MpiLibrary::Open(argv[1]);
  if (!mpi.ok()) {
    std::fprintf(stderr, "ferry-meter: %s\n", mpi.status().message().c_str());
    return 1;
  }
  mpi->init(&argc, &argv);
  int size = 1;
  mpi->comm_size(MPI_COMM_WORLD, &size);
  if (size >= 2) {
    MeasurePair(*mpi);
  }
  std::fflush(stdout);
  mpi->finalize();
  return size >= 2 ? 0 : 1;
}

int Run(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[2]) == "pair") {
    return RunPair(argc, argv);
  }
  if (argc != 5) {
    std::fputs("usage: ferry-meter LIBRARY MICROSECONDS SIZE,... COLLECTIVE,...\n", stderr);
    return 2;
  }
  Request request{.budget_us = std::atof(argv[2]), .sizes = {}, .collectives = {}};
  for (const std::string& word : Words(argv[3])) {
    request.sizes.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  for (const std::string& word : Words(argv[4])) {
    const StatusOr<collective::Collective> collective = MeasuredCollective(word);
    if (!collective.ok()) {
      std::fprintf(stderr, "ferry-meter: %s\n", collective.status().message().c_str());
      return 2;
    }
    request.collectives.push_back(*collective);
  }
  const StatusOr<MpiLibrary> mpi = MpiLibrary::Open(argv[1]);
  if (!mpi.ok()) {
    std::fprintf(stderr, "ferry-meter: %s\n", mpi.status().message().c_str());
    return 1;
  }
  mpi->init(&argc, &argv);
  MeasureAll(*mpi, request);
  std::fflush(stdout);
  mpi->finalize();
  return 0;
}

}  // namespace
}  // namespace ferry::tools

int main(int argc, char** argv) { return ferry::tools::Run(argc, argv); }
