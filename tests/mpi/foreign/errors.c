/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: errors, handles that are none, generalised requests,
 * and the tool interface.
 */
#include <dlfcn.h>

#include "tests/mpi/foreign/interface.h"

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

/* Not in all headers. */
int MPIX_Query_cuda_support(void);

/* ---- Before MPI_Init ------------------------------------------------------------------------- */

static void before_init(void) {
  step = "calls before MPI_Init";
  int flag = -1, count = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING], value[8] = "";
  OK(MPI_Initialized(&flag));
  CHECK(flag == 0);
  OK(MPI_Finalized(&flag));
  CHECK(flag == 0);
  OK(MPI_Get_library_version(text, &count));
  CHECK(strstr(text, "Ferry ") != NULL && MPIX_Query_cuda_support() == 0);
#if MPI_VERSION >= 4
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "colour", "blue"));
  OK(MPI_Info_get(info, "colour", 7, value, &flag));
  CHECK(flag == 1 && strcmp(value, "blue") == 0);
  OK(MPI_Info_free(&info));
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
  OK(MPI_Comm_create_from_group(group, "here", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Comm_size(comm, &count));
  CHECK(count == 1);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Group_free(&group));
  OK(MPI_Session_finalize(&session));
  CHECK(session == MPI_SESSION_NULL);
  OK(MPI_Initialized(&flag));
  CHECK(flag == 0);
#else
  (void)value;
#endif
}

/* ---- Versions -------------------------------------------------------------------------------- */

static void versions(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING], name[MPI_MAX_PROCESSOR_NAME];
  int length = 0, major = 0, minor = 0;
  step = "versions";
  OK(MPI_Get_library_version(text, &length));
  CHECK(strncmp(text, LIBRARY_VERSION, strlen(LIBRARY_VERSION)) == 0 &&
        strstr(text, "Ferry ") != NULL);
  CHECK(length == (int)strlen(text));
  OK(MPI_Get_version(&major, &minor));
  /* Not older than the header, which may be that of an older library. */
  CHECK(100 * major + minor == LIBRARY_STANDARD);
  CHECK(LIBRARY_STANDARD >= 100 * MPI_VERSION + MPI_SUBVERSION);
  OK(MPI_Get_processor_name(name, &length));
  CHECK(length == (int)strlen(name) && length > 0 && length < MPI_MAX_PROCESSOR_NAME);
  int level = -1;
  /* These libraries do not have the standard's interface. */
  int (*const abi_version)(int*, int*) = (int (*)(int*, int*))dlsym(NULL, "MPI_Abi_get_version");
  CHECK(abi_version != NULL);
  OK(abi_version(&major, &minor));
  CHECK(major == -1 && minor == -1);
  CHECK(MPIX_Query_cuda_support() == 0);
  OK(MPI_Query_thread(&level));
  CHECK(level == MPI_THREAD_MULTIPLE);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static MPI_Comm failed;
static int failure;

static void note_failure(MPI_Comm* comm, int* code, ...) {
  failed = *comm;
  failure = *code;
}

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)in, (void)inout, (void)length, (void)type;
}

