// Other projects' programs: fetched as Debian's source packages, built with Ferry's compiler
// wrappers and run by ferryrun. The machine's apt stays as it is: lists and downloads go to the
// test's own folder, which is removed at its end. One thread.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/patience.h"

namespace ferry::mpi {

class SourcePackageTest : public testing::Test {
 protected:
  SourcePackageTest();
  ~SourcePackageTest() override;

  // Fetches the package's original source, before Debian's changes, and unpacks it in source().
  // False, with the reason in why_not(), if it is not available, or a tool to build it is missing.
  // Takes seconds; blocks.
  bool Fetch(const std::string& package);
  const std::string& why_not() const { return why_not_; }
  // Returns true if a program can be linked with -lNAME.
  bool HasLibrary(const std::string& name) const;

  std::string source() const { return folder_ + "/source"; }

  // Runs `script` in source() with bash; $FERRYCC and $FERRYRUN are set. It must succeed. Returns
  // its standard output.
  std::string Run(const std::string& script, unsigned limit_s = tests::kPatienceS) const;
  // Expects that the program is linked with Ferry's library, not with another MPI of the machine.
  void ExpectOfFerry(const std::string& program) const;
  // Runs a program of source() as a job, in source(). It must succeed. Returns its output,
  // including standard error.
  std::string RunRanks(const std::vector<std::string>& placement,
                       const std::vector<std::string>& program,
                       unsigned limit_s = tests::kPatienceS) const;

 private:
  e2e::CommandResult Bash(const std::string& folder, const std::string& script,
                          unsigned limit_s) const;

  std::string folder_ = "/tmp/ferry-programs-XXXXXX";
  std::string why_not_;
};

}  // namespace ferry::mpi
