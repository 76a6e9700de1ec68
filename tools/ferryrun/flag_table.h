// Every flag of ferryrun: its names, what must follow it, and what it does.
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
  kMapBy,
  kPerNode,
  kBindTo,
  kDirectory,
  kNodes,
  kPrivate,
  kLabel,
  kNoLabel,
  kKeepGoing,
  kTimeout,
  kGrace,
  kFerryd,
  kAllocation,
  kLauncher,
  kRsh,
  kNetwork,
  kErrorHandler,
  kMemoryKinds,
  kMalloc,
  kVerbose,
  kReportBindings,
  kForeign,  // another launcher's flag, which means nothing here
  kRefused,  // another launcher's flag, for which there is another way here
};

struct FlagRow {
  Flag flag;
  const char* names;   // separated by commas
  const char* values;  // one word for each value that follows; empty: none
  const char* help;    // of kRefused: the other way
};

std::span<const FlagRow> FlagTable();

// Returns the row of a name such as "-n"; null if there is none.
const FlagRow* FindFlag(std::string_view name);

// Returns the text that --help prints.
std::string HelpText();

// Returns all names in one line.
std::string FlagNames();

// Returns the names of a row, one by one.
std::vector<std::string_view> NamesOf(const FlagRow& row);

// Describes the command line for --completion.
CommandLine DescribeCommandLine();

}  // namespace ferry::tools
