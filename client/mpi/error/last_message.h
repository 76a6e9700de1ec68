// The sentence behind the last failing call of a thread: MPI_Error_string adds it to the text of
// the error class that this call returned.
//
// Calling thread: any; each has a sentence of its own.
#pragma once

#include <string>

namespace ferry::mpi {

void Remember(int error_class, std::string sentence);
// Empty: the thread's last failing call returned another class.
const std::string& LastMessage(int error_class);

}  // namespace ferry::mpi
