// shmem_calls_VENDOR OPERATION FIRST|queue: while PE 0 is in a collective of OpenSHMEM, with its
// sources in memory of the vendor's calls and its destinations in the heap or in a space, each call
// of the driver's fails in turn, from the first look at new memory on. The collective brings the
// right data to all PEs, or it ends the job, as OpenSHMEM has no errors to return: PE 0 has said by
// then which try that is, and the next job can begin behind it, with FIRST. On a queue such a call
// ends with an error, which names the driver's or the PE that has given up; the next one succeeds,
// and nothing is left behind. Without a stand-in nothing fails.
#include <shmemx.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <string_view>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/vendor_memory/each_call.h"

namespace ferry::vendor_memory {
namespace {

constexpr int kCalls = 40;  // more than the driver gets from one collective
constexpr size_t kFewElements = 37;
constexpr size_t kManyElements = 5000;

using Values = std::vector<long>;

int me = -1;
int pes = 0;

// Returns the elements of PE `of`, or its part for PE `to`.
Values Part(int of, size_t count, int number, int to = 0) {
  Values part(count);
  std::iota(part.begin(), part.end(), (long{number} * 100 + of * 10 + to) * 10'000);
  return part;
}

Values PartsOfAll(size_t count, int number, bool for_this_pe) {
  Values all;
  for (int of = 0; of < pes; ++of) {
    const Values part = Part(of, count, number, for_this_pe ? me : 0);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Values SumOfFirst(int members, size_t count, int number) {
  Values sum(count);
  for (int of = 0; of < members; ++of) {
    const Values part = Part(of, count, number);
    std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

struct Operation {
  const char* name;
  // With FERRY_QUEUE_NULL the calling thread's own.
  int (*run)(long* dest, const long* source, size_t count, ferry_queue queue);
  Values (*result)(size_t count, int number);
  bool may_pass = false;  // on one node the root copies for PE 0
};

// An operation NAME by the calls CALL and CALL_on_queue, with these arguments behind the source.
#define FERRY_OPERATION(name, call, result, ...)                                                  \
  {                                                                                               \
    name,                                                                                         \
        [](long* dest, const long* source, size_t count, ferry_queue queue) {                     \
          return queue == FERRY_QUEUE_NULL                                                        \
                     ? shmem_long_##call(SHMEM_TEAM_WORLD, dest, source, __VA_ARGS__)             \
                     : shmemx_long_##call##_on_queue(SHMEM_TEAM_WORLD, dest, source, __VA_ARGS__, \
                                                     queue);                                      \
        },                                                                                        \
        [](size_t count, int number) { return result; }, std::string_view(name) == "broadcast_to" \
  }
constexpr Operation kOperations[] = {
    FERRY_OPERATION("broadcast_from", broadcast, (Part(0, count, number)), count, 0),
    FERRY_OPERATION("broadcast_to", broadcast, (Part(1, count, number)), count, 1),
    FERRY_OPERATION("fcollect", fcollect, (PartsOfAll(count, number, false)), count),
    FERRY_OPERATION("collect", collect, (PartsOfAll(count, number, false)), count),
    FERRY_OPERATION("alltoall", alltoall, (PartsOfAll(count, number, true)), count),
    FERRY_OPERATION("alltoalls", alltoalls, (PartsOfAll(count, number, true)), 1, 1, count),
    FERRY_OPERATION("reduce", sum_reduce, (SumOfFirst(pes, count, number)), count),
    FERRY_OPERATION("scan", sum_inscan, (SumOfFirst(me + 1, count, number)), count),
};
#undef FERRY_OPERATION

Values Read(const long* symmetric, size_t count) {
  Values found(count);
  shmem_long_get(found.data(), symmetric, count, me);
  return found;
}

// Where the collective puts its elements, and how many there are for each PE.
struct Destination {
  long* memory;
  size_t count;
};

// Sources in new memory.
struct Sources {
  Sources(size_t count, int number)
      : memory(*FindKind("device"), static_cast<size_t>(pes) * count * sizeof(long)) {
    for (int other = 0; other < pes; ++other) {
      const Values part = Part(me, count, number, other);
      given.insert(given.end(), part.begin(), part.end());
    }
    memory.Write(given);
  }
  bool AreWhole() const { return memory.Read<long>(given.size()) == given; }

  Buffer memory;
  Values given;
};

void Clear(const Destination& to, size_t count) {
  shmem_long_put(to.memory, Values(count, -1).data(), count, me);
  shmem_barrier_all();
}

// ---- By the thread itself -----------------------------------------------------------------------

void Try(const Operation& operation, int number, const Destination& to) {
  const int call = number % kCalls + 1;
  step = std::string(operation.name) + ", try " + std::to_string(number) + ": call " +
         std::to_string(call) + " of the driver's";
  const Sources sources(to.count, number);
  const Values wanted = operation.result(to.count, number);
  if (me == 0) {
    std::fprintf(stderr, "try %d\n", number);
  }
  Clear(to, wanted.size());
  {
    const Failing failing("*:" + std::to_string(call) + ":999", me == 0);
    VENDOR_CHECK(operation.run(to.memory, sources.memory.as<long>(), to.count, FERRY_QUEUE_NULL) ==
                 0);
  }
  VENDOR_CHECK(Read(to.memory, wanted.size()) == wanted);
  VENDOR_CHECK(sources.AreWhole());
  shmem_barrier_all();
}

// ---- On queues ----------------------------------------------------------------------------------

// Those by which the drivers tell of memory and copy it; queues' own streams call none of them.
constexpr const char* kDriverCalls[] = {
    "cuPointerGetAttributes",  "cuMemcpyAsync",         "cuStreamCreate",
    "hipPointerGetAttributes", "hipMemGetAddressRange", "hipMemcpyAsync",
    "zeMemGetAllocProperties", "zeMemGetAddressRange",  "zeCommandListAppendMemoryCopy",
};
constexpr int kTimes = 2;

// The calls of other vendors' drivers do not matter here.
bool IsOfThisVendor(const std::string& call) {
  const std::string vendor = VendorName();
  return call.rfind(vendor == "cuda" ? "cu" : vendor == "hip" ? "hip" : "ze", 0) == 0;
}

bool RunOnQueue(const Operation& operation, const Destination& to, const Sources& sources,
                const std::string& faults) {
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;
  VENDOR_CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  VENDOR_CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue) == FERRY_SUCCESS);
  int code = FERRY_SUCCESS;
  std::string said;
  {
    const Failing failing(faults, me == 0);
    VENDOR_CHECK(operation.run(to.memory, sources.memory.as<long>(), to.count, queue) == 0);
    code = ferry_queue_wait(queue);
    said = ferry_last_error();
  }
  VENDOR_CHECK(ferry_queue_free(&queue) == FERRY_SUCCESS);
  VENDOR_CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  if (code != FERRY_SUCCESS) {
    ++failed;
    const bool is_named =
        me == 0 ? NamesTheFault(said)
                : code == FERRY_ERR_CANCELLED && said.find("PE 0 has given") != std::string::npos;
    if (!is_named) {
      Fail(__FILE__, __LINE__, said.c_str());
    }
  }
  return code == FERRY_SUCCESS;
}

void RunRound(const Operation& operation, int number, const std::string& faults,
              const Destination& to) {
  step = std::string(operation.name) + " on a queue, " + faults;
  const Sources sources(to.count, number);
  const Values wanted = operation.result(to.count, number);
  Clear(to, wanted.size());
  if (RunOnQueue(operation, to, sources, faults)) {
    VENDOR_CHECK(Read(to.memory, wanted.size()) == wanted);
  }
  shmem_barrier_all();  // before that others may still write there
  Clear(to, wanted.size());
  VENDOR_CHECK(RunOnQueue(operation, to, sources, ""));
  VENDOR_CHECK(Read(to.memory, wanted.size()) == wanted);
  VENDOR_CHECK(sources.AreWhole());
  shmem_barrier_all();
}

void RunOnQueues(const Operation& operation, std::span<const Destination> destinations) {
  int number = 0;
  const auto run_all = [&] {
    for (const Destination& to : destinations) {
      RunRound(operation, number++, "", to);
      for (const std::string call : kDriverCalls) {
        for (int time = 1; time <= kTimes && IsOfThisVendor(call); ++time) {
          RunRound(operation, number++, call + ":" + std::to_string(time) + ":999", to);
        }
      }
    }
    const Holdings found = FindHoldings();
    shmem_barrier_all();
    return found;
  };
  const Holdings before = run_all();
  const Holdings after = run_all();
  for (const auto& [what, count] : after) {
    constexpr size_t kFew = 5;  // of what caches keep
    const bool counts = what.find(" maps") == std::string::npos;
    if (counts && (before.count(what) == 0 || count > before.at(what) + kFew)) {
      Fail(__FILE__, __LINE__, (what + ": " + std::to_string(count) + " are left").c_str());
    }
  }
  VENDOR_CHECK(failed > 0 || me != 0 || operation.may_pass || !SetFaults(""));
}

int Run(const std::string& name, const std::string& first) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [&](const Operation& each) { return each.name == name; });
  if (found == std::end(kOperations)) {
    return 2;
  }
  const size_t elements = static_cast<size_t>(pes) * kManyElements;
  auto* const in_heap = static_cast<long*>(shmem_calloc(elements, sizeof(long)));
  const shmemx_space_t space = shmemx_space_create(0, 2 * elements * sizeof(long));
  VENDOR_CHECK(in_heap != nullptr && space != SHMEMX_SPACE_INVALID);
  auto* const in_space = static_cast<long*>(shmemx_space_calloc(space, elements, sizeof(long)));
  VENDOR_CHECK(in_space != nullptr);
  const Destination destinations[] = {{in_heap, kFewElements},
                                      {in_heap, kManyElements},
                                      {in_space, kFewElements},
                                      {in_space, kManyElements}};
  if (first == "queue") {
    RunOnQueues(*found, std::span(destinations).subspan(1, 2));
  } else {
    for (int number = std::stoi(first); number < kCalls * 4; ++number) {
      Try(*found, number, destinations[number / kCalls]);
    }
  }
  shmem_barrier_all();
  if (me == 0) {
    std::printf("%d calls failed; %s memory was right\n", failed, VendorName());
  }
  shmemx_space_destroy(space);
  shmem_free(in_heap);
  return 0;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  using namespace ferry::vendor_memory;  // NOLINT(google-build-using-namespace)
  if (argc != 3) {
    return 2;
  }
  Begin();
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  const int status = Run(argv[1], argv[2]);
  shmem_finalize();
  return status;
}
