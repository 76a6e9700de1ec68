/* processes.h - MPI 5.0 chapter 11 (spawning and connecting processes): declarations. See mpi.h. */
#ifndef FERRY_MPI_PROCESSES_H_
#define FERRY_MPI_PROCESSES_H_

#include "handles.h"

/* clang-format off */

/* ---- Spawning -------------------------------------------------------------------------------- */

FERRY_MPI(int, Comm_get_parent, (MPI_Comm* parent));
FERRY_MPI(int, Comm_spawn, (const char* command, char* argv[], int maxprocs, MPI_Info info,
          int root, MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]));
FERRY_MPI(int, Comm_spawn_multiple, (int count, char* array_of_commands[], char** array_of_argv[],
          const int array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm,
          MPI_Comm* intercomm, int array_of_errcodes[]));

/* ---- Connecting ------------------------------------------------------------------------------ */

FERRY_MPI(int, Close_port, (const char* port_name));
FERRY_MPI(int, Comm_accept, (const char* port_name, MPI_Info info, int root, MPI_Comm comm,
          MPI_Comm* newcomm));
FERRY_MPI(int, Comm_connect, (const char* port_name, MPI_Info info, int root, MPI_Comm comm,
          MPI_Comm* newcomm));
FERRY_MPI(int, Comm_disconnect, (MPI_Comm* comm));
FERRY_MPI(int, Comm_join, (int fd, MPI_Comm* intercomm));
FERRY_MPI(int, Open_port, (MPI_Info info, char* port_name));

/* ---- Names ----------------------------------------------------------------------------------- */

FERRY_MPI(int, Lookup_name, (const char* service_name, MPI_Info info, char* port_name));
FERRY_MPI(int, Publish_name, (const char* service_name, MPI_Info info, const char* port_name));
FERRY_MPI(int, Unpublish_name, (const char* service_name, MPI_Info info, const char* port_name));

/* clang-format on */

#endif /* FERRY_MPI_PROCESSES_H_ */
