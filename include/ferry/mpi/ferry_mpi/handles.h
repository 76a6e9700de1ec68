/* handles.h - the types of MPI 5.0 and its predefined handles. See mpi.h.
 *
 * A handle is a pointer to a struct that is defined nowhere. Predefined handles are small constants
 * below 1024 (MPI 5.0, chapter 20 and its tables of constants), grouped so that the upper bits name
 * the kind of object; every other handle points into the library.
 */
#ifndef FERRY_MPI_HANDLES_H_
#define FERRY_MPI_HANDLES_H_

#include <stdint.h>

/* Declares a call with both of its names; MPI_x is a weak symbol, PMPI_x the call itself. */
#define FERRY_MPI(result, name, parameters) \
  result MPI_##name parameters;             \
  result PMPI_##name parameters

/* ---- Integers ------------------------------------------------------------------------------- */

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef int MPI_Fint; /* the INTEGER of Fortran, to which MPI_Comm_c2f and its like convert */

/* ---- Handles -------------------------------------------------------------------------------- */

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_File* MPI_File;
typedef struct MPI_ABI_Group* MPI_Group;
typedef struct MPI_ABI_Info* MPI_Info;
typedef struct MPI_ABI_Message* MPI_Message;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Request* MPI_Request;
typedef struct MPI_ABI_Session* MPI_Session;
typedef struct MPI_ABI_Win* MPI_Win;

/* 32 bytes. MPI_internal belongs to the library. */
typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

/* clang-format off */

/* ---- 0x020: operations ---------------------------------------------------------------------- */

#define MPI_OP_NULL  ((MPI_Op)0x20)
#define MPI_SUM      ((MPI_Op)0x21)
#define MPI_MIN      ((MPI_Op)0x22)
#define MPI_MAX      ((MPI_Op)0x23)
#define MPI_PROD     ((MPI_Op)0x24)
#define MPI_BAND     ((MPI_Op)0x28)
#define MPI_BOR      ((MPI_Op)0x29)
#define MPI_BXOR     ((MPI_Op)0x2a)
#define MPI_LAND     ((MPI_Op)0x30)
#define MPI_LOR      ((MPI_Op)0x31)
#define MPI_LXOR     ((MPI_Op)0x32)
#define MPI_MINLOC   ((MPI_Op)0x38)
#define MPI_MAXLOC   ((MPI_Op)0x39)
#define MPI_REPLACE  ((MPI_Op)0x3c)
#define MPI_NO_OP    ((MPI_Op)0x3d)

/* ---- 0x100: communicators, groups, windows, files, sessions, messages, info ------------------ */

#define MPI_COMM_NULL        ((MPI_Comm)0x100)
#define MPI_COMM_WORLD       ((MPI_Comm)0x101)
#define MPI_COMM_SELF        ((MPI_Comm)0x102)
#define MPI_GROUP_NULL       ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY      ((MPI_Group)0x109)
#define MPI_WIN_NULL         ((MPI_Win)0x110)
#define MPI_FILE_NULL        ((MPI_File)0x118)
#define MPI_SESSION_NULL     ((MPI_Session)0x120)
#define MPI_MESSAGE_NULL     ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC  ((MPI_Message)0x129)
#define MPI_INFO_NULL        ((MPI_Info)0x130)
#define MPI_INFO_ENV         ((MPI_Info)0x131)

/* ---- 0x140: error handlers; 0x180: requests -------------------------------------------------- */

#define MPI_ERRHANDLER_NULL   ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL  ((MPI_Errhandler)0x141)
#define MPI_ERRORS_ABORT      ((MPI_Errhandler)0x142)
#define MPI_ERRORS_RETURN     ((MPI_Errhandler)0x143)
#define MPI_REQUEST_NULL      ((MPI_Request)0x180)

/* ---- 0x200: datatypes whose size the compiler chooses ---------------------------------------- */

#define MPI_DATATYPE_NULL  ((MPI_Datatype)0x200)

/* MPI's own integers, packed data */
#define MPI_AINT    ((MPI_Datatype)0x201)
#define MPI_COUNT   ((MPI_Datatype)0x202)
#define MPI_OFFSET  ((MPI_Datatype)0x203)
#define MPI_PACKED  ((MPI_Datatype)0x207)

/* C integers */
#define MPI_SHORT               ((MPI_Datatype)0x208)
#define MPI_INT                 ((MPI_Datatype)0x209)
#define MPI_LONG                ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG           ((MPI_Datatype)0x20b)
#define MPI_LONG_LONG_INT       MPI_LONG_LONG
#define MPI_UNSIGNED_SHORT      ((MPI_Datatype)0x20c)
#define MPI_UNSIGNED            ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG       ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG  ((MPI_Datatype)0x20f)

