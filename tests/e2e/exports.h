// The exports of a shared library, as nm lists them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ferry::e2e {

struct Symbol {
  std::string address;
  char kind = 0;  // as nm prints it: T, W
};

// By name. `library`: its path.
std::map<std::string, Symbol> ExportsOf(const std::string& library);

// Expects each of these to be there twice, at one address: as itself, weak, so that a tool's takes
// its place; and, for the tool to call, with `prefix` before it.
void ExpectBothNames(const std::string& library, const std::vector<std::string>& names,
                     const std::string& prefix);

}  // namespace ferry::e2e
