// How a misuse of OpenSHMEM ends the program: the standard gives most calls no way to fail, so a
// mistake that Ferry sees is told in a sentence, and the job ends (OpenSHMEM 1.5, section 6: "the
// behavior is undefined").
//
// Calling thread: any.
#pragma once

#include <string>

namespace ferry::shmem {

// "libferry: rank 1: shmem_putmem: SENTENCE" on the standard error output; then the job ends with
// exit code 1. Say what is wrong, with PE and argument, and what to do.
[[noreturn]] void Fail(const char* call, const std::string& sentence);
// A line of the same form, after which the program goes on.
void Warn(const char* call, const std::string& sentence);

// "0x7f..." for messages.
std::string AddressText(const void* address);

}  // namespace ferry::shmem
