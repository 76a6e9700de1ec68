// A debugger acquires a job's processes through ferryrun (MPIR_*), opens the library that a rank
// names (MPIR_dll_name), and lists the rank's message queues by it (mqs_*).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "mpi/queues/mqs.h"
#include "tests/e2e/command.h"
#include "tests/e2e/hosts_here.h"
#include "tests/mpi/debugger/tracee.h"

namespace ferry::mpi_tests {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr char kLibrary[] = "mpi/libferry_queues.so";

// ---- The debugger's side of the interface -------------------------------------------------------

// The objects of the interface are these; there is one image and one process.
const Tracee* tracee = nullptr;
mqs_image_info* image_info = nullptr;
mqs_process_info* process_info = nullptr;
bool is_memory_there = true;
mqs_image* const kImage = reinterpret_cast<mqs_image*>(1);
mqs_process* const kProcess = reinterpret_cast<mqs_process*>(2);

const mqs_basic_callbacks kBasic = {
    std::malloc,
    std::free,
    [](const char*) {},
    [](int) { return const_cast<char*>("an error"); },
    [](mqs_image*, mqs_image_info* info) { image_info = info; },
    [](mqs_image*) { return image_info; },
    [](mqs_process*, mqs_process_info* info) { process_info = info; },
    [](mqs_process*) { return process_info; },
};
const mqs_image_callbacks kImages = {
    nullptr,
    nullptr,
    [](mqs_image*, char* name, mqs_taddr_t* address) {
      const std::optional<uint64_t> found = tracee->Find(name);
      *address = found.value_or(0);
      return found ? int{mqs_ok} : int{mqs_no_information};
    },
    nullptr,
    nullptr,
    nullptr,
};
const mqs_process_callbacks kProcesses = {
    [](mqs_process*) { return 1; },
    [](mqs_process*) { return kImage; },
    [](mqs_process*, mqs_taddr_t address, int size_bytes, void* to) {
      return is_memory_there && tracee->Read(address, to, static_cast<size_t>(size_bytes))
                 ? int{mqs_ok}
                 : int{mqs_no_information};
    },
    nullptr,
};

// The library's functions.
class Library {
 public:
  Library() : handle_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {}
  bool is_open() const { return handle_ != nullptr; }
  template <typename Function>
  Function* Get(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* const handle_;
};
#define FERRY_CALL(library, name) (library).Get<decltype(name)>(#name)

// ---- The job ------------------------------------------------------------------------------------

class DebuggerTest : public testing::Test {
 protected:
  // Runs ferryrun, and says to it that there is a debugger.
  void Start(const std::vector<std::string>& program, bool is_debugged = true,
             const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"tools/ferryrun/ferryrun", "--private",  "--ferryd",
                                      "daemon/ferryd",           "--no-label", "-n",
                                      std::to_string(kRanks)};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), program.begin(), program.end());
    const Started started = StartTraced(words);
    ASSERT_GT(started.pid, 0);
    starter_.emplace(started.pid);
    output_ = started.output;
    const int debugged = is_debugged ? 1 : 0;
    ASSERT_TRUE(starter_->Write(Symbol("MPIR_being_debugged"), &debugged, sizeof(debugged)));
  }
  void TearDown() override {
    if (starter_ && !has_ended_) {
      starter_->Detach();
      kill(starter_->pid(), SIGTERM);
      (void)End();
    }
    close(output_);
  }
  uint64_t Symbol(const std::string& name) {
    const std::optional<uint64_t> found = starter_->Find(name);
    EXPECT_TRUE(found) << name;
    return found.value_or(0);
  }
  int Number(const std::string& name) { return starter_->Get<int>(Symbol(name)); }
  // Reads the ranks' output until it has the text.
  void AwaitOutput(const std::string& text) {
    char piece[256];
    while (said_.find(text) == std::string::npos) {
      const ssize_t got = read(output_, piece, sizeof(piece));
      ASSERT_GT(got, 0) << said_;
      said_.append(piece, static_cast<size_t>(got));
    }
  }
  // The exit code of ferryrun.
  int End() {
    int status = 0;
    while (waitpid(starter_->pid(), &status, __WALL) == starter_->pid() && WIFSTOPPED(status)) {
      starter_->Detach();
    }
    has_ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  struct Process {
    std::string host;
    std::string program;
    pid_t pid;
  };
  std::vector<Process> Table() {
    struct Entry {
      uint64_t host;
      uint64_t program;
      int pid;
    };
    const auto table = starter_->Get<uint64_t>(Symbol("MPIR_proctable"));
    std::vector<Process> processes;
    for (int i = 0; i < Number("MPIR_proctable_size"); ++i) {
      const auto entry = starter_->Get<Entry>(table + static_cast<uint64_t>(i) * sizeof(Entry));
      processes.push_back({starter_->Text(entry.host), starter_->Text(entry.program), entry.pid});
    }
    return processes;
  }

  std::optional<Tracee> starter_;
  int output_ = -1;
  std::string said_;
  bool has_ended_ = false;
};

struct Listed {
  mqs_communicator communicator;
  std::map<int, std::vector<mqs_pending_operation>> operations;  // by class
};

