#include "tests/mpi/fuzz/judge.h"

#include <fnmatch.h>
#include <mpix.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

// From the sanitizers' libraries, if the program is built with one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace ferry::mpi {
namespace {

constexpr unsigned kCallLimitS = 30;

// ---- Exceptions for single calls ----------------------------------------------------------------

bool Fits(const char* pattern, const std::string& text) {
  return fnmatch(pattern, text.c_str(), 0) == 0;
}

struct ClassRule {
  const char* call;
  int error_class;
};

constexpr ClassRule kClassRules[] = {
    {"MPI_*send*", MPI_ERR_BUFFER},  // no buffer is attached, or it is full
    {"MPI_*ecv*", MPI_ERR_TRUNCATE},
    {"MPI*_*ather*", MPI_ERR_TRUNCATE},  // a rank sends itself more or less than it receives
    {"MPI*_*catter*", MPI_ERR_TRUNCATE},
    {"MPI*_*lltoall*", MPI_ERR_TRUNCATE},
    {"MPIX_P*scan_init", MPI_ERR_OP},       // predefined ones take no derived types
    {"MPI_Pready_*", MPI_ERR_REQUEST},      // a partition is readied twice
    {"MPI_*uffer_*tach*", MPI_ERR_BUFFER},  // one is attached already, or none
    {"MPI_Comm_*tach_buffer*", MPI_ERR_BUFFER},
    {"MPI_Session_*tach_buffer*", MPI_ERR_BUFFER},
    {"MPI_Session_init", MPI_ERR_INFO_VALUE},
    {"MPI_T_*", MPI_T_ERR_INVALID},
    {"MPI_Intercomm_create", MPI_ERR_RANK},  // both groups are the same
    {"MPI_Abi_set_*", MPI_ERR_ABI},
    {"MPI_*ccumulate*", MPI_ERR_UNSUPPORTED_OPERATION},
    {"MPI_Fetch_and_op", MPI_ERR_UNSUPPORTED_OPERATION},
    {"MPI_Compare_and_swap", MPI_ERR_UNSUPPORTED_OPERATION},
    {"MPI_*", MPI_ERR_NO_MEM},
};

struct Forgiven {
  const char* call;
  const char* parameter;
  const char* value;
  const char* beside = "*";  // the required value of another argument
};

constexpr Forgiven kForgiven[] = {
    // They have names (MPI 5.0, section 7.8).
    {"MPI_Comm_get_name", "comm", "a null handle"},
    {"MPI_Type_get_name", "datatype", "a null handle"},
    {"MPI_Win_get_name", "win", "a null handle"},
    // The begin was given it.
    {"MPI_File_*_end", "buf", "null"},
    // A vector has none.
    {"MPI_Type_get_contents*", "array_of_addresses", "null"},
    {"MPI_Type_get_contents*", "array_of_large_counts", "null"},
    // Nothing is written there: the graph has no weights.
    {"MPI_Dist_graph_neighbors", "*weights", "null"},
    // Nothing is sent or received, and every other library takes it.
    {"MPI_*[sS]end*", "*type", "a null handle", "MPI_PROC_NULL"},
    {"MPI_*[rR]ecv*", "*type", "a null handle", "MPI_*PROC*"},
    // The queue may start it before.
    {"MPIX_Enqueue_pready", "request", "inactive"},
    // The round that is under way has one, too.
    {"MPIX_Prequest_get", "request", "active"},
    // MPI_ANY_TAG is the tag in the status of MPI_PROC_NULL.
    {"MPI_Precv_init", "tag", "MPI_ANY_TAG", "MPI_PROC_NULL"},
};

bool HasValue(const Attempt& attempt, const char* pattern) {
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    if (Fits(pattern, attempt.ValueOf(i).text)) {
      return true;
    }
  }
  return false;
}

// Conversions of handles and addresses return no error.
bool ReturnsAnError(const std::string& call) {
  return !Fits("*_toint", call) && !Fits("*_fromint", call) && !Fits("MPI_Aint_*", call);
}

// Returns true if a job of one rank can make the call at all, and any number of times.
bool CanSucceed(const std::string& call) {
  // There is no other group, a Fortran binding's values count once, and no buffer is attached.
  return !Fits("MPI_Intercomm_*", call) && !Fits("MPI_Comm_remote_*", call) &&
         !Fits("MPI_Abi_set_*", call) && !Fits("MPI_*detach*", call);
}

