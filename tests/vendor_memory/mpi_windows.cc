// Windows over memory of the vendor's, which is also the origin of what goes there.
#include <cstdint>
#include <thread>

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
