// The hosts that a user names for a job: on the command line, or in a file.
//
// ParseHostList and ParseHostFile are pure; ReadHostFile blocks for the file. Any thread. Errors:
// kInvalidArgument, saying what is wrong with which entry; those of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// A host, and how many ranks it gets before the next one's turn.
struct Host {
  std::string name;
  uint64_t slots = 1;

  bool operator==(const Host&) const = default;
};

// "a,b:4,[fd00::1]:2": names or addresses, each with its slots. A host that is named again gets as
// many more.
StatusOr<std::vector<Host>> ParseHostList(std::string_view text);

// A line for each host, "NAME", "NAME:4" or "NAME slots=4"; from # on a line is a comment. `where`
// opens the messages.
StatusOr<std::vector<Host>> ParseHostFile(std::string_view text, const std::string& where);
StatusOr<std::vector<Host>> ReadHostFile(const std::string& path);

// Adds `more` to `hosts`; the slots of one that is in both are added up.
void AddHosts(const std::vector<Host>& more, std::vector<Host>* hosts);

}  // namespace ferry::tools
