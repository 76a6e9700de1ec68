/* environment.h - MPI 5.0 chapters 9 (environment), 10 (info), 11 (start and end) and the calls of
 * chapter 20 (binary interface): declarations. See mpi.h.
 */
#ifndef FERRY_MPI_ENVIRONMENT_H_
#define FERRY_MPI_ENVIRONMENT_H_

#include "callbacks.h"

/* clang-format off */

/* ---- Start and end --------------------------------------------------------------------------- */

FERRY_MPI(int, Init, (int* argc, char*** argv));
FERRY_MPI(int, Init_thread, (int* argc, char*** argv, int required, int* provided));
FERRY_MPI(int, Query_thread, (int* provided));
FERRY_MPI(int, Is_thread_main, (int* flag));
FERRY_MPI(int, Initialized, (int* flag));
FERRY_MPI(int, Finalize, (void));
FERRY_MPI(int, Finalized, (int* flag));
FERRY_MPI(int, Abort, (MPI_Comm comm, int errorcode));
FERRY_MPI(int, Pcontrol, (const int level, ...));

/* ---- Versions, place and clock --------------------------------------------------------------- */

FERRY_MPI(int, Get_version, (int* version, int* subversion));
FERRY_MPI(int, Get_library_version, (char* version, int* resultlen));
FERRY_MPI(int, Get_processor_name, (char* name, int* resultlen));
FERRY_MPI(int, Get_hw_resource_info, (MPI_Info* hw_info));
FERRY_MPI(double, Wtick, (void));
FERRY_MPI(double, Wtime, (void));

/* ---- The binary interface -------------------------------------------------------------------- */

FERRY_MPI(int, Abi_get_version, (int* abi_major, int* abi_minor));
FERRY_MPI(int, Abi_get_info, (MPI_Info* info));
FERRY_MPI(int, Abi_get_fortran_info, (MPI_Info* info));
FERRY_MPI(int, Abi_set_fortran_info, (MPI_Info info));
FERRY_MPI(int, Abi_get_fortran_booleans, (int logical_size, void* logical_true, void* logical_false,
          int* is_set));
FERRY_MPI(int, Abi_set_fortran_booleans, (int logical_size, void* logical_true,
          void* logical_false));

/* ---- Memory ---------------------------------------------------------------------------------- */

FERRY_MPI(int, Alloc_mem, (MPI_Aint size, MPI_Info info, void* baseptr));
FERRY_MPI(int, Free_mem, (void* base));

/* ---- Info objects; the last two are deprecated ----------------------------------------------- */

FERRY_MPI(int, Info_create, (MPI_Info* info));
FERRY_MPI(int, Info_create_env, (int argc, char* argv[], MPI_Info* info));
FERRY_MPI(int, Info_delete, (MPI_Info info, const char* key));
FERRY_MPI(int, Info_dup, (MPI_Info info, MPI_Info* newinfo));
FERRY_MPI(int, Info_free, (MPI_Info* info));
FERRY_MPI(int, Info_get_nkeys, (MPI_Info info, int* nkeys));
FERRY_MPI(int, Info_get_nthkey, (MPI_Info info, int n, char* key));
FERRY_MPI(int, Info_get_string, (MPI_Info info, const char* key, int* buflen, char* value,
          int* flag));
FERRY_MPI(int, Info_set, (MPI_Info info, const char* key, const char* value));
FERRY_MPI(int, Info_get_valuelen, (MPI_Info info, const char* key, int* valuelen, int* flag));
FERRY_MPI(int, Info_get, (MPI_Info info, const char* key, int valuelen, char* value, int* flag));

/* ---- Error handlers -------------------------------------------------------------------------- */

FERRY_MPI(int, Comm_call_errhandler, (MPI_Comm comm, int errorcode));
FERRY_MPI(int, Comm_create_errhandler, (MPI_Comm_errhandler_function* comm_errhandler_fn,
          MPI_Errhandler* errhandler));
