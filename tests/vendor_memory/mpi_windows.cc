// Windows over memory of the vendor's, which is also the origin of what goes there.
#include <cstdint>
#include <thread>
#include <utility>

#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

using Values = std::vector<int64_t>;

Values Part(int of, size_t count) {
  Values part(count);
  for (size_t i = 0; i < count; ++i) {
    part[i] = of * 1000 + static_cast<int64_t>(i);
  }
  return part;
}

Values Plus(Values values, const Values& others) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += others[i];
  }
  return values;
}

class Window {
 public:
  Window(const Kind& kind, size_t count)
      : count_(count),
        n_(static_cast<int>(count)),
        target_(kind, count * 8),
        origin_(kind, count * 8),
        result_(kind, count * 8) {
    VENDOR_OK(MPI_Win_create(target_.data(), static_cast<MPI_Aint>(count * 8), 8, MPI_INFO_NULL,
                             MPI_COMM_WORLD, &window_));
  }
  ~Window() { VENDOR_OK(MPI_Win_free(&window_)); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void Run() {
    const std::string outer = step;
    const auto run = [&](const char* name, void (Window::*check)()) {
      step = outer + ", " + name + " of " + std::to_string(count_);
      target_.Write(Part(rank, count_));
      origin_.Write(Part(rank + 50, count_));
      result_.Clear();
      (this->*check)();
      target_.CheckMargins();
    };
    run("put", &Window::Put);
    run("get", &Window::Get);
    run("accumulate", &Window::Accumulate);
    run("get_accumulate", &Window::GetAccumulate);
    run("fetch_and_op", &Window::FetchAndOp);
    run("locks", &Window::Locks);
    run("types", &Window::Types);
    step = outer;
  }

 private:
  void Fence() { VENDOR_OK(MPI_Win_fence(0, window_)); }
  void Expect(const Buffer& buffer, const Values& values) {
    VENDOR_CHECK(buffer.Read<int64_t>(values.size()) == values);
  }

  void Put() {
    Fence();
    VENDOR_OK(MPI_Put(origin_.data(), n_, MPI_INT64_T, next_, 0, n_, MPI_INT64_T, window_));
    Fence();
    Expect(target_, Part(before_ + 50, count_));
  }

  void Get() {
    Fence();
    VENDOR_OK(MPI_Get(result_.data(), n_, MPI_INT64_T, next_, 0, n_, MPI_INT64_T, window_));
    Fence();
    Expect(result_, Part(next_, count_));
  }

  void Accumulate() {
    Fence();
    for (int of = 0; of < size; ++of) {
      VENDOR_OK(MPI_Accumulate(origin_.data(), n_, MPI_INT64_T, of, 0, n_, MPI_INT64_T, MPI_SUM,
                               window_));
    }
    Fence();
    Values expected = Part(rank, count_);
    for (int of = 0; of < size; ++of) {
      expected = Plus(expected, Part(of + 50, count_));
    }
    Expect(target_, expected);
  }

  void GetAccumulate() {
    Fence();
    VENDOR_OK(MPI_Get_accumulate(origin_.data(), n_, MPI_INT64_T, result_.data(), n_, MPI_INT64_T,
                                 next_, 0, n_, MPI_INT64_T, MPI_SUM, window_));
    Fence();
    Expect(result_, Part(next_, count_));
    Expect(target_, Plus(Part(rank, count_), Part(before_ + 50, count_)));
  }

  void FetchAndOp() {
    Fence();
    VENDOR_OK(
        MPI_Fetch_and_op(origin_.data(), result_.data(), MPI_INT64_T, next_, 1, MPI_SUM, window_));
    Fence();
    VENDOR_CHECK(result_.Read<int64_t>(1)[0] == Part(next_, 2)[1]);
    VENDOR_CHECK(target_.Read<int64_t>(1, 1)[0] == Part(rank, 2)[1] + Part(before_ + 50, 1)[0]);
    const Values compare = {target_.Read<int64_t>(1, 1)[0]};
    Values theirs(1);
    VENDOR_OK(MPI_Sendrecv(compare.data(), 1, MPI_INT64_T, before_, 9, theirs.data(), 1,
                           MPI_INT64_T, next_, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    result_.Write(theirs, 2);
    Fence();
    VENDOR_OK(MPI_Compare_and_swap(origin_.data(), result_.as<int64_t>() + 2,
                                   result_.as<int64_t>() + 1, MPI_INT64_T, next_, 1, window_));
    Fence();
    VENDOR_CHECK(result_.Read<int64_t>(1, 1) == theirs);
    VENDOR_CHECK(target_.Read<int64_t>(1, 1) == Part(before_ + 50, 1));
  }

  void Locks() {
    VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
    VENDOR_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_, 0, window_));
    VENDOR_OK(MPI_Put(origin_.data(), n_, MPI_INT64_T, next_, 0, n_, MPI_INT64_T, window_));
    VENDOR_OK(MPI_Win_flush(next_, window_));
    VENDOR_OK(MPI_Get(result_.data(), n_, MPI_INT64_T, next_, 0, n_, MPI_INT64_T, window_));
    VENDOR_OK(MPI_Win_unlock(next_, window_));
    Expect(result_, Part(rank + 50, count_));
    VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
    VENDOR_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window_));
    VENDOR_OK(MPI_Win_unlock(rank, window_));
    Expect(target_, Part(before_ + 50, count_));
  }

  // Every other element at both sides.
  void Types() {
    MPI_Datatype vector = MPI_DATATYPE_NULL;
    VENDOR_OK(MPI_Type_vector(n_ / 2, 1, 2, MPI_INT64_T, &vector));
    VENDOR_OK(MPI_Type_commit(&vector));
    Fence();
    VENDOR_OK(MPI_Put(origin_.data(), 1, vector, next_, 0, 1, vector, window_));
    Fence();
    const Values theirs = Part(before_ + 50, count_);
    const Values own = Part(rank + 50, count_);
    Values expected = Part(rank, count_);
    Values dense;
    for (size_t i = 0; i + 1 < count_; i += 2) {
      expected[i] = theirs[i];
      dense.push_back(own[i]);
    }
    Expect(target_, expected);
    VENDOR_OK(MPI_Get(result_.data(), n_ / 2, MPI_INT64_T, next_, 0, 1, vector, window_));
    Fence();
    Expect(result_, dense);
    VENDOR_OK(MPI_Type_free(&vector));

    // An origin that is named by its address alone.
    const int length = n_;
    MPI_Aint place = 0;
    VENDOR_OK(MPI_Get_address(origin_.data(), &place));
    MPI_Datatype placed = MPI_DATATYPE_NULL;
    VENDOR_OK(MPI_Type_create_hindexed(1, &length, &place, MPI_INT64_T, &placed));
    VENDOR_OK(MPI_Type_commit(&placed));
    Fence();
    VENDOR_OK(MPI_Put(MPI_BOTTOM, 1, placed, next_, 0, n_, MPI_INT64_T, window_));
    Fence();
    Expect(target_, Part(before_ + 50, count_));
    VENDOR_OK(MPI_Type_free(&placed));
  }

  const size_t count_;
  const int n_;
  const int next_ = (rank + 1) % size;
  const int before_ = (rank + size - 1) % size;
  Buffer target_;
  Buffer origin_;
  Buffer result_;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

