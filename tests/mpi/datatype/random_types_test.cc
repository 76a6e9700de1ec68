// Random nested datatypes against their type maps.
#include <cstring>

#include "mpi/datatype/datatype.h"
#include "tests/mpi/datatype/random_type.h"

namespace ferry::mpi {
namespace {

constexpr int kTypes = 400;
constexpr int64_t kMaxCount = 3;
// Elements lie at most this far from the buffer's address, which is in the middle of the memory.
constexpr int64_t kReach = (kMaxCount + 1) * 2 * RandomTypes::kMaxDistance;

class RandomTypesTest : public ::testing::TestWithParam<int> {
 protected:
  RandomTypesTest() : types_(static_cast<uint32_t>(GetParam())) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<char>(i * 2654435761U >> 13);
    }
  }
  TypeSample Next() { return types_.Next(static_cast<int>(types_.Between(0, 4))); }
  char* buffer() { return memory_.data() + kReach; }

  RandomTypes types_;
  std::vector<char> memory_ = std::vector<char>(2 * kReach);
};

TEST_P(RandomTypesTest, SizesAndBoundsAreThoseOfTheTypeMap) {
  for (int i = 0; i < kTypes; ++i) {
    const TypeSample sample = Next();
    ASSERT_EQ(sample.type->size_bytes(), sample.map.size_bytes());
    ASSERT_EQ(sample.type->true_lower_bound(), sample.map.true_lower_bound());
    ASSERT_EQ(sample.type->true_extent(),
              sample.map.true_upper_bound() - sample.map.true_lower_bound());
    ASSERT_EQ(sample.type->lower_bound(), sample.map.lower_bound());
    ASSERT_EQ(sample.type->extent(), sample.map.extent());
    ASSERT_EQ(sample.type->signature().elements, static_cast<int64_t>(sample.map.entries.size()));
  }
}

TEST_P(RandomTypesTest, AnyRangeIsPackedAndUnpacked) {
  for (int i = 0; i < kTypes; ++i) {
    const TypeSample sample = Next();
    const int64_t count = types_.Between(0, kMaxCount);
    const std::vector<int64_t> places = sample.map.PackedBytes(count);
    const auto size = static_cast<int64_t>(places.size());
    ASSERT_EQ(sample.type->PackedBytes(count).value(), size);
    const int64_t begin = types_.Between(0, 3) == 0 ? 0 : types_.Between(0, size);
    const int64_t end = types_.Between(0, 3) == 0 ? size : types_.Between(begin, size);

    std::vector<char> packed(static_cast<size_t>(end - begin) + 1, '#');
    sample.type->Pack(buffer(), count, begin, end - begin, packed.data());
    ASSERT_EQ(packed.back(), '#');
    std::vector<char> expected = memory_;
    for (int64_t at = begin; at < end; ++at) {
      ASSERT_EQ(packed[static_cast<size_t>(at - begin)], buffer()[places[at]]) << at;
      packed[static_cast<size_t>(at - begin)] = static_cast<char>(at * 31 + i);
      expected[static_cast<size_t>(kReach + places[at])] = static_cast<char>(at * 31 + i);
    }
    sample.type->Unpack(buffer(), count, begin, end - begin, packed.data());
    ASSERT_EQ(memory_, expected);
  }
}

TEST_P(RandomTypesTest, RunsAreThePackedBytesInOrder) {
  for (int i = 0; i < kTypes; ++i) {
    const TypeSample sample = Next();
    const int64_t count = types_.Between(0, kMaxCount);
    const std::vector<int64_t> places = sample.map.PackedBytes(count);
    const auto size = static_cast<int64_t>(places.size());
    const int64_t begin = types_.Between(0, size);
    const int64_t end = types_.Between(begin, size);
    int64_t at = begin;
    int64_t last = 0;
    sample.type->ForEachRun(count, begin, end - begin, [&](int64_t displacement, int64_t length) {
      ASSERT_GT(length, 0);
      ASSERT_TRUE(at == begin || displacement != last) << "runs that could be one";
      for (int64_t byte = 0; byte < length; ++byte, ++at) {
        ASSERT_LT(at, end);
        ASSERT_EQ(displacement + byte, places[at]);
      }
      last = displacement + length;
    });
    ASSERT_EQ(at, end);
  }
}

