#include "mpi/io/file.h"

namespace ferry::mpi {

constinit HandleTable<File, MPI_File> files;

Result<int64_t> File::TakePosition(int64_t etypes) {
  const std::lock_guard lock(mutex_);
  const int64_t before = position_;
  if (__builtin_add_overflow(position_, etypes, &position_)) {
    position_ = before;
    return Failure{MPI_ERR_ARG, "the file pointer would be beyond 2^63 etypes"};
  }
  return before;
}

namespace {

std::mutex null_file_mutex;
// Null: MPI_ERRORS_RETURN. Is never destroyed: programs may fail until the process has ended.
Ref<ErrorHandler>& null_file_handler = *new Ref<ErrorHandler>();

}  // namespace

Ref<ErrorHandler> NullFileHandler() {
  const std::lock_guard lock(null_file_mutex);
  return null_file_handler ? null_file_handler
                           : Ref<ErrorHandler>::Share(error_handlers.Find(MPI_ERRORS_RETURN));
}

void SetNullFileHandler(Ref<ErrorHandler> handler) {
  const std::lock_guard lock(null_file_mutex);
  null_file_handler = std::move(handler);
}

}  // namespace ferry::mpi