/* Of the kinds of objects that have no state of other ranks. Each is freed twice, too. */
static void more_freed_handles(void) {
  int value = 0, own = 0;
  MPI_Group group, freed_group;
  OK(MPI_Comm_group(MPI_COMM_SELF, &group));
  OK(MPI_Group_incl(group, 1, &value, &freed_group));
  OK(MPI_Group_free(&group));
  group = freed_group;
  OK(MPI_Group_free(&group));
  CHECK(MPI_Group_size(freed_group, &own) == MPI_ERR_GROUP);
  CHECK(MPI_Group_free(&freed_group) == MPI_ERR_GROUP);

  MPI_Op op, freed_op;
  OK(MPI_Op_create(add, 1, &op));
  freed_op = op;
  OK(MPI_Op_free(&op));
  CHECK(MPI_Allreduce(&value, &own, 1, MPI_INT, freed_op, MPI_COMM_SELF) == MPI_ERR_OP);
  CHECK(MPI_Op_free(&freed_op) == MPI_ERR_OP);

  MPI_Info info, freed_info;
  OK(MPI_Info_create(&info));
  freed_info = info;
  OK(MPI_Info_free(&info));
  CHECK(MPI_Info_get_nkeys(freed_info, &own) == MPI_ERR_INFO);
  CHECK(MPI_Info_set(freed_info, "key", "value") == MPI_ERR_INFO);
  CHECK(MPI_Info_free(&freed_info) == MPI_ERR_INFO);

  MPI_Request request, freed_request;
  OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
  freed_request = request;
  OK(MPI_Request_free(&request));
  request = freed_request;
  CHECK(MPI_Start(&request) == MPI_ERR_REQUEST && request == freed_request);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST && request == freed_request);
  CHECK(MPI_Request_free(&request) == MPI_ERR_REQUEST);

  MPI_Errhandler handler, freed_handler;
  OK(MPI_Comm_create_errhandler(note_failure, &handler));
  freed_handler = handler;
  OK(MPI_Errhandler_free(&handler));
  /* MPI_ERR_ERRHANDLER, which older headers do not have. */
  CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, freed_handler) == 80);
  CHECK(MPI_Errhandler_free(&freed_handler) == 80);

  MPI_Win window, freed_window;
  OK(MPI_Win_create(&value, sizeof(value), 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
  freed_window = window;
  OK(MPI_Win_free(&window));
  CHECK(MPI_Win_fence(0, freed_window) == MPI_ERR_WIN);
  CHECK(MPI_Win_free(&freed_window) == MPI_ERR_WIN);

  MPI_File file, freed_file;
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  freed_file = file;
  OK(MPI_File_close(&file));
  CHECK(MPI_File_get_amode(freed_file, &own) == MPI_ERR_FILE);
  CHECK(MPI_File_close(&freed_file) == MPI_ERR_FILE);
}

/* Numbers where a handle belongs: those of other interfaces, and mistakes. */
static void no_handles(void) {
  step = "handles that are none, or of another interface";
#if defined(IS_OPEN_MPI)
  const intptr_t wrong[] = {0, 1, 2, 0x101, 0x209, 1023, 4095};
#else
  const int wrong[] = {0, -1, 1, 0x101, 0x209, 0x12345678, 0x44000007, 0xc4ffffff, 0x7fffffff};
#endif
  int value = 0;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    int own = -7;
    MPI_Request request = (MPI_Request)wrong[i];
    CHECK(MPI_Comm_rank((MPI_Comm)wrong[i], &own) == MPI_ERR_COMM && own == -7);
    CHECK(MPI_Send(&value, 1, (MPI_Datatype)wrong[i], 0, 0, MPI_COMM_SELF) == MPI_ERR_TYPE);
    CHECK(MPI_Allreduce(&value, &own, 1, MPI_INT, (MPI_Op)wrong[i], MPI_COMM_SELF) == MPI_ERR_OP);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST &&
          request == (MPI_Request)wrong[i]);
    CHECK(MPI_Group_size((MPI_Group)wrong[i], &own) == MPI_ERR_GROUP);
    CHECK(MPI_Win_fence(0, (MPI_Win)wrong[i]) == MPI_ERR_WIN);
    CHECK(MPI_Info_get_nkeys((MPI_Info)wrong[i], &own) == MPI_ERR_INFO);
  }
  void* found = NULL;
  int flag = 0;
  const int keyvals[] = {-2, 501, 601, 0x101, 0x12345678, 0x7fffffff};
  for (size_t i = 0; i < sizeof(keyvals) / sizeof(keyvals[0]); ++i) {
    CHECK(MPI_Comm_get_attr(MPI_COMM_SELF, keyvals[i], &found, &flag) == MPI_ERR_KEYVAL);
  }

  step = "handles that were freed";
  MPI_Comm comm, freed_comm;
  MPI_Datatype type, freed_type;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  freed_comm = comm;
  freed_type = type;
  OK(MPI_Comm_free(&comm));
  OK(MPI_Type_free(&type));
  CHECK(MPI_Comm_rank(freed_comm, &flag) == MPI_ERR_COMM);
  CHECK(MPI_Type_size(freed_type, &flag) == MPI_ERR_TYPE);
  more_freed_handles();
}

/* Of a data representation: ints take 8 bytes. */
static int eight_bytes(MPI_Datatype type, MPI_Aint* extent, void* calls) {
  CHECK(type == MPI_INT);
  ++*(int*)calls;
  *extent = 8;
  return MPI_SUCCESS;
}

