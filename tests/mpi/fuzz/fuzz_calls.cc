// Calls MPI with wrong arguments, in a job of one rank, and prints what goes wrong with that:
//   fuzz_calls each            each bad value of each parameter of each call, the others being good
//   fuzz_calls random SEED N   N calls with any values for any of their parameters
//   fuzz_calls outside         each call before MPI_Init, and after MPI_Finalize
//   fuzz_calls together SEED N   N collectives of several ranks of a node, one of which is mistaken
// A last argument is a pattern of names: "MPI_Type_*".
#include <fnmatch.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/mpi/fuzz/judge.h"
#include "tests/mpi/fuzz/signatures.h"
#include "tests/mpi/fuzz/world.h"

namespace ferry::mpi {
namespace {

constexpr int kMaxComplaints = 100;

// ---- Calls before MPI_Init and after MPI_Finalize -----------------------------------------------

constexpr unsigned kCallLimitS = 10;

// MPI 5.0, table 11.1, and the conversions of section 20.3.4.
constexpr const char* kAtAnyTime[] = {
    "MPI_Initialized",
    "MPI_Finalized",
    "MPI_Get_version",
    "MPI_Get_library_version",
    "MPI_Info_*",
    "MPI_Abi_*",
    "MPI_Error_*",
    "MPI_Add_error_*",
    "MPI_Remove_error_*",
    "MPI_*_toint",
    "MPI_*_fromint",
    "MPI_Aint_*",
    "MPI_*_create_errhandler",
    "MPI_Errhandler_free",
    "MPI_*_create_keyval",
    "MPI_*_free_keyval",
    "MPI_Keyval_*",
    "MPI_Session_*",
    "MPI_Group_from_session_pset",
    "MPI_T_*",
    "MPI_Status_*",
    "MPI_Test_cancelled",
    "MPI_Get_count*",
    "MPI_Get_elements*",
    "MPI_Get_address",
};

bool MayBeMadeAtAnyTime(const std::string& call) {
  return std::any_of(std::begin(kAtAnyTime), std::end(kAtAnyTime), [&call](const char* pattern) {
    return fnmatch(pattern, call.c_str(), 0) == 0;
  });
}

struct PredefinedHandle {
  const char* type;
  uint64_t handle;
};

// An argument that a program would pass if it had forgotten MPI_Init.
uint64_t Plausible(const Parameter& parameter, std::array<char, 8192>* memory) {
  static const PredefinedHandle kHandles[] = {
      {"MPI_Comm", reinterpret_cast<uint64_t>(MPI_COMM_WORLD)},
      {"MPI_Datatype", reinterpret_cast<uint64_t>(MPI_INT)},
      {"MPI_Op", reinterpret_cast<uint64_t>(MPI_SUM)},
      {"MPI_Group", reinterpret_cast<uint64_t>(MPI_GROUP_EMPTY)},
      {"MPI_Info", reinterpret_cast<uint64_t>(MPI_INFO_NULL)},
      {"MPI_Errhandler", reinterpret_cast<uint64_t>(MPI_ERRORS_RETURN)},
      {"MPI_File", reinterpret_cast<uint64_t>(MPI_FILE_NULL)},
      {"MPI_Request", reinterpret_cast<uint64_t>(MPI_REQUEST_NULL)},
  };
  for (const PredefinedHandle& predefined : kHandles) {
    if (parameter.type == predefined.type) {
      return predefined.handle;
    }
  }
  const bool is_address = parameter.type.find_first_of("*[") != std::string::npos;
  return is_address ? reinterpret_cast<uint64_t>(memory->data()) : 1;
}

[[noreturn]] void MakeCall(const CallSignature& signature, int errors) {
  dup2(errors, STDERR_FILENO);
  alarm(kCallLimitS);
  static std::array<std::array<char, 8192>, 16> memory = {};
  std::array<uint64_t, 16> words = {};
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    words[i] = Plausible(signature.parameters[i], &memory[i]);
  }
  signature.call(words.data());
  _exit(0);
}

struct Ending {
  int status = 0;
  std::string said;
};

Ending CallApart(const CallSignature& signature) {
  int ends[2];
  if (pipe(ends) != 0) {
    return {-1, "no pipe"};
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    MakeCall(signature, ends[1]);
  }
  close(ends[1]);
  Ending ending;
  char part[512];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;) {
    ending.said.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

// Makes each call in its own process. Those that the standard allows at any time must return, or
// fail for their arguments; the others must end the process with a sentence that names the call and
// says `reason`. Prints the calls that do not; returns their number.
int MakeCallsOutside(const std::vector<CallSignature>& signatures, const char* reason) {
  int complaints = 0;
  for (const CallSignature& signature : signatures) {
    const Ending ending = CallApart(signature);
    const bool returned = WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0;
    const bool at_any_time = MayBeMadeAtAnyTime(signature.name);
    const std::string sentence = signature.name + ": " + (at_any_time ? "" : reason);
    const bool named =
        WIFEXITED(ending.status) && !returned && ending.said.find(sentence) != std::string::npos;
    if (named || (returned && at_any_time)) {
      continue;
    }
    ++complaints;
    std::fprintf(stderr, "%s: it %s (status %d): %s\n", signature.name.c_str(),
                 returned ? "returns" : "ends otherwise than with its name", ending.status,
                 ending.said.c_str());
  }
  return complaints;
}

// ---- Blocking collectives of several ranks, of which one makes a mistake ------------------------

// Ranks find out mistakes of others only on boards (docs/mpi.md).
constexpr int kCallsBeforeBoards = 4;

constexpr std::array kNames = {"Bcast",    "Gather", "Scatter",   "Allgather",
                               "Alltoall", "Reduce", "Allreduce", "Reduce_scatter_block",
                               "Scan",     "Exscan"};

// Collective calls on files, in which the ranks meet for every call.
constexpr std::array kFilePatterns = {"set_size", "preallocate", "set_view",  "set_atomicity",
                                      "sync",     "seek_shared", "[rw]*_all", "[rw]*_all_c",
                                      "*_begin",  "*_begin_c",   "*_ordered", "*_ordered_c",
                                      "open"};

// Returns which parameter names the ranks that take part: the communicator, or the file.
size_t GroupParameter(const CallSignature& signature) {
  const bool is_open = signature.name == "MPI_File_open";  // fh is its result
  const auto found = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                  [is_open](const Parameter& each) {
                                    return each.name == "comm" || (each.name == "fh" && !is_open);
                                  });
  return static_cast<size_t>(found - signature.parameters.begin());
}

// Good arguments on all ranks.
Attempt OfAllRanks(const CallSignature& signature, World& world) {
  Attempt attempt = GoodAttempt(signature, world);
  const size_t comm = GroupParameter(signature);
  if (signature.parameters[comm].name == "fh") {
    return attempt;  // all ranks have opened it
  }
  Value all;
  all.text = "MPI_COMM_WORLD";
  all.word = reinterpret_cast<uint64_t>(MPI_COMM_WORLD);
  attempt.choices[comm].values.push_back(all);
  attempt.chosen[comm] = attempt.choices[comm].values.size() - 1;
  return attempt;
}

// Judges the next collective: the ranks must still be in step.
std::string JudgeNext(int size) {
  int one = 1;
  int sum = 0;
  const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS && sum == size) {
    return "";
  }
  char text[MPI_MAX_ERROR_STRING] = "the sum is wrong";
  int length = 0;
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, text, &length);
  }
  return std::string("after it, another collective: ") + text;
}