TEST_P(RandomTypesTest, SpanHasAllBytesAndNoMore) {
  for (int i = 0; i < kTypes; ++i) {
    const TypeSample sample = Next();
    const int64_t count = types_.Between(0, kMaxCount);
    const std::vector<int64_t> places = sample.map.PackedBytes(count);
    const Bounds span = sample.type->Span(count);
    if (places.empty()) {
      ASSERT_EQ(span.low, span.high);
      continue;
    }
    ASSERT_EQ(span.low, *std::min_element(places.begin(), places.end()));
    ASSERT_EQ(span.high, *std::max_element(places.begin(), places.end()) + 1);
  }
}

// A dense type is one run of rising bytes; single elements that are such a run are dense.
TEST_P(RandomTypesTest, DenseIsOneRun) {
  int dense = 0;
  for (int i = 0; i < kTypes; ++i) {
    const TypeSample sample = Next();
    for (int64_t count = 1; count <= kMaxCount; ++count) {
      const std::vector<int64_t> places = sample.map.PackedBytes(count);
      bool one_run = true;
      for (size_t at = 1; at < places.size(); ++at) {
        one_run = one_run && places[at] == places[at - 1] + 1;
      }
      if (sample.type->IsDense(count) && !places.empty()) {
        ASSERT_TRUE(one_run);
        ASSERT_EQ(places[0], sample.type->true_lower_bound());
        ++dense;
      }
      if (count == 1) {
        ASSERT_EQ(sample.type->IsDense(count), one_run);
      }
    }
  }
  EXPECT_GT(dense, kTypes / 10);
}

TEST_P(RandomTypesTest, BytesBecomeElementsAndBack) {
  for (int i = 0; i < kTypes / 10; ++i) {
    const TypeSample sample = Next();
    const int64_t size = sample.map.size_bytes();
    if (size == 0) {
      ASSERT_EQ(sample.type->BasicElementCount(0), 0);
      ASSERT_EQ(sample.type->BasicElementCount(1), MPI_UNDEFINED);
      ASSERT_EQ(sample.type->BytesOfBasicElements(0), 0);
      ASSERT_EQ(sample.type->BytesOfBasicElements(1), MPI_UNDEFINED);
      continue;
    }
    int64_t bytes = 0;
    int64_t elements = 0;
    for (int64_t element = 0; element < 2; ++element) {
      for (const MapEntry& entry : sample.map.entries) {
        ASSERT_EQ(sample.type->BasicElementCount(bytes), elements);
        ASSERT_EQ(sample.type->BytesOfBasicElements(elements), bytes);
        for (int64_t within = 1; within < entry.size_bytes; ++within) {
          ASSERT_EQ(sample.type->BasicElementCount(bytes + within), MPI_UNDEFINED);
        }
        ASSERT_EQ(sample.type->ElementCount(bytes),
                  bytes % size == 0 ? bytes / size : int64_t{MPI_UNDEFINED});
        bytes += entry.size_bytes;
        ++elements;
      }
    }
  }
}

TEST_P(RandomTypesTest, ElementsAreCopiedFromLayoutToLayout) {
  std::vector<char> target(memory_.size());
  for (int i = 0; i < kTypes / 3; ++i) {
    const TypeSample from = Next();
    const TypeSample to = Next();
    const int64_t from_count = types_.Between(0, kMaxCount);
    const int64_t to_count = types_.Between(0, kMaxCount);
    const std::vector<int64_t> from_places = from.map.PackedBytes(from_count);
    const std::vector<int64_t> to_places = to.map.PackedBytes(to_count);
    const size_t bytes = std::min(from_places.size(), to_places.size());
    std::vector<char> expected = target;
    for (size_t at = 0; at < bytes; ++at) {
      expected[static_cast<size_t>(kReach + to_places[at])] = buffer()[from_places[at]];
    }
    ASSERT_EQ(
        CopyElements(buffer(), from_count, *from.type, target.data() + kReach, to_count, *to.type),
        static_cast<int64_t>(bytes));
    ASSERT_EQ(target, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTypesTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace ferry::mpi
