/* constants.h - the integer and address constants of MPI 5.0, with the values that its binary
 * interface fixes (chapter 20 and its tables of constants). See mpi.h.
 */
#ifndef FERRY_MPI_CONSTANTS_H_
#define FERRY_MPI_CONSTANTS_H_

#include "handles.h"

/* clang-format off */

/* ---- Versions ------------------------------------------------------------------------------- */

#define MPI_VERSION         5
#define MPI_SUBVERSION      0
#define MPI_ABI_VERSION     1
#define MPI_ABI_SUBVERSION  0

/* ---- Special addresses ---------------------------------------------------------------------- */

#define MPI_BOTTOM            ((void*)0)
#define MPI_IN_PLACE          ((void*)1)
#define MPI_BUFFER_AUTOMATIC  ((void*)2)
#define MPI_ARGV_NULL         ((char**)0)
#define MPI_ARGVS_NULL        ((char***)0)
#define MPI_ERRCODES_IGNORE   ((int*)0)
#define MPI_STATUS_IGNORE     ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE   ((MPI_Status*)0)
#define MPI_UNWEIGHTED        ((int*)10)
#define MPI_WEIGHTS_EMPTY     ((int*)11)

/* ---- Sizes: bytes of strings with their final zero, bytes a buffered send adds --------------- */

#define MPI_MAX_PROCESSOR_NAME          256
#define MPI_MAX_LIBRARY_VERSION_STRING  8192
#define MPI_MAX_ERROR_STRING            512
#define MPI_MAX_OBJECT_NAME             128
#define MPI_MAX_INFO_KEY                256
#define MPI_MAX_INFO_VAL                1024
#define MPI_MAX_PORT_NAME               1024
#define MPI_MAX_DATAREP_STRING          128
#define MPI_MAX_STRINGTAG_LEN           1024
#define MPI_MAX_PSET_NAME_LEN           1024
#define MPI_BSEND_OVERHEAD              512

/* ---- Ranks, tags, and their nulls ------------------------------------------------------------ */

enum {
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG    = -2,
  MPI_PROC_NULL  = -3,
  MPI_ROOT       = -4,
  MPI_UNDEFINED  = -32766
};

/* a Fortran status: its length and where its public members stand */
enum { MPI_F_SOURCE = 0, MPI_F_TAG = 1, MPI_F_ERROR = 2, MPI_F_STATUS_SIZE = 8 };

/* ---- Error classes -------------------------------------------------------------------------- */