/* Constants of the standard's interface, or of the other library, are none here. */
static void wrong_constants(void) {
  step = "constants of another interface";
  MPI_Comm comm;
  MPI_Datatype type;
  const int two = 2, one = 1, zero = 0;
  CHECK(MPI_Comm_split_type(MPI_COMM_SELF, 221, 0, MPI_INFO_NULL, &comm) == MPI_ERR_ARG);
  CHECK(MPI_Type_create_subarray(1, &two, &one, &zero, 12, MPI_INT, &type) == MPI_ERR_ARG);
#if defined(IS_OPEN_MPI)
  const int theirs = 56;
#else
  const int theirs = 1;
#endif
  CHECK(MPI_Type_create_subarray(1, &two, &one, &zero, theirs, MPI_INT, &type) == MPI_ERR_ARG);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_SELF, "/dev/null", 16 | 4096, MPI_INFO_NULL, &file) ==
        MPI_ERR_AMODE);
  int value = 0, flag = 0;
  MPI_Win window;
  OK(MPI_Win_create(&value, sizeof(value), 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
  OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
  CHECK(MPI_Win_lock(301, 0, 0, window) == MPI_ERR_LOCKTYPE);
  CHECK(MPI_Win_fence(1 << 20, window) == MPI_ERR_ASSERT);
  OK(MPI_Win_free(&window));
  void* found = NULL;
  CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, 501, &found, &flag) == MPI_ERR_KEYVAL);
}

static void errors(void) {
  step = "errors";
  int value = 0, class_of = -1, added = 0, code = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  expect_error(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "MPI_Send");
  expect_error(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
  expect_error(MPI_Send(&value, 1, MPI_INT, -9, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "rank");
  expect_error(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT, "root");
  expect_error(MPI_Send(&value, 1, MPI_INT, -4, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "rank");
  expect_error(MPI_Send(&value, 1, MPI_INT, 0, -2, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
  CHECK(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
  CHECK(MPI_Type_commit(&type) == MPI_ERR_TYPE && type == MPI_DATATYPE_NULL);
  CHECK(MPI_Op_free(&(MPI_Op){MPI_SUM}) == MPI_ERR_OP);

  no_handles();
  wrong_constants();
  CHECK(MPI_Comm_rank(MPI_COMM_NULL, &value) == MPI_ERR_COMM);
  CHECK(MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &value) == MPI_ERR_TYPE);

  step = "an error handler of the program's own";
  MPI_Errhandler handler, now;
  OK(MPI_Comm_create_errhandler(note_failure, &handler));
  OK(MPI_Errhandler_set(MPI_COMM_SELF, handler));
  OK(MPI_Errhandler_get(MPI_COMM_SELF, &now));
  CHECK(now != MPI_ERRHANDLER_NULL && now != MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&now));
  CHECK(MPI_Send(&value, 1, MPI_INT, 3, 0, MPI_COMM_SELF) == MPI_ERR_RANK);
  CHECK(failed == MPI_COMM_SELF && failure == MPI_ERR_RANK);
  OK(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TRUNCATE));
  CHECK(failure == MPI_ERR_TRUNCATE);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &now));
  CHECK(now == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&handler));
  CHECK(handler == MPI_ERRHANDLER_NULL);

  step = "a message that is too long";
  MPI_Request pair[2];
  MPI_Status of[2];
  int two[2] = {1, 2};
  OK(MPI_Irecv(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &pair[0]));
  OK(MPI_Isend(two, 2, MPI_INT, rank, 6, MPI_COMM_WORLD, &pair[1]));
  CHECK(MPI_Waitall(2, pair, of) == MPI_ERR_IN_STATUS);
  CHECK(of[0].MPI_ERROR == MPI_ERR_TRUNCATE && of[1].MPI_ERROR == MPI_SUCCESS);

  step = "error codes of the program's own";
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  OK(MPI_Add_error_class(&added));
  OK(MPI_Add_error_code(added, &code));
  OK(MPI_Add_error_string(code, "the ship is late"));
  OK(MPI_Error_class(code, &class_of));
  OK(MPI_Error_string(code, text, &length));
  CHECK(added > MPI_ERR_LASTCODE && class_of == added && strcmp(text, "the ship is late") == 0);
  OK(MPI_Error_class(MPI_ERR_OTHER, &class_of));
  CHECK(class_of == MPI_ERR_OTHER);

  step = "files";
  /* What a handle that is made holds before is nobody's address. */
  MPI_File file;
  memset(&file, 0xA5, sizeof(file));
  expect_error(MPI_File_open(MPI_COMM_SELF, "/dev/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
               MPI_ERR_NO_SUCH_FILE, "/dev/none");
  CHECK(file == MPI_FILE_NULL);
  memset(&file, 0xA5, sizeof(file));
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, of));
  int written = 0;
  OK(MPI_Get_count(of, MPI_INT, &written));
  CHECK(written == 1 && MPI_File_f2c(MPI_File_c2f(file)) == file);
  int amode = 0;
  OK(MPI_File_get_amode(file, &amode));
  CHECK(amode == MPI_MODE_RDWR);
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  OK(MPI_Register_datarep("eight", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, eight_bytes,
                          &value));
  CHECK(MPI_Register_datarep("eight", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, eight_bytes,
                             &value) == MPI_ERR_DUP_DATAREP);
  OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "eight", MPI_INFO_NULL));
  MPI_Aint in_file = 0;
  value = 0;
  OK(MPI_File_get_type_extent(file, MPI_INT, &in_file));
  CHECK(in_file == 8 && value > 0);
  OK(MPI_File_close(&file));

  step = "what Ferry does not have";
  MPI_Comm spawned;
  CHECK(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &spawned,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS);
}

