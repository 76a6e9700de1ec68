// Calls on queues: what streams and calls see of each other, and how queues, PEs and programs end.
// The first argument says what.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/shmem/ranks/queue.h"

namespace {

// ---- Order on the stream ------------------------------------------------------------------------

constexpr int kRounds = 40;
constexpr size_t kLongs = 3000;  // more than a message between nodes carries at once

// Around the ring: a kernel makes the data, the stream sends it, waits for the neighbour's, and a
// kernel looks at that. The CPU enqueues all rounds, and waits once.
int Order() {
  begin();
  Line line;
  auto* const inbox = Symmetric<long>(kLongs);
  auto* const arrived = Symmetric<uint64_t>(1);
  auto* const taken = Symmetric<uint64_t>(1);
  std::vector<long> data(kLongs);
  long made = 0;
  long seen = 0;
  long wrong = 0;
  const std::function<void()> make = [&] {
    std::fill(data.begin(), data.end(), 1000 * me + made++);
  };
  const std::function<void()> look = [&] {
    wrong += std::count(inbox, inbox + kLongs, 1000 * before + seen++) != kLongs;
  };
  for (uint64_t round = 1; round <= kRounds; ++round) {
    line.Launch(&make);
    ENQUEUE(shmemx_long_put_signal_on_queue(inbox, data.data(), kLongs, arrived, 1,
                                            SHMEM_SIGNAL_ADD, after, line.queue));
    ENQUEUE(shmemx_signal_wait_until_on_queue(arrived, SHMEM_CMP_GE, round, line.queue));
    line.Launch(&look);
    ENQUEUE(shmemx_signal_add_on_queue(taken, 1, before, line.queue));
    ENQUEUE(shmemx_signal_wait_until_on_queue(taken, SHMEM_CMP_GE, round, line.queue));
  }
  line.Wait();
  CHECK(made == kRounds && seen == kRounds && wrong == 0);
  line.End();
  return end_well();
}

// Collectives on the stream, while the program makes calls of its own.
int Collectives() {
  begin();
  Line line;
  auto* const part = Symmetric<long>(2);
  auto* const whole = Symmetric<long>(2 * static_cast<size_t>(pes));
  auto* const sum = Symmetric<long>(2);
  auto* const count = Symmetric<long>(1);
  long round = 0;
  long wrong = 0;
  const std::function<void()> make = [&] {
    ++round;
    part[0] = round + me;
    part[1] = -me;
  };
  const std::function<void()> look = [&] {
    long total = 0;
    for (int pe = 0; pe < pes; ++pe) {
      wrong += whole[2 * pe] != round + pe || whole[2 * pe + 1] != -pe;
      total += pe;
    }
    wrong += sum[0] != round * pes + total || sum[1] != -total;
  };
  for (int i = 0; i < kRounds; ++i) {
    line.Launch(&make);
    ENQUEUE(shmemx_long_fcollect_on_queue(SHMEM_TEAM_WORLD, whole, part, 2, line.queue));
    ENQUEUE(shmemx_long_sum_reduce_on_queue(SHMEM_TEAM_WORLD, sum, part, 2, line.queue));
    line.Launch(&look);
    ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
  }
  for (int i = 0; i < kRounds; ++i) {
    shmem_long_atomic_add(count, 1, after);
    (void)shmem_long_atomic_fetch(count, before);
    shmem_quiet();
  }
  shmem_long_wait_until(count, SHMEM_CMP_EQ, kRounds);
  line.Wait();
  CHECK(round == kRounds && wrong == 0);
  line.End();
  return end_well();
}

// A get and puts, completed by a quiet, between kernels; the program's memory is the device's.
int DeviceMemory() {
  begin();
  Line line;
  constexpr size_t kBytes = kLongs * sizeof(long);
  auto* const place = Symmetric<long>(kLongs);
  auto* const word = Symmetric<uint64_t>(2);
  void* memory = nullptr;
  CHECK(ferry_alloc(kBytes, FERRY_MEMORY_DEVICE, 0, &memory) == FERRY_SUCCESS);
  auto* const of_device = static_cast<long*>(memory);
  std::vector<long> host(kLongs, me + 1);
  std::vector<long> back(kLongs);
  CHECK(ferry_stream_memcpy(line.stream, of_device, host.data(), kBytes) == FERRY_SUCCESS);
  ENQUEUE(shmemx_long_put_on_queue(place, of_device, kLongs, after, line.queue));
  ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
  ENQUEUE(shmemx_long_get_on_queue(of_device, place, kLongs, after, line.queue));
  CHECK(ferry_stream_memcpy(line.stream, back.data(), of_device, kBytes) == FERRY_SUCCESS);
  ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
  line.Wait();
  CHECK(std::count(place, place + kLongs, before + 1) == kLongs);
  CHECK(std::count(back.begin(), back.end(), me + 1) == kLongs);
  shmem_barrier_all();

  std::fill(host.begin(), host.end(), -me);
  CHECK(ferry_stream_memcpy(line.stream, of_device, host.data(), kBytes) == FERRY_SUCCESS);
  ENQUEUE(shmemx_long_put_signal_on_queue(place, of_device, kLongs, word, 7, SHMEM_SIGNAL_SET,
                                          after, line.queue));
  ENQUEUE(shmemx_uint64_wait_until_on_queue(word, SHMEM_CMP_EQ, 7, line.queue));
  line.Wait();
  CHECK(std::count(place, place + kLongs, -before) == kLongs);
  shmem_barrier_all();

  ENQUEUE(shmemx_long_put_nbi_on_queue(place, of_device, kLongs, me, line.queue));
  ENQUEUE(shmemx_quiet_on_queue(line.queue));
  ENQUEUE(shmemx_long_get_nbi_on_queue(of_device, place, kLongs, me, line.queue));
  ENQUEUE(shmemx_quiet_on_queue(line.queue));
  line.Wait();
  CHECK(std::count(place, place + kLongs, -me) == kLongs);
  CHECK(ferry_free(memory) == FERRY_SUCCESS);
  line.End();
  return end_well();
}

// ---- Several queues -----------------------------------------------------------------------------

// Each queue has a team. PEs enqueue in different orders, and a queue's wait is for what stands on
// another PE's other queue: none may hold up another.
int SideBySide() {
  begin();
  constexpr int kLines = 3;
  std::array<Line, kLines> lines;
  std::array<shmem_team_t, kLines> teams;
  for (shmem_team_t& team : teams) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, nullptr, 0, &team) == 0);
  }
  auto* const words = Symmetric<long>(kLines);
  auto* const sums = Symmetric<long>(kLines);
  for (int i = 0; i < kLines; ++i) {
    const auto line = static_cast<size_t>((i + me) % kLines);
    words[line] = me + 1;
    for (int round = 0; round < 10; ++round) {
      ENQUEUE(shmemx_long_sum_reduce_on_queue(teams[line], sums + line, words + line, 1,
                                              lines[line].queue));
      ENQUEUE(shmemx_team_sync_on_queue(teams[line], lines[line].queue));
    }
  }
  for (const Line& line : lines) {
    line.Wait();
  }
  CHECK(std::count(sums, sums + kLines, pes * (pes + 1) / 2) == kLines);

  auto* const signals = Symmetric<uint64_t>(2);
  ENQUEUE(shmemx_signal_wait_until_on_queue(signals, SHMEM_CMP_EQ, 1, lines[0].queue));
  ENQUEUE(shmemx_signal_set_on_queue(signals + 1, 1, after, lines[0].queue));
  ENQUEUE(shmemx_signal_set_on_queue(signals, 1, after, lines[1].queue));
  ENQUEUE(shmemx_signal_wait_until_on_queue(signals + 1, SHMEM_CMP_EQ, 1, lines[1].queue));
  lines[0].Wait();
  lines[1].Wait();

  // Two queues on one stream stand in line.
  ferry_queue second = FERRY_QUEUE_NULL;
  CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &lines[2].stream, &second) == FERRY_SUCCESS);
  *words = 0;
  shmem_barrier_all();
  for (long round = 1; round <= 10; ++round) {
    ENQUEUE(shmemx_long_p_on_queue(words, 2 * round - 1, after, lines[2].queue));
    ENQUEUE(shmemx_long_p_on_queue(words, 2 * round, after, second));
  }
  ENQUEUE(shmemx_barrier_all_on_queue(second));
  lines[2].Wait();
  CHECK(*words == 20);
  CHECK(ferry_queue_free(&second) == FERRY_SUCCESS);
  for (Line& line : lines) {
    line.End();
  }
  return end_well();
}

