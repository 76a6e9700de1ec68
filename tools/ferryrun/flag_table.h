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

// The row of a name such as "-n"; null if there is none.
const FlagRow* FindFlag(std::string_view name);

// What --help prints.
std::string HelpText();

// All names in one line.
std::string FlagNames();

// The names of a row.
std::vector<std::string_view> NamesOf(const FlagRow& row);

// For --completion.
CommandLine DescribeCommandLine();

}  // namespace ferry::tools
