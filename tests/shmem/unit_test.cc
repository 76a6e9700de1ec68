// Parts of shmem that need no job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

#include "mpi/comm/context_ids.h"
#include "shmem/base/cutovers.h"
#include "shmem/base/message_contexts.h"
#include "shmem/base/pieces.h"
#include "shmem/base/settings.h"
#include "shmem/coll/reduction.h"

namespace ferry::shmem {
namespace {

using testing::HasSubstr;

uint64_t SizeOf(std::string_view text) {
  const StatusOr<uint64_t> size = ParseSize(text);
  EXPECT_TRUE(size.ok()) << text << ": " << size.status().message();
  return size.ok() ? *size : 0;
}

// Messages of one kind never meet those of another.
TEST(MessageContextsTest, LieBesideThoseOfMpi) {
  const uint32_t last_of_mpi = mpi::ContextOf(mpi::kNumberLimit - 1, mpi::Traffic::kFromGroup);
  EXPECT_EQ(kWorldContext, last_of_mpi + 1);
  EXPECT_LT(kExchangeContext / mpi::kContextsPerCommunicator, mpi::kReservedNumbers);
  EXPECT_GT(kExchangeContext / mpi::kContextsPerCommunicator, mpi::kUnusableNumber);
  EXPECT_EQ(TeamContext(0), kWorldContext + 1);
  const uint64_t teams = kFirstActiveSetContext - kFirstTeamContext;
  EXPECT_EQ(TeamContext(teams - 1), kFirstActiveSetContext - 1);
  EXPECT_EQ(TeamContext(teams), 0U) << "used up";
  for (const int count : {2, 3, 1000}) {
    EXPECT_GE(ActiveSetContext(0, 1, count), kFirstActiveSetContext);
    EXPECT_NE(ActiveSetContext(0, 1, count), ActiveSetContext(1, 1, count));
    EXPECT_NE(ActiveSetContext(0, 1, count), ActiveSetContext(0, 2, count));
  }
}

TEST(SettingsTest, ReadsSizesWithFractionsAndSuffixes) {
  EXPECT_EQ(SizeOf("0"), 0U);
  EXPECT_EQ(SizeOf("65536"), 65536U);
  EXPECT_EQ(SizeOf("1k"), 1024U);
  EXPECT_EQ(SizeOf("2M"), 2U << 20);
  EXPECT_EQ(SizeOf("1.5g"), 3ULL << 29);
  EXPECT_EQ(SizeOf("0.25T"), 1ULL << 38);
  EXPECT_EQ(SizeOf("20e6"), 20'000'000U);
  EXPECT_EQ(SizeOf("0.5"), 1U) << "rounded up";
}

TEST(SettingsTest, RefusesWhatIsNoSize) {
  for (const std::string_view text :
       {"", "k", "lots", "1x", "1kb", "-1", "1 g", "nan", "inf", "1e99"}) {
    const StatusOr<uint64_t> size = ParseSize(text);
    EXPECT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), ErrorCode::kConfiguration) << text;
  }
}

// ---- Cutovers of kernels ------------------------------------------------------------------------

std::string Formatted(std::string_view text) {
  const StatusOr<Cutovers> cutovers = ParseCutovers(text, "here");
  return cutovers.ok() ? FormatCutovers(*cutovers) : cutovers.status().message();
}

TEST(CutoversTest, HoldFromSoManyThreadsOn) {
  const StatusOr<Cutovers> cutovers = ParseCutovers("put=32k,put/128=1m,get/16=0", "here");
  ASSERT_TRUE(cutovers.ok());
  const auto& [put, get] = *cutovers;
  EXPECT_EQ(put[0], 32768U);
  EXPECT_EQ(put[6], 32768U) << "64 threads";
  EXPECT_EQ(put[7], 1U << 20) << "128 threads";
  EXPECT_EQ(put[FERRY_SHMEM_CUTOVER_SIZES - 1], 1U << 20);
  EXPECT_EQ(get[3], FERRY_SHMEM_NEVER);
  EXPECT_EQ(get[4], 0U);
  EXPECT_EQ(*ParseCutovers("", "here"), NoCutovers());
}