// Some PEs enqueue a collective that others call.
int Mixed() {
  begin();
  Line line;
  auto* const words = Symmetric<long>(2);
  for (int round = 0; round < kRounds; ++round) {
    words[0] = round;
    if (me % 2 == round % 2) {
      ENQUEUE(shmemx_long_max_reduce_on_queue(SHMEM_TEAM_WORLD, words + 1, words, 1, line.queue));
      ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
      line.Wait();
    } else {
      CHECK(shmem_long_max_reduce(SHMEM_TEAM_WORLD, words + 1, words, 1) == 0);
      shmem_barrier_all();
    }
    CHECK(words[1] == round);
  }
  line.End();
  return end_well();
}

// ---- PEs that are gone --------------------------------------------------------------------------

// PE 0 dies while the queues of the others wait for it. Streams and teams without it go on.
int Dies(std::string_view where) {
  begin();
  Line line;
  shmem_team_t others = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, pes - 1, nullptr, 0, &others);
  auto* const words = Symmetric<long>(8);
  auto* const data = Symmetric<char>(1 << 20);
  if (me == 0) {
    shmem_long_wait_until(words, SHMEM_CMP_EQ, pes - 1);  // all others are about to wait
    kill(getpid(), SIGKILL);
  }
  bool has_gone_on = false;
  const std::function<void()> note = [&] { has_gone_on = true; };
  ENQUEUE(shmemx_long_put_on_queue(words + 6, words + 7, 1, 0, line.queue));
  ENQUEUE(shmemx_quiet_on_queue(line.queue));
  line.Wait();
  shmem_long_atomic_inc(words, 0);
  shmem_quiet();
  if (where == "wait") {
    ENQUEUE(shmemx_long_wait_until_on_queue(words + 1, SHMEM_CMP_NE, 0, line.queue));
  } else if (where == "signal") {
    ENQUEUE(shmemx_signal_wait_until_on_queue(reinterpret_cast<uint64_t*>(words + 1), SHMEM_CMP_NE,
                                              0, line.queue));
  } else if (where == "barrier" || is_local(0)) {
    ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
  } else if (where == "reduce") {
    ENQUEUE(shmemx_long_sum_reduce_on_queue(SHMEM_TEAM_WORLD, words + 2, words + 3, 1, line.queue));
  } else {  // "get", for as long as it takes until PE 0 is dead
    for (int i = 0; i < 500; ++i) {
      ENQUEUE(shmemx_getmem_on_queue(data, data, 1 << 20, 0, line.queue));
    }
  }
  line.Launch(&note);
  CheckFailed(line, FERRY_ERR_PEER_DIED, "PE 0 has died");
  CHECK(has_gone_on);
  for (int i = 0; i < 10; ++i) {
    ENQUEUE(shmemx_team_sync_on_queue(others, line.queue));
  }
  line.Wait();
  line.End();
  return end_well();
}