/* C and C++ floating point */
#define MPI_FLOAT                    ((MPI_Datatype)0x210)
#define MPI_C_FLOAT_COMPLEX          ((MPI_Datatype)0x212)
#define MPI_C_COMPLEX                MPI_C_FLOAT_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX        ((MPI_Datatype)0x213)
#define MPI_DOUBLE                   ((MPI_Datatype)0x214)
#define MPI_C_DOUBLE_COMPLEX         ((MPI_Datatype)0x216)
#define MPI_CXX_DOUBLE_COMPLEX       ((MPI_Datatype)0x217)
#define MPI_LONG_DOUBLE              ((MPI_Datatype)0x220)
#define MPI_C_LONG_DOUBLE_COMPLEX    ((MPI_Datatype)0x224)
#define MPI_CXX_LONG_DOUBLE_COMPLEX  ((MPI_Datatype)0x225)

/* Fortran */
#define MPI_LOGICAL           ((MPI_Datatype)0x218)
#define MPI_INTEGER           ((MPI_Datatype)0x219)
#define MPI_REAL              ((MPI_Datatype)0x21a)
#define MPI_COMPLEX           ((MPI_Datatype)0x21b)
#define MPI_DOUBLE_PRECISION  ((MPI_Datatype)0x21c)
#define MPI_DOUBLE_COMPLEX    ((MPI_Datatype)0x21d)
#define MPI_CHARACTER         ((MPI_Datatype)0x21e)

/* a value and its place, for MPI_MINLOC and MPI_MAXLOC */
#define MPI_FLOAT_INT          ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT         ((MPI_Datatype)0x229)
#define MPI_LONG_INT           ((MPI_Datatype)0x22a)
#define MPI_2INT               ((MPI_Datatype)0x22b)
#define MPI_SHORT_INT          ((MPI_Datatype)0x22c)
#define MPI_LONG_DOUBLE_INT    ((MPI_Datatype)0x22d)
#define MPI_2REAL              ((MPI_Datatype)0x230)
#define MPI_2DOUBLE_PRECISION  ((MPI_Datatype)0x231)
#define MPI_2INTEGER           ((MPI_Datatype)0x232)

/* truth values, wide characters */
#define MPI_C_BOOL    ((MPI_Datatype)0x238)
#define MPI_CXX_BOOL  ((MPI_Datatype)0x239)
#define MPI_WCHAR     ((MPI_Datatype)0x23c)

/* ---- 0x240: datatypes of fixed size; bits 3 to 5 hold the logarithm of the size -------------- */

#define MPI_INT8_T         ((MPI_Datatype)0x240)
#define MPI_UINT8_T        ((MPI_Datatype)0x241)
#define MPI_CHAR           ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR    ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR  ((MPI_Datatype)0x245)
#define MPI_BYTE           ((MPI_Datatype)0x247)
#define MPI_INT16_T        ((MPI_Datatype)0x248)
#define MPI_UINT16_T       ((MPI_Datatype)0x249)
#define MPI_INT32_T        ((MPI_Datatype)0x250)
#define MPI_UINT32_T       ((MPI_Datatype)0x251)
#define MPI_INT64_T        ((MPI_Datatype)0x258)
#define MPI_UINT64_T       ((MPI_Datatype)0x259)

/* Fortran: logical, integer, real, complex of 1, 2, 4, 8, 16 and 32 bytes */
#define MPI_LOGICAL1   ((MPI_Datatype)0x2c0)
#define MPI_INTEGER1   ((MPI_Datatype)0x2c1)
#define MPI_LOGICAL2   ((MPI_Datatype)0x2c8)
#define MPI_INTEGER2   ((MPI_Datatype)0x2c9)
#define MPI_REAL2      ((MPI_Datatype)0x2ca)
#define MPI_LOGICAL4   ((MPI_Datatype)0x2d0)
#define MPI_INTEGER4   ((MPI_Datatype)0x2d1)
#define MPI_REAL4      ((MPI_Datatype)0x2d2)
#define MPI_COMPLEX4   ((MPI_Datatype)0x2d3)
#define MPI_LOGICAL8   ((MPI_Datatype)0x2d8)
#define MPI_INTEGER8   ((MPI_Datatype)0x2d9)
#define MPI_REAL8      ((MPI_Datatype)0x2da)
#define MPI_COMPLEX8   ((MPI_Datatype)0x2db)
#define MPI_LOGICAL16  ((MPI_Datatype)0x2e0)
#define MPI_INTEGER16  ((MPI_Datatype)0x2e1)
#define MPI_REAL16     ((MPI_Datatype)0x2e2)
#define MPI_COMPLEX16  ((MPI_Datatype)0x2e3)
#define MPI_COMPLEX32  ((MPI_Datatype)0x2eb)

/* clang-format on */

#endif /* FERRY_MPI_HANDLES_H_ */
