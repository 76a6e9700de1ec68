// The meaning of each parameter of each call.
#pragma once

#include <string>

#include "tests/mpi/fuzz/signatures.h"

namespace ferry::mpi {

enum class Kind {
  // Memory.
  kSendBuffer,
  kReceiveBuffer,
  kUpdatedBuffer,  // MPI_Bcast's: never MPI_IN_PLACE
  kCollectiveSendBuffer,
  kCollectiveReceiveBuffer,
  kAttachedBuffer,
  kOutput,          // written by the call; null is an error
  kOptionalOutput,  // like kOutput, but MPI_STATUS_IGNORE is allowed
  kAnything,        // any value will do
  kFreedMemory,
  kLocation,
  kWindowBase,
  kAttachedBase,
  // Handles.
  kComm,
  kTopologyComm,
  kCartComm,
  kGraphComm,
  kDistGraphComm,
  kInterComm,
  kCommToFree,
  kGroup,
  kGroupToFree,
  kDataType,  // committed
  kAnyType,
  kDerivedType,
  kNumericType,
  kTypeToFree,
  kTypeToCommit,
  kInfo,
  kInfoOrNull,
  kInfoToFree,
  kOp,
  kOpToFree,
  kPredefinedOp,
  kErrorHandler,
  kFileErrorHandler,
  kSessionErrorHandler,
  kErrorHandlerToFree,
  kFile,        // open to be read and written
  kFileOrNull,  // MPI_FILE_NULL has an error handler, too
  kFileToClose,
  kFileToReadAtAllEnd,  // such a split collective has begun
  kFileToReadAllEnd,
  kFileToReadOrderedEnd,
  kFileToWriteAtAllEnd,
  kFileToWriteAllEnd,
  kFileToWriteOrderedEnd,
  kSession,
  kSessionToEnd,
  kProcessSet,  // its name
  kProcessSetNumber,
  kToolEnum,  // of the tool interface, as the following
  kControlHandle,
  kControlToFree,
  kCounterSession,
  kCounterSessionToFree,
  kCounterHandle,
  kCounterToFree,
  kCounterClass,
  kToolIndex,
  kToolName,
  kWindow,  // in no epoch
  kDynamicWindow,
  kWindowToFree,
  kLockedWindow,   // rank 0 is locked
  kLockedAll,      // by MPI_Win_lock_all
  kWindowToStart,  // MPI_Win_post was called
  kWindowToComplete,
  kWindowToEnd,  // for MPI_Win_wait
  kRequest,
  kGeneralizedRequest,
  kRequestToEnd,
  kRequestToStart,
  kRequestToCancel,
  kRequestToFree,
  kRequests,
  kRequestsToStart,
  kRequestToMatch,
  kRequestsToMatch,
  kMatchableRequest,
  kSendOfPartitions,     // an active one
  kReceiveOfPartitions,  // the same
  kPartitionedRequest,   // the same, of either side
  kPartitionedRequestAt,
  kPartitionedRequests,
  kRequestForKernels,
  kPrequestToFree,
  kQueue,
  kQueueToFree,
  kStreamAddress,
  kMessage,
  kHandleToConvert,
  kNumberToConvert,
  // Numbers.
  kCount,          // of data that is there
  kSmallCount,     // of elements of arrays
  kContentsCount,  // of MPI_Type_get_contents
  kTypeCount,      // of a new datatype
  kDestination,
  kNearDestination,  // of a call that would wait for a message to itself
  kSource,
  kNearSource,
  kSendTag,
  kReceiveTag,
  kRoot,
  kRank,
  kPartitionCount,
  kPartitionCountOfAll,  // of collectives, which take a byte for each
  kPartition,
  kPieceCount,
  kDevice,
  kQueueType,
  kTarget,
  kTargetDisp,
  kWindowSize,
  kUnit,
  kLockType,
  kAssertion,
  kColor,
  kSplitType,
  kCommKeyval,
  kSettableCommKeyval,
  kTypeKeyval,
  kCommKeyvalToFree,
  kTypeKeyvalToFree,
  kWindowKeyval,
  kWindowKeyvalToFree,
  kErrorCode,
  kAddedClass,
  kAddedCode,
  kDimension,
  kOne,  // 1 is right, other numbers are not
  kOrder,
  kTypeClass,
  kMatchSize,
  kPrecision,
  kRange,
  kLogicalSize,
  kRoom,  // bytes of a buffer
  kAttachedSize,
  kAllocatedSize,
  kKeyIndex,
  kValueLength,
  kArgumentCount,
  kAccessMode,
  kOffset,
  kSeekOffset,
  kWhence,
  kFileSize,
  kAllocatedFileSize,
  kDisplacement,
  kAnyNumber,
  // Arrays of numbers.
  kCounts,
  kDisplacements,
  kPosition,
  kBlockLengths,
  kTypeDisplacements,
  kDataTypes,
  kAnyTypes,
  kSizes,
  kSubsizes,
  kStarts,
  kDistributions,
  kDistributionArguments,
  kGrid,
  kDims,
  kDimsToFill,
  kFlags,
  kCoordinates,
  kRanks,
  kRanges,
  kGraphIndex,
  kNeighbours,
  kDegrees,
  kWeights,
  kBufferLength,
  kArguments,
  kPartitionList,
  kSteps,  // of MPIX_Pschedule_init
  // Texts and functions.
  kKey,
  kName,
  kRepresentation,
  kViewRepresentation,
  kNewRepresentation,  // its name
  kFileName,           // of a file that is there
  kFunction,           // null is an error
  kFunctionOrNull,
  kAttributeFunction,  // null is predefined
};

// Fails (a message, and the program ends) for a parameter that no rule knows.
Kind KindOf(const std::string& call, const Parameter& parameter);

}  // namespace ferry::mpi
