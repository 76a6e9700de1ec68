// A job whose ranks were started by a launcher other than ferryrun: one with a PMIx server (Slurm's
// srun --mpi=pmix, Open MPI's orterun), a PMI-1 server (Hydra's mpiexec, srun --mpi=pmi2, flux
// run) or a library of PMI-2 (HPE Cray's); or one that only tells each rank where to meet
// (torchrun, Kubernetes). The ranks make the job themselves.
//
// Rank 0 draws the job's name and secret, and its option tree_radix holds for all of the job, since
// the daemons have to agree on the tree of nodes. The lowest rank of every node, its *leader*,
// finds the node's daemon, or starts one if the job has no other node, and tells the others where
// it is; after a fence each leader makes the job known to its daemon, and after another all ranks
// join. Nodes are numbered in the order of their leaders. A failure on one node is an error, in the
// same words, on all ranks.
//
// Calling thread: one at a time. Everything blocks for the other ranks.
#pragma once

#include <memory>
#include <string>

#include "client/bootstrap/attach_connection.h"
#include "client/bootstrap/exchange.h"
#include "common/status.h"
#include "config/options.h"

namespace ferry::client {

// Where a node's daemon is, as ranks and other daemons must know it.
struct DaemonPlace {
  std::string run_directory;
  std::string control_address;  // host:port for other daemons
};

// The daemon of this node, as seen by the rank that starts a job there: the node's lowest rank.
//
// Calling thread: one at a time. Calls block until the daemon answers.
class JobStarter {
 public:
  virtual ~JobStarter() = default;
  // Finds the daemon. `alone`: the job has no other node, so a daemon may be started for it.
  virtual StatusOr<DaemonPlace> Find(bool alone) = 0;
  // Creates the job, which lives as long as this object.
  virtual Status CreateJob(const NewJob& job) = 0;
};

// How the ranks of a job find each other without ferryrun.
enum class ExchangeKind { kNone, kPmix, kPmi1, kPmi2Library, kMeetingPlace };
// Returns the way that this process's environment offers; of several, that of the launcher that
// started it last. Any thread; may open a library.
ExchangeKind FindExchange(const char* const* environment);

class PmiJob {
 public:
  // Returns true if such a launcher started this process.
  static bool HasLauncher(const char* const* environment);
  // Makes the job and stores this rank's place in it in `options`.
  static StatusOr<std::unique_ptr<PmiJob>> Start(config::Options* options);
  // Makes a job of this process alone, which no launcher started as a rank: an MPI singleton (MPI
  // 5.0, section 11.8.2), which CheckAlone must allow. Stores the rank's place in `options`.
  static StatusOr<std::unique_ptr<PmiJob>> StartAlone(config::Options* options);

  // Call it after the rank has left the job in good order. Waits for the other ranks, since the
  // job, and perhaps its daemon, end with the leader's process.
  Status Leave();
  // Makes the launcher end the job.
  void Abort(int exit_code);

 private:
  PmiJob() = default;

  std::unique_ptr<Exchange> launcher_;   // null: alone
  std::unique_ptr<JobStarter> starter_;  // a leader's
};

// Checks that this process is meant to run alone. kConfiguration: a launcher started it as one of
// several, and gave it no server by which to meet them, so that each would silently be a job of its
// own; says what to type instead. `has_terminal`: see launched_task.h.
Status CheckAlone(const char* const* environment, bool has_terminal);

// Carries out the steps above over the given exchange and starter. Fills run_directory, job_id,
// job_secret, tree_radix, rank, size, node, app and app_size of `options`.
Status AgreeOnJob(Exchange* exchange, JobStarter* starter, config::Options* options);

}  // namespace ferry::client