TEST(CutoversTest, AreFormattedAsTheyAreRead) {
  EXPECT_EQ(Formatted(""), "");
  EXPECT_EQ(Formatted("put=never"), "");
  EXPECT_EQ(Formatted("get=1k,put/2=4k"), "put/2=4096,get=1024");
  EXPECT_EQ(Formatted("put=8,put/4=8,put/8=never,put/32768=1"), "put=8,put/8=never,put/32768=1");
}

TEST(CutoversTest, SayWhatIsWrong) {
  EXPECT_THAT(Formatted("put"), HasSubstr("here: \"put\" is not of the form put=BYTES"));
  EXPECT_THAT(Formatted("get=1,add=5"), HasSubstr("\"add=5\" is not of the form"));
  EXPECT_THAT(Formatted("put=lots"), HasSubstr("here: \"lots\" is no size"));
  EXPECT_THAT(Formatted("put=,get=1"), HasSubstr("is no size"));
  for (const std::string threads : {"0", "", "3", "-1", "65536", "16x", "99999999999999999999"}) {
    EXPECT_THAT(Formatted("put/" + threads + "=1"),
                HasSubstr("\"" + threads + "\" in \"put/" + threads +
                          "=1\" is no number of threads: a power of two of at most 32768"));
  }
}

template <typename T>
T Reduced(ReduceType type, ReduceOp op, T left, T right) {
  T result{};
  EXPECT_EQ(ElementReducer(type, op).Reduce(&left, &right, &result, 1), ErrorCode::kOk);
  return result;
}