// PE 0 is past the end while queues of the others wait for it.
int Leaves() {
  begin();
  if (me != 0) {
    Line line;
    ENQUEUE(shmemx_sync_all_on_queue(line.queue));
    CheckFailed(line, FERRY_ERR_NOT_FOUND, "PE 0 does not come");
    line.End();
  }
  return end_well();
}

// The daemon of PE 1 dies while queues wait.
int LosesDaemon() {
  begin();
  Line line;
  auto* const word = Symmetric<long>(1);
  ENQUEUE(shmemx_long_wait_until_on_queue(word, SHMEM_CMP_NE, 0, line.queue));
  printf("PE %d: waits\n", me);
  fflush(stdout);
  CheckFailed(line, me == 0 ? FERRY_ERR_NODE_UNREACHABLE : FERRY_ERR_DAEMON_DIED,
              "shmemx_long_wait_until_on_queue: ");
  fprintf(stderr, "PE %d: told of ferryd\n", me);
  _exit(1);
}

// The daemon of PE 1 dies while collectives are under way between nodes and inside them, to which
// PE 0 does not come. On a PE without a daemon all later ones fail at once, and the memory that the
// first ones were to fill stays as it is.
int LosesDaemonInCollectives() {
  begin();
  Line line;
  const auto size = static_cast<size_t>(pes);
  auto* const sums = Symmetric<long>(kLongs);
  auto* const words = Symmetric<long>(2 * size * kLongs);
  if (me == 0) {
    ENQUEUE(shmemx_long_wait_until_on_queue(words, SHMEM_CMP_NE, 0, line.queue));
  } else {
    ENQUEUE(shmemx_long_alltoalls_on_queue(SHMEM_TEAM_WORLD, words, words + size * kLongs, 1, 1,
                                           kLongs, line.queue));
  }
  printf("PE %d: waits\n", me);
  fflush(stdout);
  const int error = ferry_queue_wait(line.queue);
  CHECK(error != FERRY_SUCCESS);
  for (int i = 0; i < 20 && error == FERRY_ERR_DAEMON_DIED; ++i) {
    ENQUEUE(shmemx_long_sum_reduce_on_queue(SHMEM_TEAM_WORLD, sums, words, kLongs, line.queue));
    CHECK(ferry_queue_wait(line.queue) == FERRY_ERR_DAEMON_DIED);
    const std::vector<char> others(kLongs * sizeof(long), 'x');  // where those were, if at all
    CHECK(std::count(others.begin(), others.end(), 'x') == static_cast<long>(others.size()));
  }
  fprintf(stderr, "PE %d: told of ferryd\n", me);
  _exit(1);
}