enum {
  MPI_SUCCESS                   = 0,
  MPI_ERR_BUFFER                = 1,
  MPI_ERR_COUNT                 = 2,
  MPI_ERR_TYPE                  = 3,
  MPI_ERR_TAG                   = 4,
  MPI_ERR_COMM                  = 5,
  MPI_ERR_RANK                  = 6,
  MPI_ERR_REQUEST               = 7,
  MPI_ERR_ROOT                  = 8,
  MPI_ERR_GROUP                 = 9,
  MPI_ERR_OP                    = 10,
  MPI_ERR_TOPOLOGY              = 11,
  MPI_ERR_DIMS                  = 12,
  MPI_ERR_ARG                   = 13,
  MPI_ERR_UNKNOWN               = 14,
  MPI_ERR_TRUNCATE              = 15,
  MPI_ERR_OTHER                 = 16,
  MPI_ERR_INTERN                = 17,
  MPI_ERR_PENDING               = 18,
  MPI_ERR_IN_STATUS             = 19,
  MPI_ERR_ACCESS                = 20,
  MPI_ERR_AMODE                 = 21,
  MPI_ERR_ASSERT                = 22,
  MPI_ERR_BAD_FILE              = 23,
  MPI_ERR_BASE                  = 24,
  MPI_ERR_CONVERSION            = 25,
  MPI_ERR_DISP                  = 26,
  MPI_ERR_DUP_DATAREP           = 27,
  MPI_ERR_FILE_EXISTS           = 28,
  MPI_ERR_FILE_IN_USE           = 29,
  MPI_ERR_FILE                  = 30,
  MPI_ERR_INFO_KEY              = 31,
  MPI_ERR_INFO_NOKEY            = 32,
  MPI_ERR_INFO_VALUE            = 33,
  MPI_ERR_INFO                  = 34,
  MPI_ERR_IO                    = 35,
  MPI_ERR_KEYVAL                = 36,
  MPI_ERR_LOCKTYPE              = 37,
  MPI_ERR_NAME                  = 38,
  MPI_ERR_NO_MEM                = 39,
  MPI_ERR_NOT_SAME              = 40,
  MPI_ERR_NO_SPACE              = 41,
  MPI_ERR_NO_SUCH_FILE          = 42,
  MPI_ERR_PORT                  = 43,
  MPI_ERR_QUOTA                 = 44,
  MPI_ERR_READ_ONLY             = 45,
  MPI_ERR_RMA_ATTACH            = 46,
  MPI_ERR_RMA_CONFLICT          = 47,
  MPI_ERR_RMA_RANGE             = 48,
  MPI_ERR_RMA_SHARED            = 49,
  MPI_ERR_RMA_SYNC              = 50,
  MPI_ERR_SERVICE               = 51,
  MPI_ERR_SIZE                  = 52,
  MPI_ERR_SPAWN                 = 53,
  MPI_ERR_UNSUPPORTED_DATAREP   = 54,
  MPI_ERR_UNSUPPORTED_OPERATION = 55,
  MPI_ERR_WIN                   = 56,
  MPI_ERR_RMA_FLAVOR            = 57,
  MPI_ERR_PROC_ABORTED          = 58,
  MPI_ERR_VALUE_TOO_LARGE       = 59,
  MPI_ERR_SESSION               = 60,
  MPI_ERR_ERRHANDLER            = 61,
  MPI_ERR_ABI                   = 62,

  MPI_T_ERR_CANNOT_INIT       = 1001,
  MPI_T_ERR_NOT_ACCESSIBLE    = 1002,
  MPI_T_ERR_NOT_INITIALIZED   = 1003,
  MPI_T_ERR_NOT_SUPPORTED     = 1004,
  MPI_T_ERR_MEMORY            = 1005,
  MPI_T_ERR_INVALID           = 1006,
  MPI_T_ERR_INVALID_INDEX     = 1007,
  MPI_T_ERR_INVALID_ITEM      = 1008, /* deprecated */
  MPI_T_ERR_INVALID_SESSION   = 1009,
  MPI_T_ERR_INVALID_HANDLE    = 1010,
  MPI_T_ERR_INVALID_NAME      = 1011,
  MPI_T_ERR_OUT_OF_HANDLES    = 1012,
  MPI_T_ERR_OUT_OF_SESSIONS   = 1013,
  MPI_T_ERR_CVAR_SET_NOT_NOW  = 1014,
  MPI_T_ERR_CVAR_SET_NEVER    = 1015,
  MPI_T_ERR_PVAR_NO_WRITE     = 1016,
  MPI_T_ERR_PVAR_NO_STARTSTOP = 1017,
  MPI_T_ERR_PVAR_NO_ATOMIC    = 1018,

  MPI_ERR_LASTCODE = 16383
};

/* ---- Threads: each level includes the ones before it ----------------------------------------- */

enum {
  MPI_THREAD_SINGLE     = 0,
  MPI_THREAD_FUNNELED   = 1024,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE   = 4096
};

/* ---- Datatypes ------------------------------------------------------------------------------ */

enum {
  MPI_ORDER_C       = 12,
  MPI_ORDER_FORTRAN = 15,

  MPI_DISTRIBUTE_NONE      = 16,
  MPI_DISTRIBUTE_BLOCK     = 17,
  MPI_DISTRIBUTE_CYCLIC    = 18,
  MPI_DISTRIBUTE_DFLT_DARG = 19
};

