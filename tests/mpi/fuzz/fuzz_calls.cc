// Calls MPI with wrong arguments, in a job of one rank, and prints what goes wrong with that:
//   fuzz_calls each            each bad value of each parameter of each call, the others being good
//   fuzz_calls random SEED N   N calls with any values for any of their parameters
//   fuzz_calls outside         each call before MPI_Init, and after MPI_Finalize
//   fuzz_calls together SEED N   N collectives of several ranks of a node, one of which is mistaken
// A last argument is a pattern of names: "MPI_Type_*".
#include <fnmatch.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/mpi/fuzz/judge.h"
#include "tests/mpi/fuzz/outside.h"
#include "tests/mpi/fuzz/signatures.h"
#include "tests/mpi/fuzz/together.h"
#include "tests/mpi/fuzz/world.h"

namespace ferry::mpi {
namespace {

constexpr int kMaxComplaints = 100;

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
