// A persistent collective as a program of a queue (client/triggered/program.h): the schedule that
// its other starts use, over matched pairs of its own.
//
// The pairs are those of the communicator's collectives, with the collective's number as their tag,
// and made in the order of the schedule: so they find each other whatever else is matched at the
// same time. Datatypes with gaps are packed and unpacked by calls on the stream, or, in memory that
// only streams reach, by copies and kernels. Reductions are calls as well, but for those of device
// memory that a device computes (op_reducer.h).
//
// Where the nodes' NICs carry out deferred operations, messages between nodes go by them, and a
// send that only passes on what has been received follows the receives there (stream_order.h): no
// CPU takes part until all are over.
//
// Calling thread: see request.h. Calls on the stream touch nothing but the operation's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "coll/schedule.h"
#include "mpi/base/failure.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

class StreamCollective {
 public:
  // The parts it is made of; all but the number outlive it.
  struct Parts {
    Comm& comm;
    const Channel& channel;
    CollectiveOperation& operation;
    const collective::Schedule& schedule;
    uint32_t number = 0;  // among the communicator's persistent collectives, on all ranks
  };
  // MPI_ERR_TYPE: data in memory that only streams reach is too many blocks. MPI_ERR_NO_MEM.
  static Result<std::unique_ptr<StreamCollective>> Make(const Parts& parts);
  // Called in place of Make by a rank that cannot match the collective. The match, or the first
  // start, then fails on the ranks that it has messages with, which may wait for it.
  static void Refuse(const Parts& parts);
  // It must not be enqueued.
  ~StreamCollective();
  StreamCollective(const StreamCollective&) = delete;
  StreamCollective& operator=(const StreamCollective&) = delete;

  const std::vector<client::RequestHandle>& requests() const { return requests_; }
  client::RequestHandle program() const { return program_; }

 private:
  explicit StreamCollective(const Parts& parts) : parts_(parts) {}
  Failure Build();
  Failure MakeScratch();
  bool PassesOutputOn() const;
  Failure MakeStandIn();
  void AddStandInCopies(bool fetches);
  enum class With { kData, kNothing };
  Failure MakeRequests(With what);
  Failure MakeRequest(const collective::Step& step, With what, client::RequestHandle* handle);
  Failure AddFetches();
  Failure AddDelivery();
  Failure AddMoves(const CollectiveBuffer& buffer, const char* which, bool fetches,
                   Portion portion);
  static bool AreCopiedByKernels(const gpu::StridedCopy& copy);
  void AddCopy(void* to, const void* from, uint64_t size_bytes);
  bool IsToAnotherNode(const collective::Step& step) const;
  bool MayChain(const collective::Step& step) const;
  bool IsReachedByNics(const collective::Range& range) const;
  void AddOrdered();
  void AddCompute(const collective::Step& step);
  std::byte* Address(const collective::Range& range) const;

  const Parts parts_;
  void* scratch_ = nullptr;
  void* stand_in_ = nullptr;  // for the output, where the network does not reach that
  std::vector<client::RequestHandle> requests_;
  std::vector<uint32_t> request_of_;  // by step
  std::vector<client::ProgramStep> steps_;
  client::RequestHandle program_ = 0;
};

}  // namespace ferry::mpi
