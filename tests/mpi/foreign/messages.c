/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: messages, statuses and requests.
 */
#include "tests/mpi/foreign/interface.h"

/* ---- Messages -------------------------------------------------------------------------------- */

/* Open MPI has these functions in C from version 5 on. */
static void statuses_of_f08(const MPI_Status* status) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
  step = "statuses of mpi_f08";
  MPI_F08_status typed, other;
  MPI_Fint numbers[MPI_F_STATUS_SIZE];
  MPI_Status copy;
  OK(MPI_Status_c2f08(status, &typed));
  CHECK(typed.MPI_TAG == status->MPI_TAG);
  OK(MPI_Status_f082f(&typed, numbers));
  OK(MPI_Status_f2f08(numbers, &other));
  OK(MPI_Status_f082c(&other, &copy));
  CHECK(memcmp(&copy, status, sizeof(copy)) == 0);
  CHECK(MPI_Status_f082c((MPI_F08_status*)MPI_F08_STATUS_IGNORE, &copy) == MPI_ERR_ARG);
  CHECK(MPI_Status_f082c((MPI_F08_status*)MPI_F08_STATUSES_IGNORE, &copy) == MPI_ERR_ARG);
#else
  (void)status;
#endif
}

static void statuses(void) {
  step = "statuses";
  int sent[3] = {rank, 7, 9}, got[8] = {0};
  MPI_Status status = {.MPI_ERROR = 12345};
  OK(MPI_Sendrecv(sent, 3, MPI_INT, next, 11, got, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &status));
  CHECK(got[0] == before && got[2] == 9 && got[3] == 0);
  CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 11 && status.MPI_ERROR == 12345);
  CHECK(count_of(&status, MPI_INT) == 3 && count_of(&status, MPI_BYTE) == 12);
  CHECK(count_of(&status, MPI_DOUBLE) == MPI_UNDEFINED && !was_cancelled(&status));

  step = "MPI_PROC_NULL";
  OK(MPI_Recv(got, 8, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  CHECK(count_of(&status, MPI_INT) == 0);
  OK(MPI_Send(sent, 3, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));

  step = "an empty status";
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_ANY_SOURCE);
  CHECK(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == MPI_SUCCESS);

  step = "a cancelled receive";
  OK(MPI_Irecv(got, 1, MPI_INT, before, 999, MPI_COMM_WORLD, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(was_cancelled(&status) && request == MPI_REQUEST_NULL);

  step = "a status of the program's own";
  memset(&status, 0, sizeof(status));
  OK(MPI_Status_set_elements_x(&status, MPI_BYTE, 0x1234567890));
  OK(MPI_Status_set_cancelled(&status, 1));
  status.MPI_ERROR = 333; /* no class of MPI's: it stays */
  OK(MPI_Status_set_elements_x(&status, MPI_BYTE, 0x1234567890));
  CHECK(status.MPI_ERROR == 333);
  MPI_Count elements = 0;
  OK(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
  CHECK(elements == 0x1234567890 && was_cancelled(&status));
  MPI_Fint numbers[MPI_F_STATUS_SIZE];
  MPI_Status copy;
  OK(MPI_Status_c2f(&status, numbers));
  CHECK(numbers[MPI_F_SOURCE] == status.MPI_SOURCE);
  OK(MPI_Status_f2c(numbers, &copy));
  CHECK(memcmp(&copy, &status, sizeof(copy)) == 0);
  statuses_of_f08(&status);
}

/* More requests than are kept without allocating, in every form of completion. */
static void requests(void) {
  enum { kMany = 150 };
  int sent[kMany], got[kMany], indices[kMany], done = 0, flag = 0, which = 0;
  MPI_Request all[2 * kMany];
  MPI_Status of[2 * kMany];
  for (int form = 0; form < 5; ++form) {
    step = "requests";
    for (int i = 0; i < kMany; ++i) {
      sent[i] = 1000 * rank + i;
      got[i] = -1;
      OK(MPI_Irecv(&got[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &all[i]));
      OK(MPI_Isend(&sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &all[kMany + i]));
      CHECK(all[i] != MPI_REQUEST_NULL && MPI_Request_f2c(MPI_Request_c2f(all[i])) == all[i]);
    }
    if (form == 0) {
      OK(MPI_Waitall(2 * kMany, all, of));
      CHECK(of[3].MPI_SOURCE == before && of[3].MPI_TAG == 3 && count_of(&of[3], MPI_INT) == 1);
    } else if (form == 1) {
      OK(MPI_Waitall(2 * kMany, all, MPI_STATUSES_IGNORE));
    } else if (form == 2) {
      for (flag = 0; !flag;) OK(MPI_Testall(2 * kMany, all, &flag, of));
      CHECK(of[kMany - 1].MPI_TAG == kMany - 1);
    } else if (form == 3) {
      for (done = 0; done < 2 * kMany; done += which) {
        OK(MPI_Waitsome(kMany, &all[done < kMany ? 0 : kMany], &which, indices, of));
        if (which == MPI_UNDEFINED) break;
        for (int i = 0; i < which && done < kMany; ++i) CHECK(of[i].MPI_TAG == indices[i]);
      }
      OK(MPI_Waitall(2 * kMany, all, MPI_STATUSES_IGNORE));
    } else {
      for (done = 0; done < 2 * kMany; ++done) {
        OK(MPI_Waitany(2 * kMany, all, &which, &of[0]));
        CHECK(which >= 0 && which < 2 * kMany && all[which] == MPI_REQUEST_NULL);
        if (which < kMany) CHECK(of[0].MPI_TAG == which);
      }
      OK(MPI_Waitany(2 * kMany, all, &which, &of[0]));
      CHECK(which == MPI_UNDEFINED);
    }
    for (int i = 0; i < kMany; ++i) {
      CHECK(got[i] == 1000 * before + i);
      CHECK(all[i] == MPI_REQUEST_NULL && all[kMany + i] == MPI_REQUEST_NULL);
    }
  }

  step = "persistent requests";
  MPI_Request two[2];
  int in = -1, out = rank;
  OK(MPI_Recv_init(&in, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &two[0]));
  OK(MPI_Send_init(&out, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &two[1]));
  for (int round = 0; round < 3; ++round) {
    out = 10 * rank + round;
    OK(MPI_Startall(2, two));
    OK(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
    CHECK(in == 10 * before + round && two[0] != MPI_REQUEST_NULL);
  }
  OK(MPI_Request_free(&two[0]));
  OK(MPI_Request_free(&two[1]));
  CHECK(two[0] == MPI_REQUEST_NULL);
}

static void matched(void) {
  step = "matched probes";
  int out = rank, in = -1, flag = 0;
  MPI_Request request;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  OK(MPI_Isend(&out, 1, MPI_INT, next, 21, MPI_COMM_WORLD, &request));
  while (!flag) OK(MPI_Improbe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
  CHECK(message != MPI_MESSAGE_NULL && status.MPI_TAG == 21);
  OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status));
  CHECK(in == before && message == MPI_MESSAGE_NULL);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* What a request or a message holds before the call that makes it is nobody's business. */
  MPI_Request receive;
  memset(&receive, 0x5a, sizeof receive);
  memset(&message, 0x5a, sizeof message);
  out = rank + 100;
  OK(MPI_Isend(&out, 1, MPI_INT, next, 22, MPI_COMM_WORLD, &request));
  OK(MPI_Mprobe(before, 22, MPI_COMM_WORLD, &message, &status));
  OK(MPI_Imrecv(&in, 1, MPI_INT, &message, &receive));
  CHECK(message == MPI_MESSAGE_NULL);
  OK(MPI_Wait(&receive, &status));
  CHECK(in == before + 100 && status.MPI_SOURCE == before && receive == MPI_REQUEST_NULL);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
  CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
  OK(MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  status.MPI_SOURCE = -77;
  OK(MPI_Iprobe(before, 4711, MPI_COMM_WORLD, &flag, &status));
  CHECK(!flag && status.MPI_SOURCE == -77);
}

/* A buffer as MPICH's overhead has it. */
static void buffered(void) {
  enum { kMessages = 200 };
  step = "buffered sends";
  const int room = kMessages * ((int)sizeof(int) + MPI_BSEND_OVERHEAD);
  void* const buffer = malloc((size_t)room);
  void* back = NULL;
  int size_back = 0, got = 0;
  OK(MPI_Buffer_attach(buffer, room));
  for (int i = 0; i < kMessages; ++i) OK(MPI_Bsend(&i, 1, MPI_INT, rank, 8, MPI_COMM_WORLD));
  for (int i = 0; i < kMessages; ++i) {
    OK(MPI_Recv(&got, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == i);
  }
  OK(MPI_Buffer_detach(&back, &size_back));
  CHECK(back == buffer && size_back == room);
  free(buffer);

#if defined(MPI_BUFFER_AUTOMATIC) /* MPICH 4.2 */
  step = "a buffer of MPI's own";
  OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
  OK(MPI_Comm_attach_buffer(MPI_COMM_SELF, MPI_BUFFER_AUTOMATIC, 0));
  for (int i = 0; i < kMessages; ++i) {
    OK(MPI_Bsend(&i, 1, MPI_INT, rank, 8, MPI_COMM_WORLD));
    OK(MPI_Bsend(&i, 1, MPI_INT, 0, 8, MPI_COMM_SELF));
  }
  for (int i = 0; i < kMessages; ++i) {
    OK(MPI_Recv(&got, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == i);
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 8, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(got == i);
  }
  OK(MPI_Buffer_detach(&back, &size_back));
  CHECK(back == MPI_BUFFER_AUTOMATIC && size_back == 0);
  OK(MPI_Comm_detach_buffer(MPI_COMM_SELF, &back, &size_back));
  CHECK(back == MPI_BUFFER_AUTOMATIC && size_back == 0);
#endif
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  statuses();
  requests();
  matched();
  buffered();
  return end_of_rank();
}