FERRY_MPI(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler));
FERRY_MPI(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler));
FERRY_MPI(int, Session_call_errhandler, (MPI_Session session, int errorcode));
FERRY_MPI(int, Session_create_errhandler, (MPI_Session_errhandler_function* session_errhandler_fn,
          MPI_Errhandler* errhandler));
FERRY_MPI(int, Session_get_errhandler, (MPI_Session session, MPI_Errhandler* errhandler));
FERRY_MPI(int, Session_set_errhandler, (MPI_Session session, MPI_Errhandler errhandler));
FERRY_MPI(int, Win_call_errhandler, (MPI_Win win, int errorcode));
FERRY_MPI(int, Win_create_errhandler, (MPI_Win_errhandler_function* win_errhandler_fn,
          MPI_Errhandler* errhandler));
FERRY_MPI(int, Win_get_errhandler, (MPI_Win win, MPI_Errhandler* errhandler));
FERRY_MPI(int, Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler));
FERRY_MPI(int, File_call_errhandler, (MPI_File fh, int errorcode));
FERRY_MPI(int, File_create_errhandler, (MPI_File_errhandler_function* file_errhandler_fn,
          MPI_Errhandler* errhandler));
FERRY_MPI(int, File_get_errhandler, (MPI_File file, MPI_Errhandler* errhandler));
FERRY_MPI(int, File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler));
FERRY_MPI(int, Errhandler_free, (MPI_Errhandler* errhandler));

/* ---- Error codes and classes ----------------------------------------------------------------- */

FERRY_MPI(int, Error_class, (int errorcode, int* errorclass));
FERRY_MPI(int, Error_string, (int errorcode, char* string, int* resultlen));
FERRY_MPI(int, Add_error_class, (int* errorclass));
FERRY_MPI(int, Add_error_code, (int errorclass, int* errorcode));
FERRY_MPI(int, Add_error_string, (int errorcode, const char* string));
FERRY_MPI(int, Remove_error_class, (int errorclass));
FERRY_MPI(int, Remove_error_code, (int errorcode));
FERRY_MPI(int, Remove_error_string, (int errorcode));

/* ---- Handles as integers --------------------------------------------------------------------- */

FERRY_MPI(int, Comm_toint, (MPI_Comm comm));
FERRY_MPI(int, Errhandler_toint, (MPI_Errhandler errhandler));
FERRY_MPI(int, File_toint, (MPI_File file));
FERRY_MPI(int, Group_toint, (MPI_Group group));
FERRY_MPI(int, Info_toint, (MPI_Info info));
FERRY_MPI(int, Message_toint, (MPI_Message message));
FERRY_MPI(int, Op_toint, (MPI_Op op));
FERRY_MPI(int, Request_toint, (MPI_Request request));
FERRY_MPI(int, Session_toint, (MPI_Session session));
FERRY_MPI(int, Type_toint, (MPI_Datatype datatype));
FERRY_MPI(int, Win_toint, (MPI_Win win));
FERRY_MPI(MPI_Comm, Comm_fromint, (int comm));
FERRY_MPI(MPI_Errhandler, Errhandler_fromint, (int errhandler));
FERRY_MPI(MPI_File, File_fromint, (int file));
FERRY_MPI(MPI_Group, Group_fromint, (int group));
FERRY_MPI(MPI_Info, Info_fromint, (int info));
FERRY_MPI(MPI_Message, Message_fromint, (int message));
FERRY_MPI(MPI_Op, Op_fromint, (int op));
FERRY_MPI(MPI_Request, Request_fromint, (int request));
FERRY_MPI(MPI_Session, Session_fromint, (int session));
FERRY_MPI(MPI_Datatype, Type_fromint, (int datatype));
FERRY_MPI(MPI_Win, Win_fromint, (int win));

/* clang-format on */

#endif /* FERRY_MPI_ENVIRONMENT_H_ */
