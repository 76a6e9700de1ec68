// Helpers for programs whose kernels, on an emulated device, use partitioned requests.
#pragma once

#include <mpix.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ferry/device/emulated.h"
#include "ferry/device/partitioned.h"
#include "tests/mpi/ranks/check.h"

// The arguments of the program: how kernels' data move ("auto", "kernel", "host", "daemon"), and
// the kind of memory that they lie in ("host", "device").
inline std::string copy_wish = "auto";
inline std::string kernel_max;  // empty: the default
inline std::string memory_kind = "host";

// The rank at the other end: of two, or the only one.
inline int Peer() { return size == 1 ? 0 : 1 - rank; }

// Memory that the kernels of the device, and the other rank's, reach.
class Buffer {
 public:
  explicit Buffer(size_t bytes) {
    MPI_Info info = info_with("ferry_memory_kind", memory_kind.c_str());
    OK(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), info, &bytes_));
    OK(MPI_Info_free(&info));
  }
  ~Buffer() { OK(MPI_Free_mem(bytes_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  unsigned char* at(size_t offset) const { return bytes_ + offset; }

 private:
  unsigned char* bytes_ = nullptr;
};

// One side of a partitioned message, with its Prequest.
class Half {
 public:
  struct Shape {
    int partitions = 8;
    int bytes = 100;             // of a partition
    const char* min_bytes = "";  // of a unit; empty: the default
    int tag = 1;
  };

  Half(bool is_send, const Shape& shape, bool has_prequest = true)
      : shape_(shape), memory_(static_cast<size_t>(shape.partitions) * shape.bytes) {
    MPI_Info info = MPI_INFO_NULL;
    if (*shape.min_bytes != 0) {
      info = info_with("ferry_partitioned_min_bytes", shape.min_bytes);
    }
    if (is_send) {
      OK(MPI_Psend_init(memory_.at(0), shape.partitions, shape.bytes, MPI_BYTE, Peer(), shape.tag,
                        MPI_COMM_WORLD, info, &request_));
    } else {
      OK(MPI_Precv_init(memory_.at(0), shape.partitions, shape.bytes, MPI_BYTE, Peer(), shape.tag,
                        MPI_COMM_WORLD, info, &request_));
    }
    if (info != MPI_INFO_NULL) {
      OK(MPI_Info_free(&info));
    }
    has_prequest_ = has_prequest;
  }
  // Once both sides are there: it waits for the other one.
  void MakePrequest() {
    if (has_prequest_) {
      MPI_Info info = info_with("ferry_partitioned_copy", copy_wish.c_str());
      if (!kernel_max.empty()) {
        OK(MPI_Info_set(info, "ferry_partitioned_kernel_max", kernel_max.c_str()));
      }
      OK(MPIX_Prequest_create(request_, 0, info, &prequest_));
      OK(MPI_Info_free(&info));
    }
  }
  ~Half() {
    if (prequest_ != MPIX_PREQUEST_NULL) {
      OK(MPIX_Prequest_free(&prequest_));
    }
    OK(MPI_Request_free(&request_));
  }
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;

  MPI_Request& request() { return request_; }
  MPIX_Prequest prequest() const { return prequest_; }
  int partitions() const { return shape_.partitions; }

  void Start() { OK(MPI_Start(&request_)); }
  void Wait() { OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); }

  static unsigned SeedOf(int from, int round) { return static_cast<unsigned>(from + 2 * round); }
  static unsigned char ByteOf(unsigned seed, size_t place) {
    return static_cast<unsigned char>(seed * 31 + place * 7 + (place >> 8));
  }
  // The calling thread's part of a partition of what this rank sends.
  void Fill(int partition, int round, const ferry_device_crew& crew) {
    for (size_t i = crew.thread; i < static_cast<size_t>(shape_.bytes); i += crew.count) {
      const size_t place = static_cast<size_t>(partition) * shape_.bytes + i;
      *memory_.at(place) = ByteOf(SeedOf(rank, round), place);
    }
  }
  bool IsFilled(int partition, int round) const {
    for (size_t i = 0; i < static_cast<size_t>(shape_.bytes); ++i) {
      const size_t place = static_cast<size_t>(partition) * shape_.bytes + i;
      if (*memory_.at(place) != ByteOf(SeedOf(Peer(), round), place)) {
        return false;
      }
    }
    return true;
  }

 private:
  const Shape shape_;
  const Buffer memory_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPIX_Prequest prequest_ = MPIX_PREQUEST_NULL;
  bool has_prequest_ = true;
};

inline ferry_device_crew Alone() { return ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD); }
inline ferry_device_crew Together() { return ferry_device_crew_of(FERRY_DEVICE_CREW_GROUP); }

// For kernels, whose threads do not call MPI.
#define KERNEL_CHECK(condition)                                                                   \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "rank %d, %s:%d, in %s: %s\n", rank, __FILE__, __LINE__, step, #condition); \
      fflush(stderr);                                                                             \
      abort();                                                                                    \
    }                                                                                             \
  } while (0)
