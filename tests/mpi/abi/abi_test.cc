// mpi.h is compared with the numbers of constants.inc, which come from headers of other origin; and
// compare_header.py, which compares such headers with them, is tested. A difference means that
// programs built elsewhere no longer run: correct the header, not the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <type_traits>

#include "ferry/mpi/mpi.h"
#include "tests/e2e/command.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <class T>
int64_t Number(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(value));
  } else {
    return static_cast<int64_t>(value);
  }
}

// A table, since as many comparisons would take ten times as long to compile.
struct Constant {
  const char* name;
  int64_t ours;
  int64_t standards;
};
const Constant kConstants[] = {
#define CONSTANT(name, number) {#name, Number(name), number},
#include "tests/mpi/abi/constants.inc"
#undef CONSTANT
};

TEST(AbiTest, EveryConstantHasItsNumber) {
  for (const Constant& constant : kConstants) {
    EXPECT_EQ(constant.ours, constant.standards) << constant.name;
  }
}

TEST(AbiTest, LaysOutStatusAsTheStandardDoes) {
  static_assert(std::is_standard_layout_v<MPI_Status> && std::is_trivially_copyable_v<MPI_Status>);
  EXPECT_EQ(sizeof(MPI_Status), 32u);
  EXPECT_EQ(alignof(MPI_Status), 4u);
  EXPECT_EQ(offsetof(MPI_Status, MPI_SOURCE), 0u);
  EXPECT_EQ(offsetof(MPI_Status, MPI_TAG), 4u);
  EXPECT_EQ(offsetof(MPI_Status, MPI_ERROR), 8u);
  EXPECT_EQ(offsetof(MPI_Status, MPI_internal), 12u);
  EXPECT_EQ(sizeof(MPI_Status::MPI_internal), 20u);
}

TEST(AbiTest, HasTheTypesOfTheStandard) {
  static_assert(std::is_same_v<MPI_Aint, intptr_t>);
  static_assert(std::is_same_v<MPI_Offset, int64_t>);
  static_assert(std::is_same_v<MPI_Count, int64_t>);
  static_assert(std::is_same_v<MPI_Fint, int>);
  static_assert(std::is_same_v<MPI_Comm, struct MPI_ABI_Comm*>);
  static_assert(std::is_same_v<MPI_Datatype, struct MPI_ABI_Datatype*>);
  static_assert(std::is_same_v<MPI_Errhandler, struct MPI_ABI_Errhandler*>);
  static_assert(std::is_same_v<MPI_File, struct MPI_ABI_File*>);
  static_assert(std::is_same_v<MPI_Group, struct MPI_ABI_Group*>);
  static_assert(std::is_same_v<MPI_Info, struct MPI_ABI_Info*>);
  static_assert(std::is_same_v<MPI_Message, struct MPI_ABI_Message*>);
  static_assert(std::is_same_v<MPI_Op, struct MPI_ABI_Op*>);
  static_assert(std::is_same_v<MPI_Request, struct MPI_ABI_Request*>);
  static_assert(std::is_same_v<MPI_Session, struct MPI_ABI_Session*>);
  static_assert(std::is_same_v<MPI_Win, struct MPI_ABI_Win*>);
  EXPECT_EQ(sizeof(MPI_Comm), 8u);
  EXPECT_EQ(sizeof(MPI_T_cb_safety), 4u);
  EXPECT_EQ(sizeof(MPI_T_source_order), 4u);
}

// The rule behind the numbers of datatypes of fixed size: bits 3 to 5 are the logarithm of the
// size.
TEST(AbiTest, EncodesTheSizeInDatatypesOfFixedSize) {
  struct Case {
    MPI_Datatype datatype;
    int64_t size_bytes;
  };
  for (const Case& expected : std::initializer_list<Case>{{MPI_BYTE, 1},
                                                          {MPI_CHAR, 1},
                                                          {MPI_UINT16_T, 2},
                                                          {MPI_INT32_T, 4},
                                                          {MPI_UINT64_T, 8},
                                                          {MPI_LOGICAL1, 1},
                                                          {MPI_REAL2, 2},
                                                          {MPI_COMPLEX4, 4},
                                                          {MPI_INTEGER8, 8},
                                                          {MPI_REAL16, 16},
                                                          {MPI_COMPLEX32, 32}}) {
    EXPECT_EQ(int64_t{1} << ((Number(expected.datatype) >> 3) & 7), expected.size_bytes);
  }
}

// The output of compare_header.py for a copy of Ferry's headers in which `wrong` stands for
// `right`.
class CompareHeaderTest : public testing::Test {
 protected:
  CompareHeaderTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    fs::copy("include/ferry/mpi", folder_,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  ~CompareHeaderTest() override { fs::remove_all(folder_); }

  void Replace(const std::string& file, const std::string& right, const std::string& wrong) const {
    const std::string path = folder_ + "/ferry_mpi/" + file;
    std::ostringstream content;
    content << std::ifstream(path).rdbuf();
    std::string text = content.str();
    const size_t place = text.find(right);
    ASSERT_NE(place, std::string::npos) << right;
    fs::remove(path);  // it may be a link to the source
    std::ofstream(path) << text.replace(place, right.size(), wrong);
  }

  ferry::e2e::CommandResult Compare() const {
    return ferry::e2e::RunCommand({"/usr/bin/python3", "tests/mpi/abi/compare_header.py",
                                   folder_ + "/mpi.h", "include/ferry/mpi"});
  }

  std::string folder_ = "/tmp/ferry-header-XXXXXX";
};

TEST_F(CompareHeaderTest, FerrysOwnIsTheStandards) {
  const ferry::e2e::CommandResult result = Compare();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "364 constants, 1324 calls: all alike\n");
}

TEST_F(CompareHeaderTest, NamesEveryDifference) {
  Replace("constants.h", "MPI_SEEK_SET = 403", "MPI_SEEK_SET = 404");
  Replace("constants.h", "MPI_SEEK_END = 402,", "");
  Replace("handles.h", "#define MPI_BOR ", "#define MPI_BOAR ((MPI_Op)0x29)\n#define MPI_BOR ");
  Replace("handles.h", "typedef int64_t MPI_Offset", "typedef int32_t MPI_Offset");
  Replace("environment.h", "Finalized, (int* flag)", "Finalized, (long* flag)");
  Replace("environment.h", "FERRY_MPI(double, Wtick, (void));", "");
  Replace("environment.h", "Wtime,", "Wtyme,");
  const ferry::e2e::CommandResult result = Compare();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  for (const char* line :
       {"MPI_SEEK_SET is 404, not 403\n", "MPI_SEEK_END is missing\n",
        "MPI_BOAR is not in constants.inc\n", "MPI_Offset differs; Ferry has: typedef int64_t ",
        "MPI_Finalized differs; Ferry has: int MPI_Finalized(int* flag);\n",
        "PMPI_Wtick is missing\n", "MPI_Wtime is missing\n", "MPI_Wtyme is no call of Ferry's\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
}

}  // namespace
