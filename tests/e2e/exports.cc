#include "tests/e2e/exports.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/e2e/command.h"

namespace ferry::e2e {

std::map<std::string, Symbol> ExportsOf(const std::string& library) {
  const CommandResult nm = RunCommand({"/usr/bin/nm", "--dynamic", "--defined-only", library});
  EXPECT_EQ(nm.exit_code, 0) << nm.err;
  std::map<std::string, Symbol> symbols;
  std::istringstream lines(nm.out);
  Symbol symbol;
  for (std::string name; lines >> symbol.address >> symbol.kind >> name;) {
    symbols[name] = symbol;
  }
  return symbols;
}

void ExpectBothNames(const std::string& library, const std::vector<std::string>& names,
                     const std::string& prefix) {
  const std::map<std::string, Symbol> exports = ExportsOf(library);
  for (const std::string& name : names) {
    const auto weak = exports.find(name);
    const auto real = exports.find(prefix + name);
    if (weak == exports.end() || real == exports.end()) {
      ADD_FAILURE() << name << " is not exported as itself and as " << prefix << name;
      continue;
    }
    EXPECT_EQ(weak->second.kind, 'W') << name;
    EXPECT_EQ(real->second.kind, 'T') << name;
    EXPECT_EQ(weak->second.address, real->second.address) << name;
  }
}

}  // namespace ferry::e2e
