// The table from which this process' collectives take their algorithms: the built-in rules, or what
// the options say (collective_table, collective_algorithms).
//
// Calling thread: any; read at the first call.
#pragma once

#include "client/mpi/collective/selection.h"

namespace ferry::mpi {

const SelectionTable& CollectiveTable();

}  // namespace ferry::mpi
