// Control variables of the tool interface (MPI 5.0, section 15.3.6): Ferry's options, under their
// own names, as this process has them. Daemons have options of their own.
//
// Those that ranks read can be set until MPI begins: that changes the environment, which MPI_Init
// reads.
//
// Calling thread: any, one at a time, and not while another thread changes the environment. Nothing
// blocks. Failures have the classes MPI_T_ERR_*.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "config/options.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

struct ControlVariable {
  const config::Option* option;
  std::vector<std::string> choices;  // where only these are allowed; else empty
  bool can_be_set;                   // before MPI begins

  // MPI_UNSIGNED_LONG_LONG of a number, MPI_INT of one of its choices, MPI_CHAR of other texts.
  MPI_Datatype datatype() const;
  // Returns the number of its elements: of a text, the most that it can have with its final zero.
  int count() const;
  // Returns the enumeration of its choices; MPI_T_ENUM_NULL if it has none.
  MPI_T_enum enumeration() const;
  int verbosity() const;
  int scope() const;
  std::string description() const;
};

// Returns all options but secrets, in the order of their table.
const std::vector<ControlVariable>& ControlVariables();
// Returns the variable that has this enumeration; null: there is none.
const ControlVariable* FindEnumeration(MPI_T_enum enumeration);

// MPI_T_ERR_NOT_ACCESSIBLE if the environment holds an option that is malformed.
Failure ReadControl(const ControlVariable& variable, void* buffer);
// Sets a variable. `begun`: MPI has begun in this process. MPI_T_ERR_CVAR_SET_NEVER, _NOT_NOW;
// MPI_T_ERR_INVALID for a value that the option cannot have.
Failure WriteControl(const ControlVariable& variable, const void* buffer, bool begun);

}  // namespace ferry::mpi
