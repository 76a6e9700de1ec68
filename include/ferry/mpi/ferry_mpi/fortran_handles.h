/* fortran_handles.h - the older names of the conversions between handles and the integers of
 * Fortran, and the conversions of statuses (MPI 5.0, chapters 19 and 20). See mpi.h.
 *
 * The binary interface leaves both to the binding for Fortran, so they need no name of libmpi_abi:
 * a program that was compiled with them runs on every library of that interface. libmpifort_abi has
 * them as functions too, for programs that declare them on their own.
 */
#ifndef FERRY_MPI_FORTRAN_HANDLES_H_
#define FERRY_MPI_FORTRAN_HANDLES_H_

#include "constants.h"
#include "environment.h"
#include "handles.h"

/* clang-format off */

#define MPI_Comm_c2f(comm)              MPI_Comm_toint(comm)
#define MPI_Comm_f2c(number)            MPI_Comm_fromint(number)
#define MPI_Errhandler_c2f(errhandler)  MPI_Errhandler_toint(errhandler)
#define MPI_Errhandler_f2c(number)      MPI_Errhandler_fromint(number)
#define MPI_File_c2f(file)              MPI_File_toint(file)
#define MPI_File_f2c(number)            MPI_File_fromint(number)
#define MPI_Group_c2f(group)            MPI_Group_toint(group)
#define MPI_Group_f2c(number)           MPI_Group_fromint(number)
#define MPI_Info_c2f(info)              MPI_Info_toint(info)
#define MPI_Info_f2c(number)            MPI_Info_fromint(number)
#define MPI_Message_c2f(message)        MPI_Message_toint(message)
#define MPI_Message_f2c(number)         MPI_Message_fromint(number)
#define MPI_Op_c2f(op)                  MPI_Op_toint(op)
#define MPI_Op_f2c(number)              MPI_Op_fromint(number)
#define MPI_Request_c2f(request)        MPI_Request_toint(request)
#define MPI_Request_f2c(number)         MPI_Request_fromint(number)
#define MPI_Session_c2f(session)        MPI_Session_toint(session)
#define MPI_Session_f2c(number)         MPI_Session_fromint(number)
#define MPI_Type_c2f(datatype)          MPI_Type_toint(datatype)
#define MPI_Type_f2c(number)            MPI_Type_fromint(number)
#define MPI_Win_c2f(win)                MPI_Win_toint(win)
#define MPI_Win_f2c(number)             MPI_Win_fromint(number)

#define PMPI_Comm_c2f(comm)             PMPI_Comm_toint(comm)
#define PMPI_Comm_f2c(number)           PMPI_Comm_fromint(number)
#define PMPI_Errhandler_c2f(errhandler) PMPI_Errhandler_toint(errhandler)
#define PMPI_Errhandler_f2c(number)     PMPI_Errhandler_fromint(number)
#define PMPI_File_c2f(file)             PMPI_File_toint(file)
#define PMPI_File_f2c(number)           PMPI_File_fromint(number)
#define PMPI_Group_c2f(group)           PMPI_Group_toint(group)
#define PMPI_Group_f2c(number)          PMPI_Group_fromint(number)
#define PMPI_Info_c2f(info)             PMPI_Info_toint(info)
#define PMPI_Info_f2c(number)           PMPI_Info_fromint(number)
#define PMPI_Message_c2f(message)       PMPI_Message_toint(message)
#define PMPI_Message_f2c(number)        PMPI_Message_fromint(number)
#define PMPI_Op_c2f(op)                 PMPI_Op_toint(op)
#define PMPI_Op_f2c(number)             PMPI_Op_fromint(number)
#define PMPI_Request_c2f(request)       PMPI_Request_toint(request)
#define PMPI_Request_f2c(number)        PMPI_Request_fromint(number)
#define PMPI_Session_c2f(session)       PMPI_Session_toint(session)
#define PMPI_Session_f2c(number)        PMPI_Session_fromint(number)
#define PMPI_Type_c2f(datatype)         PMPI_Type_toint(datatype)
#define PMPI_Type_f2c(number)           PMPI_Type_fromint(number)
#define PMPI_Win_c2f(win)               PMPI_Win_toint(win)
#define PMPI_Win_f2c(number)            PMPI_Win_fromint(number)

/* clang-format on */

/* a status as the module mpi_f08 has it: TYPE(MPI_Status) */
typedef struct MPI_F08_status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_F08_status;

/* MPI_STATUS_IGNORE, which is null, is no status to convert: MPI_ERR_ARG */
#define FERRY_MPI_CONVERSION(name, From, To)                   \
  static __inline int name(const From* from, To* to) {         \
    const int* const given = (const int*)from;                 \
    int* const made = (int*)to;                                \
    int i;                                                     \
    for (i = 0; given && made && i < MPI_F_STATUS_SIZE; ++i) { \
      made[i] = given[i];                                      \
    }                                                          \
    return given && made ? MPI_SUCCESS : MPI_ERR_ARG;          \
  }

FERRY_MPI_CONVERSION(MPI_Status_c2f, MPI_Status, MPI_Fint)
FERRY_MPI_CONVERSION(MPI_Status_f2c, MPI_Fint, MPI_Status)
FERRY_MPI_CONVERSION(MPI_Status_c2f08, MPI_Status, MPI_F08_status)
FERRY_MPI_CONVERSION(MPI_Status_f082c, MPI_F08_status, MPI_Status)
FERRY_MPI_CONVERSION(MPI_Status_f2f08, MPI_Fint, MPI_F08_status)
FERRY_MPI_CONVERSION(MPI_Status_f082f, MPI_F08_status, MPI_Fint)

#undef FERRY_MPI_CONVERSION

#define PMPI_Status_c2f MPI_Status_c2f
#define PMPI_Status_f2c MPI_Status_f2c
#define PMPI_Status_c2f08 MPI_Status_c2f08
#define PMPI_Status_f082c MPI_Status_f082c
#define PMPI_Status_f2f08 MPI_Status_f2f08
#define PMPI_Status_f082f MPI_Status_f082f

#endif /* FERRY_MPI_FORTRAN_HANDLES_H_ */