/* ---- Generalised requests -------------------------------------------------------------------- */

static int query(void* extra, MPI_Status* status) {
  CHECK(extra == &failure);
  status->MPI_SOURCE = MPI_PROC_NULL;
  status->MPI_TAG = 31;
  OK(MPI_Status_set_elements(status, MPI_INT, 6));
  OK(MPI_Status_set_cancelled(status, 0));
  return MPI_SUCCESS;
}
static int freed;
static int free_state(void* extra) {
  CHECK(extra == &failure);
  ++freed;
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  (void)extra, (void)complete;
  return MPI_SUCCESS;
}

static void generalised(void) {
  step = "generalised requests";
  MPI_Request request;
  MPI_Status status;
  OK(MPI_Grequest_start(query, free_state, cancel, &failure, &request));
  OK(MPI_Grequest_complete(request));
  OK(MPI_Wait(&request, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 31 && freed == 1);
  CHECK(count_of(&status, MPI_INT) == 6 && request == MPI_REQUEST_NULL);
}

/* ---- The tool interface ---------------------------------------------------------------------- */

static void tools(void) {
  step = "the tool interface";
  int level = -1, count = 0;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
  CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
  OK(MPI_T_cvar_get_num(&count));
  CHECK(count > 0);
  char name[256], text[1024];
  int name_room = sizeof(name), text_room = sizeof(text), verbosity = 0, bind = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum values;
  OK(MPI_T_cvar_get_info(0, name, &name_room, &verbosity, &type, &values, text, &text_room, &bind,
                         &scope));
  CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
  CHECK(bind == MPI_T_BIND_NO_OBJECT && scope >= MPI_T_SCOPE_CONSTANT);
  CHECK(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG_LONG ||
        type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED || type == MPI_DOUBLE);
  CHECK(MPI_T_cvar_get_info(1 << 20, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
        MPI_T_ERR_INVALID_INDEX);
  OK(MPI_T_finalize());
}

/* ---- What only newer releases of the other library have ------------------------------------- */

static void newer(void) {
#if defined(MPIX_STREAM_NULL) /* MPICH 4.2 */
  step = "a call of MPICH that Ferry does not have";
  MPIX_Stream stream;
  CHECK(MPIX_Stream_create(MPI_INFO_NULL, &stream) == MPI_ERR_UNSUPPORTED_OPERATION);
#elif defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
  step = "hints of a session";
  MPI_Session session;
  MPI_Info info;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Info_create(&info));
  OK(MPI_Session_set_info(session, info));
  CHECK(MPI_Session_set_info(MPI_SESSION_NULL, info) == MPI_ERR_SESSION);
  CHECK(MPI_Session_set_info(session, MPI_INFO_NULL) == MPI_ERR_INFO);
  OK(MPI_Info_free(&info));
  OK(MPI_Session_finalize(&session));
  step = "a call of Open MPI that Ferry does not have";
  int flag = 0;
  CHECK(MPIX_Comm_is_revoked(MPI_COMM_SELF, &flag) == MPI_ERR_UNSUPPORTED_OPERATION);
#endif
}

int main(int argc, char** argv) {
  before_init();
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  versions();
  errors();
  generalised();
  tools();
  newer();
  return end_of_rank();
}
