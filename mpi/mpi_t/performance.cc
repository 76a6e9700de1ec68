#include "mpi/mpi_t/performance.h"

#include <cstring>

#include "include/ferry/ferry.h"
#include "shm/counters.h"

namespace ferry::mpi {

const std::vector<PerformanceVariable>& PerformanceVariables() {
  static const auto& variables = *new std::vector<PerformanceVariable>([] {
    std::vector<PerformanceVariable> made;
    for (const shm::StatisticLabel& label : shm::StatisticLabels()) {
      made.push_back({label.name, label.unit, label.help,
                      label.id == shm::Statistic::kLinksOpen  ? MPI_T_PVAR_CLASS_LEVEL
                      : std::strcmp(label.unit, "bytes") == 0 ? MPI_T_PVAR_CLASS_AGGREGATE
                                                              : MPI_T_PVAR_CLASS_COUNTER});
    }
    return made;
  }());
  return variables;
}

PerformanceHandle::PerformanceHandle(int index) : index_(index) {}

const PerformanceVariable& PerformanceHandle::variable() const {
  return PerformanceVariables()[static_cast<size_t>(index_)];
}

uint64_t PerformanceHandle::Now() const { return ferry_counter_value(index_); }

void PerformanceHandle::Gather() {
  const uint64_t now = Now();
  if (is_running_ && now > seen_) {  // it is 0 again once the rank has left its job
    value_ += now - seen_;
  }
  seen_ = now;
}

Failure PerformanceHandle::Start() {
  if (variable().is_level()) {
    return {MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable is always active"};
  }
  Gather();
  is_running_ = true;
  return {};
}

Failure PerformanceHandle::Stop() {
  if (variable().is_level()) {
    return {MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable is always active"};
  }
  Gather();
  is_running_ = false;
  return {};
}

uint64_t PerformanceHandle::Read() {
  if (variable().is_level()) {
    return Now();
  }
  Gather();
  return value_;
}

Failure PerformanceHandle::Write(uint64_t value) {
  if (variable().is_level()) {
    return {MPI_T_ERR_PVAR_NO_WRITE, "the variable says how many there are now: nobody can set it"};
  }
  Gather();
  value_ = value;
  return {};
}

}  // namespace ferry::mpi