// Error classes that depend not on one argument, but on several together, or on the state of
// something.
std::set<int> OtherClassesOf(const std::string& call) {
  std::set<int> classes;
  for (const ClassRule& rule : kClassRules) {
    if (Fits(rule.call, call)) {
      classes.insert(rule.error_class);
    }
  }
  return classes;
}

// Completions free requests whose operation failed; MPI_Comm_free and MPI_Type_free free their
// object when a callback fails.
bool MayFreeAndFail(const std::string& call) {
  return Fits("MPI_Wait*", call) || Fits("MPI_Test*", call);
}

// The call need not look at the bad argument, for the reason given at its rule.
bool IsForgiven(const Attempt& attempt) {
  for (const Forgiven& rule : kForgiven) {
    for (size_t i = 0; Fits(rule.call, attempt.signature->name) && i < attempt.chosen.size(); ++i) {
      if (Fits(rule.parameter, attempt.signature->parameters[i].name) &&
          Fits(rule.value, attempt.ValueOf(i).text) && HasValue(attempt, rule.beside)) {
        return true;
      }
    }
  }
  return false;
}

// ---- The effect of a call -----------------------------------------------------------------------

std::string& running = *new std::string();

void SayWhatRuns() {
  static constexpr char kSentence[] = "\nthis call does not return: ";
  (void)!write(STDERR_FILENO, kSentence, sizeof(kSentence) - 1);
  (void)!write(STDERR_FILENO, running.data(), running.size());
  (void)!write(STDERR_FILENO, "\n", 1);
}

void Stop(int) {
  SayWhatRuns();
  _exit(3);
}

// Whatever ends the process from now on, its last call is known.
void WatchOnce() {
  static const bool once = [] {
    std::signal(SIGALRM, Stop);
    if (__sanitizer_set_death_callback != nullptr) {
      __sanitizer_set_death_callback(SayWhatRuns);
    } else {
      std::signal(SIGSEGV, Stop);
      std::signal(SIGABRT, Stop);
    }
    return true;
  }();
  (void)once;
}

// The text of MPI_Error_string, and the class of the code.
struct Said {
  int error_class = MPI_SUCCESS;
  std::string text;
};

Said Ask(int code) {
  Said said;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &said.error_class);
  said.text = text;
  return said;
}

bool IsAnyBad(const Attempt& attempt) {
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    if (attempt.ValueOf(i).quality == Value::Quality::kBad) {
      return true;
    }
  }
  return false;
}

// The error classes that fit the arguments of this quality or a worse one.
std::set<int> ClassesOf(const Attempt& attempt, bool only_bad) {
  std::set<int> classes;
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    if (!only_bad || attempt.ValueOf(i).quality == Value::Quality::kBad) {
      classes.insert(attempt.choices[i].classes.begin(), attempt.choices[i].classes.end());
    }
  }
  return classes;
}

bool IsSurelyWrong(const Attempt& attempt) {
  bool odd = false;
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    odd = odd || attempt.ValueOf(i).quality == Value::Quality::kOdd;
  }
  return !odd && IsAnyBad(attempt) && !IsForgiven(attempt);
}

bool IsSurelyRight(const Attempt& attempt) {
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    if (attempt.ValueOf(i).quality != Value::Quality::kGood || attempt.chosen[i] != 0) {
      return false;
    }
  }
  return CanSucceed(attempt.signature->name);
}

// "Send" must not pass for "Send_c".
bool Names(const std::string& text, const std::string& call) {
  return text.find(call + ": ") != std::string::npos;
}

std::string JudgeFailure(const Attempt& attempt, int code) {
  const Said said = Ask(code);
  const std::string what = "class " + std::to_string(said.error_class) + ", \"" + said.text + "\"";
  if (!Names(said.text, attempt.signature->name)) {
    return "its message does not name it: " + what;
  }
  std::set<int> classes = ClassesOf(attempt, IsSurelyWrong(attempt));
  if (!IsSurelyWrong(attempt)) {
    classes.insert(MPI_ERR_ARG);
  }
  const std::set<int> more = OtherClassesOf(attempt.signature->name);
  classes.insert(more.begin(), more.end());
  if (classes.count(said.error_class) == 0) {
    return "the class is none of those of its arguments: " + what;
  }
  return IsSurelyRight(attempt) ? "it fails though all is right: " + what : "";
}