/* how a datatype was made */
enum {
  MPI_COMBINER_NAMED          = 101,
  MPI_COMBINER_DUP            = 102,
  MPI_COMBINER_CONTIGUOUS     = 103,
  MPI_COMBINER_VECTOR         = 104,
  MPI_COMBINER_HVECTOR        = 105,
  MPI_COMBINER_INDEXED        = 106,
  MPI_COMBINER_HINDEXED       = 107,
  MPI_COMBINER_INDEXED_BLOCK  = 108,
  MPI_COMBINER_HINDEXED_BLOCK = 109,
  MPI_COMBINER_STRUCT         = 110,
  MPI_COMBINER_SUBARRAY       = 111,
  MPI_COMBINER_DARRAY         = 112,
  MPI_COMBINER_F90_REAL       = 113,
  MPI_COMBINER_F90_COMPLEX    = 114,
  MPI_COMBINER_F90_INTEGER    = 115,
  MPI_COMBINER_RESIZED        = 116,
  MPI_COMBINER_VALUE_INDEX    = 117
};

/* what MPI_Type_match_size looks for */
enum { MPI_TYPECLASS_INTEGER = 192, MPI_TYPECLASS_REAL = 193, MPI_TYPECLASS_COMPLEX = 194 };

/* ---- Communicators and groups ---------------------------------------------------------------- */

enum {
  MPI_IDENT     = 201,
  MPI_CONGRUENT = 202,
  MPI_SIMILAR   = 203,
  MPI_UNEQUAL   = 204,

  MPI_CART       = 211,
  MPI_GRAPH      = 212,
  MPI_DIST_GRAPH = 213,

  MPI_COMM_TYPE_SHARED          = 221,
  MPI_COMM_TYPE_HW_UNGUIDED     = 222,
  MPI_COMM_TYPE_HW_GUIDED       = 223,
  MPI_COMM_TYPE_RESOURCE_GUIDED = 224
};

/* predefined attributes of communicators (5xx) and windows (6xx) */
enum {
  MPI_KEYVAL_INVALID    = 0,
  MPI_TAG_UB            = 501,
  MPI_IO                = 502,
  MPI_HOST              = 503, /* deprecated */
  MPI_WTIME_IS_GLOBAL   = 504,
  MPI_APPNUM            = 505,
  MPI_LASTUSEDCODE      = 506,
  MPI_UNIVERSE_SIZE     = 507,
  MPI_WIN_BASE          = 601,
  MPI_WIN_DISP_UNIT     = 602,
  MPI_WIN_SIZE          = 603,
  MPI_WIN_CREATE_FLAVOR = 604,
  MPI_WIN_MODEL         = 605
};

/* ---- Windows and files; modes are bits ------------------------------------------------------- */

enum {
  MPI_LOCK_EXCLUSIVE = 301,
  MPI_LOCK_SHARED    = 302,

  MPI_WIN_FLAVOR_CREATE   = 311,
  MPI_WIN_FLAVOR_ALLOCATE = 312,
  MPI_WIN_FLAVOR_DYNAMIC  = 313,
  MPI_WIN_FLAVOR_SHARED   = 314,

  MPI_WIN_UNIFIED  = 321,
  MPI_WIN_SEPARATE = 322,

  MPI_SEEK_CUR = 401,
  MPI_SEEK_END = 402,
  MPI_SEEK_SET = 403,

  MPI_MODE_APPEND          = 1,
  MPI_MODE_CREATE          = 2,
  MPI_MODE_DELETE_ON_CLOSE = 4,
  MPI_MODE_EXCL            = 8,
  MPI_MODE_RDONLY          = 16,
  MPI_MODE_RDWR            = 32,
  MPI_MODE_SEQUENTIAL      = 64,
  MPI_MODE_UNIQUE_OPEN     = 128,
  MPI_MODE_WRONLY          = 256,

  MPI_MODE_NOCHECK   = 1024,
  MPI_MODE_NOPRECEDE = 2048,
  MPI_MODE_NOPUT     = 4096,
  MPI_MODE_NOSTORE   = 8192,
  MPI_MODE_NOSUCCEED = 16384
};

#define MPI_DISPLACEMENT_CURRENT  ((MPI_Offset)-1)

/* clang-format on */

#endif /* FERRY_MPI_CONSTANTS_H_ */
