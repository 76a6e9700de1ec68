// Every flag of ferryrun: its names, what must follow it, and what it does. Those of other
// launchers (Open MPI's mpirun 4 and 5, Hydra's mpiexec of MPICH and Intel MPI, srun, PALS) stand
// for flags of ferryrun, or are refused with a sentence that says what to type.
//
// Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/flags/completion.h"

namespace ferry::tools {

enum class Flag {
  kHelp,
  kVersion,
  kCompletion,
  kRanks,
  kExport,
  kVariable,
  kVariableForAll,
  kExportsForAll,
  kIgnored,
  kHost,
  kHosts,
  kHostFile,
  kRankFile,
  kMapBy,
  kRankBy,
  kPerNode,
  kBindTo,
  kDirectory,
  kNodes,
  kPrivate,
  kName,
  kLabel,
  kNoLabel,
  kOutput,
  kReport,
  kTrace,
  kTraceLast,
  kKeepGoing,
  kTimeout,
  kGrace,
  kDeadlockCheck,
  kLaunchRadix,
  kLaunchTimeout,
  kTreeRadix,
  kFerryd,
  kAllocation,
  kLauncher,
  kRsh,
  kNetwork,
  kErrorHandler,
  kMemoryKinds,
  kMalloc,
  kAbi,
  kVerbose,
  kReportBindings,
  // Of other launchers:
  kForeign,  // means nothing here
  kAlias,    // stands for a flag of ferryrun
  kByValue,  // does so for some values
  kRefused,  // has no equal, but there is another way
};

struct FlagRow {
  Flag flag;
  const char* names;   // separated by commas. Without a dash: a variable, or a parameter of --mca
  const char* values;  // one word for each value that follows; in [ ]: only behind "="; empty: none
  // Of kAlias: the flag, and its value, where % stands for this one's. Of kByValue and kRefused:
  // the other way.
  const char* help;
};

std::span<const FlagRow> FlagTable();

// Returns true for what --help lists: the flags that do not stand for others.
bool IsOurs(const FlagRow& row);

// Returns what a value of a kByValue flag stands for, as kAlias has it ("": for what is so in any
// case); null: nothing.
const char* MeaningOf(const FlagRow& row, std::string_view value);

// Returns the row of a name such as "-n"; null if there is none.
const FlagRow* FindFlag(std::string_view name);

// Returns the text that --help prints.
std::string HelpText();

// Returns the names of a row, one by one.
std::vector<std::string_view> NamesOf(const FlagRow& row);

// Describes the command line for --completion.
CommandLine DescribeCommandLine();

}  // namespace ferry::tools
