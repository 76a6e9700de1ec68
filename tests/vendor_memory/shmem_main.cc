// shmem_VENDOR [few_copies]: the private sides of OpenSHMEM's calls lie in memory of the vendor's
// calls. few_copies: strided puts and gets may not copy block by block.
#include <dlfcn.h>
#include <shmem.h>

#include <cstdint>

#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {
namespace {

constexpr size_t kWords = 30'000;

struct Symmetric {
  int64_t* words = static_cast<int64_t*>(shmem_calloc(kWords, 8));
};

std::vector<int64_t> Values(int pe, size_t count) {
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = pe * 1'000'000 + static_cast<int64_t>(i);
  }
  return values;
}

std::vector<int64_t> At(const int64_t* words, size_t count) { return {words, words + count}; }

// Set by an argument, for tests on stand-ins of libraries whose devices have Ferry's kernels.
bool counts_copies = false;

// While this lives, the vendor's library fails to copy once it has been asked to that often.
class MostCopies {
 public:
  explicit MostCopies(int most) {
    const std::string after = ":" + std::to_string(most) + "+:1";
    Set("cuMemcpyAsync" + after + ",hipMemcpyAsync" + after);
  }
  ~MostCopies() { Set(""); }
  MostCopies(const MostCopies&) = delete;
  MostCopies& operator=(const MostCopies&) = delete;

 private:
  static void Set(const std::string& faults) {
    static auto* const set =
        reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "ferry_fixture_set_faults"));
    VENDOR_CHECK(!counts_copies || (set != nullptr && set(faults.c_str()) == 0));
  }
};

// Blocks move many at a time, although a stream could copy each of them.
constexpr int kCopiesOfStrided = 500;

void PutAndGet(const Kind& kind, const Symmetric& symmetric, size_t count) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int next = (me + 1) % pes;
  const int before = (me + pes - 1) % pes;
  Buffer own(kind, count * 8);
  shmem_barrier_all();
  own.Write(Values(me, count));
  shmem_int64_put(symmetric.words, own.as<int64_t>(), count, next);
  shmem_barrier_all();
  VENDOR_CHECK(At(symmetric.words, count) == Values(before, count));
  own.Clear();
  shmem_int64_get(own.as<int64_t>(), symmetric.words, count, next);
  VENDOR_CHECK(own.Read<int64_t>(count) == Values(me, count));
  shmem_barrier_all();

  // Without waiting, with strides, and with a signal.
  own.Write(Values(me + 10, count));
  shmem_int64_put_nbi(symmetric.words, own.as<int64_t>(), count, next);
  shmem_quiet();
  shmem_barrier_all();
  VENDOR_CHECK(At(symmetric.words, count) == Values(before + 10, count));
  own.Clear();
  shmem_int64_get_nbi(own.as<int64_t>(), symmetric.words, count, next);
  shmem_quiet();
  VENDOR_CHECK(own.Read<int64_t>(count) == Values(me + 10, count));
  shmem_barrier_all();

  own.Write(Values(me + 20, count));
  {
    const MostCopies limit(kCopiesOfStrided);
    shmem_int64_iput(symmetric.words, own.as<int64_t>(), 2, 2, count / 2, next);
  }
  shmem_barrier_all();
  const std::vector<int64_t> theirs = Values(before + 20, count);
  for (size_t i = 0; i + 1 < count; i += 2) {
    VENDOR_CHECK(symmetric.words[i] == theirs[i]);
  }
  own.Clear();
  {
    const MostCopies limit(kCopiesOfStrided);
    shmem_int64_iget(own.as<int64_t>(), symmetric.words, 1, 2, count / 2, next);
  }
  const std::vector<int64_t> got = own.Read<int64_t>(count / 2);
  for (size_t i = 0; i < got.size(); ++i) {
    VENDOR_CHECK(got[i] == (me + 20) * 1'000'000 + static_cast<int64_t>(2 * i));
  }
  own.Clear();
  const std::vector<int64_t> cleared = own.Read<int64_t>(count);
  {
    const MostCopies limit(kCopiesOfStrided);
    shmem_int64_iget(own.as<int64_t>(), symmetric.words, 2, 1, count / 2, next);
  }
  const std::vector<int64_t> spread = own.Read<int64_t>(count);
  for (size_t i = 0; i < count / 2; ++i) {
    VENDOR_CHECK(i % 2 != 0 || spread[2 * i] == got[i / 2]);
    VENDOR_CHECK(spread[2 * i + 1] == cleared[2 * i + 1]);
  }
  shmem_barrier_all();

  static uint64_t* const signal = static_cast<uint64_t*>(shmem_calloc(1, 8));
  static uint64_t signals = 0;
  own.Write(Values(me + 30, count));
  shmem_int64_put_signal(symmetric.words, own.as<int64_t>(), count, signal, 1, SHMEM_SIGNAL_ADD,
                         next);
  shmem_signal_wait_until(signal, SHMEM_CMP_GE, ++signals);
  VENDOR_CHECK(At(symmetric.words, count) == Values(before + 30, count));
  shmem_barrier_all();
}

void FetchWords(const Kind& kind, const Symmetric& symmetric) {
  const int next = (shmem_my_pe() + 1) % shmem_n_pes();
  Buffer fetched(kind, 8);
  symmetric.words[0] = 5;
  shmem_barrier_all();
  shmem_int64_atomic_fetch_add_nbi(fetched.as<int64_t>(), symmetric.words, 2, next);
  shmem_quiet();
  VENDOR_CHECK(fetched.Read<int64_t>(1)[0] == 5);
  shmem_barrier_all();
  VENDOR_CHECK(symmetric.words[0] == 7);
  shmem_barrier_all();
}

int Run() {
  shmem_init();
  const Symmetric symmetric;
  const std::string kind_and = std::string(VendorName()) + ", ";
  for (const Kind& kind : Kinds()) {
    for (const size_t count : {size_t{2}, size_t{900}, kWords}) {
      step = kind_and + kind.name + ", puts and gets of " + std::to_string(count);
      PutAndGet(kind, symmetric, count);
    }
    step = kind_and + kind.name + ", atomics";
    if (kind.is_host) {  // CPUs put there what they have fetched; else it is refused in words
      FetchWords(kind, symmetric);
    }
  }
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    std::printf("%s memory was right\n", VendorName());
  }
  shmem_finalize();
  return 0;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  ferry::vendor_memory::counts_copies = argc > 1 && std::string(argv[1]) == "few_copies";
  ferry::vendor_memory::Begin();
  return ferry::vendor_memory::Run();
}
