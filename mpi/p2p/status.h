// The words that Ferry keeps in an MPI_Status beside the three that programs read: how many bytes
// came, and whether the operation was cancelled.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>

namespace ferry::mpi {

// The order of MPI_Status::MPI_internal.
inline constexpr int kStatusBytes = 0;  // two words
inline constexpr int kStatusCancelled = 2;

inline int64_t BytesOf(const MPI_Status& status) {
  int64_t bytes = 0;
  std::memcpy(&bytes, &status.MPI_internal[kStatusBytes], sizeof(bytes));
  return bytes;
}

inline void SetBytes(MPI_Status* status, int64_t bytes) {
  std::memcpy(&status->MPI_internal[kStatusBytes], &bytes, sizeof(bytes));
}

// Fills in all of the status but MPI_ERROR, which only calls that complete several requests set
// (MPI 5.0, section 3.2.5). A null status is ignored.
inline void SetStatus(MPI_Status* status, int source, int tag, int64_t bytes,
                      bool cancelled = false) {
  if (status == MPI_STATUS_IGNORE) {
    return;
  }
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  SetBytes(status, bytes);
  status->MPI_internal[kStatusCancelled] = cancelled ? 1 : 0;
}

// Makes the empty status of null and inactive requests, which sets MPI_ERROR, too (MPI 5.0, section
// 3.7.3).
inline void SetEmptyStatus(MPI_Status* status) {
  SetStatus(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
  if (status != MPI_STATUS_IGNORE) {
    status->MPI_ERROR = MPI_SUCCESS;
  }
}

}  // namespace ferry::mpi