// Returns true if the other ranks find out one rank's mistake in this call: blocking collectives
// without arrays of counts (docs/mpi.md, where all ranks share a node), and those of files.
bool IsFoundOut(const CallSignature& signature) {
  if (std::any_of(kFilePatterns.begin(), kFilePatterns.end(), [&](const std::string& pattern) {
        return fnmatch(("MPI_File_" + pattern).c_str(), signature.name.c_str(), 0) == 0;
      })) {
    return true;
  }
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
    const std::string call = std::string("MPI_") + name;
    return signature.name == call || signature.name == call + "_c";
  });
}

// Makes `calls` collectives on MPI_COMM_WORLD, whose ranks share a node: in each, one rank passes
// any value for one argument, and the others pass right ones. All return, no object is left over,
// and the next collective has the right result. Collective, with the same seed on all ranks.
// Returns how many calls went wrong; reports them on standard error.
int MakeCallsTogether(unsigned seed, int calls, const std::vector<CallSignature>& signatures) {
  std::mt19937 random(seed);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < kCallsBeforeBoards; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  World::ShareFiles(MPI_COMM_WORLD);
  int complaints = 0;
  for (int i = 0; i < calls; ++i) {
    World world;
    const CallSignature& signature = signatures[random() % signatures.size()];
    const int mistaken = static_cast<int>(random() % static_cast<unsigned>(size));
    const size_t parameter = random() % signature.parameters.size();
    const size_t value = random();
    Attempt attempt = OfAllRanks(signature, world);
    if (rank == mistaken && parameter != GroupParameter(signature)) {
      attempt.chosen[parameter] = value % attempt.choices[parameter].values.size();
    }
    std::string wrong = JudgeAmongOthers(attempt, world);
    wrong = wrong.empty() ? JudgeNext(size) : wrong;
    if (!wrong.empty()) {
      std::fprintf(stderr, "rank %d, call %d, rank %d being mistaken: %s: %s\n", rank, i, mistaken,
                   TextOf(attempt).c_str(), wrong.c_str());
      if (++complaints == kMaxComplaints) {
        std::exit(1);
      }
    }
  }
  return complaints;
}

