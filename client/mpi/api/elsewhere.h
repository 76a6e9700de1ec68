// Calls of the chapters in unsupported.cc that other files of this folder define. One line each:
//   #define FERRY_ELSEWHERE_Comm_get_parent ~,
#pragma once

#define FERRY_ELSEWHERE_Comm_get_parent ~,
#define FERRY_ELSEWHERE_Comm_disconnect ~,
#define FERRY_ELSEWHERE_Win_create_keyval ~,
#define FERRY_ELSEWHERE_Win_free_keyval ~,
#define FERRY_ELSEWHERE_Comm_create_from_group ~,
#define FERRY_ELSEWHERE_Intercomm_create_from_groups ~,
