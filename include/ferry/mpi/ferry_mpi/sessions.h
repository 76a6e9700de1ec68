/* sessions.h - MPI 5.0 chapter 11 (the sessions model): declarations. See mpi.h. */
#ifndef FERRY_MPI_SESSIONS_H_
#define FERRY_MPI_SESSIONS_H_

#include "handles.h"

/* clang-format off */

/* ---- Sessions -------------------------------------------------------------------------------- */

FERRY_MPI(int, Session_finalize, (MPI_Session* session));
FERRY_MPI(int, Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session));
FERRY_MPI(int, Session_get_info, (MPI_Session session, MPI_Info* info_used));
FERRY_MPI(int, Session_get_nth_pset, (MPI_Session session, MPI_Info info, int n, int* pset_len,
          char* pset_name));
FERRY_MPI(int, Session_get_num_psets, (MPI_Session session, MPI_Info info, int* npset_names));
FERRY_MPI(int, Session_get_pset_info, (MPI_Session session, const char* pset_name, MPI_Info* info));

/* ---- Groups and communicators from process sets ---------------------------------------------- */

FERRY_MPI(int, Intercomm_create_from_groups, (MPI_Group local_group, int local_leader,
          MPI_Group remote_group, int remote_leader, const char* stringtag, MPI_Info info,
          MPI_Errhandler errhandler, MPI_Comm* newintercomm));
FERRY_MPI(int, Comm_create_from_group, (MPI_Group group, const char* stringtag, MPI_Info info,
          MPI_Errhandler errhandler, MPI_Comm* newcomm));
FERRY_MPI(int, Group_from_session_pset, (MPI_Session session, const char* pset_name,
          MPI_Group* newgroup));

/* ---- Buffers for buffered sends -------------------------------------------------------------- */

FERRY_MPI(int, Session_attach_buffer, (MPI_Session session, void* buffer, int size));
FERRY_MPI(int, Session_attach_buffer_c, (MPI_Session session, void* buffer, MPI_Count size));
FERRY_MPI(int, Session_detach_buffer, (MPI_Session session, void* buffer_addr, int* size));
FERRY_MPI(int, Session_detach_buffer_c, (MPI_Session session, void* buffer_addr, MPI_Count* size));
FERRY_MPI(int, Session_flush_buffer, (MPI_Session session));
FERRY_MPI(int, Session_iflush_buffer, (MPI_Session session, MPI_Request* request));

/* clang-format on */

#endif /* FERRY_MPI_SESSIONS_H_ */
