// Failures of Prequests: mistakes of kernels, of hosts, and a rank that dies.
// partitioned_kernel_mistakes [die]

#include <unistd.h>

#include "tests/mpi/ranks/partitioned_kernels.h"

namespace {

using ferry::device::Launch;

// The host's next call tells of a kernel's mistake, and the round goes on.
void MistakesOfKernels() {
  step = "mistakes of kernels";
  const Half::Shape shape{.partitions = 4, .bytes = 8, .min_bytes = "1"};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  CHECK(MPIX_Pready(1, send.prequest()) == MPIX_DEVICE_ERR_REQUEST);
  expect_error(MPI_Start(&send.request()), MPI_ERR_REQUEST, "partition 1");
  receive.Start();
  send.Start();
  for (int i = 0; i < 3; ++i) {
    send.Fill(i, 1, Alone());
    CHECK(MPIX_Pready(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
  }
  CHECK(MPIX_Pready(4, send.prequest()) == MPIX_DEVICE_ERR_ARGUMENT);
  expect_error(MPI_Wait(&send.request(), MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
               "a kernel has readied partition 4 of a send of 4");
  CHECK(MPIX_Pready(2, send.prequest()) == MPIX_DEVICE_ERR_REQUEST);
  int flag = 0;
  expect_error(MPI_Test(&send.request(), &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
               "a kernel has readied partition 2 more than once");
  OK(MPI_Test(&send.request(), &flag, MPI_STATUS_IGNORE));
  CHECK(flag == 0);
  int arrived = -1;
  CHECK(MPIX_Parrived(receive.prequest(), 4, &arrived) == MPIX_DEVICE_ERR_ARGUMENT);
  CHECK(MPIX_Pready(0, receive.prequest()) == MPIX_DEVICE_ERR_REQUEST);
  CHECK(MPIX_Pawait(send.prequest(), 0) == MPIX_DEVICE_ERR_REQUEST);
  send.Fill(3, 1, Alone());
  CHECK(MPIX_Pready(3, send.prequest()) == MPIX_DEVICE_SUCCESS);
  send.Wait();
  CHECK(MPIX_Pawait(receive.prequest(), 3) == MPIX_DEVICE_SUCCESS);
  receive.Wait();
  for (int i = 0; i < 4; ++i) {
    CHECK(receive.IsFilled(i, 1));
  }
}

void MistakesOfHosts(bool is_near) {
  step = "mistakes of hosts";
  const Half::Shape shape{.partitions = 4, .bytes = 8};
  Half send(true, shape);
  Half receive(false, shape);
  MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
  MPI_Request plain;
  char byte = 0;
  OK(MPI_Send_init(&byte, 1, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD, &plain));
  expect_error(MPIX_Prequest_create(plain, 0, MPI_INFO_NULL, &prequest), MPI_ERR_REQUEST,
               "no partitioned one");
  OK(MPI_Request_free(&plain));
  expect_error(MPIX_Prequest_create(MPI_REQUEST_NULL, 0, MPI_INFO_NULL, &prequest), MPI_ERR_REQUEST,
               "");
  expect_error(MPIX_Prequest_create(send.request(), 0, MPI_INFO_NULL, nullptr), MPI_ERR_ARG,
               "null");
  for (const int device : {-1, 2, 77}) {
    expect_error(MPIX_Prequest_create(send.request(), device, MPI_INFO_NULL, &prequest),
                 MPI_ERR_UNSUPPORTED_OPERATION, "is not between 0 and 1");
  }
  const auto expect_value = [&](const char* key, const char* value) {
    MPI_Info info = info_with(key, value);
    expect_error(MPIX_Prequest_create(send.request(), 0, info, &prequest), MPI_ERR_INFO_VALUE, key);
    OK(MPI_Info_free(&info));
  };
  expect_value("ferry_partitioned_copy", "nobody");
  expect_value("ferry_partitioned_kernel_max", "1k");
  expect_value("ferry_partitioned_kernel_max", "-1");
  CHECK(prequest == MPIX_PREQUEST_NULL);
  MPI_Info info = info_with("ferry_partitioned_copy", "kernel");
  if (!is_near) {
    expect_error(MPIX_Prequest_create(send.request(), 0, info, &prequest),
                 MPI_ERR_UNSUPPORTED_OPERATION, "lives on another node");
  }
  OK(MPI_Info_free(&info));

  // Of a request that has one it is the same one, for one device.
  MPIX_Prequest again = MPIX_PREQUEST_NULL;
  OK(MPIX_Prequest_create(send.request(), 0, MPI_INFO_NULL, &prequest));
  OK(MPIX_Prequest_create(send.request(), 0, MPI_INFO_NULL, &again));
  CHECK(again == prequest);
  expect_error(MPIX_Prequest_create(send.request(), 1, MPI_INFO_NULL, &again),
               MPI_ERR_UNSUPPORTED_OPERATION, "has a Prequest for the device 0 already");
  again = prequest;
  OK(MPIX_Prequest_free(&again));
  CHECK(again == MPIX_PREQUEST_NULL);
  receive.Start();
  send.Start();
  expect_error(MPIX_Prequest_create(send.request(), 0, MPI_INFO_NULL, &again), MPI_ERR_REQUEST,
               "active");
  again = prequest;
  expect_error(MPIX_Prequest_free(&again), MPI_ERR_REQUEST, "active");
  CHECK(MPIX_Pready_range(0, 3, prequest) == MPIX_DEVICE_SUCCESS);
  send.Wait();
  receive.Wait();
  again = prequest;
  OK(MPIX_Prequest_free(&prequest));
  expect_error(MPIX_Prequest_free(&again), MPI_ERR_ARG, "no Prequest");
  expect_error(MPIX_Prequest_free(&prequest), MPI_ERR_ARG, "no Prequest");
  expect_error(MPIX_Prequest_free(nullptr), MPI_ERR_ARG, "null");
  // One for another device, now that it is free; it outlives its request.
  OK(MPIX_Prequest_create(send.request(), 1, MPI_INFO_NULL, &prequest));
  OK(MPIX_Prequest_create(receive.request(), 1, MPI_INFO_NULL, &again));
  receive.Start();
  send.Start();
  CHECK(MPIX_Pready_range(0, 3, prequest) == MPIX_DEVICE_SUCCESS);
  CHECK(MPIX_Pawait(again, 2) == MPIX_DEVICE_SUCCESS);
  send.Wait();
  receive.Wait();
  OK(MPIX_Prequest_free(&again));
  OK(MPIX_Prequest_free(&prequest));
}

// Memory whose arrivals kernels cannot see is refused; memory that they cannot move themselves is
// moved all the same.
void PrivateMemory() {
  step = "private memory";
  std::vector<unsigned char> from(400);
  std::vector<unsigned char> to(400);
  MPI_Request requests[2];
  MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
  OK(MPI_Psend_init(from.data(), 4, 100, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[0]));
  OK(MPI_Precv_init(to.data(), 4, 100, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[1]));
  expect_error(MPIX_Prequest_create(requests[1], 0, MPI_INFO_NULL, &prequest),
               MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Alloc_mem");
  MPI_Info info = info_with("ferry_partitioned_copy", "daemon");
  expect_error(MPIX_Prequest_create(requests[0], 0, info, &prequest), MPI_ERR_UNSUPPORTED_OPERATION,
               "private memory");
  OK(MPI_Info_free(&info));
  OK(MPIX_Prequest_create(requests[0], 0, MPI_INFO_NULL, &prequest));
  for (unsigned round = 0; round < 3; ++round) {
    fill(from.data(), from.size(), round + static_cast<unsigned>(rank));
    OK(MPI_Startall(2, requests));
    CHECK(MPIX_Pready_range(0, 3, prequest) == MPIX_DEVICE_SUCCESS);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(is_filled(to.data(), to.size(), round + static_cast<unsigned>(1 - rank)));
  }
  // The Prequest outlives the request.
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  OK(MPIX_Prequest_free(&prequest));
}

// A kernel's request to ferryd fails, for one partition of several: kernels and hosts of both sides
// learn of it.
void FerrydRefuses() {
  step = "what ferryd refuses";
  const Half::Shape shape{.partitions = 4, .bytes = 8, .min_bytes = "1"};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  receive.Start();
  send.Start();
  OK(MPIX_Pbuf_prepare(send.request()));
  send.prequest()->source_region = UINT32_MAX;  // there is no such memory
  CHECK(MPIX_Pready(1, send.prequest()) == MPIX_DEVICE_SUCCESS);
  CHECK(MPIX_Pawait(receive.prequest(), 1) == MPIX_DEVICE_ERR_REQUEST);
  CHECK(MPI_Wait(&send.request(), MPI_STATUS_IGNORE) == MPI_ERR_BUFFER);
  CHECK(MPI_Wait(&receive.request(), MPI_STATUS_IGNORE) == MPI_ERR_BUFFER);
}

// After the refusal, the device's ring goes on with the same rank.
void FerrydGoesOn() {
  step = "what comes after what ferryd has refused";
  const Half::Shape shape{.partitions = 4, .bytes = 3000, .min_bytes = "1", .tag = 2};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  receive.MakePrequest();
  for (int round = 1; round <= 2; ++round) {
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    for (int i = 0; i < shape.partitions; ++i) {
      send.Fill(i, round, Alone());
      CHECK(MPIX_Pready(i, send.prequest()) == MPIX_DEVICE_SUCCESS);
    }
    send.Wait();
    receive.Wait();
    for (int i = 0; i < shape.partitions; ++i) {
      CHECK(receive.IsFilled(i, round));
    }
  }
}

// Rank 1 dies while a kernel of rank 0 waits for it.
void ADeath() {
  step = "a death";
  const Half::Shape shape{.partitions = 4, .bytes = 8, .min_bytes = "1"};
  Half* const send = new Half(true, shape);  // never freed
  Half* const receive = new Half(false, shape);
  send->MakePrequest();
  receive->MakePrequest();
  receive->Start();
  send->Start();
  CHECK(MPIX_Pready(0, send->prequest()) == MPIX_DEVICE_SUCCESS);
  CHECK(MPIX_Pawait(receive->prequest(), 0) == MPIX_DEVICE_SUCCESS);
  if (rank == 1) {  // not before the other one has what was readied here
    CHECK(MPIX_Pawait(receive->prequest(), 1) == MPIX_DEVICE_SUCCESS);
    _Exit(0);
  }
  CHECK(MPIX_Pready(1, send->prequest()) == MPIX_DEVICE_SUCCESS);
  Launch({2, 2}, [&] {
    const int status = MPIX_Pawait_block(receive->prequest(), 3);
    KERNEL_CHECK(status == MPIX_DEVICE_ERR_PEER_DIED);
    int flag = 0;
    KERNEL_CHECK(MPIX_Parrived(receive->prequest(), 2, &flag) == MPIX_DEVICE_ERR_PEER_DIED);
    KERNEL_CHECK(flag == 1);
    KERNEL_CHECK(MPIX_Parrived(receive->prequest(), 0, &flag) == MPIX_DEVICE_SUCCESS);
  });
  CHECK(MPI_Wait(&receive->request(), MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED);
  puts("the wait has ended");
  fflush(stdout);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "die") == 0) {
    ADeath();
  }
  MistakesOfKernels();
  MistakesOfHosts(argc > 1 && strcmp(argv[1], "near") == 0);
  PrivateMemory();
  copy_wish = "daemon";
  FerrydRefuses();
  FerrydGoesOn();
  return end_well("all mistakes were named");
}
