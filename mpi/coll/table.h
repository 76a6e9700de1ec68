// The table from which the collectives of a job take their algorithms: the built-in rules, behind
// those that the options name (collective_table, collective_algorithms).
//
// Ranks with different tables would wait for each other for ever. So rank 0's options count for its
// whole job: it reads them, and hands the rules out.
#pragma once

#include <string>
#include <vector>

#include "coll/algorithms/selection.h"
#include "common/status.h"
#include "config/options.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

// Calling thread: any, once AgreeOnCollectiveTable has returned.
const collective::SelectionTable& CollectiveTable();
// Returns true if ranks compare their calls of a collective before they carry it out (option
// mpi_check).
bool ComparesCalls();
// Returns true if collectives on queues are chained in the nodes' NICs (option
// deferred_work_entries, of rank 0's ferryd): their messages between nodes then go by the NICs, and
// follow each other there.
bool ChainsInNics();
// Returns the table of matched collectives: where NICs chain them, that of CollectiveTable with
// algorithms for chains behind the rules of options.
const collective::SelectionTable& QueueTable();

// Gives rank 0's table to all ranks. Collective over the job, once, between joining it and the
// first communicator. Blocks. If rank 0's options are wrong it fails on all ranks, with
// MPI_ERR_OTHER and rank 0's error text.
Failure AgreeOnCollectiveTable();

// Returns the rules of these options, those of collective_algorithms first. Blocks on reading the
// file. Fails with the system's error if it cannot be read; kConfiguration says what is wrong, with
// the line of the file or the name of the variable.
StatusOr<std::vector<collective::SelectionRule>> RulesOf(const config::Options& options);

}  // namespace ferry::mpi