// ---- Queues, streams and programs that end ------------------------------------------------------

// A queue with calls under way is not freed; a stream with calls may be destroyed.
int Ends() {
  begin();
  Line line;
  auto* const word = Symmetric<uint64_t>(2);
  ENQUEUE(shmemx_signal_wait_until_on_queue(word, SHMEM_CMP_EQ, 1, line.queue));
  CHECK(ferry_queue_free(&line.queue) == FERRY_ERR_REQUEST);
  CHECK(strstr(ferry_last_error(), "has not done all that was enqueued") != nullptr);
  shmem_signal_set(word, 1, me);
  line.Wait();
  line.End();

  Line gone;
  std::atomic<bool> is_there{false};
  const std::function<void()> come = [&] { is_there = true; };
  gone.Launch(&come);
  ENQUEUE(shmemx_signal_wait_until_on_queue(word, SHMEM_CMP_EQ, 2, gone.queue));  // no PE sets it
  ENQUEUE(shmemx_uint64_p_on_queue(word + 1, 9, me, gone.queue));
  while (!is_there) {
    std::this_thread::yield();
  }
  CHECK(ferry_stream_destroy(&gone.stream) == FERRY_SUCCESS);
  CHECK(ferry_queue_wait(gone.queue) == FERRY_ERR_CANCELLED);
  CHECK(shmemx_quiet_on_queue(gone.queue) == FERRY_ERR_CANCELLED);
  CHECK(ferry_queue_free(&gone.queue) == FERRY_SUCCESS);
  CHECK(word[1] == 0);
  return end_well();
}

