// A profiler that LD_PRELOAD puts before libmpi_abi sees each call of programs that know nothing of
// it, by the names MPI_x, and none of those that Ferry makes itself.
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

struct Total {
  uint64_t calls = 0;
  double seconds = 0;
};
using Profile = std::map<std::string, Total>;  // of a rank, by function

// Runs a program on three ranks of two nodes. `rest`: what it has printed itself.
std::map<int, Profile> ProfilesOf(const std::vector<std::string>& program, std::string* rest) {
  std::vector<std::string> words = {"env", "LD_PRELOAD=tests/mpi/profiler/libcall_times.so"};
  words.insert(words.end(), program.begin(), program.end());
  const e2e::CommandResult result = RunJob({"", {"-n", "3", "--nodes", "2"}}, words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::map<int, Profile> profiles;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string word, function;
    int rank = -1;
    Total total;
    if (fields >> word >> rank >> function >> total.calls >> total.seconds &&
        word == "call_times:") {
      profiles[rank][function] = total;
    } else {
      *rest += line + "\n";
    }
  }
  EXPECT_EQ(profiles.size(), 3U) << result.out;
  for (const auto& [rank, profile] : profiles) {
    for (const auto& [function, total] : profile) {
      EXPECT_GT(total.calls, 0U) << function;
      EXPECT_GE(total.seconds, 0) << function;
      EXPECT_LT(total.seconds, 240) << function;
    }
    EXPECT_EQ(profile.count("MPI_Init") + profile.count("MPI_Init_thread"), 1U);
    EXPECT_EQ(profile.at("MPI_Finalize").calls, 1U);
    EXPECT_GT(profile.at("MPI_Finalize").seconds, 0);
  }
  return profiles;
}

TEST(ProfilerTest, CountsEachCallOnce) {
  std::string rest;
  for (const auto& [rank, profile] : ProfilesOf({"tests/mpi/ranks/start"}, &rest)) {
    std::map<std::string, uint64_t> calls;
    for (const auto& [function, total] : profile) {
      calls[function] = total.calls;
    }
    const std::map<std::string, uint64_t> expected = {
        {"MPI_Init", 1},          {"MPI_Comm_rank", 1},      {"MPI_Comm_size", 1},
        {"MPI_Comm_get_attr", 2}, {"MPI_Gather", 1},         {"MPI_Comm_get_errhandler", 2},
        {"MPI_Finalize", 1},      {"MPI_Info_get_string", 1}};
    EXPECT_EQ(calls, expected) << "rank " << rank;
    EXPECT_GT(profile.at("MPI_Init").seconds, profile.at("MPI_Comm_rank").seconds);
  }
  EXPECT_NE(rest.find("2: app 0 of 3 ranks"), std::string::npos) << rest;
}

TEST(ProfilerTest, SeesAllKindsOfMessages) {
  std::string rest;
  for (const auto& [rank, profile] : ProfilesOf({"tests/mpi/ranks/messages"}, &rest)) {
    for (const char* const function :
         {"MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Isend", "MPI_Irecv", "MPI_Wait",
          "MPI_Waitall", "MPI_Send_init", "MPI_Ssend_init", "MPI_Start", "MPI_Barrier"}) {
      EXPECT_EQ(profile.count(function), 1U) << rank << " " << function;
    }
    // Only the program's own calls: twelve sizes by each of these, and five with gaps.
    EXPECT_EQ(profile.at("MPI_Ssend").calls, 17U) << rank;
    EXPECT_EQ(profile.at("MPI_Rsend").calls, 17U) << rank;
    EXPECT_EQ(profile.at("MPI_Rsend_init").calls, 12U) << rank;
  }
}

TEST(ProfilerTest, SeesWindowsOfMessages) {
  std::string rest;
  for (const auto& [rank, profile] : ProfilesOf({"tests/mpi/ranks/windows"}, &rest)) {
    EXPECT_GT(profile.at("MPI_Isend").calls, 10U) << rank;
    EXPECT_GT(profile.at("MPI_Waitall").seconds, 0) << rank;
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
