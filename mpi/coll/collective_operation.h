// A call of a collective, once its arguments are understood: the problem, the program's buffers,
// and how elements are reduced. Common to blocking, nonblocking and persistent calls.
//
// Calling thread: that of the call, and of the one that completes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coll/call_record.h"
#include "coll/problem.h"
#include "coll/runner.h"
#include "mpi/base/failure.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/comparison.h"
#include "mpi/coll/op_reducer.h"
#include "mpi/datatype/datatype.h"
#include "mpi/p2p/payload.h"

namespace ferry::mpi {

struct BlockArguments {
  void* address = nullptr;  // origin of the datatype's displacements
  int64_t count = 0;
  const Datatype* type = nullptr;
};

// The record of `count` elements, for ranks to compare.
collective::DataRecord RecordOf(int64_t count, const Datatype& type);

// A program's buffer in a collective, as one run of bytes with blocks at offsets.
//
// Where the program's elements lie next to each other (or its blocks are such runs), the memory
// itself is used. Otherwise, and where a CPU has to reduce data that only streams reach, a packed
// copy stands in: only data that the collective reads are copied in, only its results are copied
// out. The copies block.
class CollectiveBuffer {
 public:
  // Sets a buffer of `count` elements in a row. `on_host`: CPUs must be able to load from it.
  // MPI_ERR_NO_MEM.
  Failure Set(void* address, int64_t count, const Datatype& type, bool on_host);
  // Sets a buffer of one block for each rank; fills in the blocks' places.
  Failure Set(const std::vector<BlockArguments>& blocks, std::vector<collective::Block>* places,
              bool on_host = false);

  // Makes a copy stand in at any rate. To be called before Set.
  void KeepApart() { is_apart_ = true; }

  // Records for ranks to compare: of one of `times` equal parts of the first form; of each block of
  // the second one, kept only where calls are compared (table.h).
  collective::DataRecord RecordOfPart(int64_t times) const;
  const std::vector<collective::DataRecord>& block_records() const { return block_records_; }
  // The type of the first form; null: that was not set.
  const Datatype* type() const { return run_.type; }

  // Null if there are no bytes.
  void* base() const { return base_; }
  // Returns true if a copy stands in for the program's memory.
  bool is_copy() const { return copy_ != nullptr; }
  // Returns the first byte of the first form's elements, if they lie next to each other in memory
  // that only streams reach. Null: they do not.
  void* OnDevice() const;
  // Returns true if a copy stands in for memory of the program that only streams reach.
  bool is_by_stream() const { return is_by_stream_; }
  // The copies that Fetch(first, count) and Deliver consist of, for streams to do.
  std::vector<gpu::StridedCopy> FetchCopies(int64_t first, int64_t count) const;
  std::vector<gpu::StridedCopy> DeliverCopies() const;
  // Copies elements or blocks [first, first + count) into the copy, before the collective starts.
  Failure Fetch(int64_t first, int64_t count);
  // Copies the results out of the copy, to the program's memory, after the collective.
  Failure Deliver();

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  struct Piece {
    Payload payload;
    size_t offset = 0;
  };

  Piece PartOfRun(int64_t first, int64_t count) const;
  std::vector<gpu::StridedCopy> CopiesOf(int64_t first, int64_t count, bool is_pack) const;
  Failure MakeCopy(size_t size_bytes, bool of_device);

  void* base_ = nullptr;
  std::unique_ptr<char, Free> copy_;  // null: the program's memory is used
  bool is_by_stream_ = false;
  bool is_apart_ = false;
  std::vector<Piece> pieces_;  // the parts of the copy
  BlockArguments run_;         // of the first form
  std::vector<collective::DataRecord> block_records_;
};

// The elements or blocks of a buffer that the collective reads.
struct Portion {
  int64_t first = 0;
  int64_t count = 0;
};

struct CollectiveOperation;

// The data of a reduction that a device may carry out where they lie: only once that has proved to
// be impossible, copies are made for CPUs.
class DeviceOperands : public collective::DeviceData {
 public:
  // The operation outlives this.
  explicit DeviceOperands(CollectiveOperation* operation) : operation_(*operation) {}
  ErrorCode Fetch() override;

 private:
  CollectiveOperation& operation_;
};

struct CollectiveOperation {
  collective::Problem problem;
  CollectiveBuffer input;
  CollectiveBuffer output;
  Portion input_read;
  Portion output_read;
  bool delivers = true;  // this rank gets the output
  bool reduces = false;
  OpReducer reducer;
  int device = collective::kHostMemory;  // the device that reduces
  const char* call_name = "";
  // For a unit of partitions: its result lies where others' contributions are read, and is put
  // there when they all are over.
  bool holds_result = false;
  std::string cut;  // the units of a partitioned one, for ranks to compare
  std::unique_ptr<CallDescription> description;  // where ranks compare their calls
  uint32_t number = Channel::kNoNumber;          // of the channel's, there

  // Copies the data that are read, where copies stand in for the program's buffers.
  Failure Fetch() { return input.is_copy() || output.is_copy() ? FetchCopies() : Failure(); }
  // Fetches for a run of its own. If that fails, the run tells the other ranks, and Finish the
  // program.
  void FetchForRun() {
    is_kept_ = false;
    if (input.is_copy() || output.is_copy()) {
      fetched_ = FetchCopies();
    }
  }
  // Returns true if it reduces data that only streams reach.
  bool ReducesOnDevice() const {
    return reduces &&
           (device != collective::kHostMemory || input.is_by_stream() || output.is_by_stream());
  }
  // Leaves the data where they are, in place of FetchForRun, and fills in where that is; the run
  // may fetch them. False: no device could reduce them there, and nothing was done.
  bool KeepOnDevice(DeviceOperands* operands);
  // Returns true if the data are still only where KeepOnDevice has left them.
  bool is_kept() const { return is_kept_; }
  collective::Binding MakeBinding(DeviceOperands* on_device = nullptr) {
    return {input.base(),
            output.base(),
            reduces ? &reducer : nullptr,
            device,
            fetched_.ok() ? nullptr : &NotFetched(),
            on_device};
  }
  // Puts the result, after the run, where the program wants it, or returns the failure.
  Failure Finish(const collective::RunFailure& failure) {
    return failure.code == ErrorCode::kOk && (!output.is_copy() || is_kept_)
               ? Failure()
               : FinishCopies(failure);
  }

 private:
  static const collective::RunFailure& NotFetched();

  Failure FetchCopies();
  Failure FinishCopies(const collective::RunFailure& failure);

  Failure fetched_;
  bool is_kept_ = false;

  friend class DeviceOperands;
};

}  // namespace ferry::mpi