std::map<std::string, Listed> ListAll(const Library& library) {
  std::map<std::string, Listed> all;
  EXPECT_EQ(FERRY_CALL(library, mqs_update_communicator_list)(kProcess), mqs_ok);
  int next = FERRY_CALL(library, mqs_setup_communicator_iterator)(kProcess);
  for (; next == mqs_ok; next = FERRY_CALL(library, mqs_next_communicator)(kProcess)) {
    Listed listed{};
    EXPECT_EQ(FERRY_CALL(library, mqs_get_communicator)(kProcess, &listed.communicator), mqs_ok);
    for (const int op_class : {mqs_pending_sends, mqs_pending_receives, mqs_unexpected_messages}) {
      EXPECT_EQ(FERRY_CALL(library, mqs_setup_operation_iterator)(kProcess, op_class), mqs_ok);
      mqs_pending_operation operation;
      while (FERRY_CALL(library, mqs_next_operation)(kProcess, &operation) == mqs_ok) {
        listed.operations[op_class].push_back(operation);
      }
    }
    all[listed.communicator.name] = listed;
  }
  EXPECT_EQ(next, mqs_end_of_list);
  return all;
}

// The letter of a process's state (proc_pid_stat(5)).
char StateOf(pid_t pid) {
  std::ostringstream text;
  text << std::ifstream("/proc/" + std::to_string(pid) + "/stat").rdbuf();
  const size_t end = text.str().rfind(')');
  return end == std::string::npos ? '?' : text.str().at(end + 2);
}

bool HasLibrary(pid_t pid) { return Tracee(pid).Find("MPIR_dll_name").has_value(); }

// Ranks that stand at their first instruction: a debugger sees main() of one that it attaches to,
// and the others go on with the starter.
void ExpectHeld(const std::vector<pid_t>& ranks) {
  for (const pid_t rank : ranks) {
    EXPECT_TRUE(e2e::Eventually([&] { return StateOf(rank) == 'T'; })) << StateOf(rank);
    EXPECT_FALSE(HasLibrary(rank)) << "the dynamic linker has run";
    char path[256] = "";
    EXPECT_GT(readlink(("/proc/" + std::to_string(rank) + "/exe").c_str(), path, sizeof(path) - 1),
              0);
    EXPECT_THAT(path, EndsWith("tests/mpi/ranks/queues"));
  }
}

TEST_F(DebuggerTest, RanksStandAtTheirBeginningUntilTheStarterGoesOn) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "go";
  Start({"tests/mpi/ranks/queues", file});
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  EXPECT_EQ(Number("MPIR_acquired_pre_main"), 1);
  std::vector<pid_t> ranks;
  for (const Process& process : Table()) {
    ranks.push_back(process.pid);
  }
  ASSERT_EQ(ranks.size(), size_t{kRanks});
  ExpectHeld(ranks);
  const Tracee rank(ranks[2]);
  rank.Attach();
  starter_->Detach();
  ASSERT_TRUE(rank.RunTo("main"));
  EXPECT_TRUE(HasLibrary(ranks[2]));
  rank.Detach();
  AwaitOutput("rank 1 is ready\n");
  std::ofstream(file) << "go";
  EXPECT_EQ(End(), 0) << said_;
}

TEST_F(DebuggerTest, RanksOfOtherHostsStandAtTheirBeginning) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "go";
  Start({"tests/mpi/ranks/queues", file}, true, e2e::HostsHere(folder, "10.99.0.1:2,10.99.0.2:2"));
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  std::vector<pid_t> ranks;
  for (const Process& process : Table()) {
    EXPECT_THAT(process.host, testing::StartsWith("10.99.0."));
    ranks.push_back(process.pid);
  }
  ASSERT_EQ(ranks.size(), size_t{kRanks});
  ExpectHeld(ranks);
  starter_->Detach();
  AwaitOutput("rank 1 is ready\n");
  std::ofstream(file) << "go";
  EXPECT_EQ(End(), 0) << said_;
}

// A debugger may attach to a ferryrun that runs.
TEST_F(DebuggerTest, RanksGoOnWhereNoDebuggerHasStartedTheJob) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "go";
  Start({"tests/mpi/ranks/queues", file}, false);
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  EXPECT_EQ(Number("MPIR_acquired_pre_main"), 0);
  const std::vector<Process> processes = Table();
  ASSERT_EQ(processes.size(), size_t{kRanks});
  for (const Process& process : processes) {
    EXPECT_TRUE(e2e::Eventually([&] { return HasLibrary(process.pid); }));
  }
  starter_->Detach();
  AwaitOutput("rank 1 is ready\n");
  std::ofstream(file) << "go";
  EXPECT_EQ(End(), 0) << said_;
}

