// Programs in Fortran that tests compile by ferryfc.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {

inline const std::string kFolder = "tests/mpi/fortran/";
inline constexpr char kWrapper[] = "tools/wrappers/ferryfc";

// Has a folder of its own for what is compiled.
class FortranPrograms : public testing::Test {
 protected:
  FortranPrograms() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    if (!std::filesystem::exists("/usr/bin/gfortran")) {
      ADD_FAILURE() << "gfortran is not installed: ./dev packages";
    }
  }
  ~FortranPrograms() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  // Compiles it as users do, optimised, and without a warning of the linker's.
  void Compile(std::vector<std::string> words) const {
    words.insert(words.begin(), {kWrapper, "-O2", "-J" + folder_});
    const e2e::CommandResult result = e2e::RunCommand(words);
    EXPECT_EQ(result.exit_code, 0) << testing::PrintToString(words) << "\n" << result.err;
    EXPECT_EQ(result.err, "");
  }

  std::string folder_ = "/tmp/ferry-fortran-XXXXXX";
};

}  // namespace ferry::mpi_tests
