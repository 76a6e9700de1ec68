// The object of an MPI_Request: an operation under way, or a persistent one between its starts
// (MPI 5.0, sections 3.7 and 3.9).
//
// Calling thread: any that the thread level allows; as the standard says, not two at a time for one
// request.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"

namespace ferry::mpi {

class Comm;
class Partitioned;

// The part of a request that ferry/mpi/mpix.h needs: how it is matched for life, and which request
// of libferry's a queue starts. Nothing blocks.
class Matchable {
 public:
  // Appends libferry's requests that are to be matched; makes them, if need be. MPI_ERR_REQUEST,
  // MPI_ERR_TYPE, MPI_ERR_NO_MEM: why the request cannot be matched; the other ends are told, too.
  virtual Failure AddOffered(std::vector<client::RequestHandle>* requests) = 0;
  virtual Failure IsMatched(bool* matched) = 0;
  // Finds libferry's request that queues start and wait for; 0: none, since this request is
  // complete at once. MPI_ERR_TYPE: streams cannot move its data. Does not check that the request
  // is matched: the caller does, if there is anything to match.
  virtual Failure FindEnqueued(client::RequestHandle* handle) = 0;

 protected:
  ~Matchable() = default;
};

// Frees libferry's persistent requests, which cannot be matched, so that the match, or the first
// start, fails on the other ends, which may wait for it. Blocks on the daemon.
void RefuseMatch(const std::vector<client::RequestHandle>& requests);

class Request : public Object {
 public:
  // Returns true if the request is known to be complete by now: makes no progress. An inactive
  // persistent request counts as complete.
  virtual bool IsDone() = 0;
  // Waits until the request is complete. Blocks.
  virtual void Await();
  // Waits until done(argument) is true, and makes progress meanwhile. `done` may end and free the
  // request. Blocks.
  virtual void AwaitUntil(bool (*done)(void*), void* argument);
  // Returns true if Await and AwaitUntil tell the daemon for which rank they wait, if that takes
  // long.
  virtual bool is_watched() const { return false; }
  // Ends a request that is complete: fills in the status (but not its MPI_ERROR), and makes a
  // persistent request inactive. Returns the operation's failure.
  virtual Failure End(MPI_Status* status) = 0;
  // The quick form of End, which also frees the handle and sets it to null. False: nothing
  // happened, because the request is not known to be complete, or has failed, or is to be kept.
  virtual bool EndWell(MPI_Request* /*handle*/, MPI_Status* /*status*/) { return false; }
  // Fills in the status of a complete request without changing the request; an empty status if
  // there is nothing to tell. For MPI_Request_get_status.
  virtual void Look(MPI_Status* status);

  virtual bool is_persistent() const { return false; }
  virtual bool is_active() const { return true; }
  // Returns true while the request belongs to a queue (ferry/mpi/mpix.h): no other call may use it.
  virtual bool is_enqueued() const { return false; }
  // Null: the request cannot be matched.
  virtual Matchable* matchable() { return nullptr; }
  // Null: the request has no partitions (partitioned.h).
  virtual Partitioned* partitioned() { return nullptr; }
  // Starts an inactive persistent request.
  virtual Failure Start();
  // Asks for cancellation; the request must be completed all the same.
  virtual Failure Cancel();
  // Gives the operation up at the end of MPI, if no other rank depends on it.
  virtual void GiveUp() {}
  // Says what it is, for those who look at a rank that waits for it. By default: the communicator
  // and awaited_peer().
  virtual void DescribeWait(shm::CallDescription* description) const;
  // The rank of the job that the request waits for, or client::kAny. It decides how to wait.
  virtual int32_t awaited_peer() const { return client::kAny; }
  // The communicator whose error handler its failures go to; null: none.
  virtual Comm* comm() const { return nullptr; }
  // Makes a handle for the request. The handle takes over the caller's reference to the request.
  virtual MPI_Request Publish();
  // Removes the handle and drops its reference: for the program the handle is null from now on.
  virtual void Unpublish(MPI_Request handle);
  // Frees the handle of an active request whose operation goes on; the request is ended when that
  // is over.
  virtual Failure FreeActive(MPI_Request handle);
};

// A call that waits for a request, for those who look at the rank. Both outlive it; null: the
// request is over.
struct CompletionNote : client::CallNote {
  CompletionNote(const char* function, const Request* request)
      : CallNote(&DescribeIt), function(function), request(request) {}

  const char* const function;
  const Request* request;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

// A call that waits for any of several requests: they see the request if it is the only active one,
// else what all have in common.
struct AnyNote : client::CallNote {
  AnyNote(const char* function, std::span<const MPI_Request> handles)
      : CallNote(&DescribeIt), function(function), handles(handles) {}

  const char* const function;
  const std::span<const MPI_Request> handles;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

// True once the process has made a queue: only then does is_enqueued() need to be called.
extern std::atomic<bool> may_be_enqueued;

// Keeps a request that the program has freed before it was complete, and ends it once it is. Takes
// over the caller's reference.
void Abandon(Request* request);
// Ends the abandoned requests that are complete.
void EndAbandoned();
// Waits until all abandoned requests are complete. Blocks.
void AwaitAbandoned();
// Called by one thread at the end of MPI: frees the persistent requests that the program has not
// freed, ends complete ones, and gives up receives for which no message came. Operations on which
// another rank may still depend stay open.
void DropLeftRequests();

// The handle of all operations that were complete when they were started and have an empty status.
// It is never freed, as long as there are requests at all.
extern MPI_Request completed_request;
void MakeCompletedRequest();  // once, by MPI_Init

}  // namespace ferry::mpi
