#include <set>
#include <string>

#include "client/mpi/base/error_codes.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

std::string Text(const ErrorCodes& codes, int code) {
  std::string text = "untouched";
  EXPECT_TRUE(codes.TextOf(code, &text).ok()) << code;
  return text;
}

int Class(const ErrorCodes& codes, int code) {
  int error_class = -1;
  EXPECT_TRUE(codes.ClassOf(code, &error_class).ok()) << code;
  return error_class;
}

TEST(CodesTest, KnowsEveryPredefinedClassByItsNumber) {
  ErrorCodes codes;
  std::set<std::string> texts;
  for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; ++code) {
    EXPECT_EQ(Class(codes, code), code);
    EXPECT_TRUE(texts.insert(Text(codes, code)).second) << code;
    EXPECT_LT(Text(codes, code).size(), size_t{MPI_MAX_ERROR_STRING});
  }
  for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; ++code) {
    EXPECT_EQ(Class(codes, code), code);
    EXPECT_TRUE(texts.insert(Text(codes, code)).second) << code;
  }
  EXPECT_EQ(Text(codes, MPI_ERR_RANK), "MPI_ERR_RANK: invalid rank");
  EXPECT_STREQ(PredefinedErrorName(MPI_ERR_TRUNCATE), "MPI_ERR_TRUNCATE");
  EXPECT_EQ(PredefinedErrorName(MPI_ERR_ABI + 1), nullptr);
}

TEST(CodesTest, RefusesNumbersThatAreNoCode) {
  ErrorCodes codes;
  int error_class = 0;
  std::string text;
  for (int code : {-1, MPI_ERR_ABI + 1, 1000, MPI_ERR_LASTCODE + 1, 2147483647}) {
    EXPECT_EQ(codes.ClassOf(code, &error_class).error_class, MPI_ERR_ARG) << code;
    EXPECT_EQ(codes.TextOf(code, &text).error_class, MPI_ERR_ARG) << code;
  }
}

TEST(CodesTest, AddsClassesCodesAndTexts) {
  ErrorCodes codes;
  EXPECT_EQ(codes.LastUsed(), MPI_ERR_LASTCODE);
  int error_class = 0;
  int code = 0;
  int other = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  EXPECT_GT(error_class, MPI_ERR_LASTCODE);
  EXPECT_EQ(codes.LastUsed(), error_class);
  ASSERT_TRUE(codes.AddCode(error_class, &code).ok());
  ASSERT_TRUE(codes.AddCode(MPI_ERR_IO, &other).ok());
  EXPECT_EQ(codes.LastUsed(), other);
  EXPECT_EQ(Class(codes, error_class), error_class);
  EXPECT_EQ(Class(codes, code), error_class);
  EXPECT_EQ(Class(codes, other), MPI_ERR_IO);
  EXPECT_EQ(Text(codes, code), "");
  ASSERT_TRUE(codes.AddText(code, "the pump is dry").ok());
  EXPECT_EQ(Text(codes, code), "the pump is dry");
  EXPECT_EQ(Text(codes, error_class), "");
  ASSERT_TRUE(codes.AddText(code, "the pump is wet").ok());
  EXPECT_EQ(Text(codes, code), "the pump is wet");
}

TEST(CodesTest, RemovesWhatWasAdded) {
  ErrorCodes codes;
  int error_class = 0;
  int code = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  ASSERT_TRUE(codes.AddCode(error_class, &code).ok());
  ASSERT_TRUE(codes.AddText(code, "text").ok());
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);  // it has a code
  EXPECT_EQ(codes.RemoveClass(code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(error_class).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(code).error_class, MPI_ERR_ARG);  // it has a text
  ASSERT_TRUE(codes.RemoveText(code).ok());
  EXPECT_EQ(Text(codes, code), "");
  ASSERT_TRUE(codes.RemoveCode(code).ok());
  EXPECT_EQ(codes.LastUsed(), error_class);
  ASSERT_TRUE(codes.AddText(error_class, "text").ok());
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);
  ASSERT_TRUE(codes.RemoveText(error_class).ok());
  ASSERT_TRUE(codes.RemoveClass(error_class).ok());
  EXPECT_EQ(codes.LastUsed(), MPI_ERR_LASTCODE);
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);
}

TEST(CodesTest, LeavesPredefinedOnesAlone) {
  ErrorCodes codes;
  int code = 0;
  EXPECT_EQ(codes.AddText(MPI_ERR_RANK, "mine").error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveText(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveClass(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.AddCode(MPI_SUCCESS, &code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.AddCode(12345678, &code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(Text(codes, MPI_ERR_RANK), "MPI_ERR_RANK: invalid rank");
}

TEST(CodesTest, RefusesTextsThatDoNotFit) {
  ErrorCodes codes;
  int error_class = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  EXPECT_EQ(codes.AddText(error_class, nullptr).error_class, MPI_ERR_ARG);
  std::string longest(MPI_MAX_ERROR_STRING - 1, 'x');
  EXPECT_TRUE(codes.AddText(error_class, longest.c_str()).ok());
  EXPECT_EQ(codes.AddText(error_class, (longest + "x").c_str()).error_class, MPI_ERR_ARG);
  EXPECT_EQ(Text(codes, error_class), longest);
}

}  // namespace
}  // namespace ferry::mpi
