/* processes.h - MPI 5.0 chapter 11 (sessions, spawning and connecting processes):
 * declarations. See mpi.h.
 */
#ifndef FERRY_MPI_PROCESSES_H_
#define FERRY_MPI_PROCESSES_H_

#include "handles.h"

/* clang-format off: one call a line, or wrapped by parameters. */

/* ---- Sessions ---------------------------------------------------------------------------------
 */

FERRY_MPI(int, Session_finalize, (MPI_Session * session));
FERRY_MPI(int, Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session));
FERRY_MPI(int, Session_get_info, (MPI_Session session, MPI_Info* info_used));
FERRY_MPI(int, Session_get_nth_pset,
          (MPI_Session session, MPI_Info info, int n, int* pset_len, char* pset_name));
FERRY_MPI(int, Session_get_num_psets, (MPI_Session session, MPI_Info info, int* npset_names));
FERRY_MPI(int, Session_get_pset_info, (MPI_Session session, const char* pset_name, MPI_Info* info));
FERRY_MPI(int, Intercomm_create_from_groups,
          (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
           const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
           MPI_Comm* newintercomm));
FERRY_MPI(int, Comm_create_from_group,
          (MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
           MPI_Comm* newcomm));
FERRY_MPI(int, Group_from_session_pset,
          (MPI_Session session, const char* pset_name, MPI_Group* newgroup));
FERRY_MPI(int, Session_attach_buffer, (MPI_Session session, void* buffer, int size));
FERRY_MPI(int, Session_attach_buffer_c, (MPI_Session session, void* buffer, MPI_Count size));
FERRY_MPI(int, Session_detach_buffer, (MPI_Session session, void* buffer_addr, int* size));
FERRY_MPI(int, Session_detach_buffer_c, (MPI_Session session, void* buffer_addr, MPI_Count* size));
FERRY_MPI(int, Session_flush_buffer, (MPI_Session session));
FERRY_MPI(int, Session_iflush_buffer, (MPI_Session session, MPI_Request* request));

/* ---- Spawning and connecting ------------------------------------------------------------------
 */

FERRY_MPI(int, Comm_get_parent, (MPI_Comm * parent));
FERRY_MPI(int, Comm_spawn,
          (const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
           MPI_Comm* intercomm, int array_of_errcodes[]));
FERRY_MPI(int, Comm_spawn_multiple,
          (int count, char* array_of_commands[], char** array_of_argv[],
           const int array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm,
           MPI_Comm* intercomm, int array_of_errcodes[]));
FERRY_MPI(int, Close_port, (const char* port_name));
FERRY_MPI(int, Comm_accept,
          (const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm));
FERRY_MPI(int, Comm_connect,
          (const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm));
FERRY_MPI(int, Comm_disconnect, (MPI_Comm * comm));
FERRY_MPI(int, Comm_join, (int fd, MPI_Comm* intercomm));
FERRY_MPI(int, Open_port, (MPI_Info info, char* port_name));
FERRY_MPI(int, Lookup_name, (const char* service_name, MPI_Info info, char* port_name));
FERRY_MPI(int, Publish_name, (const char* service_name, MPI_Info info, const char* port_name));
FERRY_MPI(int, Unpublish_name, (const char* service_name, MPI_Info info, const char* port_name));

/* clang-format on */

#endif /* FERRY_MPI_PROCESSES_H_ */