// Returns true if the call has written the handle where the caller can see it.
bool IsInASlot(uint64_t handle, size_t parameters, World& world) {
  for (size_t i = 0; i < parameters; ++i) {
    const char* const slot = static_cast<const char*>(world.Slot(i));
    for (size_t at = 0; at < 256; at += sizeof(handle)) {
      if (std::memcmp(slot + at, &handle, sizeof(handle)) == 0) {
        return true;
      }
    }
  }
  return false;
}

std::string JudgeHandles(const Attempt& attempt, bool failed, const std::set<uint64_t>& before,
                         World& world) {
  const std::set<uint64_t> after = LiveHandles();
  for (const uint64_t handle : after) {
    if (before.count(handle) == 0 && (failed || !IsInASlot(handle, attempt.chosen.size(), world))) {
      return failed ? "it fails, and made an object all the same"
                    : "it made an object that the caller does not get";
    }
  }
  const bool frees = std::any_of(before.begin(), before.end(),
                                 [&after](uint64_t handle) { return after.count(handle) == 0; });
  return failed && frees && !MayFreeAndFail(attempt.signature->name)
             ? "it fails, and freed an object all the same"
             : "";
}

// Makes the call; `before`: the handles that existed before it.
int Make(const Attempt& attempt, World& world, std::set<uint64_t>* before) {
  uint64_t words[kMaxParameters] = {};
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    words[i] = Place(attempt.ValueOf(i), i, world);
  }
  *before = LiveHandles();
  running = TextOf(attempt);
  WatchOnce();
  alarm(kCallLimitS);  // covers the cleanup, too: until the next call
  return attempt.signature->call(words);
}

// Frees what the call has given to the caller, other than handles.
void GiveBack(const Attempt& attempt, World& world) {
  void* const first = world.Slot(0);
  void* const last = world.Slot(attempt.chosen.size() - 1);
  if (attempt.signature->name == "MPI_Alloc_mem") {
    void* memory = nullptr;
    std::memcpy(&memory, last, sizeof(memory));
    MPI_Free_mem(memory);
  } else if (attempt.signature->name == "MPIX_Prequest_create") {
    MPIX_Prequest_free(static_cast<MPIX_Prequest*>(last));
  } else if (attempt.signature->name == "MPIX_Queue_init") {
    MPIX_Queue_free(static_cast<MPIX_Queue*>(first));
  }
}

}  // namespace

Attempt GoodAttempt(const CallSignature& signature, World& world) {
  Attempt attempt;
  attempt.signature = &signature;
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    attempt.choices.push_back(ChoicesOf(signature, i, world));
    attempt.chosen.push_back(0);
  }
  return attempt;
}

std::string TextOf(const Attempt& attempt) {
  std::string text = attempt.signature->name + "(";
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    text += (i == 0 ? "" : ", ") + attempt.signature->parameters[i].name + ": " +
            attempt.ValueOf(i).text;
  }
  return text + ")";
}

std::string Judge(const Attempt& attempt, World& world) {
  std::set<uint64_t> before;
  const int code = Make(attempt, world, &before);
  if (!ReturnsAnError(attempt.signature->name)) {
    return JudgeHandles(attempt, false, before, world);
  }
  if (code == MPI_SUCCESS && IsSurelyWrong(attempt)) {
    return "it succeeds though an argument is wrong";
  }
  if (code != MPI_SUCCESS) {
    if (std::string wrong = JudgeFailure(attempt, code); !wrong.empty()) {
      return wrong;
    }
  }
  std::string wrong = JudgeHandles(attempt, code != MPI_SUCCESS, before, world);
  if (code == MPI_SUCCESS) {
    GiveBack(attempt, world);
  }
  return wrong;
}

std::string JudgeAmongOthers(const Attempt& attempt, World& world) {
  std::set<uint64_t> before;
  const int code = Make(attempt, world, &before);
  if (code != MPI_SUCCESS && !Names(Ask(code).text, attempt.signature->name)) {
    return "its message does not name it: \"" + Ask(code).text + "\"";
  }
  return JudgeHandles(attempt, code != MPI_SUCCESS, before, world);
}

}  // namespace ferry::mpi
