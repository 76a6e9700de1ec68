// How tables begin and end, and what kernels are told of PEs that die or leave: the first argument
// says what.
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "include/ferry/stream.h"
#include "tests/shmem/ranks/device.h"

namespace {

// Kernels on both devices' own streams at once, which meet those of the other PEs' same devices.
int OnStreams() {
  begin();
  constexpr int kDevices = 2;
  constexpr int kRounds = 20;
  struct Arguments {
    const void* table;
    int* words;  // one for each PE
    int status;
  };
  Arguments arguments[kDevices];
  ferry_stream streams[kDevices] = {};
  const auto kernel = [](void* argument) {
    auto& its = *static_cast<Arguments*>(argument);
    ferry::device::Launch({1, 4}, [&] {
      const shmemx_device_t d = shmemx_device_open(its.table);
      const int next = (shmemx_device_my_pe(d) + 1) % shmemx_device_n_pes(d);
      for (int round = 1; round <= kRounds; ++round) {
        if (ferry_device_group_thread() == 0) {
          shmemx_device_int_p(d, its.words + shmemx_device_my_pe(d), round, next);
        }
        const int status = shmemx_device_barrier_work_group(d);
        if (ferry_device_group_thread() == 0 && its.status == 0) {
          its.status = status;
        }
      }
    });
  };
  for (int device = 0; device < kDevices; ++device) {
    arguments[device] = {shmemx_device_prepare(SHMEM_TEAM_WORLD, device),
                         Symmetric<int>(static_cast<size_t>(pes)), 0};
    CHECK(ferry_stream_create(device, &streams[device]) == FERRY_SUCCESS);
  }
  for (int i = 0; i < kDevices; ++i) {  // not all begin with the same one
    const int device = (i + me) % kDevices;
    CHECK(ferry_stream_launch(streams[device], kernel, &arguments[device]) == FERRY_SUCCESS);
  }
  for (int device = 0; device < kDevices; ++device) {
    CHECK(ferry_stream_synchronize(streams[device]) == FERRY_SUCCESS);
    CHECK(arguments[device].status == 0 && arguments[device].words[before] == kRounds);
    CHECK(ferry_stream_destroy(&streams[device]) == FERRY_SUCCESS);
  }
  return end_well();  // which frees the tables
}

// Makes tables again and again, in two lives of OpenSHMEM.
int Again() {
  for (const char* const size : {"1m", "3m"}) {
    setenv("SHMEM_SYMMETRIC_SIZE", size, 1);
    begin();
    CHECK(shmemx_device_count() == 2);
    auto* const word = Symmetric<long>(1);
    for (int i = 0; i < 8; ++i) {
      const Table table(i % 2);
      const Table other((me + i) % 2);
      *word = me;
      CHECK(shmemx_device_sync(other.Open()) == 0);
      CHECK(shmemx_device_long_g(table.Open(), word, after) == after);
      CHECK(shmemx_device_sync(table.Open()) == 0);
    }
    CHECK(shmemx_device_prepare(SHMEM_TEAM_WORLD, 0) != nullptr);  // left to shmem_finalize
    shmemx_device_release(nullptr);
    shmem_finalize();
  }
  printf("PE %d: ok\n", me);
  return 0;
}

// Tables end with what their kernels have asked for and not waited for: puts to all PEs.
int EndsUnfinished() {
  begin();
  auto* const words = Symmetric<long>(static_cast<size_t>(2 * pes));
  auto* const own = Symmetric<long>(2);
  own[0] = own[1] = me + 1;
  void* const left = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  const auto put = [&](const void* table, long* to) {
    const shmemx_device_t d = shmemx_device_open(table);
    for (int pe = 0; pe < pes; ++pe) {
      CHECK(shmemx_device_long_put_nbi(d, to + me, own, 1, pe) == 0);
      CHECK((shmemx_device_ptr(d, words, pe) != nullptr) == (shmem_ptr(words, pe) != nullptr));
    }
  };
  {
    const Table table;
    put(table.address(), words);
  }
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(words[pe] == pe + 1);
  }
  put(left, words + pes);
  return end_well();  // which frees the other one
}

// Where the last PE has no such device, no PE of the team gets a table.
int None(int device) {
  begin();
  CHECK(shmemx_device_prepare(SHMEM_TEAM_WORLD, me == pes - 1 ? device : 0) == nullptr);
  return end_well();
}

int Misuse(std::string_view what) {
  int local = 0;
  if (what == "before") {
    (void)shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  }
  begin();
  if (what == "team") {
    (void)shmemx_device_prepare(SHMEM_TEAM_INVALID, 0);
  }
  if (what == "unknown") {
    shmemx_device_release(&local);
  }
  void* const table = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  shmemx_device_release(table);
  if (what == "twice") {
    shmemx_device_release(table);
  }
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, nullptr, 0, &team);
  void* const its = shmemx_device_prepare(team, 0);
  shmem_team_destroy(team);
  if (what == "destroyed") {
    shmemx_device_release(its);
  }
  return end_well();
}

