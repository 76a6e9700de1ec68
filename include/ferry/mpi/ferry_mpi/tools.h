/* tools.h - MPI 5.0 chapter 15 (the MPI tool information interface): declarations. See mpi.h. */
#ifndef FERRY_MPI_TOOLS_H_
#define FERRY_MPI_TOOLS_H_

#include "tool_types.h"

/* clang-format off */

/* ---- Start and end --------------------------------------------------------------------------- */

FERRY_MPI(int, T_finalize, (void));
FERRY_MPI(int, T_init_thread, (int required, int* provided));

/* ---- Enumerations ---------------------------------------------------------------------------- */

FERRY_MPI(int, T_enum_get_info, (MPI_T_enum enumtype, int* num, char* name, int* name_len));
FERRY_MPI(int, T_enum_get_item, (MPI_T_enum enumtype, int indx, int* value, char* name,
          int* name_len));

/* ---- Control variables ----------------------------------------------------------------------- */

FERRY_MPI(int, T_cvar_get_index, (const char* name, int* cvar_index));
FERRY_MPI(int, T_cvar_get_info, (int cvar_index, char* name, int* name_len, int* verbosity,
          MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
          int* scope));
FERRY_MPI(int, T_cvar_get_num, (int* num_cvar));
FERRY_MPI(int, T_cvar_handle_alloc, (int cvar_index, void* obj_handle, MPI_T_cvar_handle* handle,
          int* count));
FERRY_MPI(int, T_cvar_handle_free, (MPI_T_cvar_handle* handle));
FERRY_MPI(int, T_cvar_read, (MPI_T_cvar_handle handle, void* buf));
FERRY_MPI(int, T_cvar_write, (MPI_T_cvar_handle handle, const void* buf));

/* ---- Performance variables ------------------------------------------------------------------- */

FERRY_MPI(int, T_pvar_get_index, (const char* name, int var_class, int* pvar_index));
FERRY_MPI(int, T_pvar_get_info, (int pvar_index, char* name, int* name_len, int* verbosity,
          int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
          int* bind, int* readonly, int* continuous, int* atomic));
FERRY_MPI(int, T_pvar_get_num, (int* num_pvar));
FERRY_MPI(int, T_pvar_handle_alloc, (MPI_T_pvar_session session, int pvar_index, void* obj_handle,
          MPI_T_pvar_handle* handle, int* count));
FERRY_MPI(int, T_pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle* handle));
FERRY_MPI(int, T_pvar_read, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf));
FERRY_MPI(int, T_pvar_readreset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf));
FERRY_MPI(int, T_pvar_reset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle));
FERRY_MPI(int, T_pvar_session_create, (MPI_T_pvar_session* session));
FERRY_MPI(int, T_pvar_session_free, (MPI_T_pvar_session* session));
FERRY_MPI(int, T_pvar_start, (MPI_T_pvar_session session, MPI_T_pvar_handle handle));
FERRY_MPI(int, T_pvar_stop, (MPI_T_pvar_session session, MPI_T_pvar_handle handle));
FERRY_MPI(int, T_pvar_write, (MPI_T_pvar_session session, MPI_T_pvar_handle handle,
          const void* buf));

/* ---- Events ---------------------------------------------------------------------------------- */

FERRY_MPI(int, T_source_get_info, (int source_index, char* name, int* name_len, char* desc,
          int* desc_len, MPI_T_source_order* ordering, MPI_Count* ticks_per_second,
          MPI_Count* max_ticks, MPI_Info* info));
FERRY_MPI(int, T_source_get_num, (int* num_sources));
FERRY_MPI(int, T_source_get_timestamp, (int source_index, MPI_Count* timestamp));
FERRY_MPI(int, T_event_callback_get_info, (MPI_T_event_registration event_registration,
          MPI_T_cb_safety cb_safety, MPI_Info* info_used));
FERRY_MPI(int, T_event_callback_set_info, (MPI_T_event_registration event_registration,
          MPI_T_cb_safety cb_safety, MPI_Info info));
FERRY_MPI(int, T_event_copy, (MPI_T_event_instance event_instance, void* buffer));
FERRY_MPI(int, T_event_get_index, (const char* name, int* event_index));
FERRY_MPI(int, T_event_get_info, (int event_index, char* name, int* name_len, int* verbosity,
          MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[], int* num_elements,
          MPI_T_enum* enumtype, MPI_Info* info, char* desc, int* desc_len, int* bind));
FERRY_MPI(int, T_event_get_num, (int* num_events));
FERRY_MPI(int, T_event_get_source, (MPI_T_event_instance event_instance, int* source_index));
FERRY_MPI(int, T_event_get_timestamp, (MPI_T_event_instance event_instance,
          MPI_Count* event_timestamp));
FERRY_MPI(int, T_event_handle_alloc, (int event_index, void* obj_handle, MPI_Info info,
          MPI_T_event_registration* event_registration));
FERRY_MPI(int, T_event_handle_free, (MPI_T_event_registration event_registration, void* user_data,
          MPI_T_event_free_cb_function free_cb_function));
FERRY_MPI(int, T_event_handle_get_info, (MPI_T_event_registration event_registration,
          MPI_Info* info_used));
FERRY_MPI(int, T_event_handle_set_info, (MPI_T_event_registration event_registration,
          MPI_Info info));
FERRY_MPI(int, T_event_read, (MPI_T_event_instance event_instance, int element_index,
          void* buffer));
FERRY_MPI(int, T_event_register_callback, (MPI_T_event_registration event_registration,
          MPI_T_cb_safety cb_safety, MPI_Info info, void* user_data,
          MPI_T_event_cb_function event_cb_function));
FERRY_MPI(int, T_event_set_dropped_handler, (MPI_T_event_registration event_registration,
          MPI_T_event_dropped_cb_function dropped_cb_function));

/* ---- Categories ------------------------------------------------------------------------------ */

FERRY_MPI(int, T_category_changed, (int* update_number));
FERRY_MPI(int, T_category_get_categories, (int cat_index, int len, int indices[]));
FERRY_MPI(int, T_category_get_cvars, (int cat_index, int len, int indices[]));
FERRY_MPI(int, T_category_get_events, (int cat_index, int len, int indices[]));
FERRY_MPI(int, T_category_get_index, (const char* name, int* cat_index));
FERRY_MPI(int, T_category_get_info, (int cat_index, char* name, int* name_len, char* desc,
          int* desc_len, int* num_cvars, int* num_pvars, int* num_categories));
FERRY_MPI(int, T_category_get_num, (int* num_cat));
FERRY_MPI(int, T_category_get_num_events, (int cat_index, int* num_events));
FERRY_MPI(int, T_category_get_pvars, (int cat_index, int len, int indices[]));

/* clang-format on */

#endif /* FERRY_MPI_TOOLS_H_ */
