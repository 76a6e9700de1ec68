#include "coll/board/host_copies.h"

namespace ferry::collective {

void* HostCopies::Take(size_t bytes) {
  void* const memory = link_.TakeStaging(bytes);
  if (memory == nullptr) {
    error_ = ErrorCode::kOutOfMemory;
  }
  return memory;
}

void HostCopies::Fetch(void* copy, const void* from, size_t bytes) {
  if (error_ == ErrorCode::kOk) {
    error_ = link_.Copy(copy, from, bytes);
  }
}

void HostCopies::FetchInput(size_t bytes) {
  input_ = Take(bytes);
  Fetch(input_, binding_.input, bytes);
  binding_.input = input_;
}

void HostCopies::FetchOutput(const Problem& problem, size_t bytes) {
  output_ = Take(bytes);
  const bool is_bcast = problem.collective == Collective::kBcast;
  const bool is_source = is_bcast && problem.rank == problem.root;
  // An output that is only written need not be fetched, unless a part of it stays.
  if (is_source || (problem.in_place && !is_bcast) || problem.collective == Collective::kExscan) {
    Fetch(output_, binding_.output, bytes);
  }
  own_output_ = binding_.output;
  binding_.output = output_;
  written_bytes_ = is_source ? 0 : bytes;
}

void HostCopies::GiveBack() {
  for (void* const memory : {input_, output_}) {
    if (memory != nullptr) {
      link_.GiveStaging(memory);
    }
  }
}

}  // namespace ferry::collective
