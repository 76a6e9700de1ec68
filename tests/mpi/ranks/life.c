/* MPI programs begin and end, in the way that the argument names, also when something is wrong. Run
 * by two ranks.
 */
#include "tests/mpi/ranks/check.h"

static void live(int* argc, char*** argv) {
  int flag = -1, version, subversion, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Get_version(&version, &subversion)); /* allowed at any time */
  CHECK(version == 5 && subversion == 0);
  OK(MPI_Get_library_version(text, &length));
  CHECK(strncmp(text, "Ferry ", 6) == 0 && length == (int)strlen(text));
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK(version == 1 && subversion == 0);
  OK(MPI_Init(argc, argv));
  OK(MPI_Initialized(&flag));
  CHECK(flag);
  OK(MPI_Finalized(&flag));
  CHECK(!flag);
  rank = rank_in(MPI_COMM_WORLD);
}

static void whole_life(int argc, char** argv) {
  int flag, length;
  char name[MPI_MAX_PROCESSOR_NAME];
  double now, later;
  live(&argc, &argv);
  OK(MPI_Get_processor_name(name, &length));
  CHECK(length > 0 && length == (int)strlen(name));
  now = MPI_Wtime();
  while ((later = MPI_Wtime()) == now) {
  }
  CHECK(later > now && MPI_Wtick() > 0 && MPI_Wtick() < 0.001);
  OK(MPI_Pcontrol(1));
  OK(MPI_Finalize());
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  OK(MPI_Initialized(&flag)); /* it says whether MPI_Init was ever called */
  CHECK(flag);
  puts("a whole life");
}

/* Requests that the program still has when it calls MPI_Finalize. */
static void leave_requests(void) {
  static int numbers[8];
  MPI_Request sent, received, requests[6];
  OK(MPI_Send_init(numbers, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Ssend_init(numbers, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Bsend_init(numbers, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Recv_init(numbers, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests[3]));
  OK(MPI_Recv_init(numbers, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[4]));
  OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]));
  /* Started once, and completed. */
  OK(MPI_Send_init(numbers, 2, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &sent));
  OK(MPI_Recv_init(numbers + 2, 2, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &received));
  OK(MPI_Start(&received));
  OK(MPI_Start(&sent));
  OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&received, MPI_STATUS_IGNORE));
  OK(MPI_Allreduce_init(numbers, numbers + 4, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &requests[0]));
  OK(MPI_Start(&requests[0]));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  /* No message comes for it. */
  OK(MPI_Irecv(numbers + 6, 1, MPI_INT, 1 - rank, 99, MPI_COMM_WORLD, &requests[1]));
}

/* Rank 0 ends while its message still waits in the buffer of a freed communicator. */
static void leave_buffers(void) {
  static char attached[(1 << 21) + MPI_BSEND_OVERHEAD], data[1 << 21], own[1 << 12];
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_attach_buffer(comm, attached, sizeof(attached)));
  OK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, own, sizeof(own)));
  if (rank == 0) {
    memset(data, 'b', sizeof(data));
    OK(MPI_Bsend(data, sizeof(data), MPI_CHAR, 1, 0, comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Bsend(data, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv(data, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(data, sizeof(data), MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE));
    CHECK(data[0] == 'b' && data[sizeof(data) - 1] == 'b');
    OK(MPI_Comm_free(&comm));
  }
}

/* Other processes cannot join the job: each call says what to do, to its communicator's handler. */
static void refuse_processes(void) {
  const int unsupported = MPI_ERR_UNSUPPORTED_OPERATION;
  const char* const together = "have ferryrun start them all, several programs with colons";
  const char* const one_job = "start both programs as one job";
  char* commands[] = {"worker", "worker"};
  const int ones[] = {1, 1};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm comm = MPI_COMM_NULL;
  step = "processes of another job";
  return_errors();
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)); /* it hears of none of these */
  expect_error(MPI_Comm_spawn("worker", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm,
                              MPI_ERRCODES_IGNORE),
               unsupported, together);
  expect_error(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, ones, infos, 0, MPI_COMM_WORLD,
                                       &comm, MPI_ERRCODES_IGNORE),
               unsupported, together);
  expect_error(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm), unsupported,
               one_job);
  expect_error(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm), unsupported,
               one_job);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  expect_error(MPI_Comm_spawn("worker", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_NULL, &comm,
                              MPI_ERRCODES_IGNORE),
               MPI_ERR_COMM, "MPI_COMM_NULL");
  expect_error(MPI_Open_port(MPI_INFO_NULL, port), unsupported, one_job);
  expect_error(MPI_Close_port(port), unsupported, one_job);
  expect_error(MPI_Comm_join(0, &comm), unsupported, one_job);
  expect_error(MPI_Publish_name("service", MPI_INFO_NULL, port), unsupported, one_job);
  expect_error(MPI_Unpublish_name("service", MPI_INFO_NULL, port), unsupported, one_job);
  expect_error(MPI_Lookup_name("service", MPI_INFO_NULL, port), unsupported, one_job);
}

int main(int argc, char** argv) {
  int data = 0;
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "whole") == 0) {
    whole_life(argc, argv);
  } else if (strcmp(what, "requests") == 0 || strcmp(what, "buffers") == 0) {
    live(&argc, &argv);
    if (what[0] == 'r') leave_requests();
    if (what[0] == 'b') leave_buffers();
    OK(MPI_Finalize());
    puts("nothing is missed");
  } else if (strcmp(what, "spawn") == 0) {
    live(&argc, &argv);
    refuse_processes();
    OK(MPI_Finalize());
    puts("nobody else comes");
  } else if (strcmp(what, "abort") == 0) {
    live(&argc, &argv);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, argc > 2 ? atoi(argv[2]) : 42);
    MPI_Recv(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it never comes */
  } else if (strcmp(what, "fatal") == 0) {
    live(&argc, &argv);
    if (rank == 0) MPI_Send(&data, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    MPI_Recv(&data, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "before") == 0) {
    MPI_Send(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  } else if (strcmp(what, "after") == 0) {
    live(&argc, &argv);
    MPI_Finalize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  } else if (strcmp(what, "again") == 0) {
    live(&argc, &argv);
    MPI_Finalize();
    MPI_Init(&argc, &argv);
  } else if (strcmp(what, "dies") == 0) {
    /* A rank ends without leaving MPI: the ranks that wait for it hear of it. */
    live(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (rank == 1) { /* not before the other has joined */
      MPI_Recv(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      _Exit(0);
    }
    OK(MPI_Send(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    data = MPI_Recv(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("class %d\n", data);
    fflush(stdout);
    _Exit(0);
  } else {
    fprintf(stderr,
            "usage: life whole|requests|buffers|spawn|abort|fatal|before|after|again|dies\n");
    return 2;
  }
  return 0;
}
