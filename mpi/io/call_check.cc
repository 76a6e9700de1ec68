#include "mpi/io/call_check.h"

#include <cstdio>
#include <string>
#include <vector>

#include "coll/call_record.h"
#include "mpi/base/connection.h"
#include "mpi/coll/table.h"

namespace ferry::mpi {

Failure CheckSameCall(const char* call, File& file) {
  Meeting meeting(call, file.comm());
  return CheckSameCall(meeting, call, file);
}

Failure CheckSameCall(Meeting& meeting, const char* call, File& file) {
  if (!ComparesCalls()) [[likely]] {
    return {};
  }
  collective::CallRecord own;
  collective::SetName(&own, call);
  std::vector<collective::CallRecord> all;
  FERRY_RETURN_FAILURE(meeting.Gather(own, &all));
  const collective::CallMismatch mismatch = collective::FindMismatch(all);
  return mismatch.is_one()
             ? Failure{MPI_ERR_OTHER, mismatch.text + ", on the file '" + file.name() + "'"}
             : Failure();
}

void NameOpenFiles() {
  if (!ComparesCalls()) {
    return;
  }
  files.ForEach([](MPI_File /*handle*/, const File* file) {
    std::fprintf(stderr,
                 "libferry: rank %u: MPI_Finalize: the file '%s' is open: close it before\n",
                 front_end->rank(), file->name().c_str());
  });
}

}  // namespace ferry::mpi
