// A job whose ranks a PMIx server has started (Slurm's srun --mpi=pmix, Open MPI's orterun), not
// ferryrun: they make it themselves.
//
// Rank 0 draws the job's name and secret. The lowest rank of every node, its *leader*, finds the
// node's daemon, or starts one if the job has no other node, and tells the others where it is;
// after a fence each leader makes the job known to its daemon, and after another all ranks join.
// What goes wrong on one node is an error, in the same words, on all ranks.
//
// Calling thread: one at a time. Everything blocks for the other ranks.
#pragma once

#include <memory>
#include <string>

#include "client/pmix/exchange.h"
#include "client/pmix/node_daemon.h"
#include "client/pmix/pmix_library.h"
#include "common/status.h"
#include "config/options.h"

namespace ferry::client {

class PmixJob {
 public:
  // Makes the job and sets the place of this rank in it in `options`.
  static StatusOr<std::unique_ptr<PmixJob>> Start(config::Options* options);
  // The same for a process that nobody has started as a rank: a job of it alone, in the manner of
  // singletons (MPI 5.0, section 11.8.2).
  static StatusOr<std::unique_ptr<PmixJob>> StartAlone(config::Options* options);

  // After the rank has left the job in good order: waits for the others, since the job, and its
  // daemon perhaps, end with the leader's.
  Status Leave();
  // The server ends the job.
  void Abort(int exit_code);

 private:
  PmixJob() = default;

  std::unique_ptr<PmixLibrary> library_;  // null: alone
  std::unique_ptr<JobStarter> starter_;   // of a leader
};

// The steps above, with whatever exchange and starter. Fills run_directory, job_id, job_secret,
// rank, size and node of `options`.
Status AgreeOnJob(Exchange* exchange, JobStarter* starter, config::Options* options);

}  // namespace ferry::client
