/* The interface between a debugger and a library that finds a process's message queues for it ("A
 * Standard Interface for Debugger Access to Message Queue Information in MPI", Cownie and Gropp;
 * MPI Forum, "The MPI Message Queue Dumping Interface", version 1.0), as far as MPI-1 goes: what
 * TotalView, DDT and others call.
 *
 * The debugger opens the library that the process names in MPIR_dll_name. The library reads the
 * process's memory by the debugger's functions. Calling thread: the debugger's. Nothing blocks.
 */
#ifndef FERRY_MPI_QUEUES_MQS_H_
#define FERRY_MPI_QUEUES_MQS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MQS_INTERFACE_COMPATIBILITY = 2 };
enum { MQS_INVALID_PROCESS = -1 };

/* Results. Those from mqs_first_user_code on are the library's own. */
enum { mqs_ok = 0, mqs_no_information, mqs_end_of_list, mqs_first_user_code = 100 };
enum mqs_status { mqs_st_pending, mqs_st_matched, mqs_st_complete };
typedef enum { mqs_pending_sends, mqs_pending_receives, mqs_unexpected_messages } mqs_op_class;
typedef enum {
  mqs_lang_c = 'c',
  mqs_lang_cplus = 'C',
  mqs_lang_f77 = 'f',
  mqs_lang_f90 = 'F'
} mqs_lang_code;

/* Objects of the library, and of the debugger. */
typedef struct _mqs_image_info mqs_image_info;
typedef struct _mqs_process_info mqs_process_info;
typedef struct mqs_image_ mqs_image;
typedef struct mqs_process_ mqs_process;
typedef struct mqs_type_ mqs_type;

typedef unsigned long mqs_taddr_t; /* an address in the process */
typedef long mqs_tword_t;

typedef struct {
  int short_size;
  int int_size;
  int long_size;
  int long_long_size;
  int pointer_size;
  int bool_size;
  int size_t_size;
} mqs_target_type_sizes;

typedef struct {
  mqs_taddr_t unique_id;
  mqs_tword_t local_rank; /* of this process */
  mqs_tword_t size;
  char name[64];
} mqs_communicator;

typedef struct {
  int status;                      /* mqs_status */
  mqs_tword_t desired_local_rank;  /* -1: any */
  mqs_tword_t desired_global_rank; /* in MPI_COMM_WORLD */
  int tag_wild;
  mqs_tword_t desired_tag; /* unless tag_wild */
  mqs_tword_t desired_length;
  int system_buffer;
  mqs_taddr_t buffer;
  /* Of sends, and once a message is matched. */
  mqs_tword_t actual_local_rank;
  mqs_tword_t actual_global_rank;
  mqs_tword_t actual_tag;
  mqs_tword_t actual_length;
  char extra_text[5][64]; /* for people */
} mqs_pending_operation;

/* ---- Functions of the debugger --------------------------------------------------------------- */

typedef struct mqs_basic_callbacks {
  void* (*mqs_malloc_fp)(size_t);
  void (*mqs_free_fp)(void*);
  void (*mqs_dprints_fp)(const char*);
  char* (*mqs_errorstring_fp)(int);
  void (*mqs_put_image_info_fp)(mqs_image*, mqs_image_info*);
  mqs_image_info* (*mqs_get_image_info_fp)(mqs_image*);
  void (*mqs_put_process_info_fp)(mqs_process*, mqs_process_info*);
  mqs_process_info* (*mqs_get_process_info_fp)(mqs_process*);
} mqs_basic_callbacks;

typedef struct mqs_image_callbacks {
  void (*mqs_get_type_sizes_fp)(mqs_process*, mqs_target_type_sizes*);
  int (*mqs_find_function_fp)(mqs_image*, char*, mqs_lang_code, mqs_taddr_t*);
  int (*mqs_find_symbol_fp)(mqs_image*, char*, mqs_taddr_t*);
  mqs_type* (*mqs_find_type_fp)(mqs_image*, char*, mqs_lang_code);
  int (*mqs_field_offset_fp)(mqs_type*, char*);
  int (*mqs_sizeof_fp)(mqs_type*);
} mqs_image_callbacks;

typedef struct mqs_process_callbacks {
  int (*mqs_get_global_rank_fp)(mqs_process*);
  mqs_image* (*mqs_get_image_fp)(mqs_process*);
  int (*mqs_fetch_data_fp)(mqs_process*, mqs_taddr_t, int, void*);
  void (*mqs_target_to_host_fp)(mqs_process*, const void*, void*, int);
} mqs_process_callbacks;

/* ---- Functions of the library ---------------------------------------------------------------- */

void mqs_setup_basic_callbacks(const mqs_basic_callbacks* callbacks);
char* mqs_version_string(void);
int mqs_version_compatibility(void);
int mqs_dll_taddr_width(void);
char* mqs_dll_error_string(int error);

int mqs_setup_image(mqs_image* image, const mqs_image_callbacks* callbacks);
int mqs_image_has_queues(mqs_image* image, char** message);
void mqs_destroy_image_info(mqs_image_info* info);

int mqs_setup_process(mqs_process* process, const mqs_process_callbacks* callbacks);
int mqs_process_has_queues(mqs_process* process, char** message);
void mqs_destroy_process_info(mqs_process_info* info);

/* The lists are those of the last mqs_update_communicator_list. */
int mqs_update_communicator_list(mqs_process* process);
int mqs_setup_communicator_iterator(mqs_process* process);
int mqs_get_communicator(mqs_process* process, mqs_communicator* communicator);
int mqs_get_comm_group(mqs_process* process, int* group);
int mqs_next_communicator(mqs_process* process);
int mqs_setup_operation_iterator(mqs_process* process, int op_class);
int mqs_next_operation(mqs_process* process, mqs_pending_operation* operation);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_MPI_QUEUES_MQS_H_ */
