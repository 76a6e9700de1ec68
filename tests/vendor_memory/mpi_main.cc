// mpi_VENDOR CASE [KIND...]: runs the case with each kind of memory; all of them where none is
// named. The ranks use the same kind, then each another one.
#include <cstring>

#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

struct Case {
  const char* name;
  void (*run)(const Kind& kind);
};
constexpr Case kCases[] = {
    {"messages", SendAllSizes},
    {"benchmarks", SendAsBenchmarks},
    {"types", SendTypes},
    {"partitions", SendPartitions},
    {"queues", SendByQueues},
    {"collectives", RunCollectives},
    {"reductions", RunReductions},
    {"nonblocking", RunNonblockingCollectives},
    {"halo", ExchangeHalos},
    {"windows", UseWindows},
    {"far_blocks", MoveFarBlocks},
    {"window_threads", UseWindowByThreads},
    {"reuse", ReuseAddresses},
    {"threads", UseThreads},
    {"both_sides", TouchBothSides},
    {"bad", UseBadBuffers},
};

bool IsWanted(const Kind& kind, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], kind.name) == 0) {
      return true;
    }
  }
  return argc <= 2;
}

// Names of cases, with commas between them.
bool IsWanted(const Case& each, const char* wanted) {
  const std::string all = "," + std::string(wanted) + ",";
  return all.find("," + std::string(each.name) + ",") != std::string::npos;
}

void RunAll(int argc, char** argv) {
  std::vector<const Kind*> kinds;
  for (const Kind& kind : Kinds()) {
    if (IsWanted(kind, argc, argv)) {
      kinds.push_back(&kind);
    }
  }
  VENDOR_CHECK(!kinds.empty());
  int ran = 0;
  for (const Case& each : kCases) {
    if (!IsWanted(each, argv[1])) {
      continue;
    }
    ++ran;
    for (size_t i = 0; i < kinds.size(); ++i) {
      step = std::string(each.name) + ", " + kinds[i]->name;
      each.run(*kinds[i]);
      const Kind& mixed = *kinds[(i + static_cast<size_t>(rank)) % kinds.size()];
      if (kinds.size() > 1) {
        step = std::string(each.name) + ", mixed, " + mixed.name;
        each.run(mixed);
      }
    }
  }
  VENDOR_CHECK(ran > 0);
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  if (argc < 2) {
    return 2;
  }
  Begin();
  const bool has_threads = std::string(argv[1]).find("threads") != std::string::npos;
  int provided = 0;
  VENDOR_OK(MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                            &provided));
  VENDOR_OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  VENDOR_OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  RunAll(argc, argv);
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
