#include "client/mpi/base/failure.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

TEST(FailureTest, IsSuccessUntilAnErrorClassIsSet) {
  EXPECT_TRUE(Failure().ok());
  const Failure failure = {MPI_ERR_RANK, "rank 7 is not below 4"};
  EXPECT_FALSE(failure.ok());
  EXPECT_EQ(failure.error_class, MPI_ERR_RANK);
}

TEST(ResultTest, HoldsAValueThatCanBeChangedAndMovedOut) {
  Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("four");
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.failure().ok());
  *result.value() += "teen";
  const std::unique_ptr<std::string> taken = std::move(result).value();
  EXPECT_EQ(*taken, "fourteen");
}

TEST(ResultTest, HoldsAFailure) {
  const Result<int> result = Failure{MPI_ERR_COUNT, "count is -1"};
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.failure().error_class, MPI_ERR_COUNT);
  EXPECT_EQ(result.failure().text, "count is -1");
}

TEST(ResultTest, TellsAnEmptyValueFromAFailure) {
  const Result<std::string> result = std::string();
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "");
}

}  // namespace
}  // namespace ferry::mpi
