// What single calls may do that others may not.
#pragma once

#include <set>
#include <string>

namespace ferry::mpi {

struct Attempt;

// Conversions of handles and addresses return no error.
bool ReturnsAnError(const std::string& call);
// Whether a job of one rank can make it at all, and any number of times.
bool CanSucceed(const std::string& call);
// Classes that tell not of one argument, but of several together, or of the state of something.
std::set<int> OtherClassesOf(const std::string& call);
// Completions free requests whose operation failed; MPI_Comm_free and MPI_Type_free do when a
// callback fails.
bool MayFreeAndFail(const std::string& call);
// The call need not look at the bad argument, for the reason that stands at its rule.
bool IsForgiven(const Attempt& attempt);

}  // namespace ferry::mpi