TEST(ReductionTest, KnowsItsTypes) {
  EXPECT_EQ(Reduced<int8_t>(ReduceType::kInt8, ReduceOp::kMin, -5, 3), -5);
  EXPECT_EQ(Reduced<uint8_t>(ReduceType::kUint8, ReduceOp::kMax, 251, 3), 251);
  EXPECT_EQ(Reduced<int16_t>(ReduceType::kInt16, ReduceOp::kProd, -300, 100), -30000);
  EXPECT_EQ(Reduced<uint16_t>(ReduceType::kUint16, ReduceOp::kProd, 65535, 65535), 1);
  EXPECT_EQ(Reduced<int32_t>(ReduceType::kInt32, ReduceOp::kSum, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(Reduced<uint64_t>(ReduceType::kUint64, ReduceOp::kXor, 12, 10), 6U);
  EXPECT_EQ(Reduced<int64_t>(ReduceType::kInt64, ReduceOp::kAnd, 12, 10), 8);
  EXPECT_EQ(Reduced<uint32_t>(ReduceType::kUint32, ReduceOp::kOr, 12, 10), 14U);
  EXPECT_EQ(Reduced<float>(ReduceType::kFloat, ReduceOp::kMax, -2.5F, -3.5F), -2.5F);
  EXPECT_EQ(Reduced<long double>(ReduceType::kLongDouble, ReduceOp::kProd, 2.5L, 4.0L), 10.0L);
  using Complex = std::complex<double>;
  EXPECT_EQ(Reduced<Complex>(ReduceType::kComplexDouble, ReduceOp::kProd, {1, 2}, {3, 4}),
            Complex(-5, 10));
}

TEST(ReductionTest, RefusesWhatATypeDoesNotHave) {
  std::complex<float> value;
  EXPECT_EQ(
      ElementReducer(ReduceType::kComplexFloat, ReduceOp::kMax).Reduce(&value, &value, &value, 1),
      ErrorCode::kUnsupported);
  double number = 0;
  EXPECT_EQ(
      ElementReducer(ReduceType::kDouble, ReduceOp::kAnd).Reduce(&number, &number, &number, 1),
      ErrorCode::kUnsupported);
}

// ---- Pieces of the heap, as the checking mode knows them ----------------------------------------

TEST(PiecesTest, AreKnownToTheByte) {
  ForgetPieces(0);
  NotePiece("shmem_malloc", 0, 128, 20);
  EXPECT_EQ(FindPieceFault(0, 128, 20), "");
  EXPECT_EQ(FindPieceFault(0, 147, 1), "");
  EXPECT_EQ(FindPieceFault(0, 147, 2),
            "run past the end of the 20 bytes at offset 128 of the symmetric heap, which "
            "shmem_malloc has returned");
  EXPECT_EQ(FindPieceFault(0, 148, 1),
            "lie right behind the end of the 20 bytes at offset 128 of the symmetric heap, which "
            "shmem_malloc has returned");
  EXPECT_EQ(FindPieceFault(0, 127, 10),
            "lie where the program has been given no memory of the symmetric heap");
  EXPECT_NE(FindPieceFault(0, 140, UINT64_MAX), "");
}

TEST(PiecesTest, ThatWereFreedAreNamedUntilTheirMemoryIsGivenOutAgain) {
  ForgetPieces(0);
  NotePiece("shmem_malloc", 0, 0, 100);
  NotePiece("shmem_calloc", 0, 128, 100);
  NotePiece("shmem_align", 0, 256, 100);
  NoteFreed("shmem_free", 0, 0);
  NoteFreed("shmem_realloc", 0, 128);
  EXPECT_EQ(LivePieces().size(), 1U);
  EXPECT_EQ(FindPieceFault(0, 130, 8),
            "lie in the 100 bytes at offset 128 of the symmetric heap, which shmem_calloc has "
            "returned and shmem_realloc has freed");
  NotePiece("shmem_malloc", 0, 64, 80);  // over the end of the one, and the beginning of the other
  EXPECT_EQ(FindPieceFault(0, 64, 80), "");
  EXPECT_EQ(FindPieceFault(0, 0, 8),
            "lie where the program has been given no memory of the symmetric heap");
  EXPECT_EQ(FindPieceFault(0, 150, 8),
            "lie 6 bytes behind the end of the 80 bytes at offset 64 of the symmetric heap, which "
            "shmem_malloc has returned");
  EXPECT_EQ(FindPieceFault(0, 256, 100), "");
}

// One offset in two heaps is not one place.
TEST(PiecesTest, BelongToTheirHeap) {
  ForgetPieces(0);
  ForgetPieces(2);
  NotePiece("shmem_malloc", 0, 0, 100);
  NotePiece("shmemx_space_malloc", 2, 0, 50);
  EXPECT_EQ(FindPieceFault(2, 0, 50), "");
  EXPECT_EQ(FindPieceFault(2, 0, 51),
            "run past the end of the 50 bytes at offset 0 of space 2, which shmemx_space_malloc "
            "has returned");
  EXPECT_EQ(FindPieceFault(1, 0, 1), "lie where the program has been given no memory of space 1");
  EXPECT_EQ(LivePieces().size(), 2U);
  NoteFreed("shmem_free", 2, 0);
  EXPECT_NE(FindPieceFault(2, 0, 1), "");
  EXPECT_EQ(FindPieceFault(0, 0, 100), "");
  NotePiece("shmemx_space_malloc", 2, 0, 8);
  ForgetPieces(2);
  EXPECT_EQ(LivePieces().size(), 1U);
}

TEST(PiecesTest, MayBecomeSmallerWhereTheyAre) {
  ForgetPieces(0);
  NotePiece("shmem_malloc", 0, 0, 100);
  NotePiece("shmem_realloc", 0, 0, 10);
  EXPECT_EQ(FindPieceFault(0, 0, 10), "");
  EXPECT_NE(FindPieceFault(0, 0, 11), "");
  ASSERT_EQ(LivePieces().size(), 1U);
  EXPECT_EQ(LivePieces().front().bytes, 10U);
}

}  // namespace
}  // namespace ferry::shmem
