// Partitioned communication on the vendors' backends, over their stand-ins.
#include "tests/e2e/vendors.h"
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/slice.h"

namespace ferry::mpi_tests {
namespace {

class PartitionedVendorsTest : public testing::TestWithParam<e2e::Vendor> {};

// In memory of devices, too, which only streams reach.
TEST_P(PartitionedVendorsTest, PartitionsArriveOneByOne) {
  const std::vector<Placement> pairs = Pairs();
  for (const Placement& placement : tests::Slice<Placement>({pairs[0]}, {pairs[1]})) {
    SCOPED_TRACE(placement.name);
    ExpectJob(placement, {"tests/mpi/ranks/partitioned_rounds"}, "all rounds were right",
              GetParam().variables());
  }
}

// A stand-in runs only kernels that follow no pointers inside device memory. So CPUs run these, and
// all that they use lies in the memory of hosts that devices reach, where the backend makes it.
// Between nodes they would use a ring in device memory.
TEST_P(PartitionedVendorsTest, KernelsMoveTheMemoryOfHosts) {
  ExpectJob(Pairs()[0], {"tests/mpi/ranks/partitioned_kernels", "auto", "pinned"},
            "all kernels were right",
            e2e::Joined(GetParam().variables(), {"FERRY_HOST_LINK_GUARD=1"}));
}

INSTANTIATE_TEST_SUITE_P(, PartitionedVendorsTest, testing::ValuesIn(e2e::VendorsWithKernels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::mpi_tests
