/* The parts of MPI 5.0's binary interface that a program needs, written down without Ferry's mpi.h:
 * types, constants and prototypes from the standard alone. A program that includes this file is one
 * that was compiled for another library.
 */
#ifndef FERRY_TESTS_MPI_INDEPENDENT_ABI_H_
#define FERRY_TESTS_MPI_INDEPENDENT_ABI_H_

#include <stdint.h>

typedef struct {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR, hidden[5];
} MPI_Status;

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_Group* MPI_Group;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Request* MPI_Request;
typedef int64_t MPI_Count;
typedef void MPI_User_function(void*, void*, int*, MPI_Datatype*);

#define HANDLE(type, number) ((type)(uintptr_t)(number))

#define MPI_SUM HANDLE(MPI_Op, 33)
#define MPI_MIN HANDLE(MPI_Op, 34)
#define MPI_MAXLOC HANDLE(MPI_Op, 57)
#define MPI_COMM_NULL HANDLE(MPI_Comm, 256)
#define MPI_COMM_WORLD HANDLE(MPI_Comm, 257)
#define MPI_COMM_SELF HANDLE(MPI_Comm, 258)
#define MPI_GROUP_EMPTY HANDLE(MPI_Group, 265)
#define MPI_ERRORS_RETURN HANDLE(MPI_Errhandler, 323)
#define MPI_REQUEST_NULL HANDLE(MPI_Request, 384)
#define MPI_DATATYPE_NULL HANDLE(MPI_Datatype, 512)
#define MPI_INT HANDLE(MPI_Datatype, 521)
#define MPI_DOUBLE HANDLE(MPI_Datatype, 532)
#define MPI_DOUBLE_INT HANDLE(MPI_Datatype, 553)
#define MPI_BYTE HANDLE(MPI_Datatype, 583)
#define MPI_UINT64_T HANDLE(MPI_Datatype, 601)

#define MPI_IN_PLACE ((void*)1)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)

enum {
  MPI_SUCCESS = 0,
  MPI_ERR_RANK = 6,
  MPI_ERR_TRUNCATE = 15,
  MPI_ERR_UNSUPPORTED_OPERATION = 55,
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_PROC_NULL = -3,
  MPI_UNDEFINED = -32766,
  MPI_THREAD_MULTIPLE = 4096,
  MPI_IDENT = 201,
  MPI_CONGRUENT = 202,
  MPI_TAG_UB = 501,
  MPI_MAX_ERROR_STRING = 512,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192
};

int MPI_Init_thread(int*, char***, int, int*);
int MPI_Finalize(void);
int MPI_Get_version(int*, int*);
int MPI_Abi_get_version(int*, int*);
int MPI_Get_library_version(char*, int*);
int MPI_Error_string(int, char*, int*);
int MPI_Error_class(int, int*);
int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int MPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_dup(MPI_Comm, MPI_Comm*);
int MPI_Comm_free(MPI_Comm*);
int MPI_Comm_compare(MPI_Comm, MPI_Comm, int*);
int MPI_Comm_get_attr(MPI_Comm, int, void*, int*);
int MPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
int MPI_Recv_c(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
int MPI_Isend(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Irecv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Waitall(int, MPI_Request*, MPI_Status*);
int MPI_Get_count(const MPI_Status*, MPI_Datatype, int*);
int MPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype*);
int MPI_Type_commit(MPI_Datatype*);
int MPI_Type_free(MPI_Datatype*);
int MPI_Type_size(MPI_Datatype, int*);
int MPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Op_create(MPI_User_function*, int, MPI_Op*);
int MPI_Op_free(MPI_Op*);
int MPI_Comm_toint(MPI_Comm);
MPI_Comm MPI_Comm_fromint(int);
int MPI_Win_free(void*);
int PMPI_Comm_rank(MPI_Comm, int*);

#endif
