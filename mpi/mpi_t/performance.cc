#include "mpi/mpi_t/performance.h"

#include <cstring>

#include "include/ferry/ferry.h"
#include "mpi/base/connection.h"
#include "shm/counters.h"

namespace ferry::mpi {
namespace {

using Source = PerformanceVariable::Source;

constexpr double kNsPerSecond = 1e9;

// The function that the calling thread is in, as far as it has said so. MPI_T's own do not.
int CurrentCall() {
  const client::CallNote* const note = front_end != nullptr ? front_end->calls->current() : nullptr;
  shm::CallDescription call;
  if (note != nullptr) {
    note->describe(*note, &call);
  }
  return static_cast<int>(call.name);
}

}  // namespace

MPI_Datatype PerformanceVariable::datatype() const {
  return is_timer()                            ? MPI_DOUBLE
         : var_class == MPI_T_PVAR_CLASS_STATE ? MPI_INT
                                               : MPI_UNSIGNED_LONG_LONG;
}

MPI_T_enum PerformanceVariable::enumeration() const {
  return source == Source::kCurrentCall ? CallsOfEvents().handle() : MPI_T_ENUM_NULL;
}

const std::vector<PerformanceVariable>& PerformanceVariables() {
  static const auto& variables = *new std::vector<PerformanceVariable>([] {
    std::vector<PerformanceVariable> made;
    for (const shm::StatisticLabel& label : shm::StatisticLabels()) {
      made.push_back({label.name, label.unit, label.help,
                      label.id == shm::Statistic::kLinksOpen  ? MPI_T_PVAR_CLASS_LEVEL
                      : std::strcmp(label.unit, "bytes") == 0 ? MPI_T_PVAR_CLASS_AGGREGATE
                                                              : MPI_T_PVAR_CLASS_COUNTER});
    }
    made.push_back(
        {"time_waiting", "seconds",
         "Time that calls of the program have waited for messages and requests, those in "
         "collectives included",
         MPI_T_PVAR_CLASS_TIMER, Source::kWaited});
    made.push_back({"time_in_collectives", "seconds",
                    "Time in blocking collective operations, their waits included",
                    MPI_T_PVAR_CLASS_TIMER, Source::kInCollectives});
    made.push_back({"most_unexpected_messages", "messages",
                    "The most messages that waited for their receives at a time",
                    MPI_T_PVAR_CLASS_HIGHWATERMARK, Source::kMostUnexpected});
    made.push_back({"most_posted_receives", "receives",
                    "The most receives that waited for their messages at a time, Ferry's own and "
                    "those of collectives included",
                    MPI_T_PVAR_CLASS_HIGHWATERMARK, Source::kMostPosted});
    made.push_back({"current_call", "function",
                    "The function that the calling thread is in, where a callback asks",
                    MPI_T_PVAR_CLASS_STATE, Source::kCurrentCall});
    return made;
  }());
  return variables;
}

PerformanceHandle::PerformanceHandle(int index) : index_(index) {
  mark_.is_unexpected = variable().source == Source::kMostUnexpected;
}

PerformanceHandle::~PerformanceHandle() { (void)Stop(); }

const PerformanceVariable& PerformanceHandle::variable() const {
  return PerformanceVariables()[static_cast<size_t>(index_)];
}

uint64_t PerformanceHandle::Now() const {
  switch (variable().source) {
    case Source::kWaited:
      return EventHub::Instance().waited_ns();
    case Source::kInCollectives:
      return EventHub::Instance().in_collectives_ns();
    default:
      return ferry_counter_value(index_);
  }
}

void PerformanceHandle::Gather() {
  if (variable().is_mark()) {
    value_ = is_running_ ? EventHub::Instance().Most(mark_) : value_;
    return;
  }
  const uint64_t now = Now();
  if (is_running_ && now > seen_) {  // it is 0 again once the rank has left its job
    value_ += now - seen_;
  }
  seen_ = now;
}

Failure PerformanceHandle::Start() {
  if (variable().is_now()) {
    return {MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable is always active"};
  }
  if (!is_running_ && variable().is_mark()) {
    EventHub::Instance().BeginMark(&mark_);
  } else if (!is_running_ && variable().is_timer()) {
    EventHub::Instance().Watch();
  }
  Gather();
  is_running_ = true;
  return {};
}

Failure PerformanceHandle::Stop() {
  if (variable().is_now()) {
    return {MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable is always active"};
  }
  Gather();
  if (is_running_ && variable().is_mark()) {
    EventHub::Instance().EndMark(&mark_);
  } else if (is_running_ && variable().is_timer()) {
    EventHub::Instance().Unwatch();
  }
  is_running_ = false;
  return {};
}

void PerformanceHandle::Read(void* buffer) {
  if (variable().source == Source::kCurrentCall) {
    const int call = CurrentCall();
    std::memcpy(buffer, &call, sizeof(call));
    return;
  }
  uint64_t value = 0;
  if (variable().is_now()) {
    value = Now();
  } else {
    Gather();
    value = value_;
  }
  if (variable().is_timer()) {
    const double seconds = static_cast<double>(value) / kNsPerSecond;
    std::memcpy(buffer, &seconds, sizeof(seconds));
  } else {
    std::memcpy(buffer, &value, sizeof(value));
  }
}

Failure PerformanceHandle::CheckWritable() const {
  return variable().is_now() ? Failure{MPI_T_ERR_PVAR_NO_WRITE,
                                       "the variable says how it is now: no tool can set it"}
                             : Failure();
}

Failure PerformanceHandle::Write(const void* buffer) {
  FERRY_RETURN_FAILURE(CheckWritable());
  Gather();
  if (variable().is_timer()) {
    double seconds = 0;
    std::memcpy(&seconds, buffer, sizeof(seconds));
    if (!(seconds >= 0)) {
      return {MPI_T_ERR_INVALID, "a time is not negative"};
    }
    value_ = static_cast<uint64_t>(seconds * kNsPerSecond);
  } else {
    std::memcpy(&value_, buffer, sizeof(value_));
    mark_.most = value_;
  }
  return {};
}

Failure PerformanceHandle::Reset() {
  FERRY_RETURN_FAILURE(CheckWritable());
  Gather();
  value_ = 0;
  if (variable().is_mark() && is_running_) {
    EventHub::Instance().BeginMark(&mark_);
    Gather();
  }
  return {};
}

}  // namespace ferry::mpi
