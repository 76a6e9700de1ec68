// calls_VENDOR CASE [KIND]: while rank 0 is in one of Ferry's calls, each call of the driver's
// fails in turn, from the first look at new memory on. Ferry's call succeeds, or names the driver's
// error; the next one succeeds, and nothing is left behind. Two ranks; without a stand-in nothing
// fails.
#include "ferry/stream.h"
#include "tests/vendor_memory/each_call.h"
#include "tests/vendor_memory/ferry_calls.h"

namespace ferry::vendor_memory {
namespace {

constexpr int kCalls = 30;          // more than any of Ferry's calls makes,
constexpr int kCallsOfMapped = 60;  // which looks at mapping by mapping
constexpr int kTag = 2;

const Kind& Device() { return *FindKind("device"); }

const Kind* local = nullptr;  // the kind of memory that the calls name

// The driver's calls fail while this lives, on rank 0.
struct FailingHere : Failing {
  explicit FailingHere(const std::string& faults) : Failing(faults, ferry_rank() == 0) {}
};

// Returns true if the call succeeded; else its words name what the driver said, its error 999, or
// what has failed by it on a stream.
bool Succeeds(int code) {
  if (code == FERRY_SUCCESS) {
    return true;
  }
  ++failed;
  const std::string said = ferry_last_error();
  if (NamesTheFault(said) || said.find("the send to rank 1 with tag") != std::string::npos) {
    return false;
  }
  Fail(__FILE__, __LINE__, (std::string(ferry_error_string(code)) + ": " + said).c_str());
}

// ---- One-sided calls ----

// The memory of the other rank: Ferry's, then the program's own.
struct Target {
  Target() {
    VENDOR_FERRY(ferry_alloc(kLong, FERRY_MEMORY_HOST, 0, &host));
    in_host = Exchanged(PlaceOf(host, kLong));
    in_device = Exchanged(PlaceOf(device.data(), kLong));
  }
  ~Target() {
    VENDOR_FERRY(ferry_barrier());
    VENDOR_FERRY(ferry_free(host));
  }
  void* host = nullptr;
  Buffer device{Device(), kLong};
  ferry_place in_host{};
  ferry_place in_device{};
};

Target* target;

void Put(const Round& round) {
  Buffer memory(*local, round.bytes);
  memory.Fill(round.seed);
  const bool to_device = round.seed % 2 == 0;
  const ferry_place& to = to_device ? target->in_device : target->in_host;
  const auto put = [&] { return ferry_put(FERRY_CONTEXT_DEFAULT, to, memory.data(), round.bytes); };
  const auto quiet = [] { return ferry_quiet(FERRY_CONTEXT_DEFAULT); };
  {
    const FailingHere failing(round.faults);
    (void)Succeeds(put());
    (void)Succeeds(quiet());
  }
  VENDOR_FERRY(put());
  VENDOR_FERRY(quiet());
  VENDOR_FERRY(ferry_barrier());
  std::vector<unsigned char> found(round.bytes);
  if (to_device) {
    Copy(found.data(), target->device.data(), round.bytes);
  } else {
    std::memcpy(found.data(), target->host, round.bytes);
  }
  VENDOR_CHECK(found == Buffer::Pattern(round.bytes, round.seed));
  VENDOR_FERRY(ferry_barrier());
}

void Get(const Round& round) {
  Buffer memory(*local, round.bytes);
  const std::vector<unsigned char> pattern = Buffer::Pattern(round.bytes, round.seed);
  const bool from_device = round.seed % 2 == 0;
  if (from_device) {
    Copy(target->device.data(), pattern.data(), round.bytes);
  } else {
    std::memcpy(target->host, pattern.data(), round.bytes);
  }
  VENDOR_FERRY(ferry_barrier());
  const auto get = [&] {
    return ferry_get(FERRY_CONTEXT_DEFAULT, memory.data(),
                     from_device ? target->in_device : target->in_host, round.bytes);
  };
  bool is_here = false;
  {
    const FailingHere failing(round.faults);
    is_here = Succeeds(get());
  }
  VENDOR_CHECK(!is_here || memory.IsFilled(round.seed));
  memory.Clear();
  VENDOR_FERRY(get());
  VENDOR_CHECK(memory.IsFilled(round.seed));
  VENDOR_FERRY(ferry_barrier());
}

// ---- Messages ----

// Sends until the other rank has got it. A message that arrives twice by chance is taken out.
void SendSurely(const Round& round, const Buffer& memory, bool blocks) {
  bool was_sent = true;
  {
    const FailingHere failing(round.faults);
    ferry_request request = FERRY_REQUEST_NULL;
    was_sent = blocks ? Succeeds(ferry_send(memory.data(), round.bytes, 1, kTag))
                      : Succeeds(ferry_isend(memory.data(), round.bytes, 1, kTag, &request)) &&
                            Succeeds(ferry_wait(&request, nullptr));
  }
  ferry_request again = FERRY_REQUEST_NULL;
  if (!was_sent) {
    VENDOR_FERRY(ferry_isend(memory.data(), round.bytes, 1, kTag, &again));
  }
  if (const bool came = Exchanged(was_sent); was_sent && !came) {
    VENDOR_FERRY(ferry_isend(memory.data(), round.bytes, 1, kTag, &again));
  }
  VENDOR_FERRY(ferry_wait(&again, nullptr));
}

void ReceiveSurely(const Round& round, const Buffer& memory) {
  const auto receive = [&] {
    ferry_request request = FERRY_REQUEST_NULL;
    VENDOR_FERRY(ferry_irecv(memory.data(), round.bytes, 0, kTag, &request));
    return ferry_wait(&request, nullptr) == FERRY_SUCCESS;
  };
  const bool came = receive();
  VENDOR_CHECK(!came || memory.IsFilled(round.seed));
  const bool was_sent = Exchanged(came);
  int is_there = 0;
  VENDOR_FERRY(ferry_iprobe(0, kTag, &is_there, nullptr));
  VENDOR_CHECK(came || was_sent || is_there != 0);
  if (!came || (!was_sent && is_there != 0)) {
    memory.CheckMargins();
    VENDOR_CHECK(receive());
  }
  VENDOR_CHECK(memory.IsFilled(round.seed));
}

void Send(const Round& round) {
  Buffer memory(*local, round.bytes);
  if (ferry_rank() == 0) {
    memory.Fill(round.seed);
    SendSurely(round, memory, round.seed % 2 == 0);
  } else {
    ReceiveSurely(round, memory);
  }
  VENDOR_FERRY(ferry_barrier());
}

// Rank 1 sends again what rank 0 could not take.
void Receive(const Round& round) {
  Buffer memory(*local, round.bytes);
  if (ferry_rank() == 1) {
    memory.Fill(round.seed);
    ferry_request request = FERRY_REQUEST_NULL;
    VENDOR_FERRY(ferry_isend(memory.data(), round.bytes, 0, kTag, &request));
    const bool was_sent = ferry_wait(&request, nullptr) == FERRY_SUCCESS;
    const bool came = Exchanged(was_sent);
    VENDOR_CHECK(was_sent || !came);
    if (!came) {
      VENDOR_FERRY(ferry_send(memory.data(), round.bytes, 0, kTag));
    }
  } else {
    ferry_request request = FERRY_REQUEST_NULL;
    const auto post = [&] { return ferry_irecv(memory.data(), round.bytes, 1, kTag, &request); };
    bool is_posted = false;
    bool came = false;
    {
      const FailingHere failing(round.faults);
      is_posted = Succeeds(post());
      came = is_posted && Succeeds(ferry_wait(&request, nullptr));
    }
    if (!is_posted) {
      VENDOR_FERRY(post());
      came = Succeeds(ferry_wait(&request, nullptr));
      VENDOR_CHECK(came);
    }
    VENDOR_CHECK(!came || memory.IsFilled(round.seed));
    (void)Exchanged(came);
    if (!came) {
      VENDOR_FERRY(ferry_recv(memory.data(), round.bytes, 1, kTag, nullptr));
    }
    VENDOR_CHECK(memory.IsFilled(round.seed));
  }
  VENDOR_FERRY(ferry_barrier());
}

// ---- Queues ----

// A start by a stream that fails ends the pair, at both ends; another one works.
void MoveByQueue(const Round& round, const std::string& faults, bool* is_over) {
  Buffer memory(*local, round.bytes);
  static int tag = kTag;
  ++tag;  // another pair
  const bool is_send = ferry_rank() == 0;
  if (is_send) {
    memory.Fill(round.seed);
  }
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;
  ferry_request request = FERRY_REQUEST_NULL;
  VENDOR_FERRY(ferry_stream_create(0, &stream));
  VENDOR_FERRY(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  const auto make = [&] {
    return is_send ? ferry_send_init(memory.data(), round.bytes, 1, tag, &request)
                   : ferry_recv_init(memory.data(), round.bytes, 0, tag, &request);
  };
  bool is_made = false;
  {
    const FailingHere failing(round.seed % 2 == 0 ? faults : "");
    is_made = Succeeds(make());
  }
  if (!is_made) {
    VENDOR_FERRY(make());
  }
  VENDOR_FERRY(ferry_match(request));
  VENDOR_FERRY(ferry_barrier());  // else the partner may hear of the failure before of the match
  bool moved = false;
  {
    const FailingHere failing(round.seed % 2 == 0 ? "" : faults);
    const auto succeeds = [&](int code) {
      return is_send ? Succeeds(code) : code == FERRY_SUCCESS;
    };
    const bool is_started = succeeds(ferry_enqueue_start(queue, request));
    const bool is_enqueued = is_started && succeeds(ferry_enqueue_wait(queue, request));
    moved = succeeds(ferry_queue_wait(queue)) && is_enqueued;
  }
  *is_over = Exchanged(moved) && moved;
  VENDOR_CHECK(is_send || !*is_over || memory.IsFilled(round.seed));
  (void)ferry_request_free(&request);
  (void)ferry_queue_free(&queue);
  (void)ferry_stream_destroy(&stream);
}

void Enqueue(const Round& round) {
  bool is_over = false;
  MoveByQueue(round, round.faults, &is_over);
  if (!is_over) {
    MoveByQueue(round, "", &is_over);
    VENDOR_CHECK(is_over);
  }
  VENDOR_FERRY(ferry_barrier());
}

// ---- All calls in turn ----

struct Case {
  const char* name;
  void (*run)(const Round& round);
};
constexpr Case kCases[] = {
    {"put", Put}, {"get", Get}, {"send", Send}, {"receive", Receive}, {"queue", Enqueue},
};

int Run(const std::string& name, const char* kind) {
  local = FindKind(kind);
  VENDOR_CHECK(local != nullptr);
  for (const Case& each : kCases) {
    if (each.name != name) {
      continue;
    }
    VENDOR_FERRY(ferry_init(FERRY_THREAD_SINGLE, nullptr));
    {
      Target memory;
      target = &memory;
      FailEachCallOfTheDriver({each.name, each.run, [] { VENDOR_FERRY(ferry_barrier()); },
                               local == &Device() ? kCalls : kCallsOfMapped, /*may_pass=*/false},
                              ferry_rank() == 0);
    }
    if (ferry_rank() == 0) {
      std::printf("%d calls failed; %s memory was right\n", failed, VendorName());
    }
    VENDOR_FERRY(ferry_finalize());
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    return 2;
  }
  ferry::vendor_memory::Begin();
  return ferry::vendor_memory::Run(argv[1], argc == 3 ? argv[2] : "device");
}
