#include "tests/mpi/fuzz/kinds.h"

#include <fnmatch.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace ferry::mpi {
namespace {

// Patterns, as in a shell. The first rule that fits counts.
struct Rule {
  const char* call;
  const char* type;
  const char* name;
  Kind kind;
};

constexpr Rule kRules[] = {
    // ---- Handles as integers: any word is right ----
    {"*_toint", "*", "*", Kind::kHandleToConvert},
    {"*_fromint", "*", "*", Kind::kNumberToConvert},

    // ---- The tool interface ----
    {"MPI_T_*", "MPI_T_enum", "*", Kind::kToolEnum},
    {"MPI_T_*", "MPI_T_cvar_handle", "*", Kind::kControlHandle},
    {"MPI_T_*_free", "MPI_T_cvar_handle*", "*", Kind::kControlToFree},
    {"MPI_T_*", "MPI_T_pvar_session", "*", Kind::kCounterSession},
    {"MPI_T_*_free", "MPI_T_pvar_session*", "*", Kind::kCounterSessionToFree},
    {"MPI_T_*", "MPI_T_pvar_handle", "*", Kind::kCounterHandle},
    {"MPI_T_*_free", "MPI_T_pvar_handle*", "*", Kind::kCounterToFree},
    {"MPI_T_*", "int", "var_class", Kind::kCounterClass},
    {"MPI_T_*", "int", "*ind*x", Kind::kToolIndex},
    {"MPI_T_*", "int", "len", Kind::kSmallCount},
    {"MPI_T_*", "const char*", "name", Kind::kToolName},
    {"MPI_T_*", "void*", "obj_handle", Kind::kAnything},
    {"MPI_T_*_get_info", "*", "*", Kind::kOptionalOutput},
    {"MPI_T_*_get_item", "*", "*", Kind::kOptionalOutput},
    {"MPI_T_*", "*", "*", Kind::kOutput},

    // ---- Communicators ----
    {"*eighbor_*", "MPI_Comm", "*", Kind::kTopologyComm},
    {"MPI_Cart_create", "MPI_Comm", "*", Kind::kComm},
    {"MPI_Graph_create", "MPI_Comm", "*", Kind::kComm},
    {"MPI_*_map", "MPI_Comm", "*", Kind::kComm},
    {"MPI_Cart*", "MPI_Comm", "*", Kind::kCartComm},
    {"MPI_Graph*", "MPI_Comm", "*", Kind::kGraphComm},
    {"MPI_Dist_graph_neigh*", "MPI_Comm", "*", Kind::kDistGraphComm},
    {"MPI_Comm_remote_*", "MPI_Comm", "*", Kind::kInterComm},
    {"*", "MPI_Comm", "intercomm", Kind::kInterComm},
    {"*", "MPI_Comm", "*", Kind::kComm},
    {"MPI_Comm_free", "MPI_Comm*", "*", Kind::kCommToFree},
    {"MPI_Comm_disconnect", "MPI_Comm*", "*", Kind::kCommToFree},
    {"*", "MPI_Comm*", "*", Kind::kOutput},

    // ---- Groups ----
    {"*", "MPI_Group", "*", Kind::kGroup},
    {"MPI_Group_free", "MPI_Group*", "*", Kind::kGroupToFree},
    {"*", "MPI_Group*", "*", Kind::kOutput},

    // ---- Datatypes ----
    {"MPI_Type_get_contents*", "MPI_Datatype", "*", Kind::kDerivedType},
    {"MPI_Type_get_value_index", "MPI_Datatype", "*", Kind::kNumericType},
    {"MPI*educe*", "MPI_Datatype", "*", Kind::kNumericType},
    {"MPI_*scan*", "MPI_Datatype", "*", Kind::kNumericType},
    {"MPI_Scan*", "MPI_Datatype", "*", Kind::kNumericType},
    {"MPI_Type_*", "MPI_Datatype", "*", Kind::kAnyType},
    {"MPI_File_get_type_extent*", "MPI_Datatype", "*", Kind::kAnyType},
    {"MPI_Get_accumulate*", "MPI_Datatype", "*", Kind::kDataType},
    {"MPI_Get_c", "MPI_Datatype", "*", Kind::kDataType},
    {"MPI_Get_*", "MPI_Datatype", "*", Kind::kAnyType},
    {"MPI_Status_set_*", "MPI_Datatype", "*", Kind::kAnyType},
    {"*", "MPI_Datatype", "*", Kind::kDataType},
    {"MPI_Type_free", "MPI_Datatype*", "*", Kind::kTypeToFree},
    {"MPI_Type_commit", "MPI_Datatype*", "*", Kind::kTypeToCommit},
    {"*", "MPI_Datatype*", "*", Kind::kOutput},
    {"*", "MPI_Datatype[]", "*", Kind::kOutput},
    {"MPI_Type_*", "const MPI_Datatype[]", "*", Kind::kAnyTypes},
    {"*", "const MPI_Datatype[]", "*", Kind::kDataTypes},

    // ---- Infos, operations, error handlers ----
    {"MPI_Info_*", "MPI_Info", "*", Kind::kInfo},
    {"MPI_Abi_*", "MPI_Info", "*", Kind::kInfo},
    {"*", "MPI_Info", "*", Kind::kInfoOrNull},
    {"MPI_Info_free", "MPI_Info*", "*", Kind::kInfoToFree},
    {"*", "MPI_Info*", "*", Kind::kOutput},
    {"MPI_*ccumulate*", "MPI_Op", "*", Kind::kPredefinedOp},
    {"MPI_Fetch_and_op", "MPI_Op", "*", Kind::kPredefinedOp},
    {"*", "MPI_Op", "*", Kind::kOp},
    {"MPI_Op_free", "MPI_Op*", "*", Kind::kOpToFree},
    {"*", "MPI_Op*", "*", Kind::kOutput},
    {"MPI_File_*", "MPI_Errhandler", "*", Kind::kFileErrorHandler},
    {"MPI_Session_*", "MPI_Errhandler", "*", Kind::kSessionErrorHandler},
    {"*", "MPI_Errhandler", "*", Kind::kErrorHandler},
    {"MPI_Errhandler_free", "MPI_Errhandler*", "*", Kind::kErrorHandlerToFree},
    {"*", "MPI_Errhandler*", "*", Kind::kOutput},

    // ---- Files ----
    {"MPI_File_*_errhandler", "MPI_File", "*", Kind::kFileOrNull},
    {"MPI_File_read_at_all_end", "MPI_File", "*", Kind::kFileToReadAtAllEnd},
    {"MPI_File_read_all_end", "MPI_File", "*", Kind::kFileToReadAllEnd},
    {"MPI_File_read_ordered_end", "MPI_File", "*", Kind::kFileToReadOrderedEnd},
    {"MPI_File_write_at_all_end", "MPI_File", "*", Kind::kFileToWriteAtAllEnd},
    {"MPI_File_write_all_end", "MPI_File", "*", Kind::kFileToWriteAllEnd},
    {"MPI_File_write_ordered_end", "MPI_File", "*", Kind::kFileToWriteOrderedEnd},
    {"*", "MPI_File", "*", Kind::kFile},
    {"MPI_File_close", "MPI_File*", "*", Kind::kFileToClose},
    {"*", "MPI_File*", "*", Kind::kOutput},
    {"MPI_File_*", "const char*", "filename", Kind::kFileName},
    {"MPI_File_set_view", "const char*", "datarep", Kind::kViewRepresentation},
    {"MPI_Register_*", "const char*", "datarep", Kind::kNewRepresentation},
    {"MPI_Register_*", "*_conversion_function*", "*", Kind::kFunctionOrNull},
    {"MPI_Register_*", "*_conversion_function_c*", "*", Kind::kFunctionOrNull},
    {"MPI_File_open", "int", "amode", Kind::kAccessMode},
    {"MPI_File_seek*", "MPI_Offset", "offset", Kind::kSeekOffset},
    {"MPI_File_*", "int", "whence", Kind::kWhence},
    {"MPI_File_preallocate", "MPI_Offset", "size", Kind::kAllocatedFileSize},
    {"MPI_File_*", "MPI_Offset", "size", Kind::kFileSize},
    {"MPI_File_*", "MPI_Offset", "disp", Kind::kDisplacement},
    {"MPI_File_*", "MPI_Offset", "*", Kind::kOffset},
    {"MPI_File_*", "int", "flag", Kind::kAnyNumber},

    // ---- Sessions ----
    {"*", "MPI_Session", "*", Kind::kSession},
    {"MPI_Session_finalize", "MPI_Session*", "*", Kind::kSessionToEnd},
    {"*", "MPI_Session*", "*", Kind::kOutput},

    // ---- Windows ----
    {"MPI_Win_unlock", "MPI_Win", "*", Kind::kLockedWindow},
    {"MPI_Win_flush", "MPI_Win", "*", Kind::kLockedWindow},
    {"MPI_Win_flush_local", "MPI_Win", "*", Kind::kLockedWindow},
    {"MPI_Win_lock_all", "MPI_Win", "*", Kind::kWindow},
    {"MPI_Win_*_all", "MPI_Win", "*", Kind::kLockedAll},
    {"MPI_Win_start", "MPI_Win", "*", Kind::kWindowToStart},
    {"MPI_Win_complete", "MPI_Win", "*", Kind::kWindowToComplete},
    {"MPI_Win_wait", "MPI_Win", "*", Kind::kWindowToEnd},
    {"MPI_Win_test", "MPI_Win", "*", Kind::kWindowToEnd},
    {"MPI_Win_attach", "MPI_Win", "*", Kind::kDynamicWindow},
    {"MPI_Win_detach", "MPI_Win", "*", Kind::kDynamicWindow},
    {"MPI_Win_*", "MPI_Win", "*", Kind::kWindow},
    {"*", "MPI_Win", "*", Kind::kLockedWindow},
    {"MPI_Win_free", "MPI_Win*", "*", Kind::kWindowToFree},
    {"*", "MPI_Win*", "*", Kind::kOutput},
    {"MPI_Win_*", "void*", "base", Kind::kWindowBase},
    {"MPI_Win_detach", "const void*", "base", Kind::kAttachedBase},
    {"MPI_Win_*", "MPI_Aint", "size", Kind::kWindowSize},
    {"MPI_Win_*", "int", "disp_unit", Kind::kUnit},
    {"MPI_Win_*", "MPI_Aint", "disp_unit", Kind::kUnit},
    {"*", "int", "target_rank", Kind::kTarget},
    {"*", "MPI_Aint", "target_disp", Kind::kTargetDisp},
    {"*", "int", "lock_type", Kind::kLockType},
    {"*", "int", "assert", Kind::kAssertion},
    {"MPI_Win_lock", "int", "rank", Kind::kTarget},
    {"MPI_Win_unlock", "int", "rank", Kind::kRank},
    {"MPI_Win_flush*", "int", "rank", Kind::kRank},
    {"MPI_Win_shared_query*", "int", "rank", Kind::kTarget},

    // ---- Requests and messages ----
    {"MPI_Grequest_complete", "MPI_Request", "*", Kind::kGeneralizedRequest},
    {"MPI_Pready*", "MPI_Request", "*", Kind::kSendOfPartitions},
    {"MPIX_Enqueue_pready", "MPI_Request", "*", Kind::kSendOfPartitions},
    {"MPI*_Parrived*", "MPI_Request", "*", Kind::kReceiveOfPartitions},
    {"MPIX_Pbuf_*", "MPI_Request", "*", Kind::kPartitionedRequest},
    {"MPIX_Prequest_*", "MPI_Request", "*", Kind::kRequestForKernels},
    {"MPIX_Is_matched", "MPI_Request", "*", Kind::kMatchableRequest},
    {"*", "MPI_Request", "*", Kind::kRequest},
    {"MPI_Wait", "MPI_Request*", "*", Kind::kRequestToEnd},
    {"MPI_Test", "MPI_Request*", "*", Kind::kRequestToEnd},
    {"MPI_Start", "MPI_Request*", "*", Kind::kRequestToStart},
    {"MPI_Cancel", "MPI_Request*", "*", Kind::kRequestToCancel},
    {"MPI_Request_free", "MPI_Request*", "*", Kind::kRequestToFree},
    {"MPIX_Enqueue_pbuf_*", "MPI_Request*", "*", Kind::kPartitionedRequestAt},
    {"MPIX_Enqueue_*", "MPI_Request*", "*", Kind::kRequestToStart},
    {"MPIX_*atch", "MPI_Request*", "request", Kind::kRequestToMatch},
    {"*", "MPI_Request*", "*", Kind::kOutput},
    {"MPI_Startall", "*MPI_Request[]", "*", Kind::kRequestsToStart},
    {"MPIX_*buf_*", "MPI_Request[]", "*", Kind::kPartitionedRequests},
    {"MPIX_Enqueue_*", "MPI_Request[]", "*", Kind::kRequestsToStart},
    {"MPIX_*", "MPI_Request[]", "*", Kind::kRequestsToMatch},
    {"*", "*MPI_Request[]", "*", Kind::kRequests},
    {"MPIX_Prequest_create", "MPIX_Prequest*", "*", Kind::kOutput},
    {"MPIX_Prequest_get", "MPIX_Prequest*", "*", Kind::kOutput},
    {"*", "MPIX_Prequest*", "*", Kind::kPrequestToFree},
    {"MPIX_Queue_init", "MPIX_Queue*", "*", Kind::kOutput},
    {"*", "MPIX_Queue*", "*", Kind::kQueueToFree},
    {"*", "MPIX_Queue", "*", Kind::kQueue},
    {"*", "MPIX_Queue_type", "*", Kind::kQueueType},
    {"*", "const void*", "stream_address", Kind::kStreamAddress},
    {"MPI_*probe", "MPI_Message*", "*", Kind::kOutput},
    {"*", "MPI_Message*", "*", Kind::kMessage},
    {"*", "const MPI_Status*", "*", Kind::kOutput},  // nothing is read that a null one has
    {"MPI_Status_set_*", "MPI_Status*", "*", Kind::kOutput},
    {"*", "MPI_Status*", "*", Kind::kOptionalOutput},
    {"*", "MPI_Status[]", "*", Kind::kOptionalOutput},

    // ---- Buffers ----
    {"MPI_Reduce_local*", "const void*", "*", Kind::kSendBuffer},
    {"*", "const void*", "sendbuf", Kind::kCollectiveSendBuffer},
    {"MPI_*endrecv*", "const void*", "sendbuf", Kind::kSendBuffer},
    {"*", "const void*", "location", Kind::kLocation},
    {"*", "const void*", "*", Kind::kSendBuffer},
    {"MPI_*uffer_detach*", "void*", "*", Kind::kOutput},
    {"MPI_Comm_detach_buffer*", "void*", "*", Kind::kOutput},
    {"MPI_*ttach*", "void*", "*", Kind::kAttachedBuffer},
    {"*", "void*", "attribute_val", Kind::kAnything},
    {"*", "void*", "extra_state", Kind::kAnything},
    {"*", "void*", "base", Kind::kFreedMemory},
    {"*", "void*", "baseptr", Kind::kOutput},
    {"*", "void*", "logical_*", Kind::kOutput},
    {"*", "void*", "buffer", Kind::kUpdatedBuffer},
    {"*", "void*", "recvbuf", Kind::kCollectiveReceiveBuffer},
    {"*", "void*", "*", Kind::kReceiveBuffer},

    // ---- Ranks, tags, roots ----
    {"MPI_Status_set_*", "int", "source", Kind::kAnyNumber},
    {"MPI_Status_set_*", "int", "tag", Kind::kAnyNumber},
    {"MPI_Ssend*", "int", "dest", Kind::kNearDestination},
    {"MPI_*endrecv*", "int", "dest", Kind::kNearDestination},
    {"*", "int", "dest", Kind::kDestination},
    {"MPI_P*_init", "int", "tag", Kind::kSendTag},
    {"MPI_Irecv*", "int", "source", Kind::kSource},
    {"MPI_Recv_init*", "int", "source", Kind::kSource},
    {"MPI_I*probe", "int", "source", Kind::kSource},
    {"*", "int", "source", Kind::kNearSource},
    {"*", "int", "sendtag", Kind::kSendTag},
    {"*", "int", "recvtag", Kind::kReceiveTag},
    {"MPI_*ecv*", "int", "tag", Kind::kReceiveTag},
    {"MPI_*robe", "int", "tag", Kind::kReceiveTag},
    {"*", "int", "tag", Kind::kSendTag},
    {"*", "int", "root", Kind::kRoot},
    {"*", "int", "*_leader", Kind::kRank},
    {"*", "int", "rank", Kind::kRank},
    {"*", "int", "color", Kind::kColor},
    {"*", "int", "key", Kind::kAnyNumber},
    {"*", "int", "split_type", Kind::kSplitType},

    // ---- Partitions ----
    {"MPIX_*", "int", "partitions", Kind::kPartitionCountOfAll},
    {"*", "int", "partitions", Kind::kPartitionCount},
    {"*", "int", "partition*", Kind::kPartition},
    {"MPI_Pready_list", "int", "length", Kind::kSmallCount},
    {"*", "const int[]", "array_of_partitions", Kind::kPartitionList},
    {"*", "int", "pieces", Kind::kPieceCount},
    {"*", "int", "steps", Kind::kSmallCount},
    {"*", "const MPIX_Pstep[]", "*", Kind::kSteps},
    {"*", "int", "device", Kind::kDevice},

    // ---- Keys of attributes, error codes ----
    {"MPI_*_get*", "int", "comm_keyval", Kind::kCommKeyval},
    {"MPI_Attr_get", "int", "keyval", Kind::kCommKeyval},
    {"*", "int", "comm_keyval", Kind::kSettableCommKeyval},
    {"*", "int", "keyval", Kind::kSettableCommKeyval},
    {"*", "int", "type_keyval", Kind::kTypeKeyval},
    {"*", "int", "win_keyval", Kind::kWindowKeyval},
    {"MPI_Comm_free_keyval", "int*", "*", Kind::kCommKeyvalToFree},
    {"MPI_Keyval_free", "int*", "*", Kind::kCommKeyvalToFree},
    {"MPI_Type_free_keyval", "int*", "*", Kind::kTypeKeyvalToFree},
    {"MPI_Win_free_keyval", "int*", "*", Kind::kWindowKeyvalToFree},
    {"MPI_Remove_error_class", "int", "*", Kind::kAddedClass},
    {"MPI_Add_error_code", "int", "errorclass", Kind::kErrorCode},
    {"MPI_Remove_error_*", "int", "*", Kind::kAddedCode},
    {"MPI_Add_error_string", "int", "*", Kind::kAddedCode},
    {"*", "int", "errorcode", Kind::kErrorCode},
    {"MPI_Status_set_*", "int", "err", Kind::kAnyNumber},

    // ---- Topologies and groups ----
    {"MPI_Cart_shift", "int", "direction", Kind::kDimension},
    {"*", "int", "disp", Kind::kAnyNumber},
    {"MPI_Type_create_darray*", "int", "size", Kind::kOne},
    {"MPI_Type_*array*", "int", "ndims", Kind::kOne},
    {"MPI_Dims_create", "int", "nnodes", Kind::kOne},
    {"MPI_*", "int", "ndims", Kind::kSmallCount},
    {"MPI_Graph_*", "int", "nnodes", Kind::kOne},
    {"MPI_Group_*", "int", "n", Kind::kSmallCount},
    {"MPI_Dist_graph_*", "int", "n", Kind::kSmallCount},
    {"*", "int", "*degree", Kind::kSmallCount},
    {"MPI_Type_get_contents*", "*", "max*", Kind::kContentsCount},
    {"*", "int", "max*", Kind::kSmallCount},
    {"*", "MPI_Count", "max*", Kind::kSmallCount},
    {"*", "int", "reorder", Kind::kAnyNumber},
    {"*", "int", "commute", Kind::kAnyNumber},
    {"*", "int", "high", Kind::kAnyNumber},
    {"MPI_Dims_create", "int[]", "*", Kind::kDimsToFill},
    {"*", "const int[]", "dims", Kind::kDims},
    {"*", "const int[]", "periods", Kind::kFlags},
    {"*", "const int[]", "remain_dims", Kind::kFlags},
    {"*", "const int[]", "coords", Kind::kCoordinates},
    {"*", "const int[]", "ranks*", Kind::kRanks},
    {"*", "int[][3]", "*", Kind::kRanges},
    {"*", "const int[]", "indx", Kind::kGraphIndex},
    {"*", "const int[]", "edges", Kind::kNeighbours},
    {"*", "const int[]", "sources", Kind::kNeighbours},
    {"*", "const int[]", "destinations", Kind::kNeighbours},
    {"*", "const int[]", "degrees", Kind::kDegrees},
    {"*", "const int*", "*weights", Kind::kWeights},
    {"MPI_Dist_graph_neighbors", "int*", "*weights", Kind::kOutput},

    // ---- Datatypes' numbers ----
    {"MPI_Type_contiguous*", "*", "count", Kind::kTypeCount},
    {"MPI_Type_*vector*", "*", "count", Kind::kTypeCount},
    {"MPI_Type_*", "int", "count", Kind::kSmallCount},
    {"MPI_Type_*", "MPI_Count", "count", Kind::kSmallCount},
    {"*", "*", "blocklength", Kind::kTypeCount},
    {"*", "int", "order", Kind::kOrder},
    {"*", "int", "typeclass", Kind::kTypeClass},
    {"MPI_Type_match_size", "int", "size", Kind::kMatchSize},
    {"*", "int", "p", Kind::kPrecision},
    {"*", "int", "r", Kind::kRange},
    {"*", "*", "stride", Kind::kAnyNumber},
    {"*", "MPI_Aint", "lb", Kind::kAnyNumber},
    {"*", "MPI_Count", "lb", Kind::kAnyNumber},
    {"*", "MPI_Aint", "extent", Kind::kAnyNumber},
    {"*", "MPI_Count", "extent", Kind::kAnyNumber},
    {"MPI_Aint_*", "*", "*", Kind::kAnyNumber},
    {"*", "const *[]", "array_of_blocklengths", Kind::kBlockLengths},
    {"*", "const *[]", "array_of_displacements", Kind::kTypeDisplacements},
    {"*", "const *[]", "array_of_gsizes", Kind::kSizes},
    {"*", "const *[]", "array_of_sizes", Kind::kSizes},
    {"*", "const *[]", "array_of_subsizes", Kind::kSubsizes},
    {"*", "const *[]", "array_of_starts", Kind::kStarts},
    {"*", "const int[]", "array_of_distribs", Kind::kDistributions},
    {"*", "const int[]", "array_of_dargs", Kind::kDistributionArguments},
    {"*", "const int[]", "array_of_psizes", Kind::kGrid},

    // ---- Counts ----
    {"MPI_Wait*", "int", "*count", Kind::kSmallCount},
    {"MPI_Test*", "int", "*count", Kind::kSmallCount},
    {"MPI_Request_get_*", "int", "*count", Kind::kSmallCount},
    {"MPI_Startall", "int", "count", Kind::kSmallCount},
    {"MPIX_*", "int", "*count", Kind::kSmallCount},
    {"*", "int", "*count", Kind::kCount},
    {"*", "MPI_Count", "*count", Kind::kCount},
    {"*", "const *[]", "*counts", Kind::kCounts},
    {"*", "const *[]", "*displs", Kind::kDisplacements},
    {"*", "*", "insize", Kind::kRoom},
    {"*", "*", "outsize", Kind::kRoom},
    {"*", "*", "position", Kind::kPosition},
    {"MPI_*ttach*", "*", "size", Kind::kAttachedSize},
    {"MPI_Alloc_mem", "*", "size", Kind::kAllocatedSize},
    {"MPI_Status_set_cancelled", "int", "flag", Kind::kAnyNumber},
    {"MPI_Abi_*", "int", "logical_size", Kind::kLogicalSize},

    // ---- Infos' texts, names ----
    {"MPI_Info_get_nthkey", "int", "n", Kind::kKeyIndex},
    {"MPI_Info_get", "int", "valuelen", Kind::kValueLength},
    {"MPI_Info_get_string", "int*", "buflen", Kind::kBufferLength},
    {"MPI_Session_get_nth_pset", "int*", "pset_len", Kind::kBufferLength},
    {"MPI_Session_get_nth_pset", "int", "n", Kind::kProcessSetNumber},
    {"*", "const char*", "pset_name", Kind::kProcessSet},
    {"MPI_Info_create_env", "int", "argc", Kind::kArgumentCount},
    {"MPI_Info_create_env", "char*[]", "argv", Kind::kArguments},
    {"*", "const char*", "key", Kind::kKey},
    {"*", "const char*", "stringtag", Kind::kName},
    {"*", "const char*", "datarep", Kind::kRepresentation},
    {"*", "const char[]", "datarep", Kind::kRepresentation},
    {"*", "const char*", "*", Kind::kName},

    // ---- Functions ----
    {"*", "*_copy_attr_function*", "*", Kind::kAttributeFunction},
    {"*", "*_delete_attr_function*", "*", Kind::kAttributeFunction},
    {"*", "MPI_Copy_function*", "*", Kind::kAttributeFunction},
    {"*", "MPI_Delete_function*", "*", Kind::kAttributeFunction},
    {"*", "*_function*", "*", Kind::kFunction},
    {"*", "MPI_User_function_c*", "*", Kind::kFunction},

    // ---- All others are written by the call ----
    {"*", "int*", "*", Kind::kOutput},
    {"*", "int[]", "*", Kind::kOutput},
    {"*", "MPI_Aint*", "*", Kind::kOutput},
    {"*", "MPI_Aint[]", "*", Kind::kOutput},
    {"*", "MPI_Count*", "*", Kind::kOutput},
    {"*", "MPI_Offset*", "*", Kind::kOutput},
    {"*", "MPI_Count[]", "*", Kind::kOutput},
    {"*", "char*", "*", Kind::kOutput},
};

bool Fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Brackets are the type's own, and so is an asterisk at the end, behind a name.
bool FitsType(const std::string& pattern, const std::string& type) {
  std::string literal;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool is_pointer = pattern[i] == '*' && i > 0 && i + 1 == pattern.size();
    if (is_pointer || pattern[i] == '[' || pattern[i] == ']') {
      literal += '\\';
    }
    literal += pattern[i];
  }
  return Fits(literal, type);
}

}  // namespace

Kind KindOf(const std::string& call, const Parameter& parameter) {
  for (const Rule& rule : kRules) {
    if (Fits(rule.call, call) && FitsType(rule.type, parameter.type) &&
        Fits(rule.name, parameter.name)) {
      return rule.kind;
    }
  }
  std::fprintf(stderr, "no rule of kinds.cc knows the parameter \"%s\" \"%s\" of %s\n",
               parameter.type.c_str(), parameter.name.c_str(), call.c_str());
  std::abort();
}

}  // namespace ferry::mpi
