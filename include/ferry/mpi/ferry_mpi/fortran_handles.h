/* fortran_handles.h - the older names of the conversions between handles and the integers of
 * Fortran (MPI 5.0, chapters 19 and 20). See mpi.h.
 */
#ifndef FERRY_MPI_FORTRAN_HANDLES_H_
#define FERRY_MPI_FORTRAN_HANDLES_H_

#include "environment.h"

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

/* clang-format on */

#endif /* FERRY_MPI_FORTRAN_HANDLES_H_ */
