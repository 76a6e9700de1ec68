// Exceptions for single calls.
#pragma once

#include <set>
#include <string>

namespace ferry::mpi {

struct Attempt;

// Conversions of handles and addresses return no error.
bool ReturnsAnError(const std::string& call);
// Whether a job of one rank can make it at all, and any number of times.
bool CanSucceed(const std::string& call);
// Error classes that depend not on one argument, but on several together, or on the state of
// something.
std::set<int> OtherClassesOf(const std::string& call);
// Completions free requests whose operation failed; MPI_Comm_free and MPI_Type_free free their
// object when a callback fails.
bool MayFreeAndFail(const std::string& call);
// The call need not look at the bad argument, for the reason given at its rule.
bool IsForgiven(const Attempt& attempt);

}  // namespace ferry::mpi
