// The object of an MPI_Request: an operation under way, or a persistent one between its starts
// (MPI 5.0, sections 3.7 and 3.9).
//
// Calling thread: any that the thread level allows; as the standard says, not two at a time for one
// request.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"

namespace ferry::mpi {

class Comm;
class Partitioned;

// The part of a request that ferry/mpi/mpix.h needs: how it is matched for life, and what a queue
// starts. Nothing blocks.
class Matchable {
 public:
  // Adds libferry's requests that are to be matched; makes them, if need be. MPI_ERR_REQUEST,
  // MPI_ERR_TYPE, MPI_ERR_NO_MEM: why it cannot be matched, of which the other ends are told, too.
  virtual Failure AddOffered(std::vector<client::RequestHandle>* requests) = 0;
  virtual Failure IsMatched(bool* matched) = 0;
  // Finds what queues start and wait for; 0: nothing, it is complete at once. MPI_ERR_TYPE: streams
  // cannot. Does not check that it is matched: others do, if there is anything to match.
  virtual Failure FindEnqueued(client::RequestHandle* handle) = 0;

 protected:
  ~Matchable() = default;
};

// Frees libferry's persistent requests, which cannot be matched, so that the match, or the first
// start, fails on the other ends, which may wait for it. Blocks on the daemon.
void RefuseMatch(const std::vector<client::RequestHandle>& requests);

class Request : public Object {
 public:
  // Whether it is complete, as far as is known by now: makes no progress. An inactive persistent
  // request counts as complete.
  virtual bool IsDone() = 0;
  // Waits until it is. Blocks.
  virtual void Await();
  // The same until done(argument), which may end it and free it.
  virtual void AwaitUntil(bool (*done)(void*), void* argument);
  // Whether these waits say for whom they wait, if that takes long.
  virtual bool is_watched() const { return false; }
  // Ends it, when it is done: fills in the status (but not its MPI_ERROR), and a persistent request
  // becomes inactive. Returns the operation's failure.
  virtual Failure End(MPI_Status* status) = 0;
  // The short way to end it and to drop its handle, which becomes null. False: nothing happened,
  // because it is not done, for all that is known by now, or did not go well, or is to be kept.
  virtual bool EndWell(MPI_Request* /*handle*/, MPI_Status* /*status*/) { return false; }
  // The status of a request that is done, which stays as it is; empty, unless something is to be
  // said. For MPI_Request_get_status.
  virtual void Look(MPI_Status* status);

  virtual bool is_persistent() const { return false; }
  virtual bool is_active() const { return true; }
  // Whether it belongs to a queue just now (ferry/mpi/mpix.h): no other call may use it.
  virtual bool is_enqueued() const { return false; }
  // Null: it cannot be matched.
  virtual Matchable* matchable() { return nullptr; }
  // Null: it has no partitions (partitioned.h).
  virtual Partitioned* partitioned() { return nullptr; }
  // Starts it: a persistent one that is inactive.
  virtual Failure Start();
  // Asks for it to be cancelled; it must be completed all the same.
  virtual Failure Cancel();
  // At the end of MPI: gives the operation up, if nobody else counts on it.
  virtual void GiveUp() {}
  // The rank of the job that it waits for, or client::kAny: how to wait depends on it.
  virtual int32_t awaited_peer() const { return client::kAny; }
  // The communicator whose error handler its failures go to; null: none.
  virtual Comm* comm() const { return nullptr; }
  // A handle for it, which gets the caller's part in the request.
  virtual MPI_Request Publish();
  // Takes the handle, and its part, from it: the handle is null for the program from now on.
  virtual void Unpublish(MPI_Request handle);
  // The same for one that is active, and whose operation goes on: it is ended when that is over.
  virtual Failure FreeActive(MPI_Request handle);
};

// Whether there has been a queue: only then is_enqueued() needs to be asked.
extern std::atomic<bool> may_be_enqueued;

// A request that the program has freed before it was complete: it is ended when it is. Takes over
// the caller's part.
void Abandon(Request* request);
// Ends those of them that are done.
void EndAbandoned();
// Waits for all of them.
void AwaitAbandoned();
// At the end of MPI, for one thread: frees the persistent requests that the program has not freed,
// ends what is over, and gives up receives that no message came for. Operations that another rank
// may still count on stay open.
void DropLeftRequests();

// The handle of operations that were complete when they were started, and whose status says
// nothing: never freed, as long as there are requests at all.
extern MPI_Request completed_request;
void MakeCompletedRequest();  // once, by MPI_Init

}  // namespace ferry::mpi
