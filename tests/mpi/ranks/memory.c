/* Memory that MPI allocates, and its answers about kinds of memory. Run with 1 MiB of memory on
 * each device; the argument names the requested kinds.
 */
#include <ferry/ferry.h>
#include <stdint.h>

#include "tests/mpi/ranks/check.h"

static void* allocated(MPI_Aint bytes, MPI_Info info) {
  void* memory = NULL;
  OK(MPI_Alloc_mem(bytes, info, &memory));
  CHECK(memory != NULL);
  if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
  return memory;
}

static int fails(MPI_Aint bytes, MPI_Info info) {
  void* memory = NULL;
  const int error = MPI_Alloc_mem(bytes, info, &memory);
  CHECK(memory == NULL);
  if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
  return error;
}

static void host_memory(void) {
  step = "host memory";
  char* memory = allocated(100000, MPI_INFO_NULL);
  memset(memory, 1, 100000);
  OK(MPI_Free_mem(memory));
  OK(MPI_Free_mem(allocated(0, MPI_INFO_NULL)));
  OK(MPI_Free_mem(allocated((MPI_Aint)1 << 28, MPI_INFO_NULL))); /* more than the heap has */
  const char* const alignments[] = {"1", "64", "4096", "2097152"};
  const uintptr_t bytes[] = {1, 64, 4096, 2097152};
  for (int i = 0; i < 4; ++i) {
    memory = allocated(333, info_with("mpi_minimum_memory_alignment", alignments[i]));
    CHECK((uintptr_t)memory % bytes[i] == 0);
    memset(memory, 1, 333);
    OK(MPI_Free_mem(memory));
  }
  OK(MPI_Free_mem(allocated(8, info_with("colour", "red")))); /* a hint for another library */
}

static void memory_of_kinds(void) {
  step = "memory of other kinds";
  const int count = 1000;
  int sent[1000], got[1000], *device, *pinned;
  for (int i = 0; i < count; ++i) sent[i] = i * 7;
  memset(got, 0, sizeof(got));
  device = allocated(sizeof(sent), info_with("ferry_memory_kind", "device"));
  pinned = allocated(sizeof(sent), info_with("ferry_memory_kind", "pinned"));
  memcpy(pinned, sent, sizeof(sent));
  OK(MPI_Sendrecv(pinned, count, MPI_INT, 0, 1, device, count, MPI_INT, 0, 1, MPI_COMM_SELF,
                  MPI_STATUS_IGNORE));
  CHECK(ferry_memcpy(got, device, sizeof(got)) == FERRY_SUCCESS);
  CHECK(memcmp(sent, got, sizeof(got)) == 0);
  OK(MPI_Free_mem(device));
  OK(MPI_Free_mem(pinned));
  /* Host memory has room when a device has none. */
  expect_error(fails(2 << 20, info_with("ferry_memory_kind", "device")), MPI_ERR_NO_MEM, "device");
  OK(MPI_Free_mem(allocated(2 << 20, info_with("ferry_memory_kind", "host"))));
}

static void mistakes(void) {
  step = "mistakes";
  MPI_Info info = info_with("ferry_memory_kind", "device");
  OK(MPI_Info_set(info, "ferry_device", "99"));
  CHECK(fails(8, info) != MPI_SUCCESS);
  expect_error(fails(8, info_with("ferry_memory_kind", "gold")), MPI_ERR_INFO_VALUE,
               "ferry_memory_kind is \"gold\"");
  expect_error(fails(8, info_with("ferry_device", "-1")), MPI_ERR_INFO_VALUE,
               "ferry_device is \"-1\"");
  expect_error(fails(8, info_with("mpi_minimum_memory_alignment", "48")), MPI_ERR_INFO_VALUE,
               "must be a power of two");
  expect_error(fails(-5, MPI_INFO_NULL), MPI_ERR_ARG, "the size is -5");
  CHECK(MPI_Alloc_mem(8, MPI_INFO_NULL, NULL) == MPI_ERR_ARG);
  void* memory = NULL;
  CHECK(MPI_Alloc_mem(8, (MPI_Info)MPI_COMM_WORLD, &memory) == MPI_ERR_INFO && memory == NULL);
  CHECK(MPI_Free_mem(&info) == MPI_ERR_BASE);
}

static void kinds(const char* wanted) {
  step = "kinds of memory";
  const char* const assertion = "mpi_assert_memory_alloc_kinds";
  MPI_Comm comm;
  MPI_Info info = info_with(assertion, "system,ferry:device");
  CHECK(strcmp(hint_of(MPI_COMM_WORLD, "mpi_memory_alloc_kinds"), wanted) == 0);
  CHECK(strcmp(hint_of(MPI_COMM_WORLD, assertion), "none") == 0);
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
  CHECK(strcmp(hint_of(comm, assertion), "system,ferry:device") == 0);
  CHECK(strcmp(hint_of(comm, "mpi_memory_alloc_kinds"), wanted) == 0);
  OK(MPI_Info_set(info, assertion, "cuda:device")); /* there is no such memory */
  OK(MPI_Comm_set_info(comm, info));
  CHECK(strcmp(hint_of(comm, assertion), "system,ferry:device") == 0);
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(argc == 2);
  host_memory();
  memory_of_kinds();
  mistakes();
  kinds(argv[1]);
  return end_well("all memory was right");
}