// shmem_finalize, or the end of main, comes while calls are enqueued; then OpenSHMEM begins again.
int Finalizes(std::string_view how) {
  static std::atomic<int> runs{0};  // static: a kernel may run after main
  static const std::function<void()>& note = *new std::function<void()>([] { ++runs; });
  for (int life = 1; life <= 3; ++life) {
    begin();
    Line line;
    auto* const words = Symmetric<long>(2);
    static long got;
    got = 0;
    words[0] = life;
    for (int i = 0; i < 20; ++i) {
      ENQUEUE(shmemx_long_put_on_queue(words + 1, words, 1, after, line.queue));
      ENQUEUE(shmemx_barrier_all_on_queue(line.queue));
    }
    ENQUEUE(shmemx_long_get_on_queue(&got, words + 1, 1, after, line.queue));
    line.Launch(&note);
    if (how == "main") {
      printf("PE %d: ok\n", me);
      return 0;
    }
    shmem_finalize();
    CHECK(got == life);
    line.Wait();
    CHECK(runs == life);
    line.End();
  }
  printf("PE %d: ok\n", me);
  return 0;
}

// The process exits while a queue's call waits for what never comes.
[[noreturn]] void Exits(std::string_view where) {
  begin();
  Line line;
  auto* const word = Symmetric<long>(1);
  std::atomic<bool> is_there{false};
  const std::function<void()> come = [&] { is_there = true; };
  line.Launch(&come);
  if (where == "wait") {
    ENQUEUE(shmemx_long_wait_until_on_queue(word, SHMEM_CMP_NE, 0, line.queue));
  } else if (me == 0) {
    ENQUEUE(shmemx_sync_all_on_queue(line.queue));
  }
  ENQUEUE(shmemx_quiet_on_queue(line.queue));
  while (!is_there) {
    std::this_thread::yield();
  }
  exit(5);
}

int Misuse(std::string_view what) {
  if (what == "before") {
    (void)shmemx_quiet_on_queue(1);
  }
  begin();
  Line line;
  auto* const words = Symmetric<long>(2);
  if (what == "none") {
    (void)shmemx_barrier_all_on_queue(FERRY_QUEUE_NULL);
  }
  if (what == "freed") {
    const ferry_queue queue = line.queue;
    line.End();
    (void)shmemx_quiet_on_queue(queue);
  }
  if (what == "pe") {
    ENQUEUE(shmemx_long_p_on_queue(words, 1, pes, line.queue));
  }
  if (what == "memory") {
    long local = 0;
    ENQUEUE(shmemx_long_put_on_queue(&local, words, 1, 0, line.queue));
  }
  if (what == "comparison") {
    ENQUEUE(shmemx_long_wait_until_on_queue(words, 17, 0, line.queue));
  }
  if (what == "team") {
    ENQUEUE(shmemx_team_sync_on_queue(SHMEM_TEAM_INVALID, line.queue));
  }
  if (what == "twice") {  // PE 1 comes to none of them
    if (me == 0) {
      std::atomic<bool> is_there{false};
      const std::function<void()> come = [&] { is_there = true; };
      line.Launch(&come);
      ENQUEUE(shmemx_sync_all_on_queue(line.queue));
      Line other;
      while (!is_there) {
        std::this_thread::yield();
      }
      ENQUEUE(shmemx_sync_all_on_queue(other.queue));
    } else {
      shmem_long_wait_until(words, SHMEM_CMP_NE, 0);
    }
  }
  (void)ferry_queue_wait(line.queue);
  shmem_long_wait_until(words, SHMEM_CMP_NE, 0);  // the job ends meanwhile
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view how = argc > 2 ? argv[2] : "";
  const struct {
    std::string_view name;
    int (*run)();
  } plain[] = {{"order", Order},
               {"collectives", Collectives},
               {"device_memory", DeviceMemory},
               {"side_by_side", SideBySide},
               {"mixed", Mixed},
               {"leaves", Leaves},
               {"loses_daemon", LosesDaemon},
               {"loses_daemon_in_collectives", LosesDaemonInCollectives},
               {"ends", Ends}};
  for (const auto& one : plain) {
    if (what == one.name) {
      return one.run();
    }
  }
  if (what == "dies_in") {
    return Dies(how);
  }
  if (what == "finalizes") {
    return Finalizes(how);
  }
  if (what == "exits") {
    Exits(how);
  }
  return Misuse(how);
}
