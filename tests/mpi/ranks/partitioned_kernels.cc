// Partitioned messages between the kernels of two ranks, or of one and itself: partitioned_kernels
// COPY MEMORY [waiting].
#include "tests/mpi/ranks/partitioned_kernels.h"

#include <ferry/stream.h>

#include <thread>

namespace {

using ferry::device::Launch;

// Groups ready their partitions, and wait in the same kernel for those of the other rank. The hosts
// do nothing until their kernels are over.
void KernelsReadyAndAwait(int partitions, int bytes, int rounds) {
  const Half::Shape shape{.partitions = partitions, .bytes = bytes};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= rounds; ++round) {
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    Launch({2, 3}, [&] {
      for (int i = static_cast<int>(ferry_device_group()); i < partitions; i += 2) {
        send.Fill(i, round, Together());
        KERNEL_CHECK(MPIX_Pready_block(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
      }
      for (int i = 0; i < partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait_block(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    int has_arrived = 0;
    OK(MPI_Parrived(receive.request(), partitions - 1, &has_arrived));
    CHECK(has_arrived == 1);
    receive.Wait();
    send.Wait();
  }
}

// Where kernels copy they move every unit themselves, if the receiver has begun the round: nothing
// is left to the hosts.
void NoHostMovesAnything() {
  const Half::Shape shape{.partitions = 6, .bytes = 5000, .min_bytes = "1"};
  constexpr int kRounds = 10;
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= kRounds; ++round) {
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    Launch({3, 2}, [&] {
      const auto mine = static_cast<int>(ferry_device_group());
      for (const int i : {mine, mine + 3}) {
        send.Fill(i, round, Together());
        KERNEL_CHECK(MPIX_Pready_block(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(MPIX_Pawait_block(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    CHECK(send.prequest()->moved == static_cast<uint64_t>(round) * shape.partitions);
    receive.Wait();
    send.Wait();
  }
}

// Messages that are too large for kernels on CPUs are copied by the hosts, unless the program lets
// kernels copy more: of two ranks of a node.
void LargeMessagesAreLeftToHosts() {
  step = "large messages";
  copy_wish = "auto";
  const Half::Shape shape{.partitions = 4, .bytes = 250'000};
  for (const char* const most : {"", "999999", "1000000"}) {
    kernel_max = most;
    Half send(true, shape);
    Half receive(false, shape);
    send.MakePrequest();
    for (int round = 1; round <= 2; ++round) {
      receive.Start();
      send.Start();
      OK(MPIX_Pbuf_prepare(send.request()));
      Launch({4, 1}, [&] {
        const auto mine = static_cast<int>(ferry_device_group());
        send.Fill(mine, round, Alone());
        KERNEL_CHECK(MPIX_Pready(mine, send.prequest()) == MPIX_DEVICE_SUCCESS);
      });
      receive.Wait();
      send.Wait();
      for (int i = 0; i < shape.partitions; ++i) {
        CHECK(receive.IsFilled(i, round));
      }
    }
    CHECK(send.prequest()->moved == (kernel_max == "1000000" ? 8 : 0));
  }
  kernel_max = "";
}

// Each partition goes to and fro before the next one is readied: units are never complete when the
// kernels wait.
void OnePartitionAtATime(const char* min_bytes) {
  const Half::Shape shape{.partitions = 6, .bytes = 40, .min_bytes = min_bytes};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= 3; ++round) {
    receive.Start();
    send.Start();
    Launch({1, 1}, [&] {
      for (int i = 0; i < shape.partitions; ++i) {
        if (rank == 1) {
          KERNEL_CHECK(MPIX_Pawait(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
          KERNEL_CHECK(receive.IsFilled(i, round));
        }
        send.Fill(i, round, Alone());
        KERNEL_CHECK(MPIX_Pready(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
        if (rank == 0) {
          KERNEL_CHECK(MPIX_Pawait(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
          KERNEL_CHECK(receive.IsFilled(i, round));
        }
      }
    });
    receive.Wait();
    send.Wait();
  }
}

// The kernel is over before the receiver begins its round; the receiver has no Prequest.
void KernelsBeforeTheReceiver() {
  const Half::Shape shape{.partitions = 5, .bytes = 3000};
  Half send(true, shape);
  Half receive(false, shape, false);
  send.MakePrequest();
  for (int round = 1; round <= 3; ++round) {
    send.Start();
    Launch({5, 2}, [&] {
      const auto mine = static_cast<int>(ferry_device_group());
      send.Fill(mine, round, Together());
      KERNEL_CHECK(MPIX_Pready_block(mine, send.prequest()) == MPIX_DEVICE_SUCCESS);
    });
    OK(MPI_Barrier(MPI_COMM_WORLD));
    receive.Start();
    receive.Wait();
    for (int i = 0; i < shape.partitions; ++i) {
      CHECK(receive.IsFilled(i, round));
    }
    send.Wait();
  }
}

// Rounds, units and halves of units are readied by the host in place of kernels.
void HostsReadyToo(const char* min_bytes) {
  const Half::Shape shape{.partitions = 8, .bytes = 500, .min_bytes = min_bytes};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= 8; ++round) {
    const auto is_hosts = [&](int partition) {
      return round % 4 == 1   ? partition % 2 == 0
             : round % 4 == 2 ? true
             : round % 4 == 3 ? false
                              : partition < 3;
    };
    receive.Start();
    send.Start();
    for (int i = 0; i < shape.partitions; ++i) {
      if (is_hosts(i)) {
        send.Fill(i, round, Alone());
        OK(MPI_Pready(i, send.request()));
      }
    }
    Launch({2, 1}, [&] {
      for (auto i = static_cast<int>(ferry_device_group()); i < shape.partitions; i += 2) {
        if (!is_hosts(i)) {
          send.Fill(i, round, Alone());
          KERNEL_CHECK(MPIX_Pready(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
        }
      }
      for (int i = 0; i < shape.partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    send.Wait();
    receive.Wait();
  }
}

// The receiver has fewer partitions than the sender, or more.
void OtherNumbersOfPartitions(int sent, int received) {
  constexpr int kBytes = 2400;
  Half send(true, {.partitions = sent, .bytes = kBytes / sent, .min_bytes = "1"});
  Half receive(false, {.partitions = received, .bytes = kBytes / received});
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= 2; ++round) {
    receive.Start();
    send.Start();
    Launch({1, 1}, [&] {
      for (int i = sent - 1; i >= 0; --i) {
        send.Fill(i, round, Alone());
        KERNEL_CHECK(MPIX_Pready(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
      }
      for (int i = 0; i < received; ++i) {
        KERNEL_CHECK(MPIX_Pawait(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    send.Wait();
    receive.Wait();
  }
}

// A partition of elements that lie apart: kernels ready them, and the host moves them.
void ElementsApart() {
  step = "elements apart";
  constexpr int kCount = 20;
  MPI_Datatype vector;
  MPI_Datatype pairs;
  OK(MPI_Type_vector(kCount, 1, 2, MPI_INT, &vector));
  OK(MPI_Type_create_resized(vector, 0, 2 * kCount * sizeof(int), &pairs));
  OK(MPI_Type_free(&vector));
  OK(MPI_Type_commit(&pairs));
  std::vector<int> from(4 * 2 * kCount);
  std::vector<int> to(4 * kCount);
  MPI_Request requests[2];
  MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
  OK(MPI_Psend_init(from.data(), 4, 1, pairs, Peer(), 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[0]));
  OK(MPI_Precv_init(to.data(), 4, kCount, MPI_INT, Peer(), 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[1]));
  OK(MPIX_Prequest_create(requests[0], 0, MPI_INFO_NULL, &prequest));
  for (int round = 1; round <= 2; ++round) {
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<int>(i) + 1000 * rank + 10000 * round;
    }
    OK(MPI_Startall(2, requests));
    Launch({4, 1}, [&] {
      KERNEL_CHECK(MPIX_Pready(static_cast<int>(ferry_device_group()), prequest) ==
                   MPIX_DEVICE_SUCCESS);
    });
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (size_t i = 0; i < to.size(); ++i) {
      CHECK(to[i] == static_cast<int>(2 * i) + 1000 * Peer() + 10000 * round);
    }
  }
  OK(MPIX_Prequest_free(&prequest));
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  OK(MPI_Type_free(&pairs));
}

// A loop of starts, kernels and waits that lies in a stream, and no host in it.
struct Step {
  Half* send;
  Half* receive;
  int round;
};

void RunStep(void* argument) {
  const Step& its = *static_cast<Step*>(argument);
  for (int i = 0; i < its.send->partitions(); ++i) {
    its.send->Fill(i, its.round, Alone());
    KERNEL_CHECK(MPIX_Pready(i, its.send->prequest()) == MPIX_DEVICE_SUCCESS);
  }
  for (int i = 0; i < its.receive->partitions(); ++i) {
    KERNEL_CHECK(MPIX_Pawait(its.receive->prequest(), i) == MPIX_DEVICE_SUCCESS);
    KERNEL_CHECK(its.receive->IsFilled(i, its.round));
  }
}

void LoopInAStream() {
  step = "a loop in a stream";
  constexpr int kRounds = 5;
  const Half::Shape shape{.partitions = 4, .bytes = 200};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  ferry_stream stream = nullptr;
  MPIX_Queue queue = MPIX_QUEUE_NULL;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  OK(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream));
  MPI_Request both[2] = {receive.request(), send.request()};
  std::vector<Step> steps;
  for (int round = 1; round <= kRounds; ++round) {
    steps.push_back({&send, &receive, round});
  }
  for (Step& each : steps) {
    OK(MPIX_Enqueue_startall(queue, 2, both));
    OK(MPIX_Enqueue_pbuf_prepare(queue, &both[1]));
    CHECK(ferry_stream_launch(stream, RunStep, &each) == FERRY_SUCCESS);
    OK(MPIX_Enqueue_waitall(queue, 2, both));
  }
  OK(MPIX_Queue_wait(queue));
  for (int i = 0; i < shape.partitions; ++i) {
    CHECK(receive.IsFilled(i, kRounds));
  }
  OK(MPIX_Queue_free(&queue));
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
}

// The paper's order: the round is under way when it asks for the Prequest, in each round.
// `hosts`: so many partitions are readied by the host before that.
void AsThePaperWrites(const char* min_bytes, int hosts) {
  const Half::Shape shape{.partitions = 8, .bytes = 300, .min_bytes = min_bytes};
  Half send(true, shape, false);
  Half receive(false, shape, false);
  MPIX_Prequest preq = MPIX_PREQUEST_NULL;
  MPIX_Prequest first = MPIX_PREQUEST_NULL;
  for (int round = 1; round <= 4; ++round) {
    MPIX_Prequest coming = MPIX_PREQUEST_NULL;
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    for (int i = 0; i < hosts; ++i) {
      send.Fill(i, round, Alone());
      OK(MPI_Pready(i, send.request()));
    }
    OK(MPIX_Prequest_create(preq, send.request()));
    OK(MPIX_Prequest_create(coming, receive.request()));
    first = round == 1 ? preq : first;
    CHECK(preq == first);
    Launch({2, 2}, [&] {
      for (auto i = static_cast<int>(ferry_device_group()); i < shape.partitions; i += 2) {
        if (i >= hosts) {
          send.Fill(i, round, Together());
          KERNEL_CHECK(MPIX_Pready_block(i, preq) == MPIX_DEVICE_SUCCESS);
        }
      }
      for (int i = 0; i < shape.partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait_block(coming, i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    receive.Wait();
    send.Wait();
  }
  // It is the request's, whoever else has a part in it for a while.
  MPIX_Prequest again = preq;
  expect_error(MPIX_Prequest_free(&again), MPI_ERR_ARG, "is freed with its request");
  OK(MPIX_Prequest_create(send.request(), 0, MPI_INFO_NULL, &again));
  CHECK(again == preq);
  OK(MPIX_Prequest_free(&again));
  OK(MPIX_Prequest_get(send.request(), &again));
  CHECK(again == preq);
  MPI_Request none = MPI_REQUEST_NULL;
  CHECK(MPIX_Prequest_get(none, &again) != MPI_SUCCESS);
  int word = 0;
  OK(MPI_Send_init(&word, 1, MPI_INT, Peer(), 9, MPI_COMM_WORLD, &none));
  expect_error(MPIX_Prequest_create(again, none), MPI_ERR_REQUEST, "no partitioned one");
  OK(MPI_Request_free(&none));
}

// A kernel that runs while its host goes on: it readies once `may_ready` is set.
struct Later {
  Half* send;
  int round;
  bool (*may_ready)(const Later&);
};

ferry_partitioned_state& StateOf(const Later& later) {
  return *ferry_partitioned_state_of(later.send->prequest());
}

void ReadyLater(void* argument) {
  const Later& its = *static_cast<Later*>(argument);
  while (!its.may_ready(its)) {
    std::this_thread::yield();
  }
  for (int i = 0; i < its.send->partitions(); ++i) {
    its.send->Fill(i, its.round, Alone());
    KERNEL_CHECK(MPIX_Pready(i, its.send->prequest()) == MPIX_DEVICE_SUCCESS);
  }
}

// Of two nodes: a thread that waits for a send moves the partitions that its kernels ready, past
// ferryd if there is a link. ferryd moves the partitions that they ready while no thread waits; the
// library's thread moves those that they mark for a thread that has just ceased to wait.
void WhoWaitsMoves(int bytes) {
  const Half::Shape shape{.partitions = 4, .bytes = bytes, .min_bytes = "1"};
  constexpr int kRounds = 9;
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  CHECK(send.prequest()->way == FERRY_PARTITIONED_BY_DAEMON);
  ferry_stream stream = nullptr;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  uint64_t asked = 0;
  for (int round = 1; round <= kRounds; ++round) {
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    Later later{&send, round, [](const Later&) { return true; }};
    const bool waits = round % 3 == 0;
    const bool has_ceased = round % 3 == 1;
    if (waits) {
      later.may_ready = [](const Later& its) {
        return ferry_device_load_acquire(&StateOf(its).attended) ==
               static_cast<uint64_t>(its.round);
      };
    } else if (has_ceased) {
      ferry_device_store_release(&StateOf(later).attended, static_cast<uint64_t>(round));
    } else {
      asked += static_cast<uint64_t>(shape.partitions);
    }
    CHECK(ferry_stream_launch(stream, ReadyLater, &later) == FERRY_SUCCESS);
    if (waits) {
      send.Wait();
    }
    CHECK(ferry_stream_synchronize(stream) == FERRY_SUCCESS);
    // The other rank's host does nothing for it either.
    Launch({1, 1}, [&] {
      for (int i = 0; i < shape.partitions; ++i) {
        KERNEL_CHECK(MPIX_Pawait(receive.prequest(), i) == MPIX_DEVICE_SUCCESS);
        KERNEL_CHECK(receive.IsFilled(i, round));
      }
    });
    receive.Wait();
    if (!waits) {
      send.Wait();
    }
    CHECK(send.prequest()->moved == asked);
  }
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
}

// The peer is MPI_PROC_NULL: readied partitions go nowhere, and all have arrived.
void Nobody() {
  step = "MPI_PROC_NULL";
  int value = 0;
  MPI_Request requests[2];
  MPIX_Prequest prequests[2];
  OK(MPI_Psend_init(&value, 100, 0, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[0]));
  OK(MPI_Precv_init(&value, 100, 0, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[1]));
  for (int i = 0; i < 2; ++i) {
    OK(MPIX_Prequest_create(requests[i], 0, MPI_INFO_NULL, &prequests[i]));
  }
  CHECK(MPIX_Pready(1, prequests[0]) == MPIX_DEVICE_ERR_REQUEST);
  expect_error(MPI_Start(&requests[0]), MPI_ERR_REQUEST, "partition 1 ");
  // A kernel comes before the wait, in the middle of a later round, twice, or not at all.
  for (int round = 0; round < 4; ++round) {
    OK(MPI_Startall(2, requests));
    if (round != 1) {
      CHECK(MPIX_Pready_range(0, 99, prequests[0]) == MPIX_DEVICE_SUCCESS);
    }
    CHECK(MPIX_Pawait(prequests[1], 99) == MPIX_DEVICE_SUCCESS);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    if (round != 2) {
      CHECK(MPIX_Pready(99, prequests[0]) == MPIX_DEVICE_SUCCESS);
    }
  }
  OK(MPI_Start(&requests[0]));
  CHECK(MPIX_Pready(100, prequests[0]) == MPIX_DEVICE_ERR_ARGUMENT);
  expect_error(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "partition 100");
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  for (int i = 0; i < 2; ++i) {
    OK(MPIX_Prequest_free(&prequests[i]));
  }
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Startall(2, requests));
    for (int i = 0; i < 2; ++i) {
      OK(MPIX_Prequest_create(prequests[i], requests[i]));
    }
    CHECK(MPIX_Pready_range(0, 99, prequests[0]) == MPIX_DEVICE_SUCCESS);
    CHECK(MPIX_Pawait(prequests[1], 99) == MPIX_DEVICE_SUCCESS);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Request_free(&requests[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  copy_wish = argc > 1 ? argv[1] : "auto";
  memory_kind = argc > 2 ? argv[2] : "host";
  begin(&argc, &argv);
  if (argc > 3 && std::string(argv[3]) == "waiting") {
    step = "who waits moves";
    WhoWaitsMoves(1000);
    WhoWaitsMoves(300'000);
    return end_well("all kernels were right");
  }
  step = "small units";
  KernelsReadyAndAwait(8, 100, 20);
  step = "large units";
  KernelsReadyAndAwait(4, 100'000, 5);
  if (copy_wish == "kernel") {
    step = "no host";
    NoHostMovesAnything();
  }
  step = "one partition at a time";
  OnePartitionAtATime("1");
  step = "one partition at a time, of incomplete units";
  OnePartitionAtATime("100000");
  step = "kernels before the receiver";
  KernelsBeforeTheReceiver();
  step = "hosts ready whole units";
  HostsReadyToo("1");
  step = "hosts ready parts of units";
  HostsReadyToo("100000");
  step = "other numbers of partitions";
  OtherNumbersOfPartitions(12, 4);
  OtherNumbersOfPartitions(4, 16);
  OtherNumbersOfPartitions(6, 4);
  ElementsApart();
  LoopInAStream();
  step = "as the paper writes";
  AsThePaperWrites("1", 0);
  AsThePaperWrites("100000", 0);
  AsThePaperWrites("1", 2);
  AsThePaperWrites("100000", 3);
  Nobody();
  if (copy_wish == "kernel") {
    LargeMessagesAreLeftToHosts();
  }
  return end_well("all kernels were right");
}
