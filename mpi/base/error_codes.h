// Error classes, error codes and what they mean in words: those of MPI, and those that a program
// adds. MPI 5.0, sections 9.4 and 9.5.
//
// Ferry's own calls return classes as their codes, so only programs have codes that are not
// classes. Numbers that programs get lie above MPI_ERR_LASTCODE; codes and classes share them.
//
// Calling thread: any. Does not block.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "mpi/base/failure.h"

namespace ferry::mpi {

// The name of a predefined class, such as "MPI_ERR_RANK". Null for any other number.
const char* PredefinedErrorName(int error_class);

class ErrorCodes {
 public:
  // MPI_ERR_ARG for a number that is neither a class nor a code.
  Failure ClassOf(int code, int* error_class) const;
  // The text that MPI_Error_string gives: "MPI_ERR_RANK: invalid rank", what the program gave, or
  // nothing.
  Failure TextOf(int code, std::string* text) const;
  // The largest number in use: the value of the attribute MPI_LASTUSEDCODE.
  int LastUsed() const;

  // MPI_ERR_INTERN when numbers have run out.
  Failure AddClass(int* error_class);
  // MPI_ERR_ARG if `error_class` is no class.
  Failure AddCode(int error_class, int* code);
  // Sets or replaces the text of a program's own class or code. MPI_ERR_ARG for others, a null
  // text, and one of MPI_MAX_ERROR_STRING bytes or more.
  Failure AddText(int code, const char* text);

  // The three below fail with MPI_ERR_ARG for what the program did not add.
  // Refused (MPI_ERR_ARG) while it has codes, or a text.
  Failure RemoveClass(int error_class);
  // Refused (MPI_ERR_ARG) while it has a text.
  Failure RemoveCode(int code);
  // From then on the text is empty, as at first.
  Failure RemoveText(int code);

 private:
  struct Entry {
    int error_class;  // its own number: it is a class
    std::string text;
  };

  bool IsClass(int number) const;
  Failure Add(int error_class, int* number);

  mutable std::mutex mutex_;
  std::map<int, Entry> added_;
};

// Those of this process. They may be used before MPI_Init and after MPI_Finalize.
ErrorCodes& ProcessErrorCodes();

}  // namespace ferry::mpi
