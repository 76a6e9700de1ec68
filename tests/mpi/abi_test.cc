// mpi.h against numbers written down here a second time, from the tables of MPI 5.0 (chapter 20 and
// the constants of its annex A). A difference means that programs built elsewhere no longer run:
// correct the header, not this file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace {

template <class T>
int64_t Number(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(value));
  } else {
    return static_cast<int64_t>(value);
  }
}

template <class... T>
std::vector<int64_t> Numbers(T... values) {
  return {Number(values)...};
}

std::vector<int64_t> Counting(int64_t first, size_t count) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(first + static_cast<int64_t>(i));
  }
  return numbers;
}

// The constants named, in this order, are first, first + 1, ...
#define EXPECT_COUNTING(first, ...)                                                           \
  do {                                                                                        \
    const std::vector<int64_t> numbers = Numbers(__VA_ARGS__);                                \
    EXPECT_EQ(numbers, Counting(first, numbers.size())) << "(in the order of) " #__VA_ARGS__; \
  } while (false)

// The constants named are these numbers.
#define EXPECT_NUMBERS(expected, ...) \
  EXPECT_EQ(Numbers(__VA_ARGS__), (std::vector<int64_t> expected)) << #__VA_ARGS__

TEST(AbiTest, IsVersionOneOfMpiFive) {
  EXPECT_EQ(MPI_VERSION, 5);
  EXPECT_EQ(MPI_SUBVERSION, 0);
  EXPECT_EQ(MPI_ABI_VERSION, 1);
  EXPECT_EQ(MPI_ABI_SUBVERSION, 0);
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
  EXPECT_NUMBERS(({8, 0, 1, 2}), MPI_F_STATUS_SIZE, MPI_F_SOURCE, MPI_F_TAG, MPI_F_ERROR);
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

TEST(AbiTest, NumbersOperations) {
  EXPECT_COUNTING(32, MPI_OP_NULL, MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD);
  EXPECT_COUNTING(40, MPI_BAND, MPI_BOR, MPI_BXOR);
  EXPECT_COUNTING(48, MPI_LAND, MPI_LOR, MPI_LXOR);
  EXPECT_COUNTING(56, MPI_MINLOC, MPI_MAXLOC);
  EXPECT_COUNTING(60, MPI_REPLACE, MPI_NO_OP);
}

TEST(AbiTest, NumbersObjects) {
  EXPECT_COUNTING(256, MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF);
  EXPECT_COUNTING(264, MPI_GROUP_NULL, MPI_GROUP_EMPTY);
  EXPECT_COUNTING(272, MPI_WIN_NULL);
  EXPECT_COUNTING(280, MPI_FILE_NULL);
  EXPECT_COUNTING(288, MPI_SESSION_NULL);
  EXPECT_COUNTING(296, MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC);
  EXPECT_COUNTING(304, MPI_INFO_NULL, MPI_INFO_ENV);
  EXPECT_COUNTING(320, MPI_ERRHANDLER_NULL, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN,
                  MPI_ERRORS_ABORT);
  EXPECT_COUNTING(384, MPI_REQUEST_NULL);
}

TEST(AbiTest, NumbersDatatypesOfTheCompilersSizes) {
  EXPECT_COUNTING(512, MPI_DATATYPE_NULL, MPI_AINT, MPI_COUNT, MPI_OFFSET);
  EXPECT_COUNTING(519, MPI_PACKED, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_UNSIGNED_SHORT,
                  MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT);
  EXPECT_EQ(MPI_LONG_LONG_INT, MPI_LONG_LONG);
  EXPECT_COUNTING(530, MPI_C_FLOAT_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_DOUBLE);
  EXPECT_EQ(MPI_C_COMPLEX, MPI_C_FLOAT_COMPLEX);
  EXPECT_COUNTING(534, MPI_C_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_LOGICAL, MPI_INTEGER,
                  MPI_REAL, MPI_COMPLEX, MPI_DOUBLE_PRECISION, MPI_DOUBLE_COMPLEX, MPI_CHARACTER);
  EXPECT_NUMBERS(({544, 548, 549}), MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX,
                 MPI_CXX_LONG_DOUBLE_COMPLEX);
  EXPECT_COUNTING(552, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                  MPI_LONG_DOUBLE_INT);
  EXPECT_COUNTING(560, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER);
  EXPECT_NUMBERS(({568, 569, 572}), MPI_C_BOOL, MPI_CXX_BOOL, MPI_WCHAR);
}

TEST(AbiTest, NumbersDatatypesOfFixedSize) {
  EXPECT_NUMBERS(({576, 577, 579, 580, 581, 583}), MPI_INT8_T, MPI_UINT8_T, MPI_CHAR,
                 MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE);
  EXPECT_NUMBERS(({584, 585, 592, 593, 600, 601}), MPI_INT16_T, MPI_UINT16_T, MPI_INT32_T,
                 MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T);
  EXPECT_COUNTING(704, MPI_LOGICAL1, MPI_INTEGER1);
  EXPECT_COUNTING(712, MPI_LOGICAL2, MPI_INTEGER2, MPI_REAL2);
  EXPECT_COUNTING(720, MPI_LOGICAL4, MPI_INTEGER4, MPI_REAL4, MPI_COMPLEX4);
  EXPECT_COUNTING(728, MPI_LOGICAL8, MPI_INTEGER8, MPI_REAL8, MPI_COMPLEX8);
  EXPECT_COUNTING(736, MPI_LOGICAL16, MPI_INTEGER16, MPI_REAL16, MPI_COMPLEX16);
  EXPECT_COUNTING(747, MPI_COMPLEX32);
}

// The rule behind the numbers above: bits 3 to 5 are the logarithm of the size.
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

TEST(AbiTest, NumbersErrorClasses) {
  EXPECT_COUNTING(
      0, MPI_SUCCESS, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TAG, MPI_ERR_COMM,
      MPI_ERR_RANK, MPI_ERR_REQUEST, MPI_ERR_ROOT, MPI_ERR_GROUP, MPI_ERR_OP, MPI_ERR_TOPOLOGY,
      MPI_ERR_DIMS, MPI_ERR_ARG, MPI_ERR_UNKNOWN, MPI_ERR_TRUNCATE, MPI_ERR_OTHER, MPI_ERR_INTERN,
      MPI_ERR_PENDING, MPI_ERR_IN_STATUS, MPI_ERR_ACCESS, MPI_ERR_AMODE, MPI_ERR_ASSERT,
      MPI_ERR_BAD_FILE, MPI_ERR_BASE, MPI_ERR_CONVERSION, MPI_ERR_DISP, MPI_ERR_DUP_DATAREP,
      MPI_ERR_FILE_EXISTS, MPI_ERR_FILE_IN_USE, MPI_ERR_FILE, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY,
      MPI_ERR_INFO_VALUE, MPI_ERR_INFO, MPI_ERR_IO, MPI_ERR_KEYVAL, MPI_ERR_LOCKTYPE, MPI_ERR_NAME,
      MPI_ERR_NO_MEM, MPI_ERR_NOT_SAME, MPI_ERR_NO_SPACE, MPI_ERR_NO_SUCH_FILE, MPI_ERR_PORT,
      MPI_ERR_QUOTA, MPI_ERR_READ_ONLY, MPI_ERR_RMA_ATTACH, MPI_ERR_RMA_CONFLICT, MPI_ERR_RMA_RANGE,
      MPI_ERR_RMA_SHARED, MPI_ERR_RMA_SYNC, MPI_ERR_SERVICE, MPI_ERR_SIZE, MPI_ERR_SPAWN,
      MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_UNSUPPORTED_OPERATION, MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR,
      MPI_ERR_PROC_ABORTED, MPI_ERR_VALUE_TOO_LARGE, MPI_ERR_SESSION, MPI_ERR_ERRHANDLER,
      MPI_ERR_ABI);
  EXPECT_EQ(MPI_ERR_ABI, 62);
  EXPECT_EQ(MPI_ERR_LASTCODE, 16383);
}

TEST(AbiTest, NumbersErrorClassesOfTheToolInterface) {
  EXPECT_COUNTING(1001, MPI_T_ERR_CANNOT_INIT, MPI_T_ERR_NOT_ACCESSIBLE, MPI_T_ERR_NOT_INITIALIZED,
                  MPI_T_ERR_NOT_SUPPORTED, MPI_T_ERR_MEMORY, MPI_T_ERR_INVALID,
                  MPI_T_ERR_INVALID_INDEX, MPI_T_ERR_INVALID_ITEM, MPI_T_ERR_INVALID_SESSION,
                  MPI_T_ERR_INVALID_HANDLE, MPI_T_ERR_INVALID_NAME, MPI_T_ERR_OUT_OF_HANDLES,
                  MPI_T_ERR_OUT_OF_SESSIONS, MPI_T_ERR_CVAR_SET_NOT_NOW, MPI_T_ERR_CVAR_SET_NEVER,
                  MPI_T_ERR_PVAR_NO_WRITE, MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_ERR_PVAR_NO_ATOMIC);
}

TEST(AbiTest, NumbersRanksTagsAndThreadLevels) {
  EXPECT_NUMBERS(({-1, -2, -3, -4, -32766}), MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_ROOT,
                 MPI_UNDEFINED);
  EXPECT_NUMBERS(({0, 1024, 2048, 4096}), MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED,
                 MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE);
}

TEST(AbiTest, NumbersSpecialAddresses) {
  EXPECT_COUNTING(0, MPI_BOTTOM, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC);
  EXPECT_NUMBERS(({0, 0, 0, 0, 0}), MPI_ARGV_NULL, MPI_ARGVS_NULL, MPI_ERRCODES_IGNORE,
                 MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE);
  EXPECT_NUMBERS(({10, 11}), MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY);
}

TEST(AbiTest, LimitsStrings) {
  EXPECT_NUMBERS(({128, 512, 256, 1024, 8192, 128}), MPI_MAX_DATAREP_STRING, MPI_MAX_ERROR_STRING,
                 MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL, MPI_MAX_LIBRARY_VERSION_STRING,
                 MPI_MAX_OBJECT_NAME);
  EXPECT_NUMBERS(({1024, 256, 1024, 1024, 512}), MPI_MAX_PORT_NAME, MPI_MAX_PROCESSOR_NAME,
                 MPI_MAX_STRINGTAG_LEN, MPI_MAX_PSET_NAME_LEN, MPI_BSEND_OVERHEAD);
}

TEST(AbiTest, NumbersWhatDatatypesAreMadeOf) {
  EXPECT_NUMBERS(({12, 15}), MPI_ORDER_C, MPI_ORDER_FORTRAN);
  EXPECT_COUNTING(16, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                  MPI_DISTRIBUTE_DFLT_DARG);
  EXPECT_COUNTING(101, MPI_COMBINER_NAMED, MPI_COMBINER_DUP, MPI_COMBINER_CONTIGUOUS,
                  MPI_COMBINER_VECTOR, MPI_COMBINER_HVECTOR, MPI_COMBINER_INDEXED,
                  MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
                  MPI_COMBINER_STRUCT, MPI_COMBINER_SUBARRAY, MPI_COMBINER_DARRAY,
                  MPI_COMBINER_F90_INTEGER, MPI_COMBINER_F90_REAL, MPI_COMBINER_F90_COMPLEX,
                  MPI_COMBINER_RESIZED, MPI_COMBINER_VALUE_INDEX);
  EXPECT_COUNTING(192, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX);
}

TEST(AbiTest, NumbersWhatCommunicatorsAnswer) {
  EXPECT_COUNTING(201, MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR, MPI_UNEQUAL);
  EXPECT_COUNTING(211, MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH);
  EXPECT_COUNTING(221, MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_HW_GUIDED,
                  MPI_COMM_TYPE_RESOURCE_GUIDED);
  EXPECT_EQ(MPI_KEYVAL_INVALID, 0);
  EXPECT_COUNTING(501, MPI_TAG_UB, MPI_IO, MPI_HOST, MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE,
                  MPI_APPNUM, MPI_LASTUSEDCODE);
  EXPECT_COUNTING(601, MPI_WIN_BASE, MPI_WIN_DISP_UNIT, MPI_WIN_SIZE, MPI_WIN_CREATE_FLAVOR,
                  MPI_WIN_MODEL);
}

TEST(AbiTest, NumbersWindowsAndFiles) {
  EXPECT_COUNTING(301, MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
  EXPECT_COUNTING(311, MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_DYNAMIC,
                  MPI_WIN_FLAVOR_SHARED);
  EXPECT_COUNTING(321, MPI_WIN_UNIFIED, MPI_WIN_SEPARATE);
  EXPECT_COUNTING(401, MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END);
  EXPECT_NUMBERS(({1, 2, 4, 8, 16, 32, 64, 128, 256}), MPI_MODE_APPEND, MPI_MODE_CREATE,
                 MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_EXCL, MPI_MODE_RDONLY, MPI_MODE_RDWR,
                 MPI_MODE_SEQUENTIAL, MPI_MODE_UNIQUE_OPEN, MPI_MODE_WRONLY);
  EXPECT_NUMBERS(({1024, 2048, 4096, 8192, 16384}), MPI_MODE_NOCHECK, MPI_MODE_NOPRECEDE,
                 MPI_MODE_NOPUT, MPI_MODE_NOSTORE, MPI_MODE_NOSUCCEED);
  EXPECT_EQ(MPI_DISPLACEMENT_CURRENT, -1);
}

TEST(AbiTest, NumbersPredefinedCallbacks) {
  EXPECT_NUMBERS(({0, 0, 0, 0, 0, 0, 0, 0}), MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                 MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, MPI_WIN_NULL_COPY_FN,
                 MPI_WIN_NULL_DELETE_FN, MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL_C);
  EXPECT_NUMBERS(({1, 1, 1}), MPI_COMM_DUP_FN, MPI_TYPE_DUP_FN, MPI_WIN_DUP_FN);
  EXPECT_NUMBERS(({0, 1, 0}), MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN);
}

TEST(AbiTest, NumbersTheToolInterface) {
  EXPECT_NUMBERS(({0, 0, 0, 0, 1}), MPI_T_ENUM_NULL, MPI_T_CVAR_HANDLE_NULL,
                 MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_HANDLE_NULL, MPI_T_PVAR_ALL_HANDLES);
  EXPECT_NUMBERS(({0, 3, 15, 63}), MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                 MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
  EXPECT_COUNTING(1, MPI_T_SOURCE_ORDERED, MPI_T_SOURCE_UNORDERED);
  EXPECT_NUMBERS(({9, 10, 12, 17, 18, 20, 33, 34, 36}), MPI_T_VERBOSITY_USER_BASIC,
                 MPI_T_VERBOSITY_USER_DETAIL, MPI_T_VERBOSITY_USER_ALL, MPI_T_VERBOSITY_TUNER_BASIC,
                 MPI_T_VERBOSITY_TUNER_DETAIL, MPI_T_VERBOSITY_TUNER_ALL,
                 MPI_T_VERBOSITY_MPIDEV_BASIC, MPI_T_VERBOSITY_MPIDEV_DETAIL,
                 MPI_T_VERBOSITY_MPIDEV_ALL);
  EXPECT_COUNTING(1, MPI_T_BIND_NO_OBJECT, MPI_T_BIND_MPI_COMM, MPI_T_BIND_MPI_DATATYPE,
                  MPI_T_BIND_MPI_ERRHANDLER, MPI_T_BIND_MPI_FILE, MPI_T_BIND_MPI_GROUP,
                  MPI_T_BIND_MPI_OP, MPI_T_BIND_MPI_REQUEST, MPI_T_BIND_MPI_WIN,
                  MPI_T_BIND_MPI_MESSAGE, MPI_T_BIND_MPI_INFO, MPI_T_BIND_MPI_SESSION);
  EXPECT_COUNTING(1, MPI_T_SCOPE_CONSTANT, MPI_T_SCOPE_READONLY, MPI_T_SCOPE_LOCAL,
                  MPI_T_SCOPE_GROUP, MPI_T_SCOPE_GROUP_EQ, MPI_T_SCOPE_ALL, MPI_T_SCOPE_ALL_EQ);
  EXPECT_COUNTING(1, MPI_T_PVAR_CLASS_STATE, MPI_T_PVAR_CLASS_LEVEL, MPI_T_PVAR_CLASS_SIZE,
                  MPI_T_PVAR_CLASS_PERCENTAGE, MPI_T_PVAR_CLASS_HIGHWATERMARK,
                  MPI_T_PVAR_CLASS_LOWWATERMARK, MPI_T_PVAR_CLASS_COUNTER,
                  MPI_T_PVAR_CLASS_AGGREGATE, MPI_T_PVAR_CLASS_TIMER, MPI_T_PVAR_CLASS_GENERIC);
}

}  // namespace
