// Numbered error codes of the data path, the C API (ferry.h repeats the numbers) and shared memory.
// A number is never given a new meaning; add new codes at the end.
#pragma once

#include <cstdint>

namespace ferry {

enum class ErrorCode : int32_t {
  kOk = 0,
  kWouldBlock = 1,  // not a failure: try again later
  kInvalidArgument = 2,
  kNotInitialized = 3,
  kAlreadyInitialized = 4,
  kNoDaemon = 5,         // nothing serves the run directory
  kVersionMismatch = 6,  // layout or protocol version differs
  kPermissionDenied = 7,
  kRunDirectory = 8,  // missing, not writable, or owned by someone else
  kInvalidRank = 9,
  kInvalidTag = 10,
  kTruncated = 11,  // MPI_ERR_TRUNCATE: the data within the buffer is valid
  kOutOfMemory = 12,
  kLimitExceeded = 13,
  kPeerDied = 14,         // the other rank is gone
  kDaemonDied = 15,       // this node's ferryd is gone
  kNodeUnreachable = 16,  // the other node's ferryd is gone or silent
  kTimeout = 17,
  kCancelled = 18,
  kNotFound = 19,
  kAlreadyExists = 20,
  kUnsupported = 21,
  kInvalidBuffer = 22,  // an address, region, offset or length that is not the caller's to use
  kInvalidRequest = 23,
  kCorrupt = 24,   // shared memory or a packet holds what no correct peer writes
  kSystem = 25,    // a system call failed; the message says which
  kDraining = 26,  // the daemon takes no new jobs
  kInternal = 27,
  kForked = 28,         // Ferry used in a child of the process that initialised it
  kConfiguration = 29,  // an option is unknown or malformed
  kAborted = 30,        // the job was aborted
  kWorkerDied = 31,     // the job's worker process is gone, or was given up
  kLinkDown = 32,       // the link to the other node was cut; new traffic may pass once it is back
};

// A short English phrase without a full stop. Never null; unknown numbers say so.
const char* ErrorCodeText(ErrorCode code);

// Maps errno to the nearest code (kSystem where none is nearer).
ErrorCode ErrorCodeFromErrno(int error_number);

}  // namespace ferry