TEST_F(DebuggerTest, AcquiresAJobAndListsTheQueuesOfARank) {
  const e2e::TempDirectory folder;
  const std::string file = folder / "go";
  Start({"tests/mpi/ranks/queues", file});
  EXPECT_EQ(Number("MPIR_i_am_starter"), 1);
  EXPECT_EQ(Number("MPIR_debug_state"), 0);
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  EXPECT_EQ(Number("MPIR_debug_state"), 1);
  const std::vector<Process> processes = Table();
  ASSERT_EQ(processes.size(), size_t{kRanks});
  char host[256] = "";
  gethostname(host, sizeof(host));
  for (const Process& process : processes) {
    EXPECT_EQ(process.host, host);
    EXPECT_THAT(process.program, EndsWith("tests/mpi/ranks/queues"));
    EXPECT_EQ(kill(process.pid, 0), 0) << process.pid;
  }
  starter_->Detach();
  AwaitOutput("rank 1 is ready\n");

  const Tracee rank(processes[1].pid);
  rank.Attach();
  tracee = &rank;
  const std::optional<uint64_t> name = rank.Find("MPIR_dll_name");
  ASSERT_TRUE(name);
  EXPECT_THAT(rank.Text(*name), EndsWith("libferry_queues.so"));
  const Library library;
  ASSERT_TRUE(library.is_open()) << dlerror();
  FERRY_CALL(library, mqs_setup_basic_callbacks)(&kBasic);
  EXPECT_EQ(FERRY_CALL(library, mqs_version_compatibility)(), 2);
  EXPECT_EQ(FERRY_CALL(library, mqs_dll_taddr_width)(), 8);
  EXPECT_THAT(FERRY_CALL(library, mqs_version_string)(), HasSubstr("Ferry"));
  char* message = nullptr;
  ASSERT_EQ(FERRY_CALL(library, mqs_setup_image)(kImage, &kImages), mqs_ok);
  ASSERT_EQ(FERRY_CALL(library, mqs_image_has_queues)(kImage, &message), mqs_ok);
  ASSERT_EQ(FERRY_CALL(library, mqs_setup_process)(kProcess, &kProcesses), mqs_ok);
  ASSERT_EQ(FERRY_CALL(library, mqs_process_has_queues)(kProcess, &message), mqs_ok);

  std::map<std::string, Listed> all = ListAll(library);
  EXPECT_EQ(all["MPI_COMM_SELF"].communicator.size, 1);
  EXPECT_TRUE(all["MPI_COMM_SELF"].operations.empty());
  Listed& world = all["MPI_COMM_WORLD"];
  EXPECT_EQ(world.communicator.size, kRanks);
  EXPECT_EQ(world.communicator.local_rank, 1);
  ASSERT_EQ(world.operations[mqs_pending_receives].size(), 1U);
  const mqs_pending_operation& receive = world.operations[mqs_pending_receives][0];
  EXPECT_EQ(receive.status, mqs_st_pending);
  EXPECT_EQ(receive.desired_global_rank, 2);
  EXPECT_EQ(receive.desired_tag, 11);
  EXPECT_EQ(receive.tag_wild, 0);
  EXPECT_EQ(receive.desired_length, 80);
  EXPECT_NE(receive.buffer, 0U);
  ASSERT_EQ(world.operations[mqs_unexpected_messages].size(), 1U);
  const mqs_pending_operation& unexpected = world.operations[mqs_unexpected_messages][0];
  EXPECT_EQ(unexpected.actual_global_rank, 0);
  EXPECT_EQ(unexpected.actual_tag, 22);
  EXPECT_EQ(unexpected.actual_length, 24);
  ASSERT_EQ(world.operations[mqs_pending_sends].size(), 1U);
  const mqs_pending_operation& send = world.operations[mqs_pending_sends][0];
  EXPECT_EQ(send.desired_global_rank, 3);
  EXPECT_EQ(send.desired_tag, 33);
  EXPECT_EQ(send.desired_length, 1 << 20);
  EXPECT_THAT(send.extra_text[0], HasSubstr("announced"));

  // The debugger loses the process's memory.
  is_memory_there = false;
  const int lost = FERRY_CALL(library, mqs_update_communicator_list)(kProcess);
  is_memory_there = true;
  EXPECT_NE(lost, mqs_ok);
  EXPECT_THAT(FERRY_CALL(library, mqs_dll_error_string)(lost), HasSubstr("cannot be read"));

  FERRY_CALL(library, mqs_destroy_process_info)(process_info);
  FERRY_CALL(library, mqs_destroy_image_info)(image_info);
  rank.Detach();
  std::ofstream(file) << "go";
  EXPECT_EQ(End(), 0) << said_;
}

TEST_F(DebuggerTest, HearsThatAJobIsAborted) {
  Start({"tests/mpi/ranks/queues"});  // without its argument it calls MPI_Abort
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  EXPECT_EQ(Number("MPIR_debug_state"), 1);
  ASSERT_TRUE(starter_->RunTo("MPIR_Breakpoint"));
  EXPECT_EQ(Number("MPIR_debug_state"), 2);
  EXPECT_THAT(starter_->Text(starter_->Get<uint64_t>(Symbol("MPIR_debug_abort_string"))),
              HasSubstr("aborted with exit code 1"));
  starter_->Detach();
  EXPECT_NE(End(), 0);
}

}  // namespace
}  // namespace ferry::mpi_tests