// PE 0 dies while kernels of the others wait; those of a team without it go on.
int Dies(std::string_view where) {
  begin();
  void* const all = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  shmem_team_t others;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, pes - 1, nullptr, 0, &others);
  void* const survivors = others == SHMEM_TEAM_INVALID ? nullptr : shmemx_device_prepare(others, 0);
  auto* const words = Symmetric<long>(8);
  if (me == 0) {
    shmem_long_wait_until(words, SHMEM_CMP_EQ, pes - 1);  // all others are about to wait
    kill(getpid(), SIGKILL);
  }
  const bool is_local_it = is_local(0);
  shmem_long_atomic_inc(words, 0);
  ferry::device::Launch({1, 3}, [&] {
    const shmemx_device_t d = shmemx_device_open(all);
    int status = 0;
    if (where == "wait") {
      status = shmemx_device_long_wait_until(d, words + 1, SHMEM_CMP_NE, 0);
    } else if (where == "signal") {
      status = shmemx_device_signal_wait_until(d, reinterpret_cast<uint64_t*>(words + 1),
                                               SHMEM_CMP_NE, 0);
    } else if (where == "sync") {
      status = shmemx_device_sync_work_group(d);
    } else if (where == "wait_of_group") {
      status =
          shmemx_device_long_wait_until_all_work_group(d, words + 1, 2, nullptr, SHMEM_CMP_NE, 0);
    } else if (where == "scan") {
      status = shmemx_device_long_sum_inscan_work_group(d, words + 2, words + 3, 2);
    } else {
      status = shmemx_device_long_sum_reduce_work_group(d, words + 2, words + 3, 2);
    }
    CHECK(status == SHMEMX_DEVICE_ERR_PEER_DIED);
    if (where == "sync" || where == "scan" || where == "reduce") {
      CHECK(shmemx_device_sync_work_group(d) == SHMEMX_DEVICE_ERR_PEER_DIED);  // and from then on
    }
    const shmemx_device_t rest = shmemx_device_open(survivors);
    for (int i = 0; i < 10; ++i) {
      CHECK(shmemx_device_sync_work_group(rest) == 0);
    }
    if (is_local_it) {
      CHECK(shmemx_device_ptr(d, words, 0) != nullptr);
      (void)shmemx_device_long_g(d, words, 0);  // its memory stays
      CHECK(shmemx_device_quiet(d) == 0);
    }
    if (where == "wait_of_group") {  // that cannot return an error: the quiets before it are over
      ferry_device_group_barrier();
      CHECK(shmemx_device_long_wait_until_any_work_group(d, words + 1, 2, nullptr, SHMEM_CMP_NE,
                                                         0) == SIZE_MAX);
      CHECK(shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_PEER_DIED);
    }
  });
  return end_well();
}

// PE 0 dies while kernels of another node ask for its memory.
int DiesRemote(std::string_view where) {
  begin();
  void* const all = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  auto* const words = Symmetric<long>(8);
  if (me == 0) {
    shmem_long_wait_until(words, SHMEM_CMP_EQ, pes - 1);  // all others are about to ask
    kill(getpid(), SIGKILL);
  }
  const bool is_remote = shmem_ptr(words, 0) == nullptr;
  shmem_long_atomic_inc(words, 0);
  shmem_quiet();
  if (is_remote) {
    ferry::device::Launch({2, 3}, [&] {
      const shmemx_device_t d = shmemx_device_open(all);
      int status = 0;
      while (status == 0) {
        if (where == "get") {
          status = shmemx_device_long_get_work_group(d, words + 2, words + 1, 1, 0);
        } else if (where == "fetch") {
          (void)shmemx_device_long_atomic_fetch_inc(d, words + 1, 0);
          status = shmemx_device_quiet(d);
        } else {
          shmemx_device_long_p(d, words + 1, 1, 0);
          status = shmemx_device_quiet(d);
        }
      }
      CHECK(status == SHMEMX_DEVICE_ERR_PEER_DIED);
      (void)shmemx_device_long_g(d, words + 1, 0);
      CHECK(shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_PEER_DIED);
      for (int pe = 1; pe < pes; ++pe) {
        CHECK(shmemx_device_long_put(d, words + 3, words + 4, 1, pe) == 0);  // the rest goes on
      }
    });
  }
  return end_well();
}

// PE 0 is past the end while kernels of the others wait for it.
int Leaves() {
  begin();
  void* const table = shmemx_device_prepare(SHMEM_TEAM_WORLD, 0);
  if (me != 0) {
    ferry::device::Launch({1, 3}, [&] {
      CHECK(shmemx_device_barrier_work_group(shmemx_device_open(table)) ==
            SHMEMX_DEVICE_ERR_NOT_FOUND);
    });
  }
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view how = argc > 2 ? argv[2] : "";
  if (what == "stream") {
    return OnStreams();
  }
  if (what == "again") {
    return Again();
  }
  if (what == "exits") {  // with a table, and without shmem_finalize
    begin();
    CHECK(shmemx_device_prepare(SHMEM_TEAM_WORLD, 0) != nullptr);
    exit(5);
  }
  if (what == "unfinished") {
    return EndsUnfinished();
  }
  if (what == "none") {
    return None(argc > 2 ? atoi(argv[2]) : 0);
  }
  if (what == "misuse") {
    return Misuse(how);
  }
  if (what == "dies_in") {
    return Dies(how);
  }
  if (what == "dies_far_in") {
    return DiesRemote(how);
  }
  return Leaves();
}