namespace {

// Memory that is attached later.
void UseDynamicWindow(const Kind& kind, size_t count) {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  const int n = static_cast<int>(count);
  Buffer memory(kind, count * 8);
  Buffer origin(kind, count * 8);
  memory.Write(Part(rank, count));
  origin.Write(Part(rank + 50, count));
  MPI_Win window = MPI_WIN_NULL;
  VENDOR_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  VENDOR_OK(MPI_Win_attach(window, memory.data(), static_cast<MPI_Aint>(count * 8)));
  MPI_Aint own = 0;
  MPI_Aint theirs = 0;
  VENDOR_OK(MPI_Get_address(memory.data(), &own));
  VENDOR_OK(MPI_Sendrecv(&own, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, next, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  VENDOR_OK(MPI_Win_fence(0, window));
  VENDOR_OK(
      MPI_Accumulate(origin.data(), n, MPI_INT64_T, next, theirs, n, MPI_INT64_T, MPI_SUM, window));
  VENDOR_OK(
      MPI_Accumulate(origin.data(), n, MPI_INT64_T, rank, own, n, MPI_INT64_T, MPI_SUM, window));
  VENDOR_OK(MPI_Win_fence(0, window));
  VENDOR_CHECK(memory.Read<int64_t>(count) ==
               Plus(Plus(Part(rank, count), Part(rank + 50, count)), Part(before + 50, count)));
  VENDOR_OK(MPI_Win_fence(0, window));
  VENDOR_OK(MPI_Put(origin.data(), n, MPI_INT64_T, next, theirs, n, MPI_INT64_T, window));
  VENDOR_OK(MPI_Win_fence(0, window));
  VENDOR_CHECK(memory.Read<int64_t>(count) == Part(before + 50, count));
  VENDOR_OK(MPI_Win_detach(window, memory.data()));
  VENDOR_OK(MPI_Win_free(&window));
}

}  // namespace

void UseWindows(const Kind& kind) {
  for (const size_t count : {size_t{4}, size_t{600}, size_t{10'000}}) {
    Window(kind, count).Run();
  }
  const std::string outer = step;
  for (const size_t count : {size_t{8}, size_t{5000}}) {
    step = outer + ", attached, " + std::to_string(count);
    UseDynamicWindow(kind, count);
  }
}

namespace {

// A vector of MPI's: blocks of so many elements, which begin so many after each other.
struct Vector {
  int blocks;
  int length;
  int stride;

  size_t extent() const { return static_cast<size_t>((blocks - 1) * stride + length); }
  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (int block = 0; block < blocks; ++block) {
      for (int i = 0; i < length; ++i) {
        places.push_back(static_cast<size_t>(block * stride + i));
      }
    }
    return places;
  }
};

class VectorType {
 public:
  explicit VectorType(const Vector& of) {
    VENDOR_OK(MPI_Type_vector(of.blocks, of.length, of.stride, MPI_INT64_T, &type_));
    VENDOR_OK(MPI_Type_commit(&type_));
  }
  ~VectorType() { MPI_Type_free(&type_); }
  VectorType(const VectorType&) = delete;
  VectorType& operator=(const VectorType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Returns what `to` becomes where element for element is taken from there, or added.
Values Moved(const Values& from, const Vector& these, Values to, const Vector& there,
             bool is_added = false) {
  const std::vector<size_t> taken = these.Places();
  const std::vector<size_t> places = there.Places();
  for (size_t i = 0; i < taken.size(); ++i) {
    to[places[i]] = (is_added ? to[places[i]] : 0) + from[taken[i]];
  }
  return to;
}

// Blocks of the next rank's memory, from and to memory of the vendor's or ordinary one.
void MoveVectors(const Kind& kind, const Vector& here, const Vector& there, bool is_plain) {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  const VectorType here_type(here);
  const VectorType there_type(there);
  Buffer target(kind, there.extent() * 8);
  Buffer own(kind, here.extent() * 8);
  Values plain(here.extent());
  void* const origin = is_plain ? static_cast<void*>(plain.data()) : own.data();
  const auto write = [&](const Values& values) {
    is_plain ? void(plain = values) : own.Write(values);
  };
  MPI_Win window = MPI_WIN_NULL;
  VENDOR_OK(MPI_Win_create(target.data(), static_cast<MPI_Aint>(target.bytes()), 8, MPI_INFO_NULL,
                           MPI_COMM_WORLD, &window));
  const auto fence = [&] { VENDOR_OK(MPI_Win_fence(0, window)); };
  const auto values_of = [&](int of) { return Part(of + 50, here.extent()); };

  target.Write(Part(rank, there.extent()));
  write(values_of(rank));
  fence();
  VENDOR_OK(MPI_Put(origin, 1, here_type.get(), next, 0, 1, there_type.get(), window));
  fence();
  const Values put = Moved(values_of(before), here, Part(rank, there.extent()), there);
  VENDOR_CHECK(target.Read<int64_t>(there.extent()) == put);

  const Values blank(here.extent(), -1);
  write(blank);
  fence();
  VENDOR_OK(MPI_Get(origin, 1, here_type.get(), next, 0, 1, there_type.get(), window));
  fence();
  VENDOR_CHECK((is_plain ? plain : own.Read<int64_t>(here.extent())) ==
               Moved(values_of(rank), here, blank, here));
  VENDOR_CHECK(target.Read<int64_t>(there.extent()) == put);

  write(values_of(rank));
  fence();
  VENDOR_OK(
      MPI_Accumulate(origin, 1, here_type.get(), next, 0, 1, there_type.get(), MPI_SUM, window));
  fence();
  VENDOR_CHECK(target.Read<int64_t>(there.extent()) ==
               Moved(values_of(before), here, put, there, /*is_added=*/true));
  VENDOR_OK(MPI_Win_free(&window));
}

}  // namespace

void MoveFarBlocks(const Kind& kind) {
  constexpr std::pair<Vector, Vector> kVectors[] = {
      {{40, 3, 7}, {120, 1, 2}},  {{120, 1, 1}, {60, 2, 5}},         {{1, 120, 120}, {8, 15, 17}},
      {{300, 3, 4}, {900, 1, 2}}, {{2, 6000, 9001}, {12'000, 1, 1}},
  };
  const std::string outer = step;
  for (const auto& [one, other] : kVectors) {
    for (const bool is_plain : {false, true}) {
      step = outer + ", " + std::to_string(one.blocks) + " and " + std::to_string(other.blocks) +
             " blocks" + (is_plain ? ", plain" : "");
      MoveVectors(kind, one, other, is_plain);
      MoveVectors(kind, other, one, is_plain);
    }
  }
}

// One window, and a thread for each kind of memory, which moves data between that and another kind.
void UseWindowByThreads(const Kind& kind) {
  constexpr size_t kCount = 700;
  constexpr int kRounds = 5;
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  const std::span<const Kind> kinds = Kinds();
  const int n = static_cast<int>(kCount);
  Buffer target(kind, kinds.size() * kCount * 8);
  MPI_Win window = MPI_WIN_NULL;
  VENDOR_OK(MPI_Win_create(target.data(), static_cast<MPI_Aint>(target.bytes()), 8, MPI_INFO_NULL,
                           MPI_COMM_WORLD, &window));
  VENDOR_OK(MPI_Win_lock_all(0, window));
  std::vector<std::thread> threads;
  for (size_t number = 0; number < kinds.size(); ++number) {
    threads.emplace_back([&, number] {
      UseDevice(0);
      const auto place = static_cast<MPI_Aint>(number * kCount);
      for (int round = 0; round < kRounds; ++round) {
        Buffer out(kinds[number], kCount * 8);
        Buffer in(kinds[(number + 1) % kinds.size()], kCount * 8);
        std::vector<int64_t> plain(kCount);
        const Values values = Part(rank * 100 + static_cast<int>(number) + round, kCount);
        out.Write(values);
        VENDOR_OK(MPI_Put(out.data(), n, MPI_INT64_T, next, place, n, MPI_INT64_T, window));
        VENDOR_OK(MPI_Win_flush(next, window));
        VENDOR_OK(MPI_Get(in.data(), n, MPI_INT64_T, next, place, n, MPI_INT64_T, window));
        VENDOR_OK(MPI_Get(plain.data(), n, MPI_INT64_T, next, place, n, MPI_INT64_T, window));
        VENDOR_OK(MPI_Win_flush(next, window));
        VENDOR_CHECK(in.Read<int64_t>(kCount) == values && plain == values);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  VENDOR_OK(MPI_Win_unlock_all(window));
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
  for (size_t number = 0; number < kinds.size(); ++number) {
    VENDOR_CHECK(target.Read<int64_t>(kCount, number * kCount) ==
                 Part(before * 100 + static_cast<int>(number) + kRounds - 1, kCount));
  }
  VENDOR_OK(MPI_Win_free(&window));
}

}  // namespace ferry::vendor_memory
