// The operations of a rank in another one's window are complete when its calls promise so: inside a
// node, and between two, by the daemons and by direct links.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {

struct RmaPath {
  const char* name;
  const char* nodes;
  std::vector<std::string> variables;
};
inline void PrintTo(const RmaPath& path, std::ostream* out) { *out << path.name; }
inline std::string NameOfPath(const testing::TestParamInfo<RmaPath>& info) {
  return info.param.name;
}

class RmaOrderTest : public testing::TestWithParam<RmaPath> {
 public:
  static std::vector<RmaPath> Paths() {
    return {{"OneNode", "1", {}},
            {"TwoNodes", "2", {"FERRY_DIRECT_LINKS=off"}},
            {"TwoNodesByLinks", "2", {"FERRY_DIRECT_LINKS=always"}}};
  }

 protected:
  static void Expect(const char* rounds, unsigned limit_s = Placement().limit_s) {
    ExpectJob({"", {"-n", "2", "--nodes", GetParam().nodes}, limit_s},
              {"tests/mpi/ranks/rma_order", rounds}, "all was in order", GetParam().variables);
  }
};

}  // namespace ferry::mpi_tests
