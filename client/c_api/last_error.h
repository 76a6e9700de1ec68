// Keeps, for each thread, the sentence about its last failing call (ferry_last_error).
#pragma once

#include <string>

#include "common/status.h"

namespace ferry::client {

// Remembers `status` for this thread and returns its code as the C API does. Any thread.
int Fail(const Status& status);
int Fail(ErrorCode code, const char* message);
// Returns this thread's sentence; never null.
const char* LastError();
// Restores an earlier sentence of LastError after later calls have failed.
void RestoreLastError(std::string sentence);

}  // namespace ferry::client