// ---- The program --------------------------------------------------------------------------------

class Run {
 public:
  explicit Run(const std::string& pattern) {
    for (CallSignature& signature : AllSignatures()) {
      if (fnmatch(pattern.c_str(), signature.name.c_str(), 0) == 0) {
        signatures_.push_back(std::move(signature));
      }
    }
  }

  void Each() {
    for (const CallSignature& signature : signatures_) {
      Try(signature, [](Attempt*) {});
      for (size_t parameter = 0; parameter < signature.parameters.size(); ++parameter) {
        size_t values = 1;
        for (size_t value = 0; value < values; ++value) {
          Try(signature, [&](Attempt* attempt) {
            attempt->chosen[parameter] = value;
            values = attempt->choices[parameter].values.size();
          });
        }
      }
    }
  }

  void Random(unsigned seed, int calls) {
    std::mt19937 random(seed);
    for (int i = 0; i < calls; ++i) {
      const CallSignature& signature = signatures_[random() % signatures_.size()];
      Try(signature, [&random](Attempt* attempt) {
        for (size_t parameter = 0; parameter < attempt->chosen.size(); ++parameter) {
          // Most arguments are right, so that calls get beyond their first one.
          if (random() % 3 == 0) {
            attempt->chosen[parameter] = random() % attempt->choices[parameter].values.size();
          }
        }
      });
    }
  }

  void Together(unsigned seed, int calls) {
    std::erase_if(signatures_, [](const CallSignature& each) { return !IsFoundOut(each); });
    calls_ += calls;
    complaints_ += MakeCallsTogether(seed, calls, signatures_);
  }

  void Outside(const char* reason) {
    // It would join the job in a child, whose end would then be a rank's death.
    std::erase_if(signatures_, [](const auto& each) { return each.name == "MPI_Session_init"; });
    calls_ += static_cast<int>(signatures_.size());
    complaints_ += MakeCallsOutside(signatures_, reason);
  }

  int calls() const { return calls_; }
  int complaints() const { return complaints_; }

 private:
  template <typename Choose>
  void Try(const CallSignature& signature, Choose&& choose) {
    World world;
    Attempt attempt = GoodAttempt(signature, world);
    choose(&attempt);
    const std::string wrong = Judge(attempt, world);
    ++calls_;
    if (!wrong.empty()) {
      std::fprintf(stderr, "%s: %s\n", TextOf(attempt).c_str(), wrong.c_str());
      if (++complaints_ == kMaxComplaints) {
        std::exit(1);
      }
    }
  }

  std::vector<CallSignature> signatures_;
  int calls_ = 0;
  int complaints_ = 0;
};

void ReturnErrors() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool is_random = mode == "random" || mode == "together";
  const int pattern_at = is_random ? 4 : 2;
  if ((mode != "each" && !is_random && mode != "outside") || argc < pattern_at ||
      argc > pattern_at + 1) {
    std::fputs(
        "usage: fuzz_calls each [PATTERN] | random|together SEED CALLS [PATTERN] | "
        "outside [PATTERN]\n",
        stderr);
    return 2;
  }
  Run run(argc > pattern_at ? argv[pattern_at] : "*");
  if (mode == "outside") {
    run.Outside("call MPI_Init");
  }
  MPI_Init(nullptr, nullptr);
  ReturnErrors();
  if (mode == "each") {
    run.Each();
  } else if (mode == "random") {
    run.Random(static_cast<unsigned>(std::atoi(argv[2])), std::atoi(argv[3]));
  } else if (mode == "together") {
    run.Together(static_cast<unsigned>(std::atoi(argv[2])), std::atoi(argv[3]));
  }
  const bool ended = MPI_Finalize() == MPI_SUCCESS;
  if (mode == "outside") {
    run.Outside("MPI_Finalize was called");
  }
  if (!ended || run.complaints() != 0) {
    std::fprintf(stderr, "%d of %d calls went wrong\n", run.complaints(), run.calls());
    return 1;
  }
  std::puts("all calls answered as they should");
  return 0;
}

}  // namespace
}  // namespace ferry::mpi

int main(int argc, char** argv) { return ferry::mpi::Main(argc, argv); }
